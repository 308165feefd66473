"""A full-text index in step with the verdicts: sqlite's FTS5, which shows one page of all that say the same.

    python deploy/demo/fulltext.py BOOTSTRAP TOPIC INDEX.db                         # reads the verdicts that are there
    python deploy/demo/fulltext.py BOOTSTRAP TOPIC INDEX.db --fill crawl.warc.gz    # first takes in the crawl's texts
    python deploy/demo/fulltext.py BOOTSTRAP TOPIC INDEX.db --find wool

The table `fetched` holds the texts, as a crawler fills it. `standings` holds which of them each generation shows: a
duplicate is hidden, the page that is promoted when the one shown goes comes in its place. What a batch of verdicts
makes of it is written in one transaction with the consumer's position: killed anywhere, it goes on as if nothing had
happened. After `neardup generation cutover` it finds what the generation shows that is live then, once it has read its
verdicts.
"""

import argparse
import sqlite3
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from fastwarc.warc import ArchiveIterator, WarcRecordType

from neardup.standing import standing_of
from neardup.text.decoding import decode
from neardup.text.one_page_html import text_of
from neardup.urls import normalise_url
from streams.client import LiveVerdicts, VerdictBatch

# Verdicts of one generation are compared alone: another one that judges the same log has the same page ids.
_TABLES = """
CREATE TABLE IF NOT EXISTS fetched (id INTEGER PRIMARY KEY, url TEXT UNIQUE, text TEXT NOT NULL);
CREATE VIRTUAL TABLE IF NOT EXISTS texts USING fts5 (text, content=fetched, content_rowid=id);
CREATE TRIGGER IF NOT EXISTS fetched_text AFTER INSERT ON fetched
    BEGIN INSERT INTO texts (rowid, text) VALUES (new.id, new.text); END;
CREATE TRIGGER IF NOT EXISTS fetched_again AFTER UPDATE ON fetched
    BEGIN
        INSERT INTO texts (texts, rowid, text) VALUES ('delete', old.id, old.text);
        INSERT INTO texts (rowid, text) VALUES (new.id, new.text);
    END;
CREATE TABLE IF NOT EXISTS standings (generation TEXT, url TEXT, shown INTEGER, log TEXT, page_id INTEGER, n INTEGER,
    PRIMARY KEY (generation, url)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS live (row INTEGER PRIMARY KEY, generation TEXT);
CREATE TABLE IF NOT EXISTS positions (partition TEXT PRIMARY KEY, next INTEGER NOT NULL);
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
            self.db.executemany(
                "INSERT INTO fetched (url, text) VALUES (?, ?) ON CONFLICT (url) DO UPDATE SET text = excluded.text",
                texts,
            )
        return len(texts)

    def load(self) -> dict[str, int]:
        return dict(self.db.execute("SELECT partition, next FROM positions"))

    def take(self, batch: VerdictBatch) -> None:
        """All of a batch, or nothing."""
        with self.db:
            for verdict in batch.verdicts:
                self._apply(batch.generation, verdict)
            self.db.executemany("REPLACE INTO positions VALUES (?, ?)", batch.positions.items())
            if batch.complete:
                self.db.execute("REPLACE INTO live VALUES (0, ?)", (batch.generation,))

    def _apply(self, generation: str, verdict: Mapping[str, Any]) -> None:
        # Newer ones only, should positions ever get lost; another log begins its page ids anew.
        self.db.execute(
            """INSERT INTO standings VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (generation, url) DO UPDATE
               SET shown = excluded.shown, log = excluded.log, page_id = excluded.page_id, n = excluded.n
               WHERE excluded.log IS NOT log OR (excluded.page_id, excluded.n) > (page_id, n)""",
            (generation, verdict["url"], shows(verdict), verdict.get("log"), verdict["page_id"], verdict["n"]),
        )

    def find(self, words: str) -> list[str]:
        """URLs of pages with these words, the best first."""
        rows = self.db.execute(
            """SELECT url FROM texts JOIN fetched ON id = texts.rowid
               JOIN standings USING (url) JOIN live USING (generation)
               WHERE texts MATCH ? AND shown ORDER BY rank""",
            (words,),
        )
        return [url for (url,) in rows]

    def counts(self) -> tuple[int, int]:
        """URLs that have a verdict of the live generation, and those of them that it shows."""
        return self.db.execute(  # type: ignore[no-any-return]
            "SELECT count(*), count(*) FILTER (WHERE shown) FROM standings JOIN live USING (generation)"
        ).fetchone()


def shows(verdict: Mapping[str, Any]) -> bool:
    """Whether the index should find this URL now."""
    return standing_of(verdict).shown


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("bootstrap")
    parser.add_argument("topic", help="of the generation without a name")
    parser.add_argument("index")
    parser.add_argument("--fill", metavar="WARC", help="take in the texts of this crawl first")
    parser.add_argument("--find", metavar="WORDS", help="take nothing in, show pages with these words")
    parser.add_argument("--group", default="neardup", help="as the roles have it")
    given = parser.parse_args(arguments)
    index = Index(given.index)
    if given.find:
        print("\n".join(index.find(given.find)))
        return
    if given.fill:
        print(f"{index.fill(given.fill)} texts")
    with LiveVerdicts(given.bootstrap, index, given.topic, group=given.group) as verdicts:
        for batch in verdicts.batches(follow=False):
            index.take(batch)
    print("{} URLs have a verdict, {} are shown".format(*index.counts()))


if __name__ == "__main__":
    main(sys.argv[1:])
