"""Selects the pages of a deduplicated copy: by default, of the last fetches of all URLs, those that an index shows."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import NamedTuple

from neardup.canonical import CRITERIA, Criterion, Member, choose
from neardup.standing import DUPLICATES
from neardup.verdict import Kind
from streams.history.export import TABLES, Verdict, rows
from streams.history.scratch import scratch_table

_COLUMNS = {name: number for number, name in enumerate(TABLES["urls"])}
_SCHEMA = """
CREATE TABLE pages (source TEXT, "offset" INT, kept INT, copy_of TEXT, cluster INT, url TEXT, site TEXT, fetched_at INT,
    length INT, PRIMARY KEY (source, "offset")) WITHOUT ROWID;
CREATE TABLE fetches (url TEXT PRIMARY KEY, first INT, rel_canonical TEXT, score REAL) WITHOUT ROWID;
CREATE TABLE written (url TEXT PRIMARY KEY, digest TEXT, date TEXT) WITHOUT ROWID;
"""
_READ = ("source", "offset", "shown", "verdict", "representative", "cluster", "url", "site", "fetched_at")
_PUT_FETCH = """
INSERT INTO fetches VALUES (?, ?, ?, ?) ON CONFLICT (url) DO UPDATE SET first = min(first, excluded.first),
    rel_canonical = excluded.rel_canonical, score = excluded.score
"""
#: The criterion that `CRITERIA` lacks: the length of a page is in its source, not in its verdict.
LONGEST = "longest"
KEPT_BY = (*CRITERIA, LONGEST)
#: Yields (source, offset, bytes of the body) of pages.
Lengths = Callable[[], Iterable[tuple[str, int, int]]]


class Written(NamedTuple):
    """A page that a copy holds. digest: of its payload. date: its WARC-Date."""

    digest: str
    date: str


class CopySelection:
    """The pages of the verdicts, and those that the copy holds so far."""

    def __init__(self, table: sqlite3.Connection) -> None:
        self._table = table

    def drop_clusters(self) -> None:
        """Keeps no page of a cluster of two or more pages."""
        self._table.execute(
            "UPDATE pages SET kept = 0, copy_of = NULL WHERE cluster IN"
            " (SELECT cluster FROM pages GROUP BY cluster HAVING count(*) > 1)"
        )

    def choose(self, policy: Sequence[str], lengths: Lengths) -> None:
        """Keeps the page of each cluster that a policy prefers. policy: names of KEPT_BY."""
        self._table.execute("BEGIN")
        if LONGEST in policy:
            put = 'UPDATE pages SET length = ? WHERE source = ? AND "offset" = ?'
            self._table.executemany(put, ((length, source, offset) for source, offset, length in lengths()))
        found = self._table.execute(
            "SELECT cluster, url, first, site, rel_canonical, score, fetched_at, length"
            " FROM pages JOIN fetches USING (url) WHERE cluster NOT NULL ORDER BY cluster"
        )
        kept: list[tuple[str, int]] = []
        for cluster, some in groupby(found, key=lambda row: int(row[0])):
            members: list[Member] = []
            sizes: dict[str, int] = {}
            for _, url, first, site, rel, score, fetched_at, length in some:
                members.append(Member(url, first, site or "", rel, score, fetched_at))
                sizes[url] = length or 0
            choice = choose(members, policy, {**CRITERIA, LONGEST: _longest(sizes)})
            if choice is not None and len(members) > 1:
                kept.append((choice.url, cluster))
        # Which pages are exact copies of the chosen one is decided where their bytes are read.
        self._table.executemany(
            "UPDATE pages SET kept = (url = ?1), copy_of = iif(url = ?1, NULL, ?1) WHERE cluster = ?2", kept
        )
        self._table.execute("COMMIT")

    def of(self, source: str) -> Iterator[tuple[int, bool, str | None]]:
        """Yields (offset, whether it is kept, URL of the page that it may copy exactly), by offset.

        Pages that are neither, such as former fetches, are left out.
        """
        yield from self._table.execute(
            'SELECT "offset", kept, copy_of FROM pages WHERE source = ? AND (kept OR copy_of NOT NULL)'
            ' ORDER BY "offset"',
            (source,),
        )

    def add_written(self, url: str, page: Written) -> None:
        """Records that the copy holds a page."""
        self._table.execute("REPLACE INTO written VALUES (?, ?, ?)", (url, *page))

    def written(self, url: str) -> Written | None:
        """Returns the page of a URL that the copy holds so far."""
        found = self._table.execute("SELECT digest, date FROM written WHERE url = ?", (url,)).fetchone()
        return Written(*found) if found else None


@contextmanager
def copy_selection(verdicts: Iterable[Verdict], progress: Callable[[int], None]) -> Iterator[CopySelection]:
    """Reads all verdicts. progress: gets the number read. Raises BadInput for lines that are no verdicts."""
    columns = [_COLUMNS[name] for name in _READ]
    with scratch_table(_SCHEMA) as table:
        table.execute("BEGIN")
        for row in rows("urls", _with_fetches(verdicts, table), progress):
            source, offset, shown, verdict, representative, cluster, *page = (row[column] for column in columns)
            copy_of = representative if verdict == Kind.EXACT_DUPLICATE.value else None
            cluster = cluster if verdict == Kind.UNIQUE.value or verdict in DUPLICATES else None
            values = (source, offset, shown, copy_of, cluster, *page)
            table.execute("REPLACE INTO pages VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL)", values)
        table.execute("CREATE INDEX clusters ON pages (cluster)")
        table.execute("COMMIT")
        yield CopySelection(table)


def _with_fetches(verdicts: Iterable[Verdict], table: sqlite3.Connection) -> Iterator[Verdict]:
    for verdict in verdicts:
        yield verdict  # first: its reader refuses lines that are no verdicts
        if not verdict["n"]:
            fetch = (verdict["url"], verdict["page_id"], verdict.get("rel_canonical"), verdict.get("score"))
            table.execute(_PUT_FETCH, fetch)


def _longest(bytes_of: Mapping[str, int]) -> Criterion:
    return Criterion("it is the longest", lambda members: [-bytes_of[member.url] for member in members])
