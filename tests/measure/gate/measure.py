"""Streams pages of known truth through the library and counts what it suppressed, rightly and wrongly."""

from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass

from neardup import open_index
from neardup.decider import Decider
from neardup.fold import fold
from neardup.index.memory import MemoryStore
from neardup.page import Page
from neardup.scheme import Scheme
from neardup.sketch.make_sketches import sketch_pages
from neardup.verdict import Coordinates, Kind, Verdict
from tests.measure.gate.sites import Sample

_SUPPRESSED = (Kind.EXACT_DUPLICATE, Kind.NEAR_DUPLICATE)
_BATCH = 250
#: Of the scheme.
SEED = 20060806


@dataclass
class Tally:
    """Counts of one stream.

    items: pages that were the first of their item, and distinct from all before. Of them, wrong were suppressed as
    duplicates of another item's page, and wrong_content called its same content. repeats: the other pages. Of them,
    found were called duplicates of a page of their item, and found_content its same content; the rest was missed or
    taken for another item. wrong_exact: those of wrong that were called exact duplicates.
    """

    items: int = 0
    wrong: int = 0
    wrong_content: int = 0
    repeats: int = 0
    found: int = 0
    found_content: int = 0
    wrong_exact: int = 0

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    @property
    def found_share(self) -> float:
        """Share of the repeats found, as duplicate or as same content."""
        return (self.found + self.found_content) / max(1, self.repeats)

    @property
    def wrong_per_1000(self) -> float:
        """Items suppressed for another, as duplicate or as same content, per 1,000 items."""
        return 1000 * (self.wrong + self.wrong_content) / max(1, self.items)

    @property
    def f1(self) -> float:
        """Of what was suppressed, as duplicate or as same content, and of the repeats; 1 where there was neither."""
        found, wrong = self.found + self.found_content, self.wrong + self.wrong_content
        return 2 * found / max(1, found + wrong + self.repeats) if found + wrong + self.repeats else 1.0


def measure(samples: Sequence[Sample], rule: str = "verified", *, hashed: int = SEED, **decider: float | str) -> Tally:
    """Streams `samples` in order through an index in memory.

    hashed: seed of the scheme. decider: fields of the Decider that are not the usual.
    """
    scheme = Scheme(seed=hashed)
    tally = Tally()
    seen: set[str] = set()
    with open_index(scheme=scheme, decider=Decider(scheme.digest, rule=rule, **decider)) as index:
        for start in range(0, len(samples), _BATCH):
            pages = [Page(sample.url, sample.html, "text/html") for sample in samples[start : start + _BATCH]]
            for verdict in index.add(pages):
                _count(tally, samples, seen, verdict)
    assert tally.items + tally.repeats == len(samples)
    return tally


def sketched(samples: Sequence[Sample], *, hashed: int = SEED) -> list[bytes]:
    """The records of `samples`, for `judged`: so that they are made once for many deciders."""
    pages = [Page(sample.url, sample.html, "text/html") for sample in samples]
    places = [Coordinates(offset=i) for i in range(len(pages))]
    return sketch_pages(pages, Scheme(seed=hashed), coordinates=places, log_times=[0] * len(pages))


def verdicts_of(records: Sequence[bytes], decider: Decider) -> Iterator[Verdict]:
    """The verdicts of records in their order, through an index in memory."""
    store = MemoryStore()
    for start in range(0, len(records), _BATCH):
        outcome = fold(list(enumerate(records[start : start + _BATCH], start)), store, decider)
        store.write(outcome.writes)
        yield from outcome.verdicts


def behind(verdict: Verdict) -> int | None:
    """The page behind which a verdict hides its page, as duplicate or same content."""
    if verdict.verdict == Kind.SAME_CONTENT:
        return int(verdict.content_of.page_id)
    return int(verdict.representative.page_id) if verdict.verdict in _SUPPRESSED else None


def judged(samples: Sequence[Sample], records: Sequence[bytes], decider: Decider) -> Tally:
    """What `measure` counts, of records that are at hand."""
    tally, seen = Tally(), set[str]()
    for verdict in verdicts_of(records, decider):
        _count(tally, samples, seen, verdict)
    return tally


def _count(tally: Tally, samples: Sequence[Sample], seen: set[str], verdict: Verdict) -> None:
    item = samples[verdict.coordinates.offset].item
    content = verdict.verdict == Kind.SAME_CONTENT
    other = verdict.content_of if content else verdict.representative
    suppressed = content or verdict.verdict in _SUPPRESSED
    # Each URL comes once: nothing is edited, unchanged or promoted.
    assert suppressed or verdict.verdict == Kind.UNIQUE, verdict
    same = suppressed and samples[other.coordinates.offset].item == item
    if item in seen:
        tally.repeats += 1
        tally.found += same and not content
        tally.found_content += same and content
    else:
        seen.add(item)
        tally.items += 1
        tally.wrong += suppressed and not content
        tally.wrong_content += content
        tally.wrong_exact += verdict.verdict == Kind.EXACT_DUPLICATE
