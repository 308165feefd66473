"""The fetches of a crawler in a year: new pages, copies, refetches, edits, removed and unreadable pages.

It visits again what it has seen lately; what it loses sight of expires. A fetch is a function of the seed and of its
number, so that a generation that reads history again reads the same.
"""

import random
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from neardup.limits import DAY_MS
from neardup.page import Page

SITES = 40
WORDS = [
    f"{first}{second}" for first in ("al", "be", "co", "du", "em") for second in ("ba", "lor", "min", "tas", "vek")
]
#: 1 January 2026 in ms: times near 1970 are no fetch times.
BEGIN_MS = 20_454 * DAY_MS
#: Pages that the crawler remembers, as days of its work: it visits others no more.
_REMEMBERED_DAYS = 15


class Fetch(NamedTuple):
    """One fetch. text: of the page, "" if it is gone, None if it is unreadable. at: fetch time; came: when it was
    told of, which is later for some; both in ms.
    """

    url: str
    text: str | None
    at: int
    came: int

    @property
    def page(self) -> Page:
        if self.text is None:
            return Page(self.url, b"", "text/html", self.at, status=500)
        if not self.text:
            return Page(self.url, None, "", self.at, status=404)
        title, _, words = self.text.partition("|")
        body = f"<html><head><title>{title}</title></head><body><p>{words}</p></body></html>"
        return Page(self.url, body.encode(), "text/html", self.at)

    @property
    def site(self) -> str:
        """The registrable domain."""
        return self.url.split("/")[2].removeprefix("www.")


class Crawl:
    """Fetches by days, `a_day` each."""

    def __init__(self, a_day: int, seed: int) -> None:
        self._a_day = a_day
        self._random = random.Random(seed)
        self._lately: deque[Fetch] = deque(maxlen=max(1, a_day * _REMEMBERED_DAYS))
        self._made = 0

    def day(self, day: int) -> Iterator[Fetch]:
        for number in range(self._a_day):
            fetch = self._next(BEGIN_MS + day * DAY_MS + number * DAY_MS // self._a_day)
            if fetch.text:
                self._lately.append(fetch)
            yield fetch

    def _next(self, now: int) -> Fetch:
        kind = self._random.random()
        if kind < 0.35 or not self._lately:
            return Fetch(self._new_url(), self._new_text(), now, now)
        known = self._random.choice(self._lately)
        if kind < 0.45:  # another site's page
            return Fetch(self._new_url(), known.text, now, now)
        if kind < 0.75:
            return Fetch(known.url, known.text, now, now)
        if kind < 0.84:
            return Fetch(known.url, self._edited(known.text or ""), now, now)
        if kind < 0.89:
            return Fetch(known.url, self._new_text(), now, now)
        if kind < 0.95:
            return Fetch(known.url, "", now, now)
        if kind < 0.98:
            return Fetch(known.url, known.text, now - 3 * DAY_MS, now)  # comes late
        return Fetch(known.url, None, now, now)

    def _new_url(self) -> str:
        self._made += 1
        return f"http://www.site{self._random.randrange(SITES)}.org/part{self._made % 7}/page{self._made}.html"

    def _new_text(self) -> str:
        self._made += 1
        words = [f"{self._random.choice(WORDS)}{self._random.randrange(3000)}" for _ in range(70)]
        return f"Item {self._random.choice(WORDS)}{self._made}|{' '.join(words)}"

    def _edited(self, text: str) -> str:
        self._made += 1
        words = text.split(" ")
        words[self._random.randrange(30, len(words))] = f"new{self._made}"
        return " ".join(words)
