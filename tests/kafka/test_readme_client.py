"""The README's example of a crawler's side runs, against a real broker."""

import re
from pathlib import Path

from streams.config.settings import Topics
from streams.kafka import Admin, topics
from streams.kafka.topics import Sizes

README = Path(__file__).parents[2] / "README.md"


def test_the_crawlers_example_publishes_a_page_and_a_tombstone(broker: str, admin: Admin, names: Topics) -> None:
    topics.create(admin, names, Sizes(partitions=2))
    _, code = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)
    assert 'PageProducer("broker:9092")' in code
    code = code.replace('PageProducer("broker:9092")', f'PageProducer("{broker}", "{names.pages}")')
    exec(compile(code, "README.md", "exec"), {})
    ends = admin.offsets(admin.topic(names.pages), "latest")
    assert sum(ends.values()) == 2
