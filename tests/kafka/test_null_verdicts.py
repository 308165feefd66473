"""A null record in `verdicts`, as an operator writes one to delete a URL from a compacted topic: all pass over it."""

import shutil
from typing import Any

import orjson
import pytest
from confluent_kafka import Producer
from line import Line, Make, story
from test_backfill import live

from neardup.errors import CorruptRecord
from streams.client import VerdictConsumer
from streams.verdicts.diff_command import history_of
from streams.verdicts.print_verdicts import verdicts_of
from tests import whole


class Nothing:
    def load(self) -> dict[str, int]:
        return {}


def read(line: Line) -> list[dict[str, Any]]:
    with VerdictConsumer(line.bootstrap, Nothing(), line.names.verdicts) as consumer:
        return [verdict for batch in consumer.batches(follow=False) for verdict in batch.verdicts]


def write(line: Line, value: bytes | None, urls: set[str]) -> None:
    """Behind all verdicts, in the partition of each URL."""
    producer = Producer({"bootstrap.servers": line.bootstrap, "partitioner": "murmur2_random"})
    for url in urls:
        producer.produce(line.names.verdicts, value, url.encode())
    assert producer.flush(60) == 0


def by_id(verdicts: list[dict[str, Any]]) -> list[tuple[int, int]]:
    return sorted((verdict["page_id"], verdict["n"]) for verdict in verdicts)


def test_a_null_verdict_is_passed_over_by_consumers_diff_and_matcher(make: Make) -> None:
    line = live(make, story(12))
    emitted = by_id(line.verdicts())
    write(line, None, {verdict["url"] for verdict in line.verdicts()})
    assert by_id(read(line)) == emitted
    assert by_id(list(history_of(f"topic:{line.names.verdicts}", verdicts_of(line.settings))())) == emitted  # type: ignore[arg-type]

    for loses in ("offsets", "offsets and state"):  # it finds its place by the newest verdicts
        line.forget("match")
        if loses != "offsets":
            shutil.rmtree(line.settings.state)
        line.judge(story(3))
        line.check()
        write(line, None, {line.verdicts()[-1]["url"]})


@pytest.mark.whole
@pytest.mark.parametrize("left", whole.first([0, 8], 1))
def test_a_matcher_goes_on_where_compaction_has_removed_its_last_verdicts(make: Make, left: int) -> None:
    """left: of the first verdicts so many are still there, before the null records."""
    line = live(make, story(12))
    emitted = line.verdicts()
    ends = line.ends(line.names.verdicts)
    for verdict in emitted[:left]:
        write(line, orjson.dumps(verdict), {verdict["url"]})
    write(line, None, {verdict["url"] for verdict in emitted})
    for partition, end in ends.items():
        line.delete_before(line.names.verdicts, partition, end)
    assert by_id(read(line)) == by_id(emitted[:left])
    line.forget("match")
    line.judge(story(3))
    line.settle()
    line.stop()
    assert by_id(line.verdicts()) == sorted(set(by_id(line.expected())) - set(by_id(emitted[left:])))


@pytest.mark.whole
def test_an_empty_value_is_still_no_verdict(make: Make) -> None:
    line = live(make, story(3))
    write(line, b"", {"http://a.example/"})
    with pytest.raises(CorruptRecord, match="no verdict of neardup"):
        read(line)
