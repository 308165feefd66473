"""The year: days of fetches, takedowns, restarts, a lost index, and two changes of the scheme, each a generation of its
own that reads the history that is kept and is cut over to.
"""

import random
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from neardup.limits import DAY_MS
from neardup.scheme import Scheme
from neardup.sketch.takedown_hashes import Takedown, of_prefix, of_site, of_url
from tests.streams.scripted import ManualClock
from tests.streams.year.crawl import BEGIN_MS, Crawl
from tests.streams.year.generation import EXPIRY_DAYS, Generation, Placed

DAYS = 365
#: On these days another scheme begins; and on these the index is lost.
NEW_SCHEME_DAYS = (130, 250)
LOST_INDEX_DAYS = (60, 300)
#: Days of history that are kept, as retention of `pages` would: all that has not expired, and what a sweep may lag.
HISTORY_DAYS = 2 * EXPIRY_DAYS


class Size(NamedTuple):
    """At the end of a month. fetches: judged so far, by this generation; held, live: URLs; then bytes."""

    day: int
    generation: int
    fetches: int
    held: int
    live: int
    log_bytes: int
    index_bytes: int


class Year:
    """sizes: month by month. expired, taken_down: URLs, all generations together. restart_days: between restarts."""

    def __init__(self, folder: Path, pages: int, seed: int, *, restart_days: int = 1) -> None:
        self.sizes: list[Size] = []
        self.expired = self.taken_down = self.fetches = 0
        self._folder, self._restart_days = folder, restart_days
        self._random = random.Random(seed + 1)
        self._clock = ManualClock()
        self._crawl = Crawl(max(1, pages // DAYS), seed)
        self._history: deque[list[Placed]] = deque(maxlen=HISTORY_DAYS)
        self._takedowns: list[Takedown] = []
        self._generations = 0
        self._live = self._begin(Scheme(seed=7))

    def run(self) -> None:
        """Raises AssertionError where index and model differ."""
        for day in range(DAYS):
            self._day(day)
            if day in NEW_SCHEME_DAYS:
                self._cut_over()
            if day % 30 == 29 or day in LOST_INDEX_DAYS:
                self._measure(day)
        self._live.close()
        self._count()

    def _begin(self, scheme: Scheme) -> Generation:
        self._generations += 1
        return Generation(self._folder / f"generation{self._generations}", scheme)

    def _day(self, day: int) -> None:
        self._clock.ms = BEGIN_MS + (day + 1) * DAY_MS
        today = [(self.fetches + number, fetch) for number, fetch in enumerate(self._crawl.day(day))]
        self.fetches += len(today)
        self._history.append(today)
        if day % self._restart_days == 0 or day in LOST_INDEX_DAYS:
            self._live.restart(lose_index=day in LOST_INDEX_DAYS)
        self._live.take(today)
        for takedown in self._taken_down_on(day, today):
            self._takedowns.append(takedown)
            self._live.forget(takedown)

    def _taken_down_on(self, day: int, today: list[Placed]) -> Iterator[Takedown]:
        fetch = self._random.choice(today)[1]
        if day % 10 == 3:
            yield of_url(fetch.url)
        if day % 50 == 20:
            yield of_prefix(fetch.url.rpartition("/")[0] + "/")
        if day % 150 == 100:
            yield of_site(fetch.site)

    def _cut_over(self) -> None:
        """The new generation reads history, hears the takedowns again, and takes the place of the old one."""
        old = self._live
        new = self._begin(replace(old.scheme, seed=old.scheme.seed + 1, body_bytes_max=old.scheme.body_bytes_max - 1))
        for day in self._history:
            new.take(day)
        for takedown in self._takedowns:
            new.forget(takedown)
        new.check()
        # They hold the same pages, except those that sweeps drop elsewhere, and those that were taken down and came
        # back.
        horizon, held, before = self._clock.ms - EXPIRY_DAYS * DAY_MS, new.model.held, old.model.held
        for row in [(held.get(key) or before[key]) for key in held.keys() ^ before.keys()]:
            assert row.seen < horizon or any(one.names(row.url, row.site) for one in self._takedowns)
        self._count()
        old.remove()
        self._live = new

    def _count(self) -> None:
        self.expired += self._live.model.expired
        self.taken_down += self._live.model.taken_down

    def _measure(self, day: int) -> None:
        live = self._live
        live.check()
        model = live.model
        self.sizes.append(
            Size(
                day + 1,
                self._generations,
                live.fetches,
                len(model.held),
                model.live,
                live.log_bytes(),
                live.index_bytes(),
            )
        )
