"""What two pages of one site are to each other, from their paths, releases and full texts.

* SAME: equal texts, signs and case included; or one path in two releases, and main contents that agree: |LCS| /
  (|A| + |B| - |LCS|) of their tokens (*LJ*) is at least .9.
* EDITION: one path in two releases, LJ from .5 on. Both answers are accepted.
* TWIN: other paths; one title, and equal main contents, signs and case included, but for dates and clocks. The truth
  does not know whether such pages are one page that is served twice, or two states of one record.
* OTHER: everything else. A page that is hidden behind such a page is hidden wrongly.

The main content of a page is what a line of its text says that fewer than a quarter of the pages of its release say.
No rule reads it. Known faults are listed in README.md.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from enum import Enum

import numpy as np
import numpy.typing as npt

from neardup.evaluation.pairs.difference import common_ratio, ratio_at_most
from neardup.page import Page
from neardup.report.samples import page_text
from neardup.text.html import facts_of
from tests.measure.commons.pages import Served

SAME_MIN, EDITION_MIN = 0.9, 0.5
#: A line that so many pages of a release have is boilerplate; releases of fewer pages have none.
BOILERPLATE_SHARE, BOILERPLATE_PAGES = 0.25, 20

_TOKEN = re.compile(r"\w+")
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_STAMP = re.compile(
    rf"\d{{1,2}}:\d\d(?::\d\d)?(?:\s*[ap]m)?|\d{{4}}-\d\d-\d\d|{_MONTH}\.?\s+\d{{1,2}},?(?:\s+\d{{4}})?"
    rf"|\d{{1,2}}\.?\s+{_MONTH}\.?,?\s+\d{{4}}|(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,",
    re.IGNORECASE,
)


class Relation(Enum):
    SAME = "same"
    EDITION = "edition"
    TWIN = "twin"
    OTHER = "other"


class Truth:
    """The relations of the pages of one stream. mains: texts that replace the computed main contents."""

    def __init__(self, pages: Sequence[Served], mains: Sequence[str] | None = None) -> None:
        self.pages = pages
        texts = [page_text(Page(page.url, page.body, "text/html")) or page.url for page in pages]
        self.titles = [" ".join((facts_of(page.body).title or "").split()) for page in pages]
        self.whole = [hash(f"{title}\n{text}") for title, text in zip(self.titles, texts, strict=True)]
        self._texts = texts
        if mains is None:
            mains = _mains(pages, texts)
        self.mains = [hash(" ".join(_STAMP.sub(" ", main).split())) for main in mains]
        self._names: dict[str, int] = {}
        self._tokens = [self._numbered(main) for main in mains]
        self._held: dict[tuple[int, int], Relation] = {}

    def _numbered(self, text: str) -> npt.NDArray[np.uint64]:
        words = _TOKEN.findall(text.lower())
        return np.array([self._names.setdefault(word, len(self._names)) for word in words], np.uint64)

    def likeness(self, a: int, b: int) -> float:
        """LJ of the main contents; 1 for two empty ones."""
        one, other = self._tokens[a], self._tokens[b]
        if not len(one) and not len(other):
            return 1.0
        if ratio_at_most(one, other) < EDITION_MIN:
            return 0.0
        return common_ratio(one, other) or 0.0

    def tokens(self) -> list[list[int]]:
        """The tokens of whole pages, for rules that read texts."""
        return [self._numbered(text).tolist() for text in self._texts]

    def of(self, a: int, b: int) -> Relation:
        """The relation of two pages, by their places in the stream."""
        pair = (min(a, b), max(a, b))
        if pair not in self._held:
            self._held[pair] = self._of(*pair)
        return self._held[pair]

    def _of(self, a: int, b: int) -> Relation:
        if self.whole[a] == self.whole[b]:
            return Relation.SAME
        one, other = self.pages[a], self.pages[b]
        if one.key == other.key and one.release != other.release:
            likeness = self.likeness(a, b)
            if likeness >= EDITION_MIN:
                return Relation.SAME if likeness >= SAME_MIN else Relation.EDITION
            return Relation.OTHER
        if self.titles[a] == self.titles[b] and self.mains[a] == self.mains[b]:
            return Relation.TWIN
        return Relation.OTHER

    def repeats(self) -> list[list[int]]:
        """For each page the earlier pages that are SAME; a page without any is distinct."""
        by_text: dict[int, list[int]] = defaultdict(list)
        by_key: dict[str, list[int]] = defaultdict(list)
        found = []
        for place, page in enumerate(self.pages):
            earlier = by_text[self.whole[place]]
            more = [other for other in by_key[page.key] if self.of(other, place) is Relation.SAME]
            found.append(sorted({*earlier[:1], *more}))
            earlier.append(place)
            by_key[page.key].append(place)
        return found


def _mains(pages: Sequence[Served], texts: Sequence[str]) -> list[str]:
    releases: dict[str, list[int]] = defaultdict(list)
    for place, page in enumerate(pages):
        releases[page.release].append(place)
    mains = [""] * len(pages)
    for places in releases.values():
        lines = {place: texts[place].split("\n") for place in places}
        shared = Counter(line for place in places for line in set(lines[place]))
        most = len(places) * BOILERPLATE_SHARE if len(places) >= BOILERPLATE_PAGES else len(places) + 1
        for place in places:
            mains[place] = "\n".join(line for line in lines[place] if shared[line] < most)
    return mains
