"""Runs a partition on many machines: the same steps as Spark stages, with the same functions and SQL.

Executors read sources by path, sign and compare. Every machine must see the sources under the same paths, and the
workspace. Tables are Parquet folders in the workspace; Spark's file `_SUCCESS` marks a complete one.
"""

import os
import shutil
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

from neardup.limits import BODY_BYTES_MAX
from neardup.partition.parameters import Parameters
from neardup.partition.plan import DOC_BITS
from neardup.partition.stages import SMALL, Compared, Rejected, Signed, judge, sign
from streams.files.sources import LocalSource, SourceRecord
from streams.partition.reading import ReadMark, chunks_of
from streams.partition.workers import WorkStopped
from streams.partition.workspace import PartitionWorkspace
from streams.ports import Progress

_DOCS = 1 << DOC_BITS
#: Kinds of rows that are no documents: a rejected page, an unreadable place of the input. `text` is the reason.
_REJECTED, _PROBLEM = 2, 3
#: Between two looks at the event that stops the run.
_LOOK_SECONDS = 0.2
#: Files of a folder per task.
_FOLDER_FILES = 2000
_LONG, _TEXT = t.LongType(), t.StringType()
_KINDS = {int: _LONG, float: t.DoubleType(), str: _TEXT, list[int]: t.ArrayType(_LONG)}
_COMPARED = t.StructType([t.StructField(name, _KINDS[kind]) for name, kind in Compared.__annotations__.items()])
_SIGNED = t.StructType(
    [
        t.StructField(name, t.IntegerType() if name in SMALL else _KINDS[kind])
        for name, kind in Signed.__annotations__.items()
    ]
)


def session(master: str) -> SparkSession:
    """Opens a Spark session on a master. Spark's own configuration sets everything else."""
    os.environ.setdefault("SPARK_HOME", str(Path(pyspark.__file__).parent))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName("neardup partition")
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        builder = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
        builder = builder.config("spark.sql.shuffle.partitions", "8")  # the default of 200 is for clusters
    made = builder.config("spark.ui.enabled", "false").getOrCreate()
    made.sparkContext.setLogLevel("ERROR")
    return made


