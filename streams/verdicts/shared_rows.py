"""What the readers of verdicts share: a filter, rows that grow with the pages, and files of rows."""

import csv
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import orjson
from msgspec import defstruct
from msgspec.json import Encoder

from neardup.errors import BadInput, BadPage
from neardup.urls import host_named, host_of, named_url
from neardup.verdict import Kind
from streams.errors import WrongUsage, bad_input, how_to_install
from streams.formats.verdict_records import Verdict
from streams.process.disk import whole_file

#: A row of a table: the values of its columns, in their order.
Row = tuple[Any, ...]
_ROWS_REPORTED = 10_000
#: Endings of the names of files of rows.
TABLE_FORMATS = (".parquet", ".csv", ".jsonl")
_PRAGMAS = "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-65536;"


@dataclass(frozen=True, slots=True)
class VerdictFilter:
    """Verdicts to show; empty: all. sites: registrable domains or hosts, with their subdomains. url: normalised."""

    sites: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset()
    url: str = ""
    prefix: str = ""

    @classmethod
    def of(
        cls, sites: Collection[str], kinds: Collection[str], *, url: str | None = None, prefix: str | None = None
    ) -> "VerdictFilter":
        """Raises WrongUsage for a kind that does not exist, and for a URL or site that is none."""
        unknown = sorted(set(kinds) - {kind.value for kind in Kind})
        if unknown:
            raise WrongUsage(f"no verdict is called {unknown[0]!r}; there is {', '.join(Kind)}")
        try:
            named = "" if url is None else named_url(url)
        except BadPage as error:
            raise WrongUsage(f"--url: {error}") from None
        return cls(frozenset(map(_host, sites)), frozenset(kinds), named, prefix or "")

    def takes(self, verdict: Verdict) -> bool:
        if self.kinds and verdict.get("verdict") not in self.kinds:
            return False
        url = str(verdict.get("url", ""))
        if (self.url and url != self.url) or not url.startswith(self.prefix):
            return False
        return not self.sites or self._of_site(verdict)

    def _of_site(self, verdict: Verdict) -> bool:
        url = str(verdict.get("url", ""))
        host = host_of(url).rstrip(".") if "://" in url else ""
        return verdict.get("site") in self.sites or any(host == s or host.endswith("." + s) for s in self.sites)


def _host(site: str) -> str:
    try:
        host, alone = host_named(site.strip("."))
    except BadPage as error:
        raise WrongUsage(f"--site {site}: {error}") from None
    if not alone:
        raise WrongUsage(f"--site {site}: a site is a domain or host, such as {host}; --prefix names a part of it")
    return host


@contextmanager
def scratch_table(schema: str) -> Iterator[sqlite3.Connection]:
    """Makes the tables of `schema` in a file that vanishes at the end, for results that do not fit into memory.

    Each statement commits itself.
    """
    with tempfile.TemporaryDirectory(prefix="neardup-scratch-") as folder:
        table = sqlite3.connect(Path(folder) / "table", isolation_level=None)
        try:
            table.executescript(_PRAGMAS + schema)
            yield table
        finally:
            table.close()


def must_be_writable(out: str, flag: str = "--out") -> None:
    """Raises WrongUsage for a name with another ending, BadInput for Parquet without DuckDB. `-` is standard output."""
    if out != "-" and Path(out).suffix not in TABLE_FORMATS:
        raise WrongUsage(f"{flag} {out}: the name must end in {', '.join(TABLE_FORMATS)}, or be - for JSON lines")
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


def reported(made: Iterable[Row], report: Callable[[int], None]) -> Iterator[Row]:
    """Yields the rows. report: receives the number of rows so far, now and then."""
    for count, row in enumerate(made, 1):
        if count % _ROWS_REPORTED == 0:
            report(count)
        yield row


def _parquet() -> Callable[[Path, Mapping[str, str], Path], None]:
    try:
        from streams.formats.parquet import parquet_of_lines
    except ImportError as error:
        raise BadInput(f"Parquet is written by DuckDB: {how_to_install('batch')}; or choose .csv or .jsonl") from error
    return parquet_of_lines


def _lines(made: Iterable[Row], columns: Mapping[str, str], out: BinaryIO) -> int:
    """Rows as JSON objects. A struct of the columns is encoded in a quarter of the time of a dict."""
    names = {f"column_{at}": name for at, name in enumerate(columns)}
    row_of = defstruct("TableRow", names, rename=names)
    encode, count = Encoder().encode, 0
    for row in made:
        count += 1
        out.write(encode(row_of(*row)) + b"\n")
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
