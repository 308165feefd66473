"""The examples of `deploy/run-on-kafka.md` that publish pages run against a real broker."""

import re
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from streams.config.settings import Topics
from streams.formats import raw
from streams.formats.bodies import Bodies
from streams.kafka import Admin, topics
from streams.kafka.topics import Sizes

PAGE = Path(__file__).parents[2] / "deploy" / "run-on-kafka.md"


def test_the_crawlers_example_publishes_a_page_and_a_tombstone(broker: str, admin: Admin, names: Topics) -> None:
    topics.create(admin, names, Sizes(partitions=2))
    with_client, with_producer = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    assert 'PageProducer("broker:9092")' in with_client
    code = with_client.replace('PageProducer("broker:9092")', f'PageProducer("{broker}", "{names.pages}")')
    exec(compile(code, PAGE.name, "exec"), {})
    before = admin.offsets(admin.topic(names.pages), "latest")
    assert sum(before.values()) == 2
    code = with_producer.replace("broker:9092", broker).replace('"pages"', f'"{names.pages}"')
    exec(compile(code, PAGE.name, "exec"), {})
    after = admin.offsets(admin.topic(names.pages), "latest")
    (partition,) = (number for number in after if after[number] != before[number])
    consumer = Consumer({"bootstrap.servers": broker, "group.id": names.pages})
    consumer.assign([TopicPartition(names.pages, partition, 0)])
    records = consumer.consume(after[partition], timeout=30)
    consumer.close()
    urls = [record.key().decode() for record in records if record.key() == b"https://a.example/"]
    assert len(urls) == 2, "both producers choose one partition for a URL"
    page = raw.decode(urls[-1], records[-1].value(), records[-1], Bodies((), 1))
    assert (page.status, page.fetched_at, page.content_type) == (200, 1767225600000, "text/html")
