"""Processor time of one matcher, a judge and a shard for a page, in indexes of growing size.

    python -m tests.measure.bench.by_size [--sizes 10000,1000000] [--shards 4] [--roles matcher,judge,shard] [--model N]

The indexes are filled with the rows that folding would have written, then every role takes the same messages: 7 of 10
pages are new, 3 repeat pages from anywhere in the index. Shard 0 has its share of the pages on disk; the other shards
hold in memory the pages that are repeated, so that the judge gets all answers. A page's *own* time is that of the
role's thread. *Background* is that of RocksDB's threads while the index grew to the size, a page, until nothing waits
for compaction. *In memory* is one matcher whose store holds the repeated pages alone: it takes the same messages in
turn, so that own time is comparable between sizes on a busy machine.

With --model N, RocksDB's buffers, files and cache are N times smaller: an index of P / N pages then has the levels and
the cache misses of one of P pages, in an N-th of the time. Filters and indexes fit a processor's cache better there.
"""

import argparse
import tempfile
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from neardup.decider import Decider
from neardup.index.column_families import Family, Store
from neardup.index.memory import MemoryStore
from neardup.index.rocks import RocksStore
from neardup.limits import PLACE_BITS
from neardup.scheme import Scheme
from neardup.sharded.messages import Candidates, Effects
from neardup.sharded.shard import Question, Shard
from neardup.sketch.layout import field_at
from streams.formats.message import Message, decode_entry, encode_message
from streams.pipeline.matcher import Matcher
from streams.ports import Range
from tests.measure.bench.generated import FILL_PAGES, Log, changed, judge_rows, rows, shard_rows
from tests.measure.bench.options import tuned
from tests.measure.bench.store_rows import enough_room, settle
from tests.measure.bench.variants import VARIANTS, Variant

MESSAGE_PAGES = 512
#: A part of the log has so many offsets: what fills an index up to a size, or the messages of a stage. So ids come in
#: the order of the log, as RocksDB gets them from a matcher. New pages of a stage begin at multiples of that number.
_STAGE_OFFSETS, _STAGE_NUMBERS = 1 << 24, 10**9
_SETTLE_S_MAX = 900.0
_STEP_MIN = 100
ROLES = ("matcher", "judge", "shard")
#: Sizes of RocksDB and of `RocksStore` by default.
_FAMILY_BUFFER, _LEVEL_1, _FILE, _CACHE, _WRITES = 64 << 20, 256 << 20, 64 << 20, 256 << 20, 128 << 20


def page_id(number: int, sizes: Sequence[int] = ()) -> int:
    """The page id of a page that fills an index. sizes: at which a stage of the log follows, ascending."""
    offset = 2 * bisect_right(sizes, number) * _STAGE_OFFSETS + number // MESSAGE_PAGES
    return offset << PLACE_BITS | number % MESSAGE_PAGES


def repeated(size: int, count: int) -> list[int]:
    """Numbers of the pages that a stage of `count` pages repeats, from an index of `size` pages."""
    random = np.random.default_rng((size, 5))
    return [int(number) for number in random.integers(0, size, size=count)]


def stage(log: Log, size: int, number: int, count: int) -> Iterator[bytes]:
    """Records for an index of `size` pages: 7 of 10 new, 2 near and 1 exact duplicate. number: of the stage, from 1."""
    first = number * _STAGE_NUMBERS
    random = np.random.default_rng((size, 6))
    fresh = iter(log.records(first, count))
    for place, old in enumerate(repeated(size, count)):
        if place % 10 < 7:
            yield next(fresh)
            continue
        (record,) = log.records(old, 1)
        digest = {} if place % 10 == 9 else {"digest": np.frombuffer(random.bytes(16), "V16")[0]}
        yield changed(record, first + place, **digest)


def named(records: Sequence[bytes], number: int) -> list[bytes]:
    """The records of a stage with a source of its own."""
    at, source, offset = field_at("source"), number.to_bytes(16, "big"), field_at("offset")
    records = [record[:at] + source + record[at + 16 :] for record in records]
    return [record[:offset] + i.to_bytes(8, "little") + record[offset + 8 :] for i, record in enumerate(records)]