class SparkEngine:
    """Keeps tables in a workspace that all executors see."""

    def __init__(
        self,
        spark: SparkSession,
        workspace: PartitionWorkspace,
        sources: Sequence[LocalSource],
        parameters: Parameters,
        progress: Progress,
        stop: threading.Event,
    ) -> None:
        """Starts a thread that cancels Spark's jobs once `stop` is set; their actions raise then."""
        self._spark, self._workspace, self._work = spark, workspace, workspace.work
        self._sources, self._parameters, self._progress = sources, parameters, progress
        self._stop, self._closed = stop, threading.Event()
        self._canceller = threading.Thread(target=self._cancel, name="cancel spark jobs", daemon=True)
        self._canceller.start()

    def close(self) -> None:
        """Ends the thread; the caller that opened the session closes it."""
        self._closed.set()
        self._canceller.join()

    def _cancel(self) -> None:
        # Again and again: the job under way may end by itself, and the next one start, before the caller sees `stop`.
        while not self._closed.wait(_LOOK_SECONDS):
            if self._stop.is_set():
                self._spark.sparkContext.cancelAllJobs()

    def sign(self) -> None:
        if not self._whole("signed"):
            tasks = [
                (number, first, last, source.record)
                for number, source in enumerate(self._sources)
                for first, last in _ranges(source)
            ]
            self._progress("sign", 0, len(tasks))
            parameters = self._parameters
            rows = self._spark.sparkContext.parallelize(tasks, max(1, len(tasks))).flatMap(
                lambda task: _signed(task[0], task[1], task[2], task[3], parameters)
            )
            self._keep("signed", self._spark.createDataFrame(rows, _SIGNED, verifySchema=False))
        self._view("signed")
        for name, sql in (("documents", _DOCUMENTS), ("signatures", _SIGNATURES)):
            self._spark.sql(sql).createOrReplaceTempView(name)

    def table(self, name: str, sql: str) -> None:
        if not self._whole(name):
            self._progress(name.rpartition("_")[0] or name, 0, 0)
            self._keep(name, self._spark.sql(sql))
        self._view(name)

    def put(self, name: str, columns: dict[str, Sequence[int]]) -> None:
        if not self._whole(name):
            schema = t.StructType([t.StructField(column, _LONG) for column in columns])
            rows = list(zip(*columns.values(), strict=True))
            self._keep(name, self._spark.createDataFrame(rows, schema))
        self._view(name)

    def compare(self, round_number: int) -> None:
        name, parameters = f"compared_{round_number}", self._parameters
        if not self._whole(name):
            self._progress(f"compare, round {round_number + 1}", 0, 0)
            pairs = self._spark.sql(_TEXTS.format(round=round_number))
            compared = pairs.rdd.mapPartitions(lambda rows: judge(map(tuple, rows), parameters))
            self._keep(name, self._spark.createDataFrame(compared, _COMPARED, verifySchema=False))
        self._view(name)

    def count(self, name: str) -> int:
        found: int = self._spark.table(name).count()
        return found

    def rows(self, sql: str) -> Iterator[tuple[Any, ...]]:
        for row in self._spark.sql(sql).toLocalIterator():
            if self._stop.is_set():
                raise WorkStopped("interrupted")
            yield tuple(row)

    def write(self, sql: str, file: Path) -> None:
        folder = self._work / f"written-{file.stem}"
        self._spark.sql(sql).coalesce(1).write.mode("overwrite").parquet(str(folder))
        with self._workspace.whole(file) as fresh:
            shutil.copyfile(next(folder.glob("part-*.parquet")), fresh)

    def parts(self) -> Iterator[dict[str, Any]]:
        rejected = [
            (row[1], row[2]) for row in self.rows(f"select doc, url, text from signed where kind = {_REJECTED}")
        ]
        problems = [row[0] for row in self.rows(f"select text from signed where kind = {_PROBLEM} order by text")]
        yield {"rejected": rejected, "problems": problems}

    def _whole(self, name: str) -> bool:
        return (self._work / name / "_SUCCESS").exists()

    def _keep(self, name: str, made: DataFrame) -> None:
        made.write.mode("overwrite").parquet(str(self._work / name))

    def _view(self, name: str) -> None:
        self._spark.read.parquet(str(self._work / name)).createOrReplaceTempView(name)


_DOCUMENTS = """
select doc, kind, url, site, quality, digest_high, digest_low, characters, size(high) as signatures
from signed where kind < 2
"""
_SIGNATURES = """
select doc, one.high, one.low from (select doc, explode(arrays_zip(high, low)) as one from signed where kind = 0) each
"""
_TEXTS = f"""
select p.a, p.b, x.text as text_a, y.text as text_b
from pairs_{{round}} p join signed x on x.doc = p.a % {_DOCS} join signed y on y.doc = p.b % {_DOCS}
where x.kind = 0 and y.kind = 0
"""


def _ranges(source: LocalSource) -> list[tuple[int, int | None]]:
    """Splits a source into tasks: a file is one task, a folder several ranges of its files."""
    if source.record.format is not None:
        return [(0, None)]
    files = len(source.record.files)
    return [(first, min(first + _FOLDER_FILES, files)) for first in range(0, files, _FOLDER_FILES)]


def _signed(
    number: int, first: int, last: int | None, record: SourceRecord, parameters: Parameters
) -> Iterable[tuple[Any, ...]]:
    """Returns the rows of a task: `Signed`, rejected pages, and unreadable places."""
    source = LocalSource(record, BODY_BYTES_MAX)
    start = ReadMark(number, first, first - 1 if first else None)
    for chunk in chunks_of(source, number, start, last):
        for one in sign(chunk.pages, parameters):
            if isinstance(one, Rejected):
                yield one.doc, _REJECTED, one.url, "", 0, 0, 0, 0, [], [], one.reason
            else:
                yield tuple(one)
        for problem in chunk.problems:
            yield -1, _PROBLEM, "", "", 0, 0, 0, 0, [], [], problem
