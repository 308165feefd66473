"""Rows that come back from the changelogs: whatever order they come in, the newest of a key stays."""

import asyncio
import random
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

pytest.importorskip("faust", reason="faust-streaming is not installed")

from faust.types import TP

from streams.views.changelogs import Changelogs, last_of
from streams.views.entries import CLUSTERS
from streams.views.view_rows import TABLES, apply
from tests.streams.views.random_verdicts import CLOSENESS, MemoryRows, emitted_at, random_verdicts


def test_every_row_says_which_verdict_it_is_of() -> None:
    kept = MemoryRows()
    for verdict in random_verdicts(300):
        apply({**verdict, "url": verdict["url"] + '"last":[9,9]}'}, kept, emitted_at(verdict), CLOSENESS)
        kept.tables = {name: {key: orjson.loads(orjson.dumps(row)) for key, row in rows.items()}
                       for name, rows in kept.tables.items()}  # fmt: skip
    for table in TABLES:
        assert kept.tables[table]
        for key, row in kept.tables[table].items():
            if table == "entries" and not key.startswith(CLUSTERS):
                assert "last" not in row, "it follows from one verdict alone"
                continue
            value = orjson.dumps(row)
            assert value.endswith(b'"last":' + orjson.dumps(row["last"]) + b"}")
            assert last_of(value) == row["last"]
    assert [last_of(value) for value in (None, b"", b"oops", b"{}", b'{"last":7}', b'[1,"last":')] == [None] * 6


class Table:
    """One of Faust's, with a dictionary for each partition."""

    changelog_topic_name = "changes"

    def __init__(self) -> None:
        self.stores: dict[int, dict[bytes, bytes]] = {0: {}, 1: {}}
        self.offsets: dict[Any, int] = {}
        self.data = self

    def _db_for_partition(self, partition: int) -> dict[bytes, bytes]:
        return self.stores[partition]

    def set_persisted_offset(self, place: Any, offset: int) -> None:
        self.offsets[place] = offset

    def persisted_offset(self, place: Any) -> int | None:
        return self.offsets.get(place)

    def apply_changelog_batch(self, events: Any) -> None:
        for event in events:
            self.stores[event.message.partition][event.message.key] = event.message.value


def event(partition: int, offset: int, key: bytes, last: list[int]) -> Any:
    value = orjson.dumps({"n": offset, "last": last})
    place = ("changes", partition)
    return SimpleNamespace(message=SimpleNamespace(partition=partition, offset=offset, key=key, value=value, tp=place))


@pytest.mark.parametrize("seed", range(5))
def test_an_older_row_never_replaces_a_newer_one(seed: int) -> None:
    chance, table = random.Random(seed), Table()
    Changelogs(None, {"urls": table}, lambda error: None)
    newest: dict[tuple[int, bytes], list[int]] = {}
    events = []
    for offset in range(200):
        partition, key, last = chance.randrange(2), b"%d" % chance.randrange(5), [chance.randrange(50), 0]
        events.append(event(partition, offset, key, last))
        newest[partition, key] = max(last, newest.get((partition, key), last))
    while events:
        count = chance.randint(1, 60)
        table.apply_changelog_batch(events[:count])
        for partition in (0, 1):
            read = [each.message.offset for each in events[:count] if each.message.partition == partition]
            assert not read or table.offsets["changes", partition] == read[-1], "also of what was left out"
        del events[:count]
    assert {
        (part, key): last_of(value) for part, store in table.stores.items() for key, value in store.items()
    } == newest


class Producer:
    """Answers each batch with a given offset, and keeps two records per batch."""

    def __init__(self, offsets: list[int]) -> None:
        self.offsets, self.batches = offsets, list[Any]()

    def _ensure_producer(self) -> "Producer":
        return self

    def create_batch(self) -> Any:
        records = list[tuple[bytes, bytes]]()

        def append(*, key: bytes, value: bytes, timestamp: None) -> bool | None:
            if len(records) == 2:
                return None
            records.append((key, value))
            return True

        return SimpleNamespace(records=records, append=append)

    async def send_batch(self, batch: Any, topic: str, *, partition: int) -> Any:
        answer = asyncio.get_running_loop().create_future()
        answer.set_result(SimpleNamespace(offset=self.offsets[len(self.batches)]))
        self.batches.append((topic, partition, [key for key, _ in batch.records]))
        return answer


@pytest.mark.parametrize(("offsets", "failed", "kept"), [([7, 9], 0, 9), ([7, 12], 1, 8), ([8, 10], 2, 6)])
def test_worker_that_finds_foreign_changes_stops(offsets: list[int], failed: int, kept: int) -> None:
    place, table, producer = TP("changes", 1), Table(), Producer(offsets)
    table.offsets[place] = 6
    app = SimpleNamespace(producer=producer, assignor=SimpleNamespace(assigned_actives=lambda: {place}))
    errors: list[BaseException] = []
    changes = Changelogs(app, {"urls": table}, errors.append)

    async def run() -> None:
        await changes.send("urls", 1, [(b"a", b"1"), (b"b", b"2"), (b"c", b"3")])
        await changes.arrived()

    asyncio.run(run())
    assert producer.batches == [("changes", 1, [b"a", b"b"]), ("changes", 1, [b"c"])]
    assert (len(errors), table.offsets[place]) == (failed, kept)
    assert all("another worker's" in str(error) for error in errors)