def messages(records: Sequence[bytes], scheme: str, number: int) -> list[tuple[int, bytes]]:
    """(offset, message) of the records of a stage, which `named` has named."""
    out = []
    for first in range(0, len(records), MESSAGE_PAGES):
        some = tuple(records[first : first + MESSAGE_PAGES])
        span = Range(number.to_bytes(16, "big"), 0, first, first + len(some))
        offset = max(0, 2 * number - 1) * _STAGE_OFFSETS + len(out)
        out.append((offset, encode_message(Message(bytes.fromhex(scheme), (span,), some))))
    return out


@dataclass
class Index:
    """The index of one role. background_us: of RocksDB's threads, a page of the last filling. step: pages a write."""

    make_rows: Callable[[Sequence[bytes], Sequence[int], Decider], dict]
    store: Store
    of_shard: bool = False
    background_us: float = 0.0
    step: int = FILL_PAGES

    def fill(self, log: Log, first: int, last: int, decider: Decider, sizes: Sequence[int]) -> None:
        others = time.process_time() - time.thread_time()
        for start in range(first, last, self.step):
            many = min(self.step, last - start)
            ids, records = [page_id(number, sizes) for number in range(start, start + many)], log.records(start, many)
            if self.of_shard:
                own = [i for i, one in enumerate(ids) if (one >> PLACE_BITS) % decider.shards == 0]
                ids, records = [ids[i] for i in own], [records[i] for i in own]
            if ids:
                self.store.write(self.make_rows(records, ids, decider))
        if isinstance(self.store, RocksStore):
            self.store.flush()
            settle(self.store, _SETTLE_S_MAX)
        self.background_us = (time.process_time() - time.thread_time() - others) / max(1, last - first) * 1e6


@dataclass
class Clock:
    """Processor time of this thread, in microseconds."""

    micros: float = 0.0
    _started: int = field(default=0)

    def __enter__(self) -> None:
        self._started = time.thread_time_ns()

    def __exit__(self, *_: object) -> None:
        self.micros += (time.thread_time_ns() - self._started) / 1000


class Roles:
    """One matcher, a judge and its shards, in lockstep; with None for a role that is not measured."""

    def __init__(self, stores: dict[str, Store], decider: Decider) -> None:
        self.decider = decider
        self.matcher = Matcher(stores["matcher"], replace(decider, shards=1, epoch=0)) if "matcher" in stores else None
        self.memory = MemoryStore()
        self.in_memory = Matcher(self.memory, replace(decider, shards=1, epoch=0))
        self.judged = stores["judge"]
        self.judge = Matcher(self.judged, decider)
        self.others = {number: MemoryStore() for number in range(decider.shards)}
        self.shards = [
            Shard(number, stores["shard"] if number == 0 and "shard" in stores else self.others[number], decider)
            for number in range(decider.shards)
        ]
        self.answers: dict[int, list[Candidates]] = {}

    def teach(self, log: Log, numbers: Sequence[int], sizes: Sequence[int]) -> None:
        """Fills the stores in memory with these pages of the log."""
        for number in sorted(set(numbers)):
            record, own = log.records(number, 1), [page_id(number, sizes)]
            self.memory.write(rows(record, own, self.decider))
            if isinstance(self.judged, MemoryStore):
                self.judged.write(judge_rows(record, own, self.decider))
            shard = (own[0] >> PLACE_BITS) % self.decider.shards
            self.others[shard].write(shard_rows(record, own, self.decider))

    def take(self, offset: int, data: bytes, clocks: dict[str, Clock]) -> None:
        for name, matcher in (("in memory", self.in_memory), ("matcher", self.matcher)):
            if matcher is not None:
                with clocks[name]:
                    prepared = matcher.prepare([(offset, data)])
                    prepared.verdicts.lines()
                    matcher.apply(prepared)
        for shard in self.shards:
            with clocks["shard"] if shard.number == 0 else nullcontext():
                entry = decode_entry(data, offset)
                assert isinstance(entry, Message)
                shard.take(Question(offset, entry.records))
                shard.advance()
                given = [(one.offset, one.encode()) for one in shard.answers()]
            for at, encoded in given:
                self.answers.setdefault(at, []).append(Candidates.decode(encoded))
        with clocks["judge"]:
            prepared = self.judge.prepare([(offset, data)], answers=self.answers.pop(offset))
            assert prepared.effects is not None
            effects = prepared.effects.encode()
            prepared.verdicts.lines()
            self.judge.apply(prepared)
        for shard in self.shards:
            with clocks["shard"] if shard.number == 0 else nullcontext():
                shard.learn(Effects.decode(effects))


