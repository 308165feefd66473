"""Runs a partition on one machine: DuckDB sorts, joins and groups, on disk if memory is short; processes read texts.

Each table is a Parquet file in the workspace. Tables made in parts (`documents`, `signatures`, `compared_N`) are
folders of files. Texts lie beside the documents, one file per part.
"""

import json
import mmap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy as np

from neardup.errors import StateError
from neardup.page import Page
from neardup.partition.parameters import Parameters
from neardup.partition.plan import DOC_BITS
from neardup.partition.stages import SMALL, Compared, Rejected, Signed, judge, sign
from streams.files.sources import LocalSource
from streams.partition.reading import Chunk, ReadMark, chunks
from streams.partition.workers import Workers
from streams.partition.workspace import PartitionWorkspace
from streams.ports import Progress

#: Pairs per task of a process: a few seconds of work at most.
CHUNK_PAIRS = 2000
_ROWS = 20_000
_DOCS = (1 << DOC_BITS) - 1


@dataclass
class Part:
    """The result of signing one chunk of pages. rejected: URL and reason of each rejected page."""

    documents: dict[str, Any]
    signatures: dict[str, Any]
    texts: bytes
    rejected: list[tuple[str, str]]


class DuckEngine:
    """Keeps tables in a workspace. memory_mb, threads: DuckDB's limits; the worker processes are not counted."""

    def __init__(
        self,
        workspace: PartitionWorkspace,
        sources: Sequence[LocalSource],
        parameters: Parameters,
        workers: Workers,
        progress: Progress,
        *,
        memory_mb: int,
        threads: int,
    ) -> None:
        self._workspace, self._work = workspace, workspace.work
        self._sources, self._parameters = sources, parameters
        self._workers, self._progress = workers, progress
        spill = self._work / "spill"
        spill.mkdir(exist_ok=True)
        self._db = _quiet(
            duckdb.connect(config={"memory_limit": f"{memory_mb}MB", "threads": threads, "temp_directory": str(spill)})
        )

    def close(self) -> None:
        self._db.close()

    def sign(self) -> None:
        for name in ("documents", "signatures", "texts"):
            (self._work / name).mkdir(exist_ok=True)
        mark, number = self._signed_so_far()
        total = sum(source.bytes_total for source in self._sources)
        under_way: list[Chunk] = []

        def sent() -> Iterator[tuple[list[tuple[int, Page]], Parameters]]:
            for chunk in chunks(self._sources, mark):
                under_way.append(chunk)
                yield chunk.pages, self._parameters

        for part in self._workers.each(sign_chunk, sent()):
            chunk = under_way.pop(0)
            self._write_part(number, chunk, part)
            self._progress("sign", chunk.bytes_done, total)
            number += 1
        self._view("documents")
        self._view("signatures")

    def table(self, name: str, sql: str) -> None:
        file = self._work / f"{name}.parquet"
        if not file.exists():
            self._progress(name.rpartition("_")[0] or name, 0, 0)
            self.write(sql, file)
        self._view(name)

    def put(self, name: str, columns: dict[str, Sequence[int]]) -> None:
        given = {column: np.array(values, np.int64) for column, values in columns.items()}
        self._db.register("given", given)
        self.table(name, "select * from given")
        self._db.unregister("given")

    def compare(self, round_number: int) -> None:
        folder = self._work / f"compared_{round_number}"
        folder.mkdir(exist_ok=True)
        pairs = f"placed_{round_number}"
        self.table(pairs, _PLACED.format(round=round_number))
        total = self.count(pairs)
        done = [self._part(folder, n).exists() for n in range(-(-total // CHUNK_PAIRS))]
        missing = [n for n, there in enumerate(done) if not there]

        def sent() -> Iterator[tuple[Path, dict[str, Any], Parameters]]:
            for n in missing:
                rows = self._db.execute(
                    f"select * from {pairs} where n >= ? and n < ? order by n", [n * CHUNK_PAIRS, (n + 1) * CHUNK_PAIRS]
                )
                yield self._work / "texts", rows.fetchnumpy(), self._parameters

        for n, columns in zip(missing, self._workers.each(compare_chunk, sent()), strict=True):
            self._write_columns(columns, self._part(folder, n))
            self._progress(f"compare, round {round_number + 1}", min((n + 1) * CHUNK_PAIRS, total), total)
        if not total:
            self._write_columns(_columns(Compared, []), self._part(folder, 0))
        self._view(f"compared_{round_number}")

    def count(self, name: str) -> int:
        return int(self._db.execute(f"select count(*) from {name}").fetchall()[0][0])

    def rows(self, sql: str) -> Iterator[tuple[Any, ...]]:
        cursor = _quiet(self._db.cursor())
        try:
            result = cursor.execute(sql)
            while rows := result.fetchmany(_ROWS):
                yield from rows
        finally:
            cursor.close()

    def parts(self) -> Iterator[dict[str, Any]]:
        for file in sorted((self._work / "texts").glob("*.json")):
            yield json.loads(file.read_bytes())

    def write(self, sql: str, file: Path) -> None:
        try:
            with self._workspace.whole(file) as fresh:
                self._db.execute(f"copy ({sql}) to '{_quoted(fresh)}' (format parquet, compression zstd)")
        except duckdb.OutOfMemoryException as error:
            raise StateError(f"not enough memory for this corpus; give more --memory: {error}") from error
        except duckdb.IOException as error:
            raise StateError(f"cannot write {file}: {error}") from error

    def _write_columns(self, columns: dict[str, Any], file: Path) -> None:
        self._db.register("given", columns)
        self.write("select * from given", file)
        self._db.unregister("given")

    def _view(self, name: str) -> None:
        single = self._work / f"{name}.parquet"
        files = single if single.exists() else self._work / name / "*.parquet"
        self._db.execute(f"create or replace view {name} as select * from read_parquet('{_quoted(files)}')")

    @staticmethod
    def _part(folder: Path, number: int) -> Path:
        return folder / f"{number:08d}.parquet"

    def _signed_so_far(self) -> tuple[ReadMark, int]:
        """Returns the input position to resume at and the number of the next part.

        A part's mark is written after its data.
        """
        number, mark = 0, ReadMark()
        while (file := self._work / "texts" / f"{number:08d}.json").exists():
            mark = ReadMark(**json.loads(file.read_bytes())["after"])
            number += 1
        return mark, number

    def _write_part(self, number: int, chunk: Chunk, part: Part) -> None:
        part.documents["part"] = np.full(len(part.documents["doc"]), number, np.int64)
        self._write_columns(part.documents, self._part(self._work / "documents", number))
        self._write_columns(part.signatures, self._part(self._work / "signatures", number))
        with self._workspace.whole(self._work / "texts" / f"{number:08d}.bin") as file:
            file.write_bytes(part.texts)
        record = {"after": asdict(chunk.after), "rejected": part.rejected, "problems": chunk.problems}
        with self._workspace.whole(self._work / "texts" / f"{number:08d}.json") as file:
            file.write_text(json.dumps(record), encoding="utf-8")


_PLACED = f"""
select row_number() over (order by p.a desc, p.b desc) - 1 as n, p.a, p.b,
       one.part as part_a, one.text_start as start_a, one.text_end as end_a,
       other.part as part_b, other.text_start as start_b, other.text_end as end_b
from pairs_{{round}} p
join documents one on one.doc = p.a % {_DOCS + 1}
join documents other on other.doc = p.b % {_DOCS + 1}
order by n
"""


def _quiet(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """Turns DuckDB's progress bar off, which `python -c` and notebooks would mix into their output."""
    return connection.execute("set enable_progress_bar = false")


def sign_chunk(given: tuple[list[tuple[int, Page]], Parameters]) -> Part:
    """Signs a chunk of pages."""
    pages, parameters = given
    made = list(sign(pages, parameters))
    signed = [one for one in made if isinstance(one, Signed)]
    texts = [one.text.encode("utf-8", "surrogatepass") for one in signed]
    lengths = np.array([len(text) for text in texts], np.int64)
    counts = np.array([len(one.high) for one in signed], np.int64)
    documents = _columns(Signed, signed)
    signatures = {"doc": np.repeat(documents["doc"], counts)} | {
        name: np.array([word for words in documents.pop(name) for word in words], np.int64) for name in ("high", "low")
    }
    del documents["text"]
    documents |= {"signatures": counts, "text_start": np.cumsum(lengths) - lengths, "text_end": np.cumsum(lengths)}
    documents |= {name: documents[name].astype(np.int32) for name in (*SMALL, "signatures")}
    rejected = [(one.url, one.reason) for one in made if isinstance(one, Rejected)]
    return Part(documents, signatures, b"".join(texts), rejected)


def compare_chunk(given: tuple[Path, dict[str, Any], Parameters]) -> dict[str, Any]:
    """Compares some pairs whose texts are in a folder; returns the columns of `Compared`."""
    folder, rows, parameters = given
    columns = [rows[name].tolist() for name in ("a", "b")]
    for side in ("a", "b"):
        places = zip(*(rows[f"{name}_{side}"].tolist() for name in ("part", "start", "end")), strict=True)
        columns.append([_text(folder, *place) for place in places])
    return _columns(Compared, list(judge(zip(*columns, strict=True), parameters)))


@lru_cache(maxsize=64)
def _texts(file: Path, written_ns: int) -> mmap.mmap:
    """The texts of a part. written_ns: time of the file's last change: a later partition may write to the same path."""
    with file.open("rb") as opened:
        return mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)


def _text(folder: Path, part: int, start: int, end: int) -> str:
    file = folder / f"{part:08d}.bin"
    return _texts(file, file.stat().st_mtime_ns)[start:end].decode("utf-8", "surrogatepass")


class SampledPair(NamedTuple):
    """A compared pair and its texts.

    weight: compared pairs of its stratum per sampled one. step: the step that decided.
    """

    a: str
    b: str
    near: bool
    step: str
    weight: float
    text_a: str
    text_b: str


def sampled_pairs(workspace: Path, most: int) -> list[SampledPair]:
    """Samples compared pairs in two strata: up to `most` near-duplicates and as many others.

    Ordered by hash, so the sample is always the same. workspace: folder of a partition that kept its tables.
    """
    rows = _query(workspace, _SAMPLED.format(pairs=_STRATA), [most])
    return [SampledPair(a, b, bool(near), *more, *texts) for _, a, b, near, *more, texts in _read(workspace, rows)]


def sampled_documents(workspace: Path, documents: int, pairs_each: int) -> list[list[SampledPair]]:
    """Samples documents that have a compared pair; returns the compared pairs of each, at most pairs_each by hash."""
    found: dict[int, list[SampledPair]] = {}
    rows = _query(workspace, _SAMPLED.format(pairs=_OF_DOCUMENTS), [documents, pairs_each])
    for number, a, b, near, *more, texts in _read(workspace, rows):
        found.setdefault(number, []).append(SampledPair(a, b, bool(near), *more, *texts))
    return list(found.values())


def sampled_texts(workspace: Path, most: int) -> list[str]:
    """Samples distinct compared texts, in random order that is always the same."""
    rows = _query(workspace, _TEXTS_SAMPLED, [most])
    return [_text(workspace / "work" / "texts", *place) for (place,) in rows]


def _query(workspace: Path, sql: str, values: list[int]) -> list[tuple[Any, ...]]:
    work = workspace / "work"
    with _quiet(duckdb.connect()) as db:
        for name, files in (
            ("compared", work / "compared.parquet"),
            ("standing", work / "standing.parquet"),
            ("sets", work / "sets.parquet"),
            ("documents", work / "documents" / "*.parquet"),
        ):
            db.execute(f"create view {name} as select * from read_parquet('{_quoted(files)}')")
        return db.execute(sql, values).fetchall()


def _read(workspace: Path, rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    texts = workspace / "work" / "texts"
    for *columns, one, other in rows:
        yield *columns, (_text(texts, *one), _text(texts, *other))


_STRATA = """
select place as number, a, b, near, step, total / least(total, $1) as weight from (
    select *, row_number() over (partition by near order by hash(a, b), a, b) as place,
           count(*) over (partition by near) as total
    from compared
) where place <= $1
"""
_OF_DOCUMENTS = """
select number, a, b, near, step, 1.0 as weight from (
    select *, row_number() over (partition by number order by hash(a, b), a, b) as place
    from (
        select a as item, a, b, near, step from compared
        union all
        select b as item, a, b, near, step from compared
    ) ends join (
        select item, row_number() over (order by hash(item), item) as number
        from (select a as item from compared union select b as item from compared)
    ) numbered using (item)
    where number <= $1
) where place <= $2
"""
_SAMPLED = f"""
select number, one.url, other.url, near, step, weight,
       [one.part, one.text_start, one.text_end], [other.part, other.text_start, other.text_end]
from ({{pairs}}) p
join documents one on one.doc = p.a % {_DOCS + 1}
join documents other on other.doc = p.b % {_DOCS + 1}
order by number, near, p.a, p.b
"""
_SETS = f"""
select s.rep, d.url
from (select distinct rep, rep as item from sets union select rep, item from sets) s
join documents d on d.doc = s.item % {_DOCS + 1}
order by s.rep desc, s.item desc
"""
_TEXTS_SAMPLED = """
select [d.part, d.text_start, d.text_end]
from standing s join documents d on d.doc = s.doc
order by hash(s.item), s.item limit $1
"""


def perhaps_similar_sets(workspace: Path) -> list[list[str]]:
    """Reads the URLs of each perhaps-similar set, the representative first, of a partition that kept its tables."""
    sets: dict[int, list[str]] = {}
    for number, url in _query(workspace, _SETS, []):
        sets.setdefault(number, []).append(url)
    return list(sets.values())


def documents_of(workspace: Path, column: str) -> list[tuple[str, int, str]]:
    """Reads (URL, set, site) of each document of a finished partition. column: `family` or `star`."""
    file = _quoted(workspace / "documents.parquet")
    with _quiet(duckdb.connect()) as db:
        rows = db.execute(f"select url, {column}, site from read_parquet('{file}')").fetchall()
    return [(url, chosen, site) for url, chosen, site in rows]


def _columns(kind: type[Compared] | type[Signed], rows: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
    """Returns rows as columns: int64, float64, and lists of anything else."""
    dtypes = {int: np.int64, float: np.float64, str: object}
    values = zip(*rows, strict=True) if rows else [()] * len(kind._fields)
    return {
        name: np.array(column, dtypes[each]) if each in dtypes else list(column)
        for (name, each), column in zip(kind.__annotations__.items(), values, strict=True)
    }


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")
