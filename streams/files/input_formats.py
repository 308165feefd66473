"""The formats of input files: an entry of `FORMATS` says how files of a format are recognised, read and copied.

Two kinds of readers exist. An archive yields records, and `page_of` makes pages of them. A table yields pages itself,
from rows with named fields. A new format costs its reader and its entry here.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from neardup.page import CONTENT_TYPES, Page
from streams.files.arc_reader import ArcReader
from streams.files.csv_rows import CsvRows, looks_like_csv, names_of_csv
from streams.files.json_values import LINES, JsonValues, json_kind, names_of_values
from streams.files.jsonl_and_parquet import JsonLines, ParquetRows, columns_named, names_of_lines
from streams.files.warc_reader import WarcReader, holds_converted
from streams.formats.compressed import SUFFIXES as COMPRESSIONS
from streams.formats.compressed import Damaged, Stream
from streams.formats.json import Fields

#: Bytes from which the format of a file is recognised whose name does not say it.
_START_BYTES = 4096
#: `copy` writes pages of every source as these.
JSON_LINES = (".jsonl",)


class TableRows(Protocol):
    """A reader of a table.

    bytes_read: bytes of the stored file that were read. line: last row as a line of JSON, if the format has lines.
    """

    bytes_read: int

    @property
    def line(self) -> bytes | None: ...

    def read(self, position: int, stop: int | None = None) -> Iterator[tuple[Page, int]]:
        """Yields (page, position) from the row at `position` on, up to before the row at `stop`.

        Raises OSError, Damaged.
        """


@dataclass(frozen=True, slots=True)
class InputFormat:
    """A format of input files: an archive (`records`) or a table (`rows`, `names`).

    Args:
        kind: name of the format in the records of a state directory; it never changes.
        title: name of the format for users.
        suffixes: suffixes of file names in lower case, also of compressed files.
        starts: function that tells whether a file with these first bytes (decompressed, without leading white space)
            has the format.
        kind_of: function that returns the kind of a file, if its content decides between kinds with the same suffixes.
        records: reader of an archive.
        converted: whether conversion records are pages.
        rows: function that makes a reader of a table from its path, the fields of id and text, and the greatest size of
            a row in bytes.
        names: function that returns the names of a table's fields from its path and the greatest size of a row.
        hint: advice that an error about a table's fields adds.
        needs_text: whether a table without a field of texts is refused.
        ordinals: whether positions are numbers of rows, and not bytes of the file.
        asset: whether such files often belong to the pages beside them.
        copies_to: suffixes of the files into which `copy` writes pages of this format.
    """

    kind: str
    title: str
    suffixes: tuple[str, ...]
    starts: Callable[[bytes], bool]
    kind_of: Callable[[Path], str] | None = None
    records: type[WarcReader] | None = None
    converted: bool = False
    rows: Callable[[Path, Fields, int], TableRows] | None = None
    names: Callable[[Path, int], Sequence[str]] | None = None
    needs_text: bool = True
    hint: str = ""
    ordinals: bool = False
    asset: bool = False
    copies_to: tuple[str, ...] = JSON_LINES


def _compressed(*suffixes: str) -> tuple[str, ...]:
    return tuple(suffix + compression for suffix in suffixes for compression in ("", *COMPRESSIONS))


_WARC = (".warc", ".warc.gz", *JSON_LINES)
#: The formats by kind. Suffixes and first bytes are tried in this order.
FORMATS = {
    each.kind: each
    for each in (
        InputFormat(
            "warc",
            "WARC",
            _compressed(".warc", ".wet"),
            lambda start: start.startswith(b"WARC/"),
            kind_of=lambda path: "wet" if holds_converted(path) else "warc",
            records=WarcReader,
            copies_to=_WARC,
        ),
        InputFormat("wet", "WET", (), lambda start: False, records=WarcReader, converted=True, copies_to=_WARC),
        InputFormat(
            "arc",
            "ARC",
            _compressed(".arc"),
            lambda start: start.startswith(b"filedesc:"),
            records=ArcReader,
            copies_to=_WARC,
        ),
        InputFormat(
            "json",
            "JSON",
            _compressed(".json"),
            lambda start: start.startswith(b"["),
            kind_of=json_kind,
            rows=JsonValues,
            names=names_of_values,
            needs_text=False,
            asset=True,
        ),
        InputFormat(
            "jsonl",
            "JSON lines",
            _compressed(*LINES),
            lambda start: start.startswith(b"{"),
            kind_of=json_kind,
            rows=JsonLines,
            names=names_of_lines,
            needs_text=False,
        ),
        InputFormat(
            "parquet",
            "Parquet",
            (".parquet",),
            lambda start: start.startswith(b"PAR1"),
            rows=lambda path, fields, row_max: ParquetRows(path, fields),
            names=lambda path, row_max: columns_named(path),
            ordinals=True,
            copies_to=(".parquet", *JSON_LINES),
        ),
        InputFormat(
            "csv",
            "CSV",
            _compressed(".csv", ".tsv"),
            looks_like_csv,
            rows=CsvRows,
            names=names_of_csv,
            asset=True,
            hint="; the first row must name the fields",
        ),
    )
}
#: Suffixes of all formats.
SUFFIXES = tuple(suffix for each in FORMATS.values() for suffix in each.suffixes)
#: Suffixes of files that hold archives.
PACKED = (".wacz",)
#: Suffixes without those of compressed files.
MAIN_SUFFIXES = (*(suffix for suffix in SUFFIXES if suffix.count(".") == 1), *PACKED)
#: The formats with their suffixes, for errors and help texts.
TABLES = ", ".join(each.title for each in FORMATS.values() if each.rows)
TITLES = ", ".join(each.title for each in FORMATS.values()) + ", WACZ"
ACCEPTED = (
    f"{TITLES} ({', '.join(MAIN_SUFFIXES)}), most also with {', '.join(COMPRESSIONS)}; folders of these, and folders "
    f"of pages ({', '.join(CONTENT_TYPES)})"
)


def kind_of(path: Path) -> str | None:
    """Returns the kind of a file by its name, or else by its first bytes; None for other files. Raises OSError."""
    name = path.name.lower()
    found = next((each for each in FORMATS.values() if name.endswith(each.suffixes)), None) if name else None
    if found is None:
        with closing(Stream(path)) as stream:
            with suppress(Damaged):
                stream.want(_START_BYTES)
            start = bytes(stream.buffer[:_START_BYTES]).lstrip()
        found = next((each for each in FORMATS.values() if each.starts(start)), None)
    if found is None:
        return None
    return found.kind if found.kind_of is None else found.kind_of(path)
