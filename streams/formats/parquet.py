"""Parquet files, row by row, and JSON lines as Parquet, by DuckDB, which is an optional dependency."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import duckdb

from neardup.errors import StateError

_ROWS = 500
#: What DuckDB may take beside the rows that are asked for; a row group that does not fit is an error.
_MEMORY = "1GB"
_GLOB = re.compile(r"([*?\[])")
_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "threads": 1,
    "memory_limit": _MEMORY,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}


class ParquetDamaged(Exception):
    """A file that is no Parquet, or cannot be read on."""


def columns_of(path: Path) -> dict[str, str]:
    """Names of the columns, with their types in SQL's words. Raises ParquetDamaged."""
    try:
        with duckdb.connect(config=_CONFIG) as database:
            found = database.execute(f"DESCRIBE SELECT * FROM {_table(path, numbered=False)}").fetchall()
            return {str(row[0]): str(row[1]) for row in found}
    except duckdb.Error as error:
        raise ParquetDamaged(_said(error)) from error


def count_of(path: Path) -> int:
    """Rows of the file, as its foot says. Raises ParquetDamaged."""
    try:
        with duckdb.connect(config=_CONFIG) as database:
            (found,) = database.execute(f"SELECT count(*) FROM {_table(path, numbered=False)}").fetchall()
            return int(found[0])
    except duckdb.Error as error:
        raise ParquetDamaged(_said(error)) from error


def rows_of(path: Path, columns: Mapping[str, str], start: int = 0) -> Iterator[tuple[int, dict[str, Any]]]:
    """(number, values by name) of the rows from `start` on, in the file's order. columns: those wanted, by their type:
    times come as milliseconds since the epoch, text and bytes as they are. Raises ParquetDamaged."""
    wanted = ", ".join(_read_as(name, kind) for name, kind in columns.items())
    sql = f"SELECT file_row_number, {wanted} FROM {_table(path, numbered=True)} WHERE file_row_number >= {start:d}"
    try:
        with duckdb.connect(config=_CONFIG) as database:
            result = database.execute(sql)  # rows are read as they are fetched
            while some := result.fetchmany(_ROWS):
                for number, *values in some:
                    yield int(number), dict(zip(columns, values, strict=True))
    except duckdb.Error as error:
        raise ParquetDamaged(_said(error)) from error


def copy_rows(files: Sequence[tuple[Path, Iterator[int]]], out: Path) -> int:
    """Some rows of some files, by their ascending numbers, as one file of the first one's columns -> how many.

    Raises ParquetDamaged, also where a file has not these columns.
    """
    try:
        with duckdb.connect(config=_CONFIG) as database:
            database.execute("CREATE TABLE kept (file INTEGER, number BIGINT)")
            for at, (_, numbers) in enumerate(files):
                while some := list(islice(numbers, 100_000)):
                    database.execute(f"INSERT INTO kept SELECT {at:d}, unnest(?::BIGINT[])", [some])
            parts = [
                f"SELECT * EXCLUDE (file_row_number) FROM {_table(path, numbered=True)} WHERE file_row_number IN"
                f" (SELECT number FROM kept WHERE file = {at:d})"
                for at, (path, _) in enumerate(files)
            ]
            every = " UNION ALL BY NAME ".join(parts)
            result = database.execute(f"COPY ({every}) TO '{_quoted(out)}' (FORMAT parquet, COMPRESSION zstd)")
            return int(result.fetchall()[0][0])
    except duckdb.Error as error:
        raise ParquetDamaged(_said(error)) from error


def parquet_of_lines(lines: Path, columns: Mapping[str, str], out: Path) -> None:
    """JSON lines as Parquet, in their order. columns: names and types in SQL's words. Raises StateError."""
    types = ", ".join(f"'{name}': '{kind}'" for name, kind in columns.items())
    how = f"format='newline_delimited', maximum_object_size={1 << 28}"
    try:
        with duckdb.connect() as connection:
            connection.execute("SET threads = 1")
            connection.execute(
                f"COPY (SELECT * FROM read_json('{_quoted(lines)}', columns={{{types}}}, {how}))"
                f" TO '{_quoted(out)}' (FORMAT parquet, COMPRESSION zstd)"
            )
    except duckdb.Error as error:
        raise StateError(f"{out}: {error}") from error


def names_wanted(wanted: Sequence[str], columns: Mapping[str, str]) -> dict[str, str]:
    """Of the wanted columns those that there are, with their types."""
    return {name: columns[name] for name in wanted if name in columns}


def _read_as(name: str, kind: str) -> str:
    column = '"' + name.replace('"', '""') + '"'
    return f"epoch_ms({column})" if kind.startswith("TIMESTAMP") else column


def _table(path: Path, *, numbered: bool) -> str:
    name = _quoted(Path(_GLOB.sub(r"[\1]", str(path))))
    return f"read_parquet('{name}', hive_partitioning = false, file_row_number = {str(numbered).lower()})"


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")


def _said(error: duckdb.Error) -> str:
    return str(error).partition("\n")[0][:300]
