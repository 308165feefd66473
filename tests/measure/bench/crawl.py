"""A crawl of any length from a seed, in known proportions: the pages that the bench calls *the crawl*.

Of all pages, `repeats` are copies of an earlier page under another URL, half of them exact and half edited. A tenth are
fetches of a known URL: unchanged, edited, with other content, older than the held fetch, or gone. Another tenth are
pages of ten templates, each used by five sites, around words of their own. The other pages are new. Four in five pages
that are repeated or fetched again come from the last thousand or so, one from anywhere. Words follow Zipf's law; a page
has 350 of them in the mean. Kinds and origins of the first pages do not depend on the crawl's length.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import cache, cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from neardup.page import Page
from neardup.scheme import Scheme
from neardup.sketch.make_sketches import sketch_pages
from neardup.verdict import Coordinates, Kind
from streams.pipeline.packing import pack
from streams.ports import Range
from tests.measure.bench.documents import WORDS, language

#: Of repeats, the shares that the bench shows; the headline is that of 30%.
SHARES = (0.0, 0.1, 0.3, 0.5)
HEADLINE = 0.3

_EPOCH_MS = 1_700_000_000_000
_SITES, _TEMPLATES, _SITES_A_TEMPLATE = 500, 10, 5
#: Lengths of pages, as multiples of WORDS; their mean is 1.
_LENGTHS = (0.3, 0.6, 0.9, 1.0, 2.2)
#: Of a page of a template: share of its own words; the rest is the template's, three fifths in front.
_OWN = 0.6
_FAR, _NEAR_PAGES = 0.2, 800
#: Pages that are sketched at once, and of which a part of the log has messages of its own.
_PART_PAGES = 2048
_SOURCE = "00" * 15 + "07"


@cache
def _markup(site: int) -> str:
    """40 kB of a site without any text of its own, in lines that each may be the last."""
    random = np.random.default_rng(site)
    lines = []
    for number in range(150):
        a, b, c = random.integers(10_000, size=3).tolist()
        lines += [
            f'<div class="card card--{a % 7}" id="c{b}" data-index="{number}" style="margin:0 {a}px">'
            f'<a class="card__link" href="/d/{c}"><img src="https://img.example.net/{a}/{b}.jpg" alt=""></a></div>',
            f"<script>var v{b}=function(d){{return d.querySelector('#c{b}').offsetTop+{c}}}</script>",
            f"<style>.card--{a}{{padding:{b % 50}px;color:#{c:06x}}}</style>",
        ]
    return "\n".join(lines)


class What(IntEnum):
    """What a page is meant to be."""

    NEW = 0
    TEMPLATE = 1
    COPY = 2
    EDITED_COPY = 3
    UNCHANGED = 4
    EDITED = 5
    REPLACED = 6
    STALE = 7
    GONE = 8


#: Shares of the pages that do not depend on the share of repeats.
_FIXED = {
    What.TEMPLATE: 0.1,
    What.UNCHANGED: 0.045,
    What.EDITED: 0.025,
    What.REPLACED: 0.01,
    What.STALE: 0.01,
    What.GONE: 0.01,
}
_REPEATS = (What.COPY, What.EDITED_COPY)
_LOSES = (What.REPLACED, What.GONE)


class Crawl:
    """The first `count` pages of a crawl.

    what: `What` of each page, uint8[count].
    origin: number of the page that each page repeats or fetches again; its own for other pages, int64[count].
    content: number of the page that first had the content, int64[count].
    planted: whether a page is a copy of a page that is live at that time, bool[count].
    """

    def __init__(self, count: int, *, repeats: float = HEADLINE, page_bytes: int = 0, seed: int = 1) -> None:
        """page_bytes: markup, a script and a style sheet of the site make each page of HTML that long."""
        self.count, self._seed, self._page_bytes = count, seed, page_bytes
        self.what = self._kinds(repeats)
        self.origin = np.arange(count)
        self.planted = np.zeros(count, bool)
        self._find_origins(repeats)
        own = np.isin(self.what, (What.NEW, What.TEMPLATE, What.REPLACED))
        self.content = np.where(own, np.arange(count), self.origin)

    def _random(self, column: int) -> np.random.Generator:
        """A generator for a column: of it a longer crawl draws the same numbers first."""
        return np.random.default_rng((self._seed, column))

    def _kinds(self, repeats: float) -> npt.NDArray[np.uint8]:
        shares = dict.fromkeys(_REPEATS, repeats / 2) | _FIXED
        ends = np.cumsum(list(shares.values()))
        names = np.array([*shares, What.NEW], np.uint8)
        return names[np.searchsorted(ends, self._random(1).random(self.count), side="right")]

    def _find_origins(self, repeats: float) -> None:
        """Walks the crawl: a copy is planted if any URL holds the very content that it copies."""
        random = self._random(2)
        far = self._random(3).random(self.count) < _FAR
        anywhere = self._random(4).random(self.count)
        sources_a_page = 1 - repeats - (sum(_FIXED.values()) - _FIXED[What.TEMPLATE])
        back = (random.exponential(_NEAR_PAGES * sources_a_page, self.count)).astype(np.int64)
        sources: list[int] = []
        live: list[int] = []  # of each source, URLs that hold its very content
        lost: set[int] = set()  # sources whose own URL holds other content, or none
        for number, what in enumerate(self.what.tolist()):
            if what in (What.NEW, What.TEMPLATE) or number < 100:
                self.what[number] = what if what == What.TEMPLATE else What.NEW
                sources.append(number)
                live.append(1)
                continue
            last = len(sources) - 1
            at = int(anywhere[number] * len(sources)) if far[number] else last - int(back[number]) % len(sources)
            if what in _REPEATS:
                self.planted[number] = live[at] > 0
                live[at] += what == What.COPY
            else:
                while at in lost:
                    at = at - 1 if at else last
                if what in _LOSES:
                    lost.add(at)
                    live[at] -= 1
            self.origin[number] = sources[at]

    @cached_property
    def _vocabulary(self) -> tuple[npt.NDArray[np.object_], npt.NDArray[np.float64]]:
        words = np.array(language().words, object)
        weights = np.cumsum(1 / (np.arange(len(words)) + 2.7) ** 1.05)
        return words, weights / weights[-1]

    def _draw(self, random: np.random.Generator, count: int) -> list[str]:
        words, chances = self._vocabulary
        drawn: list[str] = words[np.searchsorted(chances, random.random(count))].tolist()
        return drawn

    def _words(self, number: int) -> list[str]:
        """Words of a page that repeats no other."""
        random = np.random.default_rng((self._seed, 5, number))
        count = int(WORDS * _LENGTHS[random.integers(len(_LENGTHS))])
        if self.what[number] != What.TEMPLATE:
            return self._draw(random, count)
        frame = self._frame(number)
        front = len(frame) * 3 // 5
        return frame[:front] + self._draw(random, int(WORDS * _OWN)) + frame[front:]

    def _frame(self, number: int) -> list[str]:
        template = number // _SITES_A_TEMPLATE % _TEMPLATES
        return self._draw(np.random.default_rng((self._seed, 6, template)), int(WORDS * (1 - _OWN)))

    def words(self, number: int) -> list[str]:
        """The words of any page that is not gone."""
        found = self._words(int(self.content[number]))
        if self.what[number] not in (What.EDITED, What.EDITED_COPY):
            return found
        random = np.random.default_rng((self._seed, 7, number))
        edit = random.integers(4)
        if edit == 0:  # a word or two, and some words at the end
            return self._replaced(random, found, int(random.integers(3))) + self._draw(random, 2)
        if edit < 3:
            return self._replaced(random, found, int(len(found) * (0.03 if edit == 1 else 0.06)))
        run = len(found) // 10
        start = int(random.integers(len(found) - run))
        return found[:start] + self._draw(random, run) + found[start + run :]

    def _replaced(self, random: np.random.Generator, words: list[str], count: int) -> list[str]:
        words = list(words)
        others = self._draw(random, count)
        for at, word in zip(random.choice(len(words), count, replace=False).tolist(), others, strict=True):
            words[at] = word
        return words

    def text(self, number: int) -> str:
        """The words alone."""
        return " ".join(self.words(number))

    def url(self, number: int) -> str:
        """The URL of a copy is its own; that of a page that is fetched again is its origin's."""
        if self.what[number] in _REPEATS:
            return f"http://mirror{number % 7}.example/{number}"
        number = int(self.origin[number])
        if self.what[number] == What.TEMPLATE:
            return f"http://shop{number % (_TEMPLATES * _SITES_A_TEMPLATE)}.example/d/{number}"
        return f"http://site{number % _SITES}.example/d/{number}"

    def page(self, number: int, *, html: bool = True) -> Page:
        """The fetch of this number, as HTML in the surroundings of its site, or as plain text."""
        when = _EPOCH_MS + 1000 * number
        if self.what[number] == What.STALE:
            when = _EPOCH_MS + 1000 * int(self.origin[number]) - 500
        if self.what[number] == What.GONE:
            return Page(self.url(number), None, "", when)
        if html:
            return Page(self.url(number), self._html(number), "text/html; charset=utf-8", when)
        return Page(self.url(number), self.text(number).encode(), "text/plain; charset=utf-8", when)

    def _html(self, number: int) -> bytes:
        content = int(self.content[number])
        words, site = self.words(number), content % _SITES
        random = np.random.default_rng((self._seed, 8, content))
        title = " ".join(self._draw(random, 5))
        menu = self._vocabulary[0][1000 + 20 * site : 1012 + 20 * site].tolist()
        parts = [f"<!doctype html><html><head><title>{title} | Site {site}</title></head><body><ul>"]
        parts += [f'<li><a href="/menu/{each}">{word}</a>' for each, word in enumerate(menu)]
        parts.append(f"</ul><h1>{title}</h1>")
        parts += [f"<p>{' '.join(words[start : start + 60])}.</p>\n" for start in range(0, len(words), 60)]
        parts.append(f"<div>Site {site}, all rights reserved</div>")
        left = max(0, self._page_bytes - sum(map(len, parts)))
        return "".join([*parts, _markup(site)[:left].rpartition("\n")[0], "</body></html>"]).encode()

    def pages(self, first: int = 0, last: int | None = None, *, html: bool = True) -> Iterator[Page]:
        """Pages `first` to `last` - 1; by default all."""
        return (self.page(number, html=html) for number in range(first, self.count if last is None else last))

    def records(self, scheme: Scheme, first: int = 0, last: int | None = None) -> list[bytes]:
        """Sketch records of pages `first` to `last` - 1, as HTML; by default all."""
        pages = list(self.pages(first, last))
        numbers = range(first, first + len(pages))
        places = [Coordinates(_SOURCE, offset=number) for number in numbers]
        times = [_EPOCH_MS + 1000 * number for number in numbers]
        return sketch_pages(pages, scheme, coordinates=places, log_times=times)

    def messages(self, scheme: Scheme, offset: int = 0) -> Iterator[tuple[int, bytes]]:
        """Yields (offset, message) of the sketch log that the crawl makes. offset: of the first message."""
        for first in range(0, self.count, _PART_PAGES):
            last = min(self.count, first + _PART_PAGES)
            for message in pack(
                bytes.fromhex(scheme.digest),
                [Range(bytes.fromhex(_SOURCE), 0, first, last)],
                [(0, number) for number in range(first, last)],
                self.records(scheme, first, last),
            ):
                yield offset, message
                offset += 1


