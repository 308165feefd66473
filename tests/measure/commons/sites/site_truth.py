"""What pages of one site are to each other: of made-up sites by construction, of crawled ones by exact likeness.

LJ is |LCS| / (|A| + |B| - |LCS|) of the exact longest common subsequence of tokens. A relation is

* SAME: equal texts; one item of a made-up site; or main contents with an LJ of .9, of one work of a made-up site or
  under one title (without numbers) of a crawled one.
* EDITION: main contents with an LJ of .75 to .9, of one work or one title; of pages of a loose work at any LJ
  (variants of a product, orders of a list).
* TWIN: the truth does not know: of crawled sites, main contents that agree in .75 under two titles, or a whole page
  that agrees in .9 with main contents of a few words. Such pairs are printed for reading; `read.tsv` holds what was
  read.
* OTHER: everything else.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import combinations
from pathlib import Path

from neardup.evaluation.text_difference import common_ratio, ratio_at_most
from neardup.page import Page
from tests.measure.commons.pages import Served
from tests.measure.commons.sites.frame import SitePage
from tests.measure.commons.truth import (
    BOILERPLATE_PAGES,
    BOILERPLATE_SHARE,
    SAME_MIN,
    TWIN_MIN,
    Line,
    Relation,
    Truth,
    lines_of,
    plain_title,
)

#: Main contents of fewer tokens prove nothing.
MAIN_TOKENS_MIN = 20
#: A line that so many pages of a host have is of its frame.
HOST_SHARE = 0.1
#: Relations of pairs that a person has read: two URLs, "same", "edition" or "other", and a reason.
READ = Path(__file__).with_name("read.tsv")


class SiteTruth(Truth):
    """The relations of the pages of one site. read_pages: as the reader of a scan gives them."""

    def __init__(
        self, served: Sequence[Served], read_pages: Sequence[Page], mains: Sequence[str] | None = None
    ) -> None:
        super().__init__(served, mains)
        self.read_pages = read_pages
        self._exact: dict[tuple[str, int, int], float] = {}
        self._whole_tokens = [self._numbered(text) for text in self.texts]

    def read(self) -> Sequence[Page]:
        return self.read_pages

    def likeness(self, a: int, b: int) -> float:
        return self._at_least("main", a, b)

    def whole_likeness(self, a: int, b: int) -> float:
        return self._at_least("whole", a, b)

    def _at_least(self, part: str, a: int, b: int) -> float:
        """The exact LJ where it may be TWIN_MIN, else its upper bound."""
        key = (part, min(a, b), max(a, b))
        if key not in self._exact:
            tokens = self._tokens if part == "main" else self._whole_tokens
            one, other = tokens[a], tokens[b]
            bound = ratio_at_most(one, other) if len(one) or len(other) else 1.0
            self._exact[key] = bound if bound < TWIN_MIN else common_ratio(one, other) or 0.0
        return self._exact[key]

    def _of(self, a: int, b: int) -> Relation:
        raise NotImplementedError

    def _kin(self, place: int) -> Sequence[int]:
        """The earlier pages that may be SAME as a page."""
        raise NotImplementedError

    @cached_property
    def repeats(self) -> list[tuple[str, list[int]]]:
        """As `Truth.repeats`; "near" is an LJ of .9 of whole pages to an earlier SAME page."""
        found = []
        for place in range(len(self.pages)):
            earlier = [other for other in self._kin(place) if self.of(other, place) is Relation.SAME]
            kind = "reframed" if earlier else "distinct"
            if any(self.whole[other] == self.whole[place] for other in earlier):
                kind = "exact"
            elif any(self.whole_likeness(other, place) >= SAME_MIN for other in earlier):
                kind = "near"
            found.append((kind, earlier))
        return found


class MadeSite(SiteTruth):
    """A made-up site: its generator knows the items and works of its pages."""

    def __init__(self, made: Sequence[SitePage], read_pages: Sequence[Page]) -> None:
        served = [
            Served(read.url, page.work or page.item, page.item, page.body)
            for page, read in zip(made, read_pages, strict=True)
        ]
        mains = [
            "\n".join(text for text, _ in lines_of(one._replace(body=page.main.encode())))
            for one, page in zip(served, made, strict=True)
        ]
        super().__init__(served, read_pages, mains)
        self._made = made
        self.whole = [
            hash((page.body, page.item)) if page.own_bytes else one for page, one in zip(made, self.whole, strict=True)
        ]

    def _of(self, a: int, b: int) -> Relation:
        one, other = self._made[a], self._made[b]
        if one.item == other.item:
            return Relation.SAME
        if not one.work or one.work != other.work:
            return Relation.OTHER
        if one.loose or other.loose:
            return Relation.EDITION
        likeness = self.likeness(a, b)
        if likeness >= SAME_MIN:
            return Relation.SAME
        return Relation.EDITION if likeness >= TWIN_MIN else Relation.OTHER

    @cached_property
    def _by_work(self) -> Mapping[str, list[int]]:
        works: dict[str, list[int]] = defaultdict(list)
        for place, page in enumerate(self.pages):
            works[page.key].append(place)
        return works

    def _kin(self, place: int) -> Sequence[int]:
        return [other for other in self._by_work[self.pages[place].key] if other < place]


class CrawledSite(SiteTruth):
    """A real site. Its sections are the first folders of its URLs; a line of many pages of a section is its frame."""

    def __init__(self, read_pages: Sequence[Page], judged: Mapping[frozenset[str], Relation]) -> None:
        served = [Served(page.url, page.url, section_of(page.url), page.body or b"") for page in read_pages]
        super().__init__(served, read_pages, _mains(served))
        self._judged = judged

    def _of(self, a: int, b: int) -> Relation:
        if self.whole[a] == self.whole[b]:
            return Relation.SAME
        if found := self._judged.get(frozenset((self.pages[a].url, self.pages[b].url))):
            return found
        few = min(len(self._tokens[a]), len(self._tokens[b])) < MAIN_TOKENS_MIN
        likeness, one_title = self.likeness(a, b), plain_title(self.titles[a]) == plain_title(self.titles[b])
        if few:
            whole = self.whole_likeness(a, b)
            alike = whole >= SAME_MIN
            return Relation.TWIN if alike else Relation.OTHER
        if likeness < TWIN_MIN:
            return Relation.OTHER
        if not one_title:
            return Relation.TWIN
        return Relation.SAME if likeness >= SAME_MIN else Relation.EDITION

    @cached_property
    def _alike(self) -> Mapping[int, list[int]]:
        """Earlier pages that share a fifth of a page's shingles or more: with an LJ of .9 they share two fifths."""
        shingles = [self._shingles(place) for place in range(len(self.pages))]
        holders: dict[int, list[int]] = defaultdict(list)
        for place, each in enumerate(shingles):
            for one in each:
                holders[one].append(place)
        shared: Counter[tuple[int, int]] = Counter()
        rare: Counter[int] = Counter()
        for places in holders.values():
            if len(places) <= _HOLDERS_MAX:
                rare.update(places)
                shared.update(combinations(places, 2))
        found: dict[int, set[int]] = defaultdict(set)
        for (a, b), count in shared.items():
            if 5 * count >= max(rare[a], rare[b]):
                found[b].add(a)
        by_text: dict[int, list[int]] = defaultdict(list)
        for place, whole in enumerate(self.whole):
            found[place].update(by_text[whole])
            by_text[whole].append(place)
        return {place: sorted(others) for place, others in found.items()}

    def _shingles(self, place: int) -> set[int]:
        """Of the runs of 6 tokens of the main content, or of the whole page if that is short, one in _SAMPLED."""
        main = self._tokens[place]
        tokens = (main if len(main) >= MAIN_TOKENS_MIN else self._whole_tokens[place]).tolist()
        runs = {hash(tuple(tokens[at : at + 6])) for at in range(max(1, len(tokens) - 5))}
        return {run for run in runs if run % _SAMPLED == 0} if len(runs) > 20 * _SAMPLED else runs

    def _kin(self, place: int) -> Sequence[int]:
        return self._alike.get(place, [])


