"""Processor time of a judge and its shards a page, and how often their verdicts differ from those of one matcher.

    python -m tests.measure.bench.sharded [--log STATE/log] [--pages N] [--shards 1,2,4,8] [--epoch E] [--at 10000,...]

All parts run in this process, message by message: one matcher, the shards, the judge. So a busy machine slows all of
them down alike. Without --log the log is the bench's crawl with 30% repeats (`tests.measure.bench.crawl`). With
--together the shards read each message once, as those of one process do. --at also prints the cost of the 10,000 pages
up to each number of pages in the index.
"""

import argparse
import gc
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from neardup.decider import Decider
from neardup.index.column_families import Store
from neardup.index.memory import MemoryStore
from neardup.index.rocks import RocksStore
from neardup.scheme import Scheme
from neardup.sharded.messages import Candidates, Effects
from neardup.sharded.shard import Question, Shard
from streams.commands.app import GC_THRESHOLDS
from streams.formats.message import Message, decode_entry
from streams.pipeline.matcher import Matcher
from streams.state.segments import SegmentLog
from tests.measure.bench.crawl import Crawl

_STAGE_PAGES = 10_000
Messages = list[tuple[int, bytes]]


@dataclass
class Run:
    """Verdicts as JSON, in order, and microseconds of processor time by role. bytes: of candidates and effects."""

    verdicts: list[bytes] = field(default_factory=list)
    micros: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    bytes: Counter[str] = field(default_factory=Counter)

    @contextmanager
    def time(self, role: str) -> Iterator[None]:
        started = time.process_time_ns()
        yield
        self.micros[role] += (time.process_time_ns() - started) / 1000


#: Called with the number of pages so far, behind each message.
Passed = Callable[[int, Run, Run], None]


def run_both(
    messages: Messages,
    decider: Decider,
    make: Callable[[str], Store],
    *,
    together: bool = False,
    passed: Passed = lambda pages, base, run: None,
) -> tuple[Run, Run]:
    """One matcher; and a judge and its shards, in lockstep. together: each message is decoded once for all shards."""
    pages = 0
    base, matcher = Run(), Matcher(make("index"), replace(decider, shards=1, epoch=0))
    run, judge = Run(), Matcher(make("judge"), decider)
    shards = [Shard(number, make(f"shard-{number}"), decider) for number in range(decider.shards)]
    answers: dict[int, list[Candidates]] = {}
    for offset, data in messages:
        with base.time("matcher"):
            prepared = matcher.prepare([(offset, data)])
            base.verdicts += prepared.verdicts.lines()
            matcher.apply(prepared)
        question: Question | None = None
        for shard in shards:
            with run.time("shard"):
                if question is None or not together:
                    entry = decode_entry(data, offset)
                    question = Question(offset, entry.records if isinstance(entry, Message) else ())
                shard.take(question)
                shard.advance()
                given = [(one.offset, one.encode()) for one in shard.answers()]
            for at, encoded in given:
                run.bytes["candidates"] += len(encoded)
                answers.setdefault(at, []).append(Candidates.decode(encoded))
        with run.time("judge"):
            prepared = judge.prepare([(offset, data)], answers=answers.pop(offset))
            assert prepared.effects is not None
            effects = prepared.effects.encode()
            lines = prepared.verdicts.lines()
            judge.apply(prepared)
        run.verdicts += lines
        run.bytes["effects"] += len(effects)
        for shard in shards:
            with run.time("shard"):
                shard.learn(Effects.decode(effects))
        pages += len(prepared.pages)
        passed(pages, base, run)
    return base, run


