"""What two pages of one site are to each other, from their paths, releases and full texts.

* SAME: equal texts, signs and case included; or one path in two releases, and main contents that agree: |LCS| /
  (|A| + |B| - |LCS|) of their tokens (*LJ*) is at least .9.
* EDITION: pages of two releases under one path and one *telling* title, which no other page of a release has, numbers
  aside; or pages whose main contents or whole texts have an LJ of .5, under one path, one telling title, one title and
  one path below the packages' folders, or one file name (or a path that ends with all words of the other's file name)
  where no other release has one of the paths. Both answers are accepted.
* TWIN: other paths, one title, an LJ of .75, and equal prose, signs and case included, but for dates and clocks; or an
  LJ of .9 in two releases, if one title, or a path that only its release has; or of .75 where paths differ in the name
  of a language alone. The truth does not know whether such pages are one page that is served twice, that was renamed or
  not translated, or two states of one record.
* OTHER: everything else. A page that is hidden behind such a page is hidden wrongly.

The main content of a page is what a line of its text says that fewer than a quarter of the pages of its release say;
its prose is that without the lines that are links alone. No rule reads them. README.md lists known faults.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from enum import Enum
from functools import cached_property

import numpy as np
import numpy.typing as npt

from neardup.evaluation.text_difference import common_ratio, ratio_at_most
from neardup.kernels import writing
from neardup.page import Page
from neardup.text.decoding import decode
from neardup.text.one_page_html import extract_page, title_of
from tests.measure.commons.pages import Served

SAME_MIN, TWIN_MIN, EDITION_MIN = 0.9, 0.75, 0.5
#: A line that so many pages of a release have is boilerplate; releases of fewer pages have none.
BOILERPLATE_SHARE, BOILERPLATE_PAGES = 0.25, 20

_LANGUAGE = re.compile(r"[a-z]{2}(?:[-_][A-Za-z]{2})?")
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
        lines = [lines_of(page) for page in pages]
        texts = ["\n".join(text for text, _ in each) for each in lines]
        self.titles = [" ".join(title_of(page.body).split()) for page in pages]
        self.whole = [hash(f"{title}\n{text}") for title, text in zip(self.titles, texts, strict=True)]
        self.texts = texts
        prose = mains
        if mains is None or prose is None:
            mains, prose = _mains(pages, lines)
        self.mains, self._prose = mains, prose
        self._names: dict[str, int] = {}
        self._tokens = [self._numbered(main) for main in mains]
        self._held: dict[tuple[int, int], Relation] = {}
        self._titled = Counter(
            (page.release, plain_title(title)) for page, title in zip(pages, self.titles, strict=True)
        )

    def read(self) -> Sequence[Page]:
        """The pages as the reader of a scan gives them."""
        return [Page(page.url, page.body, "text/html") for page in self.pages]

    def _numbered(self, text: str) -> npt.NDArray[np.uint64]:
        words = _TOKEN.findall(text.lower())
        return np.array([self._names.setdefault(word, len(self._names)) for word in words], np.uint64)

    def _plain_prose(self, place: int) -> str:
        """The prose of a page without dates and clocks."""
        return " ".join(_STAMP.sub(" ", self._prose[place]).split())

    def likeness(self, a: int, b: int) -> float:
        """LJ of the main contents."""
        return _likeness(self._tokens[a], self._tokens[b])

    def whole_likeness(self, a: int, b: int) -> float:
        """LJ of the whole pages."""
        return _likeness(self._numbered(self.texts[a]), self._numbered(self.texts[b]))

    def tokens(self) -> list[list[int]]:
        """The tokens of whole pages, for rules that read texts."""
        return [self._numbered(text).tolist() for text in self.texts]

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
        likeness, one_title = self.likeness(a, b), self.titles[a] == self.titles[b]
        released = one.release != other.release
        if released and one.key == other.key and likeness >= SAME_MIN:
            return Relation.SAME
        if released and self._moved(a, b):
            return Relation.EDITION
        if one_title and likeness >= TWIN_MIN and self._plain_prose(a) == self._plain_prose(b) != "":
            return Relation.TWIN
        translated = _translated(one.path or one.key, other.path or other.key) and likeness >= TWIN_MIN
        near = released and (one.alone or other.alone or one_title) and likeness >= SAME_MIN
        return Relation.TWIN if translated or near else Relation.OTHER

    def _moved(self, a: int, b: int) -> bool:
        """Whether two pages of two releases are editions of one page: of one path, one file name or one title."""
        one, other = self.pages[a], self.pages[b]
        telling = self._telling(a) == self._telling(b) != ""
        if telling and one.key == other.key:
            return True
        if max(self.likeness(a, b), self.whole_likeness(a, b)) < EDITION_MIN:
            return False
        renamed = (one.alone or other.alone) and _one_file(one, other)
        moved = self.titles[a] == self.titles[b] and _below(one) == _below(other) != ""
        return renamed or moved or one.key == other.key or (telling and self.titles[a] == self.titles[b])

    def _telling(self, place: int) -> str:
        """The title without numbers if no other page of the release has it, else an empty text."""
        title = plain_title(self.titles[place])
        return title if self._titled[self.pages[place].release, title] == 1 else ""

    @cached_property
    def repeats(self) -> list[tuple[str, list[int]]]:
        """For each page its kind, and the earlier pages that are SAME.

        The kind is "distinct" for a page without any, "exact" if one has an equal text, "near" if one has an LJ of .9
        to the whole page, else "reframed": what stands around the main content was made anew.
        """
        by_text: dict[int, list[int]] = defaultdict(list)
        by_key: dict[str, list[int]] = defaultdict(list)
        found = []
        for place, page in enumerate(self.pages):
            equal = by_text[self.whole[place]]
            earlier = [other for other in by_key[page.key] if self.of(other, place) is Relation.SAME]
            kind = "exact" if equal else "reframed" if earlier else "distinct"
            if kind == "reframed" and any(self.whole_likeness(other, place) >= SAME_MIN for other in earlier):
                kind = "near"
            found.append((kind, sorted({*equal[:1], *earlier})))
            equal.append(place)
            by_key[page.key].append(place)
        return found


def plain_title(title: str) -> str:
    """A title without numbers, such as those of releases."""
    return " ".join(re.sub(r"\d+(?:\.\d+)*", " ", title).split())


def _one_file(one: Served, other: Served) -> bool:
    """Whether the file names are equal, or all words of one are the last words of the other's path."""
    names = [page.key.rpartition("/")[2].lower() for page in (one, other)]
    paths = [_words(page.key) for page in (one, other)]
    ends = [_words(name) for name in names]
    return names[0] == names[1] or any(
        end and path[-len(end) :] == end for end, path in zip(ends, reversed(paths), strict=True)
    )