#: A shingle of more pages is too common to relate two pages. Of the shingles of a long page one in _SAMPLED counts.
_HOLDERS_MAX, _SAMPLED = 200, 8


def _mains(pages: Sequence[Served]) -> list[str]:
    """Main contents: lines that neither many pages of the section nor many of the host have."""
    lines: list[list[Line]] = [lines_of(page) for page in pages]
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    sizes: Counter[str] = Counter()
    for page, each in zip(pages, lines, strict=True):
        for group in (page.release, page.release.partition("/")[0] + "/"):
            counts[group].update({text for text, _ in each})
            sizes[group] += 1
    most = {}
    for group, size in sizes.items():
        share = HOST_SHARE if group.endswith("/") else BOILERPLATE_SHARE
        most[group] = share * size if size >= BOILERPLATE_PAGES else size + 1
    mains = []
    for page, each in zip(pages, lines, strict=True):
        groups = (page.release, page.release.partition("/")[0] + "/")
        own = [text for text, _ in each if all(counts[group][text] < most[group] for group in groups)]
        mains.append("\n".join(own))
    return mains


def section_of(url: str) -> str:
    """Host and first folders of a URL, without what has figures: pages of one section have one frame."""
    host, *folders = url.partition("://")[2].split("?")[0].split("/")
    return "/".join([host, *(one for one in folders[:-1] if not any(map(str.isdigit, one)))][:3])


def read_judgements(path: Path = READ) -> dict[frozenset[str], Relation]:
    """What a person said about pairs of pages."""
    lines = [line.split("\t") for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return {frozenset((a, b)): Relation(relation) for relation, a, b, _ in lines}
