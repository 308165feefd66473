"""What shards and a judge must say of a log: slow, and without any queue, position or copy.

Before each message every shard applies the effects of the messages before the last epoch but one, one after another.
The judge is started anew for each message, from its rows and the messages of its window.
"""

import random
from dataclasses import dataclass, field

from neardup.decider import Decider
from neardup.index.column_families import Family
from neardup.index.memory import MemoryStore
from neardup.sharded.answering import answer
from neardup.sharded.apply_effects import changes
from neardup.sharded.epochs import Sharding
from neardup.sharded.messages import Effects
from neardup.sketch.layout import RecordKind, field_at
from streams.formats.message import Message, decode_entry, encode_message
from streams.pipeline.matcher import Matcher
from streams.ports import Range
from tests.neardup.invariants import contents_of
from tests.neardup.story import SMALL
from tests.neardup.test_fold import crawl

Messages = list[bytes]
_OFFSET = field_at("offset")


def messages_of(records: list[bytes], rng: random.Random, most: int | None = 6) -> Messages:
    """Records as messages of 1 to `most` each; None: all in one."""
    out: Messages = []
    start = 0
    while start < len(records):
        stop = min(len(records), start + (rng.randrange(1, most + 1) if most else len(records)))
        some = []
        for offset in range(start, stop):
            made = bytearray(records[offset])
            made[_OFFSET : _OFFSET + 8] = offset.to_bytes(8, "little")
            some.append(bytes(made))
        span = Range(bytes(16), 0, start, stop)
        out.append(encode_message(Message(bytes.fromhex(SMALL.scheme), (span,), tuple(some))))
        start = stop
    return out


def some_records(seed: int, length: int) -> list[bytes]:
    records: list[bytes] = crawl(seed, length)
    return records


def rows_in(store: MemoryStore) -> dict[Family, dict[bytes, bytes]]:
    """All rows but META."""
    rows: dict[Family, dict[bytes, bytes]] = contents_of(store)
    return rows


def records_in(data: bytes) -> tuple[bytes, ...]:
    entry = decode_entry(data, 0)
    return entry.records if isinstance(entry, Message) else ()


@dataclass
class Lockstep:
    """Verdicts as JSON, effects and answers as bytes, by message; and the judge's rows after the last one."""

    verdicts: list[list[bytes]] = field(default_factory=list)
    effects: list[bytes] = field(default_factory=list)
    answers: list[list[bytes]] = field(default_factory=list)
    rows: MemoryStore = field(default_factory=MemoryStore)


def started(rows: MemoryStore, messages: Messages, decider: Decider) -> Matcher:
    """A judge that goes on with rows, as after a restart."""
    judge = Matcher(rows, decider)
    assert judge.window is not None
    for before in range(judge.window.restore_from, judge.next_offset):
        judge.restore_window(before, messages[before])
    return judge


def lockstep(messages: Messages, decider: Decider) -> Lockstep:
    out, sharding, seen = Lockstep(), Sharding(decider.shards, decider.epoch), 0
    shards = [MemoryStore() for _ in range(decider.shards)]
    for offset, data in enumerate(messages):
        before = max(0, (offset // decider.epoch - 1) * decider.epoch)
        for number, rows in enumerate(shards):
            apply(range(seen, before), messages, out.effects, rows, number, decider)
        seen = max(seen, before)
        pages = pages_in(data, offset)
        answers = [answer(sharding, number, offset, pages, rows, decider) for number, rows in enumerate(shards)]
        judge = started(out.rows, messages, decider)
        prepared = judge.prepare([(offset, data)], answers=answers)
        judge.apply(prepared)
        assert prepared.effects is not None
        out.verdicts.append([verdict.to_json() for verdict in prepared.verdicts])
        out.effects.append(prepared.effects.encode())
        out.answers.append([one.encode() for one in answers])
    return out


def rows_of(messages: Messages, effects: list[bytes], number: int, decider: Decider) -> MemoryStore:
    """The rows of one shard after the effects of some messages."""
    rows = MemoryStore()
    apply(range(len(messages)), messages, effects, rows, number, decider)
    return rows


def apply(
    offsets: range, messages: Messages, effects: list[bytes], rows: MemoryStore, number: int, decider: Decider
) -> None:
    """Applies the effects of some messages to the rows of one shard, one after another."""
    for offset in offsets:
        items = Effects.decode(effects[offset]).items.tolist()
        records = dict(pages_in(messages[offset], offset))
        rows.write(changes(items, records, rows, decider, lambda page_id: (page_id >> 12) % decider.shards == number))


def pages_in(data: bytes, offset: int) -> list[tuple[int, bytes]]:
    records = enumerate(records_in(data))
    return [(offset << 12 | place, record) for place, record in records if record[1] == RecordKind.PAGE]