@dataclass
class Found:
    """What one side found in a crawl: of planted exact and edited copies, and pages that it merged wrongly."""

    exact: int = 0
    exact_of: int = 0
    edited: int = 0
    edited_of: int = 0
    wrong: int = 0

    def __str__(self) -> str:
        copies = f"{self.exact} of {self.exact_of} exact, {self.edited} of {self.edited_of} edited copies"
        return f"{copies}, {self.wrong} wrong" if self.exact_of or self.edited_of else f"{self.wrong} wrong"

    @property
    def share(self) -> float:
        """Found copies over planted ones; 1 if none was planted."""
        planted = self.exact_of + self.edited_of
        return (self.exact + self.edited) / planted if planted else 1.0


def found(crawl: Crawl, merged: Mapping[int, int]) -> Found:
    """Checks a side's answers.

    Args:
        crawl: the pages that the side was given.
        merged: number of each page that the side calls a repeat, and the number of the page that it repeats, or that
            founded its cluster. Fetches of known URLs are not counted.
    """
    checked = Found()
    for number, what in enumerate(crawl.what.tolist()):
        other = merged.get(number)
        right = other is not None and crawl.content[other] == crawl.content[number]
        if crawl.planted[number]:
            checked.exact_of += what == What.COPY
            checked.edited_of += what == What.EDITED_COPY
            checked.exact += right and what == What.COPY
            checked.edited += right and what == What.EDITED_COPY
        if other is not None and not right and (crawl.planted[number] or crawl.content[number] == number):
            checked.wrong += 1
    return checked


def merged_by(verdicts: Iterable[Mapping[str, Any]]) -> dict[int, int]:
    """What neardup calls a repeat, for `found`, from the JSON of all verdicts of a crawl in order."""
    own = [verdict for verdict in verdicts if not verdict["n"]]
    numbers = {verdict["page_id"]: number for number, verdict in enumerate(own)}
    return {
        number: numbers[verdict["cluster"]]
        for number, verdict in enumerate(own)
        if verdict["verdict"] in (Kind.EXACT_DUPLICATE, Kind.NEAR_DUPLICATE)
    }
