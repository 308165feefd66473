"""The held pages, by a plain dictionary, from fetches and takedowns, without sketches."""

from bisect import bisect_right
from collections import Counter
from typing import NamedTuple

from neardup.limits import DAY_MS
from neardup.sketch.takedown_hashes import Named, Takedown
from neardup.urls import url_hash
from neardup.verdict import Kind, Verdict
from streams.pipeline import batch_fold
from tests.streams.year.crawl import Fetch

#: What a page is called that is none of a URL's that is held.
NEW = {Kind.UNIQUE, Kind.EXACT_DUPLICATE, Kind.NEAR_DUPLICATE, Kind.SAME_CONTENT}


class Held(NamedTuple):
    """The last fetch of a URL that counted. text: "" of one that is gone. seen: log time, ms."""

    url: str
    site: str
    text: str
    fetched: int
    seen: int


class Model:
    """expiry_days: days of log time after which a page that was not fetched expires."""

    def __init__(self, expiry_days: int) -> None:
        self.held: dict[bytes, Held] = {}
        self.expired = self.taken_down = 0
        self._expiry_ms = expiry_days * DAY_MS
        self._texts: Counter[str] = Counter()
        self._pages, self._after = 0, b""  # since the last sweep, and where that ended
        self._log_time = 0

    @property
    def live(self) -> int:
        """URLs that are held and not gone."""
        return sum(bool(row.text) for row in self.held.values())

    def take(self, fetch: Fetch, words: Verdict) -> None:
        """Asserts that a page's verdict is possible, and applies it."""
        self._log_time = max(self._log_time, fetch.came)
        self._pages += 1
        key = url_hash(fetch.url)
        known = self.held.get(key)
        kind = words.verdict
        assert words.url == fetch.url
        if fetch.text is None:
            assert kind is Kind.REJECTED
        elif known is not None and fetch.at < known.fetched:
            assert kind is Kind.STALE
        elif not fetch.text:
            assert kind is Kind.GONE
            self._put(key, fetch, known)
        elif known is None or not known.text:
            assert kind in NEW
            assert words.replaces is None
            # A page that returns in time may reclaim its cluster from copies.
            back = known is not None and kind is Kind.UNIQUE
            assert back or (kind is Kind.EXACT_DUPLICATE) == bool(self._texts[fetch.text])
            self._put(key, fetch, known)
        else:
            replaced = kind in NEW and words.replaces is not None
            assert replaced or kind is (Kind.UNCHANGED if fetch.text == known.text else Kind.EDITED)
            self._put(key, fetch, known)

    def end_message(self) -> None:
        """Sweeps, if it is time to."""
        if self._pages < batch_fold.PAGES_BETWEEN:
            return
        keys, most = sorted(self.held), self._pages * batch_fold.URLS_A_PAGE
        at = bisect_right(keys, self._after)
        looked = keys[at : at + most]
        for key in looked:
            if self.held[key].seen < self._log_time - self._expiry_ms:
                self._drop(key)
                self.expired += 1
        self._after = looked[-1] if len(looked) == most else b""
        self._pages = 0

    def forget(self, takedown: Takedown) -> int:
        """Returns how many URLs were taken down: those that are gone only if they are named themselves."""
        one = takedown.what is Named.URL
        named = [key for key, row in self.held.items() if (row.text or one) and takedown.names(row.url, row.site)]
        for key in named:
            self._drop(key)
        self.taken_down += len(named)
        return len(named)

    def _put(self, key: bytes, fetch: Fetch, known: Held | None) -> None:
        if known is not None:
            self._drop(key)
        text = fetch.text or ""
        self.held[key] = Held(fetch.url, fetch.site, text, fetch.at, self._log_time)
        if text:
            self._texts[text] += 1

    def _drop(self, key: bytes) -> None:
        text = self.held.pop(key).text
        if text:
            self._texts[text] -= 1
