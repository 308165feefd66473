"""Files with one document per line (JSON lines) or row (Parquet)."""

import codecs
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from neardup.errors import BadInput
from neardup.page import Page
from streams.errors import how_to_install
from streams.formats.compressed import Damaged, Stream
from streams.formats.containment import contained
from streams.formats.json import BODIES, ROW, Fields, document_of, guessed, object_of

if TYPE_CHECKING:  # commands import this module for their help
    import numpy as np
    import numpy.typing as npt

#: Lines, and bytes, from which field names are guessed before a file is read; names that an error shows.
LINES_SAMPLED, SAMPLED_BYTES_MAX, NAMES_SHOWN, NAME_CHARS_SHOWN = 100, 16 << 20, 20, 60
#: The greatest byte of a blank line.
_SPACE = 0x20
_USUAL = ("url", "body", "body_base64", "content_type", "fetched_at", "http_status", "http_method", "truncated")


class Output(Protocol):
    """What lines are written to."""

    def write(self, data: bytes | memoryview, /) -> Any: ...


def next_line(stream: Stream, bound: int) -> bytes | None:
    """The next line without its line end, at most `bound` + 1 bytes of it; None at the end of the file."""
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


class _Kept:
    """The lines of a file that a copy takes."""

    def __init__(self, offsets: "npt.NDArray[np.int64]", out: Output) -> None:
        self._offsets, self._out = iter(offsets.tolist()), out
        self._next, self._number = next(self._offsets, -1), 0

    def take_line(self, line: bytes) -> None:
        """Writes a line that is not blank, if it is one of them."""
        if self._is_next():
            self._out.write(line + b"\n")

    def take(self, block: bytes) -> None:
        """Writes those of some whole lines, lines side by side at once."""
        view, at, begun = memoryview(block), 0, -1
        while at < len(block):
            end = block.find(b"\n", at) + 1
            blank = block[at] <= _SPACE and block[at:end].isspace()
            if not blank and self._is_next():
                begun = at if begun < 0 else begun
            elif begun >= 0:
                self._out.write(view[begun:at])
                begun = -1
            at = end
        if begun >= 0:
            self._out.write(view[begun:])

    def _is_next(self) -> bool:
        found = self._number == self._next
        if found:
            self._next = next(self._offsets, -1)
        self._number += 1
        return found


class JsonLines:
    """The rows of a file of JSON lines.

    bytes_read: bytes of the stored file that were read. line: last line that was read. line_max: greatest size of a
    line in bytes; a longer line is rejected.
    """

    line: bytes | None
    _next = staticmethod(next_line)

    def __init__(self, path: Path, fields: Fields, line_max: int) -> None:
        self.bytes_read, self.line = 0, None
        self._path, self._fields, self._line_max = path, fields, line_max

    def read(self, position: int, stop: int | None = None) -> Iterator[tuple[Page, int]]:
        """Yields (page, byte where its line, or the gzip member with it, starts). Raises OSError, Damaged."""
        for at, line in self.lines(position, stop):
            yield self.page(line, at), at

    def lines(self, position: int, stop: int | None = None) -> Iterator[tuple[int, bytes]]:
        """Yields (position, line) of the lines that are not blank. Raises OSError, Damaged."""
        with closing(Stream(self._path, position)) as stream:
            while stop is None or stream.position < stop:
                at, line = stream.position, self._next(stream, self._line_max)
                self.bytes_read = stream.bytes_read
                if line is None:
                    return
                if line == b"" or line.isspace():
                    continue
                self.line = line
                yield at, line

    def copy(self, offsets: "npt.NDArray[np.int64]", out: Output) -> Iterator[None]:
        """Writes the lines of some pages as they are, each with a line end; yields after each block of the file.

        offsets: ordinals of the pages, ascending. Lines side by side are written at once. Raises OSError, Damaged.
        """
        kept = _Kept(offsets, out)
        with closing(Stream(self._path)) as stream:
            while True:
                whole = stream.buffer.rfind(b"\n") + 1 if self._next is next_line else 0
                if whole:
                    kept.take(stream.take(whole))
                else:  # the line that the block's end cuts, or one that is too long
                    line = self.line = self._next(stream, self._line_max)
                    if line is None:
                        return
                    if line and not line.isspace():
                        kept.take_line(self.line or b"")  # of values of JSON, in one line
                self.bytes_read = stream.bytes_read
                yield

    def page(self, line: bytes, at: int) -> Page:
        if len(line) > self._line_max:
            return Page(url="", body=b"", problem=f"a line of more than {self._line_max} bytes")
        return contained(
            lambda: document_of(object_of(line.removeprefix(codecs.BOM_UTF8), self._fields.id or "url"), self._fields),
            lambda reason: Page(url="", body=b"", problem=reason),
            file=self._path,
            position=at,
        )


