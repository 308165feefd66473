"""Files of JSON objects that are no lines: an array of objects, or objects over many lines, one after the other.

The file is read object by object, so its size does not matter. White space, commas and square brackets between two
objects are passed over, and any other value is a row that is rejected.
"""

import codecs
import re
from contextlib import closing, suppress
from pathlib import Path

from neardup.errors import BadInput
from streams.files.jsonl_and_parquet import JsonLines, names_of_lines
from streams.formats.compressed import Damaged, Stream

#: Bytes of a file that decide whether its objects are lines.
_FIRST_LINE_BYTES_MAX = 64 << 10
#: Suffixes of files whose objects are lines, unless the first line is no whole object by all appearances.
LINES = (".jsonl", ".ndjson", ".jsonlines", ".jl")
_BETWEEN = re.compile(rb"[\s,\[\]\x1e\xef\xbb\xbf]*+")  # with a byte order mark, and the mark of JSON text sequences
#: Text of an object outside of and in strings, up to what may end it. Possessive, so that each byte is read once.
_OUTSIDE = re.compile(rb'[^"{}]*+')
_INSIDE = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_SCALAR = re.compile(rb"[^\s,\[\]{]++")
#: The start of an array of objects, or of an object that goes on in the next line.
_SPREAD = re.compile(rb'\[\s*(?:[\[{]|\Z)|\{[ \t\r]*\n\s*["}]')


def json_kind(path: Path) -> str:
    """Returns `jsonl` for a file with an object on each line, else `json`. Raises OSError."""
    with closing(Stream(path)) as stream:
        with suppress(Damaged):  # damage is reported when the pages are read
            while len(stream.buffer) < _FIRST_LINE_BYTES_MAX and b"\n" not in stream.buffer.strip() and stream.fill():
                pass
        start = bytes(stream.buffer[:_FIRST_LINE_BYTES_MAX]).removeprefix(codecs.BOM_UTF8).lstrip()
    line, ended, _ = start.partition(b"\n")
    named = any(suffix in path.name.lower() for suffix in LINES)
    if _SPREAD.match(start) or (start.startswith(b"[") and not named):
        return "json"
    return "jsonl" if named or not ended or line.rstrip().endswith(b"}") else "json"


def names_of_values(path: Path, value_max: int) -> list[str]:
    """The names in the first objects of a JSON file. Raises BadInput for a file that begins with other values."""
    found = names_of_lines(path, value_max, next_value)
    if not found:
        with closing(Stream(path)) as stream, suppress(Damaged):
            if next_value(stream, value_max) is not None:
                raise BadInput(
                    f"{path}: a JSON file whose first values are no objects, or too long; a row is an object"
                )
    return found


def next_value(stream: Stream, bound: int) -> bytes | None:
    """Returns the next value, cut if it has more than `bound` + 1 bytes; None at the end of the file.

    Raises Damaged for a value that does not end.
    """
    while not stream.buffer or (between := _BETWEEN.match(stream.buffer).end()):  # type: ignore[union-attr]
        if stream.buffer:
            stream.take(between)
        elif not _more(stream):
            return None
    start, kept = stream.position, b""
    at, depth, quoted = 0, 0, False
    scalar = stream.buffer[0] not in b'{"'
    while True:
        pattern = _SCALAR if scalar else _INSIDE if quoted else _OUTSIDE
        at = pattern.match(stream.buffer, at).end()  # type: ignore[union-attr]
        mark = stream.buffer[at : at + 1]
        if not mark or (quoted and mark == b"\\"):  # the buffer ends, perhaps within an escape
            if at > bound:
                piece, at = stream.take(at), 0
                kept = kept or piece[: bound + 1]
            if _more(stream):
                continue
            if not scalar:
                raise Damaged(start, "the JSON value that starts here does not end")
        if scalar:
            break
        at += 1
        quoted ^= mark == b'"'
        depth += (mark == b"{") - (mark == b"}")
        if depth <= 0 and not quoted:
            break
    value = stream.take(at)
    return kept or value


def _more(stream: Stream) -> bool:
    return stream.fill() or stream.next_member()


class JsonValues(JsonLines):
    """Objects of a JSON file."""

    _next = staticmethod(next_value)

    @property
    def line(self) -> bytes | None:
        """The last object on one line: outside of strings, line ends are white space, and inside they are escaped."""
        return self._line and self._line.replace(b"\r", b" ").replace(b"\n", b" ")

    @line.setter
    def line(self, line: bytes | None) -> None:
        self._line = line
