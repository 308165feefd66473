"""Compares two histories of verdicts about the same pages: changes by kind and by site.

Pages are joined by their source, partition and offset. So runs with other page ids can be compared: those of another
generation, or of new sketches. Pages of sources that only one run has read, as of one corpus in two formats, are joined
by their ids or URLs, the n-th fetch with the n-th one. Memory does not grow with the pages: the first history is kept
in an SQLite file, and only samples keep whole verdicts.
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
from neardup.urls import name_of, site_of_verdict
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

    before, after: kinds. If both are equal, the representative is another, or the page of the same content.
    standing: what changed in the standing that the verdict on a later fetch, such as `unchanged`, repeats.
    """

    before: str
    after: str
    standing: str = ""

    def __str__(self) -> str:
        if self.standing:
            return f"{self.before}: {self.standing}"
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

    def by_count(self) -> list[tuple[Change, int]]:
        """Return the kinds of changes with their numbers of pages, the most frequent first."""
        return sorted(self.changes.items(), key=lambda item: (-item[1], item[0]))

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "pages": self.pages,
            "changed": self.changed,
            "changes": [
                {"change": str(change), "before": change.before, "after": change.after, "pages": count}
                for change, count in self.by_count()
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
        chosen: dict[Change, list[_Drawn]] = {}
        for verdict in after():
            if verdict.get("n", 0):
                continue
            read += 1
            if read % _ROWS == 0:
                progress(read)
            key, kind, of, site, url, *names = _row(verdict)
            row = table.execute("SELECT kind, of, seen, held FROM pages WHERE key = ?", (key,)).fetchone()
            if row is None:
                table.execute(f"INSERT INTO others VALUES ({_VALUES})", (key, kind, of, site, url, *names, read, 0))
                continue
            if row[2]:
                raise BadInput(f"the second history has two verdicts about the page at {key}")
            table.execute("UPDATE pages SET seen = 1 WHERE key = ?", (key,))
            found.pages += 1
            if (row[0], row[1]) != (kind, of):
                _note(found, chosen, _change(row[0], row[3], kind, names[-1]), key, key, site)
                changed((url, site, *_place(key), row[0], row[1] or None, kind, of or None))
        _join_by_name(table)
        for key, kind, of, of_name, held, site, url, same, *other in table.execute(_OTHERS):
            found.pages += 1
            if same is None:
                _note(found, chosen, Change(_NONE, kind), key, key, site)
                changed((url, site, *_place(key), None, None, kind, of or None))
            elif [kind, of_name] != [other[0], other[2]]:
                _note(found, chosen, _change(other[0], other[3], kind, held), same, key, site)
                changed((url, site, *_place(key), other[0], other[1] or None, kind, of or None))
        for key, kind, of, site, url in table.execute("SELECT key, kind, of, site, url FROM pages WHERE seen = 0"):
            found.pages += 1
            _note(found, chosen, Change(kind, _NONE), key, key, site)
            changed((url, site, *_place(key), kind, of or None, None, None))
    _take_samples(found, chosen, before, after)
    return found


# The pages of the first history, and those of the second one whose places the first one has not. name: id or URL of the
# page; of_name: of the page to which its verdict refers. held: kind of the standing that the verdict repeats, or ''.
# nr: position in the history.
_COLUMNS = "kind TEXT, of TEXT, site TEXT, url TEXT, source TEXT, name TEXT, of_name TEXT, held TEXT, nr INT, seen INT"
_VALUES = ", ".join("?" * 11)
_SCHEMA = f"""
CREATE TABLE pages (key TEXT PRIMARY KEY, {_COLUMNS}) WITHOUT ROWID;
CREATE TABLE others (key TEXT PRIMARY KEY, {_COLUMNS}) WITHOUT ROWID;
CREATE TABLE named (other TEXT PRIMARY KEY, key TEXT) WITHOUT ROWID;
"""
# Pages whose sources both histories have are joined by their places alone: they are fetches of their own.
_JOIN = """
INSERT INTO named SELECT two.key, one.key FROM ({others}) AS two JOIN ({pages}) AS one USING (name, nth, many)
"""
_NAMED = """
SELECT key, name, row_number() OVER (PARTITION BY name ORDER BY nr) AS nth, count(*) OVER (PARTITION BY name) AS many
FROM {table} WHERE seen = 0 AND name != '' AND source NOT IN (SELECT source FROM {sources})
"""
_OTHERS = """
SELECT others.key, others.kind, others.of, others.of_name, others.held, others.site, others.url,
    pages.key, pages.kind, pages.of, pages.of_name, pages.held
FROM others LEFT JOIN named ON named.other = others.key LEFT JOIN pages ON pages.key = named.key ORDER BY others.nr
"""


def _join_by_name(table: sqlite3.Connection) -> None:
    """Joins pages of sources that the other history has not by their names, and marks those of the first one as seen.

    A name that occurs more often in one of the histories joins none.
    """
    table.execute("CREATE TABLE sources AS SELECT DISTINCT source FROM pages")
    table.execute(
        "CREATE TABLE matched AS SELECT DISTINCT source FROM others UNION SELECT source FROM pages WHERE seen"
    )
    pages = _NAMED.format(table="pages", sources="matched")
    table.execute(_JOIN.format(others=_NAMED.format(table="others", sources="sources"), pages=pages))
    table.execute("UPDATE pages SET seen = 1 WHERE key IN (SELECT key FROM named)")


def _row(verdict: Verdict) -> tuple[str, ...]:
    """The values of a page up to held, in the order of the columns."""
    key, url, standing = _key(verdict), _url(verdict), standing_of(verdict)
    other = standing.representative or standing.content_of or {}
    names = name_of(url), name_of(str(other.get("url") or ""))
    held = standing.kind if verdict.get("standing") else ""
    return key, str(verdict["verdict"]), _of(verdict), site_of_verdict(verdict), url, key.split("/", 1)[0], *names, held


def _change(before: str, held_before: str, after: str, held_after: str) -> Change:
    """held_before, held_after: kinds of the standings, or ""."""
    if before != after or not (held_before and held_after):
        return Change(before, after)
    return Change(before, after, str(Change(held_before, held_after)))


def _fill(table: sqlite3.Connection, history: History, progress: Callable[[int], None]) -> int:
    rows: list[tuple[Any, ...]] = []
    read = 0

    def store() -> None:
        try:
            table.execute("BEGIN")
            table.executemany(f"INSERT INTO pages VALUES ({_VALUES})", rows)
            table.execute("COMMIT")
        except sqlite3.IntegrityError as error:
            raise BadInput(f"the first history has two verdicts about one page: {error}") from error
        rows.clear()

    for verdict in history():
        if verdict.get("n", 0):
            continue
        read += 1
        rows.append((*_row(verdict), read, 0))
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


#: Rank of a sample, and the keys of its page in both histories.
_Drawn = tuple[int, str, str]


def _note(found: Diff, chosen: dict[Change, list[_Drawn]], change: Change, one: str, other: str, site: str) -> None:
    """Count a change, and keep the page's keys in both histories as a sample if its hash is among the smallest."""
    found.count(change, site)
    rank = -int.from_bytes(hashlib.blake2b(other.encode(), digest_size=8).digest(), "big")
    heap = chosen.setdefault(change, [])
    if len(heap) < SAMPLES:
        heapq.heappush(heap, (rank, one, other))
    elif rank > heap[0][0]:
        heapq.heapreplace(heap, (rank, one, other))


def _take_samples(found: Diff, chosen: dict[Change, list[_Drawn]], before: History, after: History) -> None:
    drawn = [one for heap in chosen.values() for one in heap]
    first, second = _lookup(before, {key for _, key, _ in drawn}), _lookup(after, {key for _, _, key in drawn})
    for change, heap in chosen.items():
        found.samples[change] = [Sample(first.get(one), second.get(key)) for _, one, key in sorted(heap, reverse=True)]


def _lookup(history: History, required: set[str]) -> dict[str, Verdict]:
    if not required:
        return {}
    own = (verdict for verdict in history() if not verdict.get("n", 0))
    return {key: verdict for verdict in own if (key := _key(verdict)) in required}