def modelled(variant: Variant, model: int) -> Variant:
    """The variant with sizes of RocksDB that are `model` times smaller."""

    def tune(family: Family, options: Any, tables: Any) -> None:
        options.set_write_buffer_size(_FAMILY_BUFFER // model)
        options.set_max_bytes_for_level_base(_LEVEL_1 // model)
        options.set_target_file_size_base(_FILE // model)
        if variant.tune:
            variant.tune(family, options, tables)

    sizes = {"cache_bytes": _CACHE // model, "write_bytes": _WRITES // model, **dict(variant.sizes)}
    return Variant(variant.about, tune, tuple(sizes.items()))


def new_clocks() -> dict[str, Clock]:
    return {name: Clock() for name in ("in memory", *ROLES)}


def main() -> None:
    parser = argparse.ArgumentParser(prog="tests.measure.bench.by_size", description=__doc__)
    parser.add_argument(
        "--sizes",
        default="10000,1000000",
        help="pages in the index, ascending; with --model those that are really there",
    )
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument("--epoch", type=int, default=4)
    parser.add_argument("--messages", type=int, default=24, help="of 512 pages, that are measured at each size")
    parser.add_argument("--roles", default=",".join(ROLES), help="whose index is filled on disk")
    parser.add_argument("--variant", default="default", help="options of RocksDB (tests/measure/bench/variants.py)")
    parser.add_argument("--model", type=int, default=1, help="how many times smaller RocksDB's sizes are")
    parser.add_argument("--scratch", type=Path, help="folder for the indexes: 5 kB a page")
    asked = parser.parse_args()
    sizes, names = sorted(map(int, asked.sizes.split(","))), asked.roles.split(",")
    scheme = Scheme(seed=1).digest
    decider = Decider(scheme=scheme, shards=asked.shards, epoch=asked.epoch)
    makers = {"matcher": rows, "judge": judge_rows, "shard": shard_rows}
    log = Log()
    warm = 2 * asked.epoch
    variant = VARIANTS[asked.variant] if asked.model == 1 else modelled(VARIANTS[asked.variant], asked.model)
    with tempfile.TemporaryDirectory(dir=asked.scratch) as folder, tuned(variant):
        enough_room(Path(folder), sizes[-1])
        indexes = {
            name: Index(
                makers[name],
                RocksStore(Path(folder) / name, **dict(variant.sizes)),
                name == "shard",
                # A write may not be larger than the write buffers of the model.
                step=max(_STEP_MIN, FILL_PAGES // asked.model),
            )
            for name in names
        }
        stores: dict[str, Store] = {name: index.store for name, index in indexes.items()}
        roles = Roles({"judge": MemoryStore(), **stores}, decider)
        compiled = messages(named(log.records(10 * _STAGE_NUMBERS, MESSAGE_PAGES), 0), scheme, 0)
        run = Roles({name: MemoryStore() for name in ROLES}, decider)
        for offset, data in compiled:
            run.take(offset, data, new_clocks())
        filled = 0
        for number, size in enumerate(sizes, 1):
            for index in indexes.values():
                index.fill(log, filled, size, decider, sizes)
            filled = size
            count = (warm + asked.messages) * MESSAGE_PAGES
            roles.teach(log, [old for place, old in enumerate(repeated(size, count)) if place % 10 >= 7], sizes)
            taken = messages(named(list(stage(log, size, number, count)), number), scheme, number)
            clocks = new_clocks()
            for place, (offset, data) in enumerate(taken):
                if place == warm:
                    clocks = new_clocks()
                roles.take(offset, data, clocks)
            pages = asked.messages * MESSAGE_PAGES
            text = [
                f"{name} {clocks[name].micros / pages:.1f} + {indexes[name].background_us:.1f} us" for name in names
            ]
            text.append(f"in memory {clocks['in memory'].micros / pages:.1f} us")
            print(f"{size * asked.model:,} pages, own + background: {', '.join(text)}", flush=True)
        for index in indexes.values():
            index.store.close()


if __name__ == "__main__":
    main()
