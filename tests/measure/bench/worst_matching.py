"""Rows of the matcher's worst cases: what a page costs there against pages like any others, and whether it grows."""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from neardup.decider import Decider
from neardup.index.rocks import RocksStore
from neardup.scheme import Scheme
from neardup.sketch.layout import RecordKind
from tests.measure.bench.generated import Log, changed
from tests.measure.bench.store_rows import Folding, enough_room
from tests.measure.bench.table import Row

_BATCH = 512
#: Batches of a case; the first is not counted, the others are compared half with half.
_BATCHES = 9
_TURNS = 3
#: Above this a page of the second half costs more than one of the first: the cost grows.
GROWTH_MAX = 1.3
#: Pages of the long run of one template that are folded between two looks at the clock.
_LOOK_PAGES = 50 * _BATCH


class Case(NamedTuple):
    """make: records of a case from records like any others. factor: of a normal page's cost, at most."""

    name: str
    factor: float
    make: Callable[[Sequence[bytes], int], list[bytes]]


_TEMPLATE = {"head": 7, "wide": np.arange(8)}


def hot(plain: Sequence[bytes], first: int) -> list[bytes]:
    """Every key of every page is hot."""
    return [changed(record, number, **_TEMPLATE, place=7) for number, record in enumerate(plain, first)]


def template(plain: Sequence[bytes], first: int) -> list[bytes]:
    """One site, one name, one template: only texts and the ends of URLs differ."""
    one = {**_TEMPLATE, "site": 9, "naming": 5}
    return [changed(record, number, **one, tail=number) for number, record in enumerate(plain, first)]


def crowded(plain: Sequence[bytes], first: int) -> list[bytes]:
    """Each page meets up to 64 others, none of them its repeat."""
    return [
        changed(
            record, number, head=number // 64, wide=[(number + 32) // 64 + 10**6, *range(8 * number, 8 * number + 7)]
        )
        for number, record in enumerate(plain, first)
    ]


def one_text(plain: Sequence[bytes], first: int) -> list[bytes]:
    """The same text under ever new URLs."""
    return [changed(plain[0], number) for number in range(first, first + len(plain))]


def one_near(plain: Sequence[bytes], first: int) -> list[bytes]:
    """Texts of ever new sites that all are near-duplicates of the first."""
    return [
        changed(plain[0], number, site=number, digest=np.frombuffer(number.to_bytes(8, "big") + b"\1" * 8, "V16")[0])
        for number in range(first, first + len(plain))
    ]


CASES = (
    Case("every probe is hot", 1.2, hot),
    Case("one template", 1.2, template),
    Case("64 candidates a page", 10.0, crowded),
    Case("one text for ever", 1.0, one_text),
    Case("one near-duplicate for ever", 1.5, one_near),
)


def _run(records: Sequence[bytes], decider: Decider) -> tuple[list[float], Folding]:
    """Processor's microseconds a page of each batch but the first, RocksDB's threads included."""
    with tempfile.TemporaryDirectory() as folder:
        store = RocksStore(Path(folder) / "index")
        folding = Folding(store, decider, 1)
        parts = [records[at : at + _BATCH] for at in range(0, len(records), _BATCH)]
        times = [1e6 * folding.run(part, clock=time.process_time) for part in parts]
        store.close()
    return times[1:], folding


