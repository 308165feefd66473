"""Pairs the answers in an archive with their requests: only the request record holds the method.

Source: ISO 28500:2017 (WARC 1.1), section 5.7: records of one exchange name each other by WARC-Concurrent-To. wget,
wpull and crawlers of Common Crawl write the request before the answer, and the answer names it; Heritrix, warcprox and
Browsertrix write it behind the answer, and it names the answer. Other programs name neither: then the records of an
exchange have one URL and, as a rule, one date, and lie side by side.

Answers are held back until their request is found, a bounded number of records and bytes. So the pairs depend on the
records from the file's start on: an interrupted scan reads them again.
"""

import re
from collections import OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from streams.formats.warc import WarcRecord

V = TypeVar("V")

#: Records, and bytes of their content as stored, behind an answer in which its request is looked for.
HELD_RECORDS_MAX, HELD_BYTES_MAX = 64, 32 << 20
#: Requests before an answer whose ids are remembered; of those without names, as many as there are records held.
REQUESTS_MAX = 16_384
_METHOD = re.compile(rb"\s{0,8}([A-Za-z-]{1,20})[ \t]")
_HEAD_END = re.compile(rb"\r?\n\r?\n")
_ID = re.compile(r"<([^<>]{1,200})>|([^\s<>,]{1,200})")


@dataclass(slots=True)
class _Held:
    record: WarcRecord
    key: str | int = ""  # in `waiting`: its id, or else its number, which is the id of no other record
    waits: bool = False
    method: str = ""


@dataclass(slots=True)
class _Loose:
    """A request that names no answer. Its date is that of the answer."""

    date: str
    method: str


@dataclass(slots=True)
class Exchanges:
    """The exchanges of a file, from its start up to some record. Pickled, it continues in another process.

    waiting: held answers without a request, in their order. requests_first: how the file's first exchange lies.
    held: records that were taken and not returned yet, in their order.
    """

    waiting: dict[str | int, _Held] = field(default_factory=dict)
    requests: OrderedDict[str, str] = field(default_factory=OrderedDict)
    loose: OrderedDict[str, _Loose] = field(default_factory=OrderedDict)
    requests_first: bool | None = None
    held: deque[_Held] = field(default_factory=deque)
    _bytes: int = 0  # of the held records
    _number: int = 0  # of the last record, which names an answer without id

    def take(self, record: WarcRecord) -> Iterator[tuple[WarcRecord, str]]:
        """Take the next record of the file, and yield the records that no longer wait, with their methods."""
        self._number += 1
        held = _Held(record)
        self.held.append(held)
        self._bytes += record.length
        if record.headers.get("warc-type", "").lower() == "request":
            self._request(record)
        elif record.is_http_answer:
            self._answer(held)
        while self.held and (
            not self.held[0].waits or len(self.held) > HELD_RECORDS_MAX or self._bytes > HELD_BYTES_MAX
        ):
            yield self._first()

    def end(self) -> Iterator[tuple[WarcRecord, str]]:
        """Yield the records that are still held: the file has no more."""
        while self.held:
            yield self._first()

    def _first(self) -> tuple[WarcRecord, str]:
        first = self.held.popleft()
        if first.waits:
            self._give_up(first)
        self._bytes -= first.record.length
        return first.record, first.method

    def _request(self, record: WarcRecord) -> None:
        self.requests_first = True if self.requests_first is None else self.requests_first
        found = _METHOD.match(record.content)
        method = found[1].decode().upper() if found else ""
        for identity in _ids(record, "warc-record-id")[:1]:
            _keep(self.requests, identity, method, REQUESTS_MAX)
        named = _ids(record, "warc-concurrent-to")
        for identity in named:
            if held := self.waiting.pop(identity, None):
                held.waits, held.method = False, method
        if named:
            return
        url, date = record.headers.get("warc-target-uri", ""), record.headers.get("warc-date", "")
        for key, held in reversed(self.waiting.items()):
            if held.record.headers.get("warc-target-uri", "") != url:
                continue
            same_date = held.record.headers.get("warc-date", "") == date
            if (same_date or not self.requests_first) and not _cannot_answer(held.record, method):
                self.waiting.pop(key)
                held.waits, held.method = False, method
                return
            break
        _keep(self.loose, url, _Loose(date, method), HELD_RECORDS_MAX)

    def _answer(self, held: _Held) -> None:
        self.requests_first = False if self.requests_first is None else self.requests_first
        headers = held.record.headers
        for identity in _ids(held.record, "warc-concurrent-to"):
            if identity in self.requests:
                held.method = self.requests.pop(identity)
                return
        url = headers.get("warc-target-uri", "")
        loose = self.loose.get(url)
        if loose is not None and not _cannot_answer(held.record, loose.method):
            adjacent = self.requests_first and "warc-concurrent-to" not in headers
            if loose.date == headers.get("warc-date", "") or adjacent:
                held.method = self.loose.pop(url).method
                return
        held.waits, held.key = True, next(iter(_ids(held.record, "warc-record-id")), self._number)
        # An id that repeats belongs to the later record, as a file's parts are written one after another.
        if former := self.waiting.pop(held.key, None):
            former.waits = False
        self.waiting[held.key] = held

    def _give_up(self, held: _Held) -> None:
        """Ends the wait of an answer."""
        if self.waiting.get(held.key) is held:
            del self.waiting[held.key]
        held.waits = False


def with_methods(records: Iterator[WarcRecord]) -> Iterator[tuple[WarcRecord, str]]:
    """Yields all records in their order, each answer with the method of its request; "" where no request is found.

    Raises what `records` raises, behind the records that were read before.
    """
    exchanges = Exchanges()
    try:
        for record in records:
            yield from exchanges.take(record)
    except Exception:
        yield from exchanges.end()
        raise
    yield from exchanges.end()


def _ids(record: WarcRecord, name: str) -> list[str]:
    return [one or other for one, other in _ID.findall(record.headers.get(name, ""))]


def _keep(held: OrderedDict[str, V], key: str, value: V, most: int) -> None:
    held.pop(key, None)
    held[key] = value
    if len(held) > most:
        held.popitem(last=False)


def _cannot_answer(record: WarcRecord, method: str) -> bool:
    """Whether the record has a body, which an answer to HEAD never has."""
    if method != "HEAD":
        return False
    found = _HEAD_END.search(record.content, 0, 64 << 10)
    return found is not None and len(record.content) > found.end()
