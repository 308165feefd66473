"""Writes rows as Parquet, CSV or JSON lines, by the ending of the file's name."""

import csv
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from neardup.errors import BadInput
from streams.errors import WrongUsage, bad_input, how_to_install
from streams.process.disk import whole_file

Row = tuple[Any, ...]
FORMATS = (".parquet", ".csv", ".jsonl")


def must_be_writable(out: str, flag: str = "--out") -> None:
    """Raises WrongUsage for a name with another ending, BadInput for Parquet without DuckDB. `-` is standard output."""
    if out != "-" and Path(out).suffix not in FORMATS:
        raise WrongUsage(f"{flag} {out}: the name must end in {', '.join(FORMATS)}, or be - for JSON lines")
    if Path(out).suffix == ".parquet":
        _parquet()


def write_table(made: Iterable[Row], columns: Mapping[str, str], out: str, flag: str = "--out") -> int:
    """Writes rows to a file, whole or not at all, or as JSON lines to standard output (`-`). Returns their number.

    columns: names with their SQL types, in the order of a row's values. flag: named the file. Raises BadInput as
    `must_be_writable`, and for a file that cannot be written.
    """
    must_be_writable(out, flag)
    if out == "-":
        return _lines(made, columns, sys.stdout.buffer)
    suffix = Path(out).suffix
    with (
        bad_input(f"{flag} {out}"),
        tempfile.TemporaryDirectory(prefix="neardup-export-") as folder,
        whole_file(Path(out)) as fresh,
    ):
        if suffix == ".parquet":
            lines = Path(folder) / "rows"
            with lines.open("wb") as file:
                count = _lines(made, columns, file)
            _parquet()(lines, columns, fresh)
        elif suffix == ".csv":
            count = _csv(made, columns, fresh)
        else:
            with fresh.open("wb") as file:
                count = _lines(made, columns, file)
    return count


def _parquet() -> Callable[[Path, Mapping[str, str], Path], None]:
    try:
        from streams.formats.parquet import parquet_of_lines
    except ImportError as error:
        raise BadInput(f"Parquet is written by DuckDB: {how_to_install('batch')}; or choose .csv or .jsonl") from error
    return parquet_of_lines


def _lines(made: Iterable[Row], columns: Mapping[str, str], out: BinaryIO) -> int:
    count = 0
    for row in made:
        count += 1
        out.write(orjson.dumps(dict(zip(columns, row, strict=True)), option=orjson.OPT_APPEND_NEWLINE))
    return count


def _csv(made: Iterable[Row], columns: Mapping[str, str], path: Path) -> int:
    """None is an empty field, booleans are `true` and `false`, lists are JSON."""
    count = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        for row in made:
            count += 1
            writer.writerow([_cell(value) for value in row])
    return count


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return orjson.dumps(value).decode() if isinstance(value, list) else value
