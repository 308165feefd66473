"""Reads and writes Parquet files by DuckDB, which is an optional dependency."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt

from neardup.errors import StateError
from neardup.fetch_times import ORDER_MAX, is_ms

_ROWS = 500
#: Bytes of row groups, not compressed, from which on they are a part of their own when a file is read.
_SPAN_BYTES = 32 << 20
#: Seconds between two reports of progress.
_PROGRESS_S = 0.2
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
    """A file that is not Parquet, or cannot be read further."""


@contextmanager
def _opened() -> Iterator[duckdb.DuckDBPyConnection]:
    """A database for the block. An error of DuckDB in the block becomes ParquetDamaged."""
    try:
        with duckdb.connect(config=_CONFIG) as database:
            yield database
    except duckdb.Error as error:
        raise ParquetDamaged(str(error).partition("\n")[0][:300]) from error


def columns_of(path: Path) -> dict[str, str]:
    """Returns the columns with their SQL types. Raises ParquetDamaged."""
    return dict(_columns(path, _stamp(path)))


def spans_of(path: Path) -> list[tuple[int, int]]:
    """Returns (first row, row behind the last) of the parts in which a file is read: row groups, small ones together.

    Raises ParquetDamaged.
    """
    return list(_spans(path, _stamp(path)))


def _stamp(path: Path) -> tuple[int, ...]:
    """What tells versions of a file apart; empty without the file. Single rows are read again from known files."""
    with suppress(OSError):
        known = path.stat()
        return known.st_ino, known.st_mtime_ns, known.st_size
    return ()


@lru_cache(maxsize=64)
def _columns(path: Path, _: tuple[int, ...]) -> dict[str, str]:
    with _opened() as database:
        found = database.execute(f"DESCRIBE SELECT * FROM {_table(path, numbered=False)}").fetchall()
        return {str(row[0]): str(row[1]) for row in found}


@lru_cache(maxsize=64)
def _spans(path: Path, _: tuple[int, ...]) -> list[tuple[int, int]]:
    with _opened() as database:
        found = database.execute(
            "SELECT any_value(row_group_num_rows), sum(total_uncompressed_size)"
            f" FROM parquet_metadata('{_pattern(path)}') GROUP BY row_group_id ORDER BY row_group_id"
        ).fetchall()
    spans: list[tuple[int, int]] = []
    first = end = size = 0
    for rows, size_of_group in found:
        end, size = end + int(rows), size + int(size_of_group or 0)
        if size >= _SPAN_BYTES:
            spans.append((first, end))
            first, size = end, 0
    return [*spans, (first, end)] if first < end else spans


def rows_of(
    path: Path,
    columns: Mapping[str, str],
    spans: Sequence[tuple[int, int]],
    start: int = 0,
    stop: int | None = None,
    numbers: Sequence[int] | None = None,
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yields (number, values by name) of the rows from `start` on, up to before `stop`, in order.

    A read that begins at the start of one of `spans_of` yields the same rows before a damaged one. Raises
    ParquetDamaged.

    columns: names and types. spans: result of `spans_of`. numbers: yield only these rows.

    Times are returned in milliseconds since the epoch, text and bytes unchanged. A time whose milliseconds are read as
    another unit (`neardup.fetch_times`) is returned as text.
    """
    times = [at for at, kind in enumerate(columns.values()) if _is_time(kind)]
    required = ", ".join(_read_as(name, kind) for name, kind in columns.items())
    sql = f"SELECT file_row_number, {required} FROM {_table(path, numbered=True)}"
    with _opened() as database:
        for first, end in spans:
            first, end = max(first, start), end if stop is None else min(end, stop)
            if first >= end:
                continue
            # Rows are read as they are fetched.
            where = f"file_row_number >= {first:d} AND file_row_number < {end:d}"
            if numbers is not None:
                inside = [number for number in numbers if first <= number < end]
                if not inside:
                    continue
                where += f" AND file_row_number IN ({', '.join(f'{number:d}' for number in inside)})"
            result = database.execute(f"{sql} WHERE {where}")
            while some := result.fetchmany(_ROWS):
                for number, *values in some:
                    for at in times:
                        values[at] = _time(values[at])
                    yield int(number), dict(zip(columns, values, strict=True))


