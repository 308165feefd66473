"""Rows of the matcher's worst cases: what a page costs against the mean page of the crawl, and whether it grows."""

import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import numpy as np
import orjson

from neardup.decider import Decider
from neardup.scheme import Scheme
from neardup.sketch.layout import RecordKind
from tests.measure.bench.crawl import Crawl
from tests.measure.bench.generated import Log, changed, message_of, messages
from tests.measure.bench.matching import Matching, Messages, as_a_role
from tests.measure.bench.store_rows import enough_room
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
    """make: records of a case from records like any others. factor: of the mean page's cost, at most."""

    name: str
    factor: float
    make: Callable[[Sequence[bytes], int], list[bytes]]


_TEMPLATE = {"head": 7, "content_start": 7, "wide": np.arange(7)}


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
            record,
            number,
            head=number // 64,
            content_start=number,
            wide=[(number + 32) // 64 + 10**6, *range(6 * number, 6 * number + 6)],
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
    Case("every probe is hot", 1.0, hot),
    Case("one template", 1.0, template),
    Case("64 candidates a page", 3.0, crowded),
    Case("one text for ever", 1.0, one_text),
    Case("one near-duplicate for ever", 1.5, one_near),
)


def _run(messages: Messages, decider: Decider) -> tuple[list[float], Matching]:
    """Microseconds a page of each message but the first, one at a time into an empty index."""
    with tempfile.TemporaryDirectory() as folder, Matching(Path(folder), decider) as matching, as_a_role():
        times = []
        for message in messages:
            before = matching.pages
            spent = matching.take([message])
            times.append(1e6 * spent / (matching.pages - before))
    return times[1:], matching


