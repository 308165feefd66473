"""Files of documents, one a line or one a row: JSON lines, and Parquet."""

import codecs
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from neardup.errors import BadInput, BadPage
from neardup.page import Page
from streams.formats.compressed import Damaged, Stream
from streams.formats.documents import Fields, document_of
from streams.formats.json import object_of

_USUAL = ("url", "body", "body_base64", "content_type", "fetched_at", "http_status")


class Lines:
    """JSON lines. bytes_read: of the file, as stored. line: the last one that was read. line_max: bytes of a line; a
    longer one is rejected.
    """

    def __init__(self, path: Path, fields: Fields, line_max: int) -> None:
        self.bytes_read, self.line = 0, b""
        self._path, self._fields, self._line_max = path, fields, line_max

    def read(self, position: int) -> Iterator[tuple[Page, int]]:
        """(page, byte where its line, or the member with it, starts). Raises OSError, Damaged."""
        with closing(Stream(self._path, position)) as stream:
            while True:
                at, line = stream.position, _line(stream, self._line_max)
                self.bytes_read = stream.bytes_read
                if line is None:
                    return
                if line == b"" or line.isspace():
                    continue
                self.line = line
                yield self._page(line), at

    def _page(self, line: bytes) -> Page:
        if len(line) > self._line_max:
            return Page(url="", body=b"", problem=f"a line of more than {self._line_max} bytes")
        try:
            return document_of(object_of(line.removeprefix(codecs.BOM_UTF8)), self._fields)
        except BadPage as error:
            return Page(url="", body=b"", problem=str(error))


class Table:
    """The rows of a Parquet file. bytes_read: an estimate, by the rows."""

    def __init__(self, path: Path, fields: Fields) -> None:
        self.bytes_read = 0
        self._path, self._fields = path, fields

    def read(self, position: int) -> Iterator[tuple[Page, int]]:
        """(page, number of its row). Raises OSError, Damaged."""
        from streams.formats.parquet import ParquetDamaged, columns_of, count_of, names_wanted, rows_of

        size, at = self._path.stat().st_size, position
        try:
            columns = names_wanted(_wanted(self._fields), columns_of(self._path))
            rows = max(count_of(self._path), 1)
            for at, row in rows_of(self._path, columns, position):
                self.bytes_read = size * at // rows
                try:
                    yield document_of(row, self._fields), at
                except BadPage as error:
                    yield Page(url="", body=b"", problem=str(error)), at
        except ParquetDamaged as error:
            raise Damaged(at, f"Parquet, after row {at}: {error}") from error


def must_fit(path: Path, fields: Fields) -> None:
    """Raises BadInput for a Parquet file that cannot be read, or has no column for the ids or the texts."""
    try:
        from streams.formats.parquet import ParquetDamaged, columns_of
    except ImportError as error:
        raise BadInput(f"{path}: Parquet is read by DuckDB: pip install 'neardup[batch]'") from error
    try:
        columns = columns_of(path)
    except ParquetDamaged as error:
        raise BadInput(f"{path}: cannot be read as Parquet: {error}") from error
    for what, name, option in (
        ("id", fields.id or "url", "--id-field"),
        ("text", fields.text or "body", "--text-field"),
    ):
        if name not in columns:
            held = ", ".join(list(columns)[:20])
            raise BadInput(f"{path}: no column {name} for the {what}; {option} names another one of: {held}")


def _wanted(fields: Fields) -> tuple[str, ...]:
    return (fields.id or "url", fields.text or "body", "content_type") if fields else _USUAL


def _line(stream: Stream, bound: int) -> bytes | None:
    """The next line without its end, its first `bound` + 1 bytes if it is longer; None at the end of the file."""
    scanned, kept = 0, b""
    while True:
        end = stream.buffer.find(b"\n", scanned)
        if end >= 0:
            line = stream.take(end + 1)[:-1]
            return kept or line
        scanned = len(stream.buffer)
        if scanned > bound:
            kept = kept or stream.take(bound + 1)
            stream.take(len(stream.buffer))
            scanned = 0
        if not stream.fill() and not stream.next_member():
            rest = stream.take(len(stream.buffer))
            return kept or rest or None
