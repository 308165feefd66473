"""Compares two histories of verdicts about the same pages: changes by kind and by site.

Pages are joined by their source, partition and offset. So runs with other page ids can be compared: those of another
generation, or of new sketches. Memory does not grow with the pages: the first history is kept in an SQLite file, and
only samples keep whole verdicts.
"""

import hashlib
import heapq
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from neardup.errors import BadInput
from neardup.standing import standing_of
from streams.formats.verdict_records import Verdict
from streams.verdicts.shared_rows import scratch_table

#: Reads a history from its start; it is called up to three times, with the same result.
History = Callable[[], Iterable[Verdict]]

#: Samples of each kind of change, drawn by hash, so that the order does not matter.
SAMPLES = 8
SITES_MAX = 50_000
_NONE = "(none)"
_ROWS = 10_000


@dataclass(frozen=True, slots=True, order=True)
class Change:
    """A change of a page's verdict; `(none)`: no verdict there.

    If both kinds are equal, the representative is another, or the page of the same content.
    """

    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.before} -> {self.after}" if self.before != self.after else f"{self.before} of another page"


@dataclass(frozen=True, slots=True)
class Sample:
    """A changed page with both verdicts; None if a history has none."""

    before: Verdict | None
    after: Verdict | None


@dataclass(slots=True)
class Diff:
    """The differences of two histories.

    pages: number of pages in either history. changes: number of pages by kind of change.
    sites: number of pages by kind of change for each registrable domain, at most SITES_MAX and "(others)".
    samples: up to SAMPLES pages of each kind of change.
    """

    pages: int = 0
    changes: Counter[Change] = field(default_factory=Counter)
    sites: dict[str, Counter[Change]] = field(default_factory=dict)
    samples: dict[Change, list[Sample]] = field(default_factory=dict)

    @property
    def changed(self) -> int:
        return self.changes.total()

    def count(self, change: Change, site: str) -> None:
        self.changes[change] += 1
        if site not in self.sites and len(self.sites) >= SITES_MAX:
            site = "(others)"
        self.sites.setdefault(site, Counter())[change] += 1

    def worst_sites(self, most: int = 20) -> list[tuple[str, Counter[Change]]]:
        """Return the sites with the most changes, then by name."""
        return heapq.nsmallest(most, self.sites.items(), key=lambda item: (-item[1].total(), item[0]))

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "pages": self.pages,
            "changed": self.changed,
            "changes": [
                {"before": change.before, "after": change.after, "pages": count}
                for change, count in sorted(self.changes.items(), key=lambda item: (-item[1], item[0]))
            ],
            "sites": [
                {"site": site, "changes": {str(change): count for change, count in sorted(counts.items())}}
                for site, counts in self.worst_sites()
            ],
            "samples": [
                {"change": str(change), "before": one.before, "after": one.after}
                for change, samples in sorted(self.samples.items())
                for one in samples
            ],
        }


#: Columns of the table of changed pages, with their SQL types. before, after: kinds. before_of, after_of: coordinates
#: of the page that they refer to, as SOURCE/PARTITION/OFFSET.
CHANGED: Mapping[str, str] = {
    "url": "VARCHAR", "site": "VARCHAR", "source": "VARCHAR", "partition": "INTEGER", "offset": "BIGINT",
    "before": "VARCHAR", "before_of": "VARCHAR", "after": "VARCHAR", "after_of": "VARCHAR",
}  # fmt: skip
#: Receives the values of CHANGED for one page.
AddChanged = Callable[[tuple[Any, ...]], object]