def matching(scheme: Scheme) -> Iterator[Row]:
    """Each case, in turns with the crawl with 30% repeats."""
    decider = Decider(scheme=scheme.digest)
    plain = Log().records(0, _BATCH * _BATCHES)
    mean = list(Crawl(_BATCH * _BATCHES).messages(scheme))
    for case in CASES:
        made = messages(scheme, case.make(plain, 0))
        normal, slow, growth = [], [], []
        for _ in range(_TURNS):
            normal.append(statistics.fmean(_run(mean, decider)[0]))
            times, run = _run(made, decider)
            slow.append(statistics.median(times))
            growth.append(statistics.median(times[len(times) // 2 :]) / statistics.median(times[: len(times) // 2]))
        row = Row(f"matcher: {case.name}", "us a page", statistics.median(slow), statistics.median(normal))
        _judge(row, case, statistics.median(growth))
        row.notes |= _notes(run)
        yield row


def _notes(run: Matching) -> dict[str, float | str]:
    kinds = Counter(orjson.loads(line)["verdict"] for line in run.verdicts)
    return {"candidates a page": run.scored / run.pages, **dict(kinds)}


def _judge(row: Row, case: Case, growth: float) -> None:
    assert row.peer is not None
    factor = row.ours / row.peer
    row.peer_name, row.ratio, row.reach = "crawl, 30% repeats", row.peer / row.ours, f"{1 / case.factor:.2g} x"
    good = "within" if factor <= case.factor else "OVER"
    row.check = f"{factor:.2f} of the mean page's cost, {good} {case.factor:g}"
    row.check += f"; later pages cost {growth:.2f} of earlier ones" + (", GROWS" if growth > GROWTH_MAX else "")


def one_template(scheme: Scheme, pages: int, scratch: Path | None = None) -> list[Row]:
    """One template for ever: so many pages folded into an empty index, the last against the first and the mean page.

    The first pages, whose keys are not hot yet, are part of neither. Raises BadInput without room on the disk.
    """
    decider, log, case = Decider(scheme=scheme.digest), Log(), CASES[1]
    look = min(_LOOK_PAGES, pages // 4)
    with tempfile.TemporaryDirectory(dir=scratch) as folder, as_a_role():
        enough_room(Path(folder), pages)
        with Matching(Path(folder), decider) as run:
            times: list[float] = []
            for number, first in enumerate(range(0, pages, _BATCH)):
                records = template(log.records(first, min(_BATCH, pages - first)), first)
                times.append(1e6 * run.take(messages(scheme, records, number)) / len(records))
                if first % look < _BATCH:
                    print(f"one template: {first:,} of {pages:,} pages", file=sys.stderr, flush=True)
    few = max(1, look // _BATCH)
    normal = statistics.fmean(_run(list(Crawl(_BATCH * _BATCHES).messages(scheme)), decider)[0])
    row = Row(f"matcher: one template, {pages:,} pages", "us a page", statistics.median(times[-few:]), normal)
    _judge(row, case, statistics.median(times[-few:]) / statistics.median(times[1 : 1 + few]))
    row.notes |= _notes(run)
    return [row]


#: Pages of one cluster, and how many of them have gone one after another.
_CLUSTER, _GONE = 100_000, 99_000
#: Promotions that are timed together, and how often.
_PROMOTIONS, _LOOKS = 8, 31


def promotions(scheme: Scheme, members: int = _CLUSTER, gone: int = _GONE) -> list[Row]:
    """What it costs that a representative goes, where many went before it, against a cluster where none did."""
    decider, plain = Decider(scheme=scheme.digest), Log().records(0, 1)
    timed = _PROMOTIONS * _LOOKS
    with tempfile.TemporaryDirectory() as name, ExitStack() as held:
        held.enter_context(as_a_role())
        sides = []
        for side, count in (("old", members), ("fresh", members - gone)):
            folder = Path(name) / side
            folder.mkdir()
            run = held.enter_context(Matching(folder, decider))
            sides.append(_Leaving(run, scheme, plain, count))
        old, fresh = sides
        in_batches = [old.go(min(_BATCH, gone - at)) for at in range(0, gone, _BATCH)]
        assert old.left >= timed
        times = [(old.go(_PROMOTIONS), fresh.go(_PROMOTIONS)) for _ in range(_LOOKS)]
        for side in sides:
            assert _notes(side.run)["promoted"] == side.gone
    normal = statistics.fmean(_run(list(Crawl(_BATCH * _BATCHES).messages(scheme)), decider)[0])
    late, early = (statistics.median(side) for side in zip(*times, strict=True))
    row = Row(f"matcher: a promotion, {gone:,} of {members:,} pages gone", "us", late, early)
    row.peer_name, row.ratio, row.reach = "none gone", early / late, f"{1 / GROWTH_MAX:.2g} x"
    factor = statistics.median(in_batches) / normal
    row.check = f"{late / early:.2f} of one in a fresh cluster, {'within' if late <= GROWTH_MAX * early else 'OVER'}"
    row.check += f" {GROWTH_MAX:g}; in batches of {_BATCH} {factor:.1f} mean pages"
    return [row]


class _Leaving:
    """One cluster of near-duplicates, whose representatives go one after another."""

    def __init__(self, run: Matching, scheme: Scheme, plain: Sequence[bytes], members: int) -> None:
        self.run, self._scheme, self._plain, self.gone, self.left = run, scheme, plain, 0, members
        self._pages = 0
        for first in range(0, members, _BATCH):
            many = min(_BATCH, members - first)
            self._take([one_near(plain, number)[0] for number in range(first, first + many)], emit=False)

    def _take(self, records: Sequence[bytes], *, emit: bool = True) -> float:
        """Microseconds a page."""
        first, self._pages = self._pages, self._pages + len(records)
        message = message_of(self._scheme, records, self.run.matcher.next_offset, first)
        return 1e6 * self.run.take([message], emit=emit) / len(records)

    def go(self, count: int) -> float:
        """Microseconds for each of so many promotions, in one message."""
        going = range(self.gone, self.gone + count)
        records = [changed(self._plain[0], number, kind=RecordKind.TOMBSTONE) for number in going]
        self.gone, self.left = self.gone + count, self.left - count
        return self._take(records)
