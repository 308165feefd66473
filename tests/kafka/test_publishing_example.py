"""The example of `deploy/run-on-kafka.md` that publishes pages runs against a real broker."""

import re
from pathlib import Path

from streams.config.settings import Topics
from streams.kafka import Admin, topics
from streams.kafka.topics import Sizes

PAGE = Path(__file__).parents[2] / "deploy" / "run-on-kafka.md"


def test_the_crawlers_example_publishes_a_page_and_a_tombstone(broker: str, admin: Admin, names: Topics) -> None:
    topics.create(admin, names, Sizes(partitions=2))
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    assert 'PageProducer("broker:9092")' in code
    code = code.replace('PageProducer("broker:9092")', f'PageProducer("{broker}", "{names.pages}")')
    exec(compile(code, PAGE.name, "exec"), {})
    ends = admin.offsets(admin.topic(names.pages), "latest")
    assert sum(ends.values()) == 2
