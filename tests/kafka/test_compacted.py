"""A compacted topic of verdicts: the remaining ones have each URL's effective verdict, and gaps stop no reader."""

from typing import Any

import pytest
from broker import eventually
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource
from line import Line, Make, story

from streams.client import VerdictConsumer
from streams.kafka import topics
from streams.verdicts.export import TABLES, rows


class Everything:
    def load(self) -> dict[str, int]:
        return {}


def read(line: Line) -> list[dict[str, Any]]:
    with VerdictConsumer(line.bootstrap, Everything(), line.names.verdicts) as consumer:
        return [verdict for batch in consumer.batches(follow=False) for verdict in batch.verdicts]


def standing(verdicts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The table of URLs, without fields that only an earlier verdict may have had, and in an order without these."""
    names = list(TABLES["urls"])
    emitted_before = {"title", "lang", "kept_apart", "alike"}
    found = [
        {n: v for n, v in zip(names, row, strict=True) if n not in emitted_before} for row in rows("urls", verdicts)
    ]
    return sorted(found, key=lambda row: str(row["url"]))


def compact_soon(line: Line) -> None:
    """A cleaner looks for work five times a second, and finds it."""
    client = AdminClient({"bootstrap.servers": line.bootstrap})
    (node,) = client.list_topics(timeout=30).brokers
    entry = ConfigEntry("log.cleaner.backoff.ms", "200", incremental_operation=AlterConfigOpType.SET)
    broker = ConfigResource(ConfigResource.Type.BROKER, str(node), incremental_configs=[entry])
    client.incremental_alter_configs([broker])[broker].result(30)
    for setting, value in (("cleanup.policy", "compact"), ("segment.ms", "50"), ("min.cleanable.dirty.ratio", "0.0")):
        line.alter(line.names.verdicts, setting, value)


@pytest.mark.whole
@pytest.mark.slow
def test_a_compacted_topic_tells_where_each_url_stands(own_broker: Any, make: Make) -> None:
    line = make(bootstrap=own_broker.bootstrap)
    compact_soon(line)
    assert topics.check(line.admin, line.names, line.sizes) == []
    line.start("sketch")
    matcher = line.start("match")
    line.publish(story(24))
    line.settle()

    def some_went() -> bool:
        line.publish(story(3))  # the last verdicts are compacted only after newer ones
        line.settle()
        return len(read(line)) < line.total()

    eventually(some_went, "older verdicts are gone")
    # The matcher finds its place by the newest verdicts, as after a month of silence.
    matcher.stop()
    line.forget("match")
    line.start("match")
    line.publish(story(5))
    line.settle()
    line.stop()

    left, values = read(line), line.expected()
    ids = [(verdict["page_id"], verdict["n"]) for verdict in left]
    assert len(set(ids)) == len(ids), "emitted twice"
    assert all(verdict in values for verdict in left)
    assert {verdict["url"]: verdict for verdict in left} == {verdict["url"]: verdict for verdict in values}
    in_order = sorted(left, key=lambda verdict: (verdict["page_id"], verdict["n"]))
    assert standing(in_order) == standing(values)