def copy_rows(files: Sequence[tuple[Path, npt.NDArray[np.int64]]], out: Path, progress: Callable[[float], None]) -> int:
    """Copies some rows of some files, by ascending numbers, into one file with the first file's columns. Returns their
    number.

    progress: receives the share that is done, 0 to 1, a few times a second.

    The features of Hugging Face's `datasets` (such as names of classes) are copied if all files have the same. Raises
    ParquetDamaged, also if a file lacks a column of the first.
    """
    with _opened() as database:
        database.execute("CREATE TABLE kept (file INTEGER, number BIGINT)")
        for at, (_, numbers) in enumerate(files):
            database.register("numbers", {"number": numbers})
            database.execute(f"INSERT INTO kept SELECT {at:d}, number FROM numbers")
        parts = [
            f"SELECT * EXCLUDE (file_row_number) FROM {_table(path, numbered=True)} WHERE file_row_number IN"
            f" (SELECT number FROM kept WHERE file = {at:d})"
            for at, (path, _) in enumerate(files)
        ]
        every = " UNION ALL BY NAME ".join(parts)
        options = f"FORMAT parquet, COMPRESSION zstd{_features(database, [path for path, _ in files])}"
        return int(_watched(database, f"COPY ({every}) TO '{_quoted(out)}' ({options})", progress)[0][0])


def _watched(database: duckdb.DuckDBPyConnection, sql: str, progress: Callable[[float], None]) -> list[tuple[Any, ...]]:
    """Returns the rows of a query that takes long.

    progress: the function of `copy_rows`; an error that it raises ends the query.
    """
    database.execute("SET enable_progress_bar = true")
    database.execute("SET enable_progress_bar_print = false")
    share = 0.0
    progress(share)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(lambda: database.execute(sql).fetchall())
        try:
            while wait([running], _PROGRESS_S).not_done:
                share = max(share, database.query_progress() / 100)  # below 0 at first and at the end
                progress(share)
        except BaseException:
            while not running.done():
                database.interrupt()  # before the query has begun it has no effect
                wait([running], _PROGRESS_S)
            raise
    rows = running.result()
    progress(1.0)
    return rows


def _features(database: duckdb.DuckDBPyConnection, files: Sequence[Path]) -> str:
    """Returns the option of COPY that keeps the features, or "". Other metadata may describe the rows of its file."""
    found = set[str | None]()
    for path in files:
        sql = f"SELECT decode(value) FROM parquet_kv_metadata('{_pattern(path)}') WHERE key = encode('huggingface')"
        found.add(next((str(row[0]) for row in database.execute(sql).fetchall()), None))
    features = found.pop() if len(found) == 1 else None
    return "" if features is None else ", KV_METADATA {huggingface: '" + features.replace("'", "''") + "'}"


def parquet_of_lines(lines: Path, columns: Mapping[str, str], out: Path) -> None:
    """Writes JSON lines as Parquet, in order. columns: names and SQL types. Raises StateError."""
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


def present_columns(required: Sequence[str], columns: Mapping[str, str]) -> dict[str, str]:
    """Returns those of the requested columns that exist, with their types."""
    return {name: columns[name] for name in required if name in columns}


def _read_as(name: str, kind: str) -> str:
    column = '"' + name.replace('"', '""') + '"'
    return f"epoch_ms({column})" if _is_time(kind) else column


def _is_time(kind: str) -> bool:
    return kind.startswith("TIMESTAMP")


def _time(ms: int | None) -> int | str | None:
    return ms if ms is None or is_ms(ms) or 0 <= ms < ORDER_MAX else str(np.datetime64(ms, "ms"))


def _table(path: Path, *, numbered: bool) -> str:
    return f"read_parquet('{_pattern(path)}', hive_partitioning = false, file_row_number = {str(numbered).lower()})"


def _pattern(path: Path) -> str:
    """The pattern that matches this file alone."""
    return _quoted(Path(_GLOB.sub(r"[\1]", str(path))))


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")
