"""Rows of CSV and TSV files whose first row names the fields (RFC 4180).

A field in quotes may hold line ends, separators, and quotes as two quotes. The separator is the most frequent one of
SEPARATORS in the header.
"""

import codecs
import csv
import re
from collections import deque
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from neardup.errors import BadInput
from neardup.page import Page
from streams.files.jsonl_and_parquet import next_line
from streams.formats.compressed import Damaged, Stream
from streams.formats.containment import contained
from streams.formats.json import Fields, document_of

SEPARATORS = "\t,;|"
_TITLES = {b"url", b"id", b"text", b"body", b"content", b"html", b"title"}
_QUOTED = re.compile(r'"[^"]*+"')
#: Fields of the `json` codec that are no text, and what they are read as; an empty one is absent.
_TYPED = {"http_status": int, "fetched_at": int, "score": float, "content_type": str, "body_base64": str}
#: Bounds are those of rows; the standard library's own is 128 kB a field, for the whole process.
_FIELD_CHARS_MAX = 1 << 30
_HEADER_CHARS_MAX = 64 << 10
#: Lines behind a row that cannot be read are read again, in a file as many as this number of the largest rows has.
_GIVEN_BACK_ROWS_MAX = 4


class CsvRows:
    """The rows of a CSV file.

    bytes_read: bytes of the stored file that were read. row_max: greatest size of a row in bytes.
    """

    def __init__(self, path: Path, fields: Fields, row_max: int) -> None:
        self.bytes_read = 0
        self._path, self._fields, self._row_max = path, fields, row_max
        self._row: dict[str, Any] = {}

    @property
    def line(self) -> bytes | None:
        """The last row, as an object of texts."""
        return orjson.dumps(
            {
                name: value if isinstance(value, str) else value.decode("utf-8", "replace")
                for name, value in self._row.items()
            }
        )

    def read(self, position: int, stop: int | None = None) -> Iterator[tuple[Page, int]]:
        """Yields (page, byte where its row, or the gzip member with it, starts). Raises OSError, Damaged, BadInput.

        stop: not used: a quote may span any part of the file, so that it is read as a whole.
        """
        names, separator = _header(self._path, self._row_max)
        with closing(Stream(self._path, position)) as stream:
            rows = _rows(stream, separator, self._row_max)
            for at, row, problem in islice(rows, 0 if position else 1, None):
                self.bytes_read = stream.bytes_read
                if not problem and len(row) > len(names):
                    problem = f"a row of {len(row)} fields, and the header has {len(names)}"
                yield self._page(dict(zip(names, row, strict=False)), at) if not problem else _rejected(problem), at

    def _page(self, row: dict[str, str], at: int) -> Page:
        text = self._fields.text or "body"
        self._row = {name: _cell(value, name == text) for name, value in row.items()}
        return contained(lambda: document_of(_typed(self._row), self._fields), _rejected, file=self._path, position=at)


def names_of_csv(path: Path, row_max: int) -> list[str]:
    """The names in the first row of a CSV file. Raises OSError, BadInput."""
    return [name for name in _header(path, row_max)[0] if name]


def looks_like_csv(start: bytes) -> bool:
    """Whether the first line is a header: two names or more, one of them that of a text or an id."""
    line = start.removeprefix(codecs.BOM_UTF8).partition(b"\n")[0]
    names = {name.strip(b' "\r') for name in re.split(rb"[\t,;|]", line)}
    return len(names) > 1 and bool(names & _TITLES)


