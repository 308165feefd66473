"""What folding a batch gives: verdicts, changes of rows, and the comparisons behind them."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from neardup.decider import Decider
from neardup.index.column_families import Family
from neardup.matching.batch import Found, Walk
from neardup.matching.batch_records import Pages
from neardup.matching.batch_verdicts import BatchVerdicts
from neardup.matching.verdict_columns import Form, VerdictColumns
from neardup.pairs.pair import Pair
from neardup.pairs.scoring import pairs_of
from neardup.rules import Ruling
from neardup.rules.base import ruling_of
from neardup.rules.posted_keys import families_of, key_indexes
from neardup.rules.siblings import Siblings
from neardup.sketch.header import Header
from neardup.verdict import FOUND_BY


class Scored(NamedTuple):
    """A scored candidate: page id of its founding sketch, numbers, ruling."""

    page_id: int
    pair: Pair
    ruling: Ruling


class CandidateChoice(NamedTuple):
    """All candidates of a page, in order, and the best accepted one. cut: whether some candidates were not scored.

    siblings: number of pages of the same owner with the page's name, if the rule counts them.
    """

    scored: list[Scored]
    best: Scored | None
    cut: bool
    siblings: Siblings


class ComparedPage(NamedTuple):
    """A page with its candidates. headers: headers of the candidates, in the order of the choice."""

    page_id: int
    header: Header
    choice: CandidateChoice
    headers: list[Header]


class Check(NamedTuple):
    """The result of verifying a page against a sketch of its cluster.

    of: "previous": the sketch of the URL's previous fetch; "founding": that of the cluster's founding page.
    """

    of: str
    page_id: int
    pair: Pair
    ruling: Ruling
    held: bool


@dataclass(slots=True)
class Candidate:
    """One scored candidate of a page, the pair's numbers, and the rule's ruling. families: common keys by family."""

    page_id: int
    url: str
    cluster: int
    pair: Pair
    ruling: Ruling
    families: dict[str, int]


@dataclass(slots=True)
class Trace:
    """All comparisons of one page.

    holder: the live page of the same digest; if there is one, no candidate is scored. checks: new content of a known
    URL against its previous fetch and its cluster's founding sketch.
    """

    page_id: int
    url: str
    candidates: list[Candidate]
    checks: list[Check]
    holder: int | None
    candidates_cut: bool


@dataclass(slots=True)
class Outcome:
    """The result of folding a batch. Nothing is written yet.

    verdicts: verdicts in the order of the batch; a promotion follows the page that caused it.
    writes: changes of rows, which the caller writes as one atomic batch.
    scored, scored_by_page: number of scored candidates, in total and for each page.
    cut: number of pages with more candidates than are scored.
    hot_turned: number of keys that turned hot.
    candidates_by, repeats_by: scored candidates, and pages that got the verdict near_duplicate or same_content, by
        what found them: a number for each name of `neardup.verdict.FOUND_BY`. Without verdicts no repeats.
    """

    verdicts: BatchVerdicts = field(default_factory=BatchVerdicts)
    writes: dict[Family, dict[bytes, bytes | None]] = field(default_factory=dict)
    scored: int = 0
    cut: int = 0
    hot_turned: int = 0
    scored_by_page: list[int] = field(default_factory=list)
    candidates_by: list[int] = field(default_factory=lambda: [0] * len(FOUND_BY))
    repeats_by: list[int] = field(default_factory=lambda: [0] * len(FOUND_BY))
    #: The compared pages, those with candidates, if `keep_compared`.
    compared: list[ComparedPage] = field(default_factory=list, compare=False)
    #: (rounds of reads, rows read). Depends on how the log is cut into batches, unlike all fields above.
    effort: tuple[int, int] = field(default=(1, 0), compare=False)


def candidates_by(found: Found) -> list[int]:
    """Counts scored candidates by FOUND_BY."""
    counts: list[int] = np.bincount(found.candidates["indexes"], minlength=len(FOUND_BY)).tolist()
    return counts


def repeats_by(columns: VerdictColumns, decider: Decider) -> list[int]:
    """Counts the pages that repeat a candidate by FOUND_BY. Pages with a live page of their digest have none."""
    keys = columns.rows["keys"][columns.rows["form"] == Form.BEST]
    indexes = np.zeros(len(keys), np.int64)
    for place, index in enumerate(key_indexes(decider).tolist()):
        indexes |= (keys >> np.uint64(place) & np.uint64(1)).astype(np.int64) * index
    counts: list[int] = np.bincount(indexes, minlength=len(FOUND_BY)).tolist()
    return counts


def compared_pages(walk: Walk, pages: Pages) -> list[ComparedPage]:
    """The pages of a batch that had candidates."""
    found = walk.found()
    out = []
    for search in found.searches[found.searches["many"] > 0]:
        page_id = pages.page_ids[int(search["i"])]
        at = found.candidates["at"][_places(search)].tolist()
        out.append(ComparedPage(page_id, pages[page_id], _choice(found, search), [walk.header(one) for one in at]))
    return out


def _places(search: np.ndarray) -> slice:
    return slice(int(search["first"]), int(search["first"] + search["many"]))


def _choice(found: Found, search: np.ndarray) -> CandidateChoice:
    places = _places(search)
    candidates = found.candidates[places]
    pairs = pairs_of(found.numbers[candidates["pair"]])
    rulings = [ruling_of(ruling) for ruling in found.rulings[places]]
    scored = [
        Scored(page_id, pair, ruling)
        for page_id, pair, ruling in zip(candidates["page"].tolist(), pairs, rulings, strict=True)
    ]
    best = int(search["best"])
    siblings = Siblings(*(int(search[name]) for name in ("others", "alike", "retitled", "moved")))
    return CandidateChoice(scored, scored[best - places.start] if best >= 0 else None, bool(search["cut"]), siblings)


def traces(walk: Walk, pages: Pages, decider: Decider, trace: Callable[[Trace], None]) -> None:
    """Calls a function with the comparisons of each page of a batch, in order."""
    found, families = walk.found(), families_of(decider)
    searches = {int(search["i"]): search for search in found.searches}
    checks: dict[int, list[Check]] = {}
    for check, ruling in zip(found.checks, found.check_rulings, strict=True):
        (pair,) = pairs_of(found.numbers[[int(check["pair"])]])
        of = "founding" if check["of_founding"] else "previous"
        one = Check(of, int(check["page"]), pair, ruling_of(ruling), bool(check["held"]))
        checks.setdefault(int(check["i"]), []).append(one)
    rows = walk.columns(pages.ids).rows
    rows = rows[(rows["form"] == Form.DIGEST) & (rows["n"] == 0)]
    holders = dict(zip(pages.ids[rows["i"]].tolist(), rows["other"].tolist(), strict=True))
    for i, page_id in enumerate(pages.page_ids):
        search = searches.get(i)
        compared = []
        if search is not None:
            every = zip(_choice(found, search).scored, found.candidates[_places(search)], strict=True)
            for (other, pair, ruling), candidate in every:
                keys, url = int(candidate["keys"]), walk.header(int(candidate["at"])).url
                shared = dict(Counter(name for bit, name in enumerate(families) if keys >> bit & 1))
                compared.append(Candidate(other, url, int(candidate["cluster"]), pair, ruling, shared))
        cut = search is not None and bool(search["cut"])
        trace(Trace(page_id, pages[page_id].url, compared, checks.get(i, []), holders.get(page_id), cut))