class ParquetRows:
    """The rows of a Parquet file. bytes_read: an estimate, by the rows."""

    line = None

    def __init__(self, path: Path, fields: Fields) -> None:
        self.bytes_read = 0
        self._path, self._fields = path, fields

    def read(
        self, position: int, stop: int | None = None, numbers: Sequence[int] | None = None
    ) -> Iterator[tuple[Page, int]]:
        """Yields (page, number of its row). numbers: read these rows alone. Raises OSError, Damaged."""
        from streams.formats.parquet import ParquetDamaged, columns_of, present_columns, rows_of, spans_of

        size, at = self._path.stat().st_size, position
        try:
            fields = self._fields
            own = (fields.id or "url", *((fields.text,) if fields.text else BODIES), "content_type", "fetched_at")
            columns = present_columns(own if fields else _USUAL, columns_of(self._path))
            spans = spans_of(self._path)
            rows = spans[-1][1] if spans else 1
            for at, row in rows_of(self._path, columns, spans, position, stop, numbers):
                self.bytes_read = size * at // rows
                page = contained(
                    partial(document_of, row, self._fields),
                    lambda reason: Page(url="", body=b"", problem=reason),
                    file=self._path,
                    row=at,
                )
                yield page, at
        except ParquetDamaged as error:
            raise Damaged(at, f"Parquet, after row {at}: {error}") from error


def fitted(path: Path, names: Sequence[str], fields: Fields, *, needs_text: bool, hint: str = "") -> Fields:
    """The fields of a file's ids and texts. Fields that are not given are guessed from the names in the file.

    names: names of the file's fields. Without names, each row is rejected later. needs_text: whether a file with `url`
    alone is refused. hint: advice that the error adds. Raises BadInput for a file without such fields.
    """
    found = guessed(fields, names)
    texts = (found.text,) if found.text else BODIES
    if not needs_text and found.id is None:
        texts = ("url",)  # a line of the `json` codec needs no body: the fetch may have failed
    for what, alternatives, option in (
        ("id", ("url" if found.id is None else found.id,), "--id-field"),
        ("text", texts, "--text-field"),
    ):
        if names and alternatives != (ROW,) and not any(name in names for name in alternatives):
            held = ", ".join(name[:NAME_CHARS_SHOWN] for name in names[:NAMES_SHOWN])
            raise BadInput(
                f"{path}: no field {alternatives[0]} for the {what}; {option} names another one of: {held}{hint}"
            )
    return found


def columns_named(path: Path) -> list[str]:
    """The names of a Parquet file's columns. Raises BadInput for a file that cannot be read, or without DuckDB."""
    try:
        from streams.formats.parquet import ParquetDamaged, columns_of
    except ImportError as error:
        raise BadInput(f"{path}: Parquet is read by DuckDB: {how_to_install('batch')}") from error
    try:
        return list(columns_of(path))
    except ParquetDamaged as error:
        raise BadInput(f"{path}: cannot be read as Parquet: {error}") from error


def names_of_lines(
    path: Path, line_max: int, following: Callable[[Stream, int], bytes | None] = next_line
) -> list[str]:
    """The names in the first LINES_SAMPLED lines of a file of JSON lines, in their order; empty without objects.

    following: takes the next line from the stream.
    """
    found: dict[str, None] = {}
    sampled = 0
    with closing(Stream(path)) as stream, suppress(Damaged):  # damage is reported when the pages are read
        for _ in range(LINES_SAMPLED):
            line = following(stream, line_max)
            if line is None or sampled > SAMPLED_BYTES_MAX:
                break
            sampled += len(line)
            # Not logged: the page of the line is rejected later, and that is logged.
            fields = contained(partial(object_of, line.removeprefix(codecs.BOM_UTF8)), lambda reason: {})
            found.update(dict.fromkeys(fields))
    return list(found)