def _words(path: str) -> list[str]:
    """The words of a path without its ending and without `index`."""
    return re.findall(r"[a-z0-9]+", re.sub(r"(?:/index)?\.[a-z]+$", "", path.lower()))


def _below(page: Served) -> str:
    """The path without its first folder, which is a package's: `libdap-dev/` becomes `libdap-doc/`."""
    return page.path.partition("/")[2]


def _translated(a: str, b: str) -> bool:
    """Whether paths differ in the names of languages alone: `fr/a.html`, `a.fr.html`."""
    one, other = (re.split("[/.]", path) for path in (a, b))
    differ = [pair for pair in zip(one, other, strict=False) if pair[0] != pair[1]]
    return len(one) == len(other) and bool(differ) and all(map(_LANGUAGE.fullmatch, sum(differ, ())))


def _likeness(one: npt.NDArray[np.uint64], other: npt.NDArray[np.uint64]) -> float:
    """LJ where it may be .9, else its upper bound from the multisets of tokens; 1 for two empty ones."""
    if not len(one) and not len(other):
        return 1.0
    bound = ratio_at_most(one, other)
    return bound if bound < SAME_MIN else common_ratio(one, other) or 0.0


#: A line of text, and whether it is links alone.
Line = tuple[str, bool]
_ANCHOR = re.compile(b"%c[^%c]*%c" % (writing.ANCHOR_START, writing.ANCHOR_END, writing.ANCHOR_END))
_MARKS = bytes([writing.TERM_START, writing.TERM_END, writing.ANCHOR_START, writing.ANCHOR_END, writing.DELETE])


def lines_of(page: Served) -> list[Line]:
    """The text of a page, a line for each block; the URL of a page without any."""
    decoded = decode(page.body, "text/html")
    extracted = extract_page(decoded.utf8, decoded.mode)
    found = []
    for block in extracted.text[: extracted.n_text].tobytes().split(bytes([writing.BLOCK])):
        text = " ".join(block.translate(None, _MARKS).decode("utf-8", "replace").split())
        if text:
            found.append((text, not _TOKEN.search(_ANCHOR.sub(b"", block).decode("utf-8", "replace"))))
    return found or [(page.url, False)]


def _mains(pages: Sequence[Served], lines: Sequence[Sequence[Line]]) -> tuple[list[str], list[str]]:
    """Main contents and prose of pages."""
    releases: dict[str, list[int]] = defaultdict(list)
    for place, page in enumerate(pages):
        releases[page.release].append(place)
    mains, prose = [""] * len(pages), [""] * len(pages)
    for places in releases.values():
        shared = Counter(text for place in places for text in {text for text, _ in lines[place]})
        most = len(places) * BOILERPLATE_SHARE if len(places) >= BOILERPLATE_PAGES else len(places) + 1
        for place in places:
            kept = [line for line in lines[place] if shared[line[0]] < most]
            mains[place] = "\n".join(text for text, _ in kept)
            prose[place] = "\n".join(text for text, links in kept if not links)
    return mains, prose
