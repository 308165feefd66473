"""A full-text index in step with the verdicts: sqlite's FTS5, which shows one page of all that say the same.

    python deploy/demo/fulltext.py BOOTSTRAP TOPIC INDEX.db                         # takes the verdicts that are there
    python deploy/demo/fulltext.py BOOTSTRAP TOPIC INDEX.db --fill crawl.warc.gz    # first takes in the crawl's texts
    python deploy/demo/fulltext.py BOOTSTRAP TOPIC INDEX.db --find wool

The table `fetched` holds the texts, as a crawler fills it. What is found is the table `shown`: a duplicate is hidden,
the page that is promoted when the one shown goes comes in its place. What a batch of verdicts makes of it is written in
one transaction with the consumer's position: killed anywhere, it goes on as if nothing had happened.
"""

import argparse
import sqlite3
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from fastwarc.warc import ArchiveIterator, WarcRecordType

from neardup.page import normalise_url
from neardup.text.decoding import decode
from neardup.text.html import text_of
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

    def fill(self, archive: str) -> int:
        """Takes in the texts of a crawl under the URLs that verdicts name; how many."""
        texts = []
        with open(archive, "rb") as file:
            for record in ArchiveIterator(file, record_types=WarcRecordType.response):
                record.parse_http()
                page = decode(record.reader.read(), record.http_headers.get("Content-Type", ""))
                url = normalise_url(record.headers["WARC-Target-URI"])
                texts.append((url, "" if page.opaque else text_of(page.utf8, page.mode)))
        with self.db:
            self.db.executemany("REPLACE INTO fetched VALUES (?, ?)", texts)
        return len(texts)

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
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("bootstrap")
    parser.add_argument("topic")
    parser.add_argument("index")
    parser.add_argument("--fill", metavar="WARC", help="take in the texts of this crawl first")
    parser.add_argument("--find", metavar="WORDS", help="take nothing in, show pages with these words")
    given = parser.parse_args(arguments)
    index = Index(given.index)
    if given.find:
        print("\n".join(index.find(given.find)))
        return
    if given.fill:
        print(f"{index.fill(given.fill)} texts")
    with VerdictConsumer(given.bootstrap, index, given.topic) as consumer:
        for batch in consumer.batches(follow=False):
            index.take(batch)
    told, shown = (index.db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("told", "shown"))
    print(f"{told} URLs are told of, {shown} are shown")


if __name__ == "__main__":
    main(sys.argv[1:])
