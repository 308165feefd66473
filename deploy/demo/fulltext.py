"""A full-text index in step with the verdicts: sqlite's FTS5, which shows one page of all that say the same.

    python deploy/demo/fulltext.py BOOTSTRAP TOPIC INDEX.db

The table `fetched` holds the texts, as a crawler filled it. What is found is the table `shown`: a duplicate is hidden,
the page that is promoted when the one shown goes comes in its place. What a batch of verdicts makes of it is written in
one transaction with the consumer's position: killed anywhere, it goes on as if nothing had happened.
"""

import sqlite3
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from streams.client import VerdictBatch, VerdictConsumer, duplicate_of

_TABLES = """
CREATE TABLE IF NOT EXISTS fetched (url TEXT PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS told (id INTEGER PRIMARY KEY, url TEXT UNIQUE, log TEXT, page_id INTEGER, n INTEGER);
CREATE TABLE IF NOT EXISTS positions (partition TEXT PRIMARY KEY, next INTEGER NOT NULL);
CREATE VIRTUAL TABLE IF NOT EXISTS shown USING fts5 (url UNINDEXED, text);
"""


class Index:
    """The index, and where its consumer stands."""

    def __init__(self, path: str) -> None:
        self.db = sqlite3.connect(path)
        self.db.executescript(_TABLES)

    def load(self) -> dict[str, int]:
        return dict(self.db.execute("SELECT partition, next FROM positions"))

    def take(self, batch: VerdictBatch) -> None:
        """All of a batch, or nothing."""
        with self.db:
            for verdict in batch.verdicts:
                self._apply(verdict)
            self.db.executemany("REPLACE INTO positions VALUES (?, ?)", batch.positions.items())

    def _apply(self, verdict: Mapping[str, Any]) -> None:
        # Newer ones only, should positions ever get lost; another log begins its page ids anew.
        row = self.db.execute(
            """INSERT INTO told (url, log, page_id, n) VALUES (?, ?, ?, ?) ON CONFLICT (url) DO UPDATE
               SET log = excluded.log, page_id = excluded.page_id, n = excluded.n
               WHERE excluded.log IS NOT log OR (excluded.page_id, excluded.n) > (page_id, n) RETURNING id""",
            (verdict["url"], verdict.get("log"), verdict["page_id"], verdict["n"]),
        ).fetchone()
        if row is None:
            return
        self.db.execute("DELETE FROM shown WHERE rowid = ?", row)
        if shows(verdict):
            self.db.execute(
                "INSERT INTO shown (rowid, url, text) SELECT ?, url, text FROM fetched WHERE url = ?",
                (*row, verdict["url"]),
            )

    def find(self, words: str) -> list[str]:
        """URLs of pages with these words, the best first."""
        return [url for (url,) in self.db.execute("SELECT url FROM shown WHERE shown MATCH ? ORDER BY rank", (words,))]


def shows(verdict: Mapping[str, Any]) -> bool:
    """Whether the index should find this URL now."""
    standing = verdict.get("standing") or verdict
    return standing["verdict"] not in ("gone", "rejected") and duplicate_of(verdict) is None


def main(arguments: Sequence[str]) -> None:
    bootstrap, topic, path = arguments
    index = Index(path)
    with VerdictConsumer(bootstrap, index, topic) as consumer:
        for batch in consumer.batches(follow=False):
            index.take(batch)


if __name__ == "__main__":
    main(sys.argv[1:])