def matching(scheme: Scheme) -> Iterator[Row]:
    """Each case, in turns with pages like any others."""
    decider = Decider(scheme=scheme.digest)
    plain = Log().records(0, _BATCH * _BATCHES)
    for case in CASES:
        records = case.make(plain, 0)
        normal, slow, growth = [], [], []
        for _ in range(_TURNS):
            normal.append(statistics.median(_run(plain, decider)[0]))
            times, folding = _run(records, decider)
            slow.append(statistics.median(times))
            growth.append(statistics.median(times[len(times) // 2 :]) / statistics.median(times[: len(times) // 2]))
        row = Row(f"matcher: {case.name}", "us a page", statistics.median(slow), statistics.median(normal))
        _judge(row, case, statistics.median(growth))
        row.notes |= {"candidates a page": folding.scored / folding.pages, **folding.kinds}
        yield row


def _judge(row: Row, case: Case, growth: float) -> None:
    assert row.peer is not None
    factor = row.ours / row.peer
    row.peer_name, row.ratio, row.reach = "any others", row.peer / row.ours, f"{1 / case.factor:.2g} x"
    good = "within" if factor <= case.factor else "OVER"
    row.check = f"{factor:.2f} of the normal cost, {good} {case.factor:g}"
    row.check += f"; later pages cost {growth:.2f} of earlier ones" + (", GROWS" if growth > GROWTH_MAX else "")


def one_template(scheme: Scheme, pages: int, scratch: Path | None = None) -> list[Row]:
    """One template for ever: so many pages folded into an empty index, the last against the first and the normal.

    The first pages, whose keys are not hot yet, are part of neither. Raises BadInput without room on the disk.
    """
    decider, log, case = Decider(scheme=scheme.digest), Log(), CASES[1]
    look = min(_LOOK_PAGES, pages // 4)
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        enough_room(Path(folder), pages)
        store = RocksStore(Path(folder) / "index")
        folding = Folding(store, decider, 1)
        times: list[float] = []
        for first in range(0, pages, _BATCH):
            records = template(log.records(first, min(_BATCH, pages - first)), first)
            times.append(1e6 * folding.run(records, clock=time.process_time))
            if first % look < _BATCH:
                print(f"one template: {first:,} of {pages:,} pages", file=sys.stderr, flush=True)
        store.close()
    few = max(1, look // _BATCH)
    normal = statistics.median(_run(log.records(0, _BATCH * _BATCHES), decider)[0])
    row = Row(f"matcher: one template, {pages:,} pages", "us a page", statistics.median(times[-few:]), normal)
    _judge(row, case, statistics.median(times[-few:]) / statistics.median(times[1 : 1 + few]))
    row.notes |= {"candidates a page": folding.scored / folding.pages, **folding.kinds}
    return [row]


#: Pages of one cluster, and how many of them have gone one after another.
_CLUSTER, _GONE = 100_000, 99_000
#: Promotions that are timed together, and how often.
_PROMOTIONS, _LOOKS = 8, 31


def promotions(scheme: Scheme, members: int = _CLUSTER, gone: int = _GONE) -> list[Row]:
    """What it costs that a representative goes, where many went before it, against a cluster where none did."""
    decider, plain = Decider(scheme=scheme.digest), Log().records(0, 1)
    timed = _PROMOTIONS * _LOOKS
    with tempfile.TemporaryDirectory() as folder:
        old, fresh = (
            _Leaving(Folding(RocksStore(Path(folder) / name), decider, 1), plain, count)
            for name, count in (("old", members), ("fresh", members - gone))
        )
        in_batches = [old.go(min(_BATCH, gone - at)) for at in range(0, gone, _BATCH)]
        normal = [
            1e6 * old.folding.run(Log().records(at, _BATCH), clock=time.process_time)
            for at in range(members, members + 9 * _BATCH, _BATCH)
        ]
        assert old.left >= timed
        times = [(old.go(_PROMOTIONS), fresh.go(_PROMOTIONS)) for _ in range(_LOOKS)]
        for side in (old, fresh):
            assert side.folding.kinds["promoted"] == side.gone
            side.folding.store.close()
    late, early = (statistics.median(side) for side in zip(*times, strict=True))
    row = Row(f"matcher: a promotion, {gone:,} of {members:,} pages gone", "us", late, early)
    row.peer_name, row.ratio, row.reach = "none gone", early / late, f"{1 / GROWTH_MAX:.2g} x"
    factor = statistics.median(in_batches) / statistics.median(normal)
    row.check = f"{late / early:.2f} of one in a fresh cluster, {'within' if late <= GROWTH_MAX * early else 'OVER'}"
    row.check += f" {GROWTH_MAX:g}; in batches of {_BATCH} {factor:.1f} pages like any others"
    return [row]


class _Leaving:
    """One cluster of near-duplicates, whose representatives go one after another."""

    def __init__(self, folding: Folding, plain: Sequence[bytes], members: int) -> None:
        self.folding, self._plain, self.gone, self.left = folding, plain, 0, members
        for first in range(0, members, _BATCH):
            many = min(_BATCH, members - first)
            folding.run([one_near(plain, number)[0] for number in range(first, first + many)], emit=False)

    def go(self, count: int) -> float:
        """Processor's microseconds for each of so many promotions, in one batch."""
        going = range(self.gone, self.gone + count)
        records = [changed(self._plain[0], number, kind=RecordKind.TOMBSTONE) for number in going]
        self.gone, self.left = self.gone + count, self.left - count
        return 1e6 * self.folding.run(records, clock=time.process_time)