class Stages:
    """Prints what a page costs in indexes of some sizes."""

    def __init__(self, sizes: list[int]) -> None:
        self.sizes, self.shards = sizes, 1
        self.marks: list[tuple[int, dict[str, float]]] = []  # (pages, microseconds so far)

    def __call__(self, pages: int, base: Run, run: Run) -> None:
        if not self.sizes:
            return
        before = self.marks[-1][0] if self.marks else 0
        self.marks.append((pages, {**base.micros, **run.micros}))
        for size in self.sizes:
            if before < size <= pages:
                first = next((mark for mark in reversed(self.marks) if mark[0] <= pages - _STAGE_PAGES), (0, {}))
                spent = {
                    role: (micros - first[1].get(role, 0.0))
                    / (pages - first[0])
                    / (self.shards if role == "shard" else 1)
                    for role, micros in self.marks[-1][1].items()
                }
                text = ", ".join(f"{role} {micros:.1f} us" for role, micros in spent.items())
                print(f"  {pages:,} pages in the index: {text}", flush=True)


def differences(one: Sequence[bytes], other: Sequence[bytes]) -> Counter[str]:
    """Page verdicts of another kind or cluster, by "kind -> kind"."""
    found: Counter[str] = Counter()
    for a, b in zip(_pages(one), _pages(other), strict=True):
        if (a["verdict"], a.get("cluster")) != (b["verdict"], b.get("cluster")):
            found[f"{a['verdict']} -> {b['verdict']}"] += 1
    return found


def _pages(lines: Sequence[bytes]) -> list[dict[str, Any]]:
    return [verdict for line in lines if not (verdict := orjson.loads(line))["n"]]


def main() -> None:
    parser = argparse.ArgumentParser(prog="tests.measure.bench.sharded", description=__doc__)
    parser.add_argument("--log", type=Path, help="the log of a scan's state directory")
    parser.add_argument("--pages", type=int, default=50_000, help="pages to generate")
    parser.add_argument("--messages", type=int, help="messages of the log to read, at most")
    parser.add_argument("--shards", default="1,2,4,8")
    parser.add_argument("--epoch", type=int, default=16)
    parser.add_argument("--memory", action="store_true", help="rows in memory instead of RocksDB")
    parser.add_argument("--together", action="store_true", help="shards of one process, which read the log once")
    parser.add_argument("--at", default="", help="numbers of pages at which the cost of the last 10,000 is printed")
    asked = parser.parse_args()
    gc.set_threshold(*GC_THRESHOLDS)  # as in the process of a role
    stages = Stages([])
    if asked.log:
        messages = list(islice(SegmentLog(asked.log).read(), asked.messages))
        scheme = decode_entry(messages[0][1], 0).scheme.hex()
    else:
        made = Scheme(seed=1)
        scheme, messages = made.digest, list(Crawl(asked.pages).messages(made))
    decider = Decider(scheme=scheme)

    def measured(messages: Messages, shards: int) -> tuple[Run, Run]:
        with tempfile.TemporaryDirectory() as folder:
            stores: list[Store] = []

            def make(name: str) -> Store:
                stores.append(MemoryStore() if asked.memory else RocksStore(Path(folder) / name))
                return stores[-1]

            sharded = replace(decider, shards=shards, epoch=asked.epoch)
            stages.shards, stages.marks = shards, []
            found = run_both(messages, sharded, make, together=asked.together, passed=stages)
            for store in stores:
                store.close()
            return found

    measured(messages[: 3 * asked.epoch], 1)  # compiles
    stages.sizes = sorted(map(int, filter(None, asked.at.split(","))))
    for shards in map(int, asked.shards.split(",")):
        base, found = measured(messages, shards)
        pages = len(_pages(base.verdicts))
        apart = differences(base.verdicts, found.verdicts)
        whole = base.micros["matcher"] / pages
        judge, shard = found.micros["judge"] / pages, found.micros["shard"] / shards / pages
        sent = (found.bytes[name] / pages for name in ("candidates", "effects"))
        print(
            f"V = {shards}, E = {asked.epoch}, {pages:,} pages in {len(messages):,} messages: "
            f"one matcher {whole:.1f} us a page; judge {judge:.1f} us ({judge / whole:.2f} x), "
            f"each shard {shard:.1f} us ({shard / whole:.2f} x); "
            "candidates {:.0f} and effects {:.0f} bytes a page; ".format(*sent)
            + f"{sum(apart.values())} verdicts differ ({sum(apart.values()) / pages:.3%}): {dict(apart.most_common())}",
            flush=True,
        )


if __name__ == "__main__":
    main()
