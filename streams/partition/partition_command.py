"""Implements `neardup partition`: partitions a corpus into sets of similar pages and writes a report."""

import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import orjson

from neardup.errors import BadInput
from neardup.partition.parameters import Parameters
from neardup.partition.stages import make_ready
from neardup.report.evidence_sentences import reason_kind
from neardup.report.partition_report import partition_report
from streams.files.not_read import NotRead
from streams.files.sources import BY_DEFAULT, LocalSource, ReadOptions
from streams.partition.partition_results import Summary, write_results
from streams.partition.reading import read_places, sources_of
from streams.partition.steps import Engine, run
from streams.partition.workers import Workers, WorkStopped
from streams.partition.workspace import PartitionWorkspace
from streams.ports import Progress, silent
from streams.process.result_json import result_json
from streams.process.shutdown import now_ms, stopped_by_signals

#: Least memory of DuckDB, and memory of each process that compares texts.
ENGINE_MB_MIN, WORKER_MB = 256, 350
PROBLEMS_MAX = 100
VERSION = 1


@dataclass(frozen=True)
class PartitionOptions:
    """Options besides the parameters. memory_mb: memory of all processes together, MB."""

    out: Path
    kind: str = "transitive"
    workers: int = 1
    memory_mb: int = 2000
    again: bool = False
    keep: bool = False
    master: str = ""
    reading: ReadOptions = BY_DEFAULT
    not_read: NotRead = field(default_factory=NotRead)


def partition_command(
    paths: Sequence[Path],
    parameters: Parameters,
    options: PartitionOptions,
    *,
    progress: Progress = silent,
) -> Summary:
    """Partitions the pages of some files into sets, and writes them to the folder `options.out`.

    Resumes a run that was killed. Raises BadInput for an unknown kind of source or too little memory, StateError for an
    unusable folder, Stopped after a signal.
    """
    started = time.monotonic()
    engine_mb = options.memory_mb - WORKER_MB * options.workers
    if engine_mb < ENGINE_MB_MIN and not options.master:
        needed = ENGINE_MB_MIN + WORKER_MB * options.workers
        raise BadInput(f"{options.workers} processes need {needed} MB; give more --memory, or fewer --workers")
    sources = sources_of(paths, options.reading, options.not_read)
    plan = plan_of(asdict(parameters), sources)
    make_ready()
    stop = threading.Event()
    with PartitionWorkspace(options.out) as workspace, stopped_by_signals(stop):
        workspace.open_plan(plan, again=options.again)
        with _engine(options, workspace, sources, parameters, stop, engine_mb, progress) as engine:
            summary = _run(engine, workspace, sources, parameters, options.kind, progress)
        summary.plan, summary.seconds = plan, time.monotonic() - started
        summary.note_not_read(options.not_read)
        finish(workspace, summary, sources, options.keep)
    return summary


def plan_of(parameters: dict[str, Any], sources: Sequence[LocalSource]) -> dict[str, Any]:
    """Returns the content of plan.json."""
    places = [{"path": source.record.path, "digest": source.record.content} for source in sources]
    return {"version": VERSION, "parameters": parameters, "sources": places}


def finish(workspace: PartitionWorkspace, summary: Summary, sources: Sequence[LocalSource], keep: bool = False) -> None:
    """Writes summary.json and report.html, and deletes the tables unless `keep`. Raises StateError."""
    summary.fields_taken = [source.record.fields_taken for source in sources if source.record.fields]
    with workspace.whole(workspace.path / "summary.json") as file:
        file.write_bytes(result_json(summary.to_json()))
    with (workspace.path / "sets.jsonl").open("rb") as lines:
        report = partition_report(
            summary.to_json(),
            map(orjson.loads, lines),
            lambda places: read_places(sources, places),
            now_ms(),
        )
    with workspace.whole(workspace.path / "report.html") as file:
        file.write_text(report, encoding="utf-8")
    if not keep:
        workspace.clear()


@contextmanager
def _engine(
    options: PartitionOptions,
    workspace: PartitionWorkspace,
    sources: Sequence[LocalSource],
    parameters: Parameters,
    stop: threading.Event,
    engine_mb: int,
    progress: Progress,
) -> Iterator[Engine]:
    """Starts DuckDB with processes, or Spark. Both are optional dependencies, imported only when used."""
    if options.master:
        from streams.partition.spark import SparkEngine, session

        spark = session(options.master)
        on_spark = SparkEngine(spark, workspace, sources, parameters, progress, stop)
        try:
            if stop.is_set():
                raise WorkStopped("interrupted")
            yield on_spark
        except Exception as error:
            if stop.is_set():  # its jobs were cancelled
                raise WorkStopped("interrupted") from error
            raise
        finally:
            on_spark.close()
            spark.stop()
        return
    from streams.partition.duck import DuckEngine

    with Workers(options.workers, stop) as workers:
        engine = DuckEngine(
            workspace, sources, parameters, workers, progress, memory_mb=engine_mb, threads=options.workers
        )
        try:
            yield engine
        finally:
            engine.close()


def _run(
    engine: Engine,
    workspace: PartitionWorkspace,
    sources: Sequence[LocalSource],
    parameters: Parameters,
    kind: str,
    progress: Progress,
) -> Summary:
    counts = run(engine, parameters, progress)
    progress("write", 0, 0)
    summary = write_results(engine, workspace, sources, kind)
    summary.counts = counts
    reasons: Counter[str] = Counter()
    for part in engine.parts():
        reasons.update(reason_kind(reason) for _, reason in part["rejected"])
        summary.problems += part["problems"][: PROBLEMS_MAX - len(summary.problems)]
        summary.problems_total += len(part["problems"])
    summary.rejected = sum(reasons.values())
    summary.reasons = dict(reasons.most_common(20))
    return summary