def _header(path: Path, row_max: int) -> tuple[list[str], str]:
    """The names of a file's fields, and its separator. Raises OSError, BadInput."""
    with closing(Stream(path)) as stream:
        try:
            line = next_line(stream, row_max) or b""
        except Damaged as error:
            raise BadInput(f"{path}: its header cannot be read: {error}") from error
    if line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise BadInput(f"{path}: is UTF-16, and CSV is read as UTF-8; save it as UTF-8")
    text = line.removeprefix(codecs.BOM_UTF8).removesuffix(b"\r").decode("utf-8", "replace")
    if "\r" in text:
        raise BadInput(f"{path}: its lines end with a carriage return alone; save it with line feeds")
    if len(text) > _HEADER_CHARS_MAX:
        raise BadInput(f"{path}: its first line is too long for a header, which must name the fields")
    bare = _QUOTED.sub("", text)
    separator = max(SEPARATORS, key=bare.count) if any(one in bare for one in SEPARATORS) else ","
    try:
        return next(csv.reader([text], delimiter=separator), []), separator
    except csv.Error as error:
        raise BadInput(f"{path}: its header cannot be read: {error}") from error


def _rows(stream: Stream, separator: str, row_max: int) -> Iterator[tuple[int, list[str], str]]:
    """Yields (position, fields, why they cannot be read, or "") of each row that is not blank.

    Bytes that are not UTF-8 become surrogates. A row that cannot be read costs its first line.
    """
    csv.field_size_limit(_FIELD_CHARS_MAX)
    lines = _RowLines(stream, row_max)
    reader = csv.reader(lines, delimiter=separator)
    while lines.begin_row():
        row, problem = [], ""
        try:
            row = next(reader, [])
        except csv.Error as error:
            problem = f"not CSV: {error}"
        except _TooLong:
            problem = f"a row of more than {row_max} bytes, or a quote that is not closed"
        if lines.ended:
            problem = "a quote that is not closed"
        if problem:
            lines.give_back()
        if row or problem:
            yield lines.row_position, row, problem


class _TooLong(Exception):
    """A row of more bytes than the bound."""


class _RowLines:
    """The lines of a file as text; csv's reader takes none ahead.

    row_position: byte where the present row starts. ended: the reader wanted a line more for it than there are.
    """

    def __init__(self, stream: Stream, row_max: int) -> None:
        self.row_position, self.ended = 0, False
        self._stream, self._row_max = stream, row_max
        self._row: list[tuple[int, bytes]] = []  # of the present row
        self._next: deque[tuple[int, bytes]] = deque()
        self._given_back = self._row_bytes = 0

    def begin_row(self) -> bool:
        """Begins a row; False at the end of the file."""
        self._row, self._row_bytes, self.ended = [], 0, False
        if not self._next:
            self._read()
        self.row_position = self._next[0][0] if self._next else 0
        return bool(self._next)

    def give_back(self) -> None:
        """Begins the next row behind the first line of this one, unless that was done too often."""
        if self._given_back < _GIVEN_BACK_ROWS_MAX * self._row_max:
            self._given_back += self._row_bytes
            self._next.extendleft(reversed(self._row[1:]))

    def __iter__(self) -> "_RowLines":
        return self

    def __next__(self) -> str:
        if not self._next and not self._read():
            self.ended = True
            raise StopIteration
        self._row.append(self._next.popleft())
        line = self._row[-1][1]
        self._row_bytes += len(line) + 1
        if self._row_bytes > self._row_max:
            raise _TooLong
        return line.decode("utf-8", "surrogateescape") + "\n"

    def _read(self) -> bool:
        at = self._stream.position
        line = next_line(self._stream, self._row_max)
        self._next.extend([] if line is None else [(at, line)])
        return line is not None


def _cell(value: str, text: bool) -> str | bytes:
    """A field: one that is not UTF-8 is left as bytes if it is the text, whose charset is found later."""
    try:
        value.encode()
        return value
    except UnicodeEncodeError:
        data = value.encode("utf-8", "surrogateescape")
        return data if text else data.decode("utf-8", "replace")


def _typed(row: dict[str, str | bytes]) -> dict[str, Any]:
    """The row with numbers where the `json` codec has some, and without empty fields that have no text."""
    found: dict[str, Any] = dict(row)
    for name, kind in _TYPED.items():
        value = found.get(name)
        if value == "":
            del found[name]
        elif isinstance(value, str) and kind is not str:
            with suppress(ValueError):  # else text: reported, or a date
                found[name] = kind(value)
    return found


def _rejected(problem: str) -> Page:
    return Page(url="", body=b"", problem=problem)
