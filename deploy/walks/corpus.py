"""A corpus to play with: the texts of a crawl as Parquet, with the columns doc_id and text.

python deploy/walks/corpus.py demo/crawl.warc.gz texts.parquet
"""

import sys
from collections.abc import Iterator, Sequence

import duckdb
from fastwarc.warc import ArchiveIterator, WarcRecordType

from neardup.text.decoding import decode
from neardup.text.one_page_html import text_of


def texts(archive: str) -> Iterator[tuple[str, str]]:
    """(id, text) of every page."""
    with open(archive, "rb") as file:
        for number, record in enumerate(ArchiveIterator(file, record_types=WarcRecordType.response)):
            record.parse_http()
            page = decode(record.reader.read(), record.http_headers.get("Content-Type", ""))
            yield f"doc {number}", text_of(page.utf8, page.mode)


def main(arguments: Sequence[str]) -> None:
    archive, out = arguments
    table = duckdb.connect()
    table.execute("CREATE TABLE texts (doc_id VARCHAR, text VARCHAR)")
    table.executemany("INSERT INTO texts VALUES (?, ?)", list(texts(archive)))
    table.table("texts").write_parquet(out)


if __name__ == "__main__":
    main(sys.argv[1:])