def diff(
    before: History,
    after: History,
    progress: Callable[[int], None] = lambda verdicts: None,
    *,
    changed: AddChanged = lambda row: None,
) -> Diff:
    """Compares the pages' own verdicts (not the `promoted` ones that they cause).

    progress: verdicts read so far. changed: gets each changed page, in no order. Raises BadInput for a
    history that has a page twice or is none.
    """
    found = Diff()
    with scratch_table(_SCHEMA) as table:
        read = _fill(table, before, progress)
        chosen: dict[Change, list[tuple[int, str]]] = {}
        for verdict in after():
            if verdict.get("n", 0):
                continue
            read += 1
            if read % _ROWS == 0:
                progress(read)
            key = _key(verdict)
            row = table.execute("SELECT kind, of, seen FROM pages WHERE key = ?", (key,)).fetchone()
            found.pages += 1
            kind, of = str(verdict["verdict"]), _of(verdict)
            if row is None:
                _note(found, chosen, Change(_NONE, kind), key, _site(verdict))
                changed((_url(verdict), _site(verdict), *_place(key), None, None, kind, of or None))
                continue
            if row[2]:
                raise BadInput(f"the second history has two verdicts about the page at {key}")
            table.execute("UPDATE pages SET seen = 1 WHERE key = ?", (key,))
            if (row[0], row[1]) != (kind, of):
                _note(found, chosen, Change(row[0], kind), key, _site(verdict))
                changed((_url(verdict), _site(verdict), *_place(key), row[0], row[1] or None, kind, of or None))
        for key, kind, of, site, url in table.execute("SELECT key, kind, of, site, url FROM pages WHERE seen = 0"):
            found.pages += 1
            _note(found, chosen, Change(kind, _NONE), key, site)
            changed((url, site, *_place(key), kind, of or None, None, None))
    _take_samples(found, chosen, before, after)
    return found


_SCHEMA = "CREATE TABLE pages (key TEXT PRIMARY KEY, kind TEXT, of TEXT, site TEXT, url TEXT, seen INT) WITHOUT ROWID"


def _fill(table: sqlite3.Connection, history: History, progress: Callable[[int], None]) -> int:
    rows: list[tuple[str, str, str, str, str]] = []
    read = 0

    def store() -> None:
        try:
            table.execute("BEGIN")
            table.executemany("INSERT INTO pages VALUES (?, ?, ?, ?, ?, 0)", rows)
            table.execute("COMMIT")
        except sqlite3.IntegrityError as error:
            raise BadInput(f"the first history has two verdicts about one page: {error}") from error
        rows.clear()

    for verdict in history():
        if verdict.get("n", 0):
            continue
        rows.append((_key(verdict), str(verdict["verdict"]), _of(verdict), _site(verdict), _url(verdict)))
        read += 1
        if len(rows) == _ROWS:
            store()
            progress(read)
    store()
    return read


def _key(verdict: Verdict) -> str:
    try:
        place = verdict["coordinates"]
        return f"{place['source']}/{place['partition']}/{place['offset']}"
    except (KeyError, TypeError) as error:
        raise BadInput(f"not a verdict of neardup: {str(verdict)[:200]}") from error


def _place(key: str) -> tuple[str, int, int]:
    source, partition, offset = key.rsplit("/", 2)
    return source, int(partition), int(offset)


def _of(verdict: Verdict) -> str:
    """Return the coordinates of the page that a verdict refers to; its page id differs in another history."""
    standing = standing_of(verdict)
    for page in (standing.representative, standing.content_of):
        if page and (place := page.get("coordinates")):
            return f"{place['source']}/{place['partition']}/{place['offset']}"
    return ""


def _url(verdict: Verdict) -> str:
    return str(verdict.get("url") or "")


def _site(verdict: Verdict) -> str:
    return str(verdict.get("site") or "")


def _note(found: Diff, chosen: dict[Change, list[tuple[int, str]]], change: Change, key: str, site: str) -> None:
    """Count a change, and keep its key as a sample if its hash is among the smallest."""
    found.count(change, site)
    rank = -int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "big")
    heap = chosen.setdefault(change, [])
    if len(heap) < SAMPLES:
        heapq.heappush(heap, (rank, key))
    elif rank > heap[0][0]:
        heapq.heapreplace(heap, (rank, key))


def _take_samples(found: Diff, chosen: dict[Change, list[tuple[int, str]]], before: History, after: History) -> None:
    required = {key for heap in chosen.values() for _, key in heap}
    first, second = _lookup(before, required), _lookup(after, required)
    for change, heap in chosen.items():
        keys = [key for _, key in sorted(heap, reverse=True)]
        found.samples[change] = [Sample(first.get(key), second.get(key)) for key in keys]


def _lookup(history: History, required: set[str]) -> dict[str, Verdict]:
    if not required:
        return {}
    own = (verdict for verdict in history() if not verdict.get("n", 0))
    return {key: verdict for verdict in own if (key := _key(verdict)) in required}
