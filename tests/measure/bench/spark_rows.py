"""The partition on Spark over 1, 2 and 4 executors of one core each, beside the engine of one machine.

Executors are processes of this machine (local-cluster): with fewer cores than executors wall time says nothing, so
what counts is the time of processors, of all processes together, Java's start among them.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from tests.measure.bench.partition import write_corpus
from tests.measure.bench.table import Row

EXECUTORS = (1, 2, 4)
#: Documents, in so many files: a file is read by one executor.
DOCUMENTS, FILES = 5_000, 16
_EVERY_SECONDS = 0.2
_TICKS = os.sysconf("SC_CLK_TCK")


def rows() -> Iterator[Row]:
    """A row an engine, each beside the first one, which also says what sets there are."""
    if find_spec("pyspark") is None:
        yield Row("partition on Spark", "processor seconds", 0.0, void="pyspark is not installed: make test-spark does")
        return
    with tempfile.TemporaryDirectory() as scratch:
        corpus = split_corpus(Path(scratch) / "corpus", DOCUMENTS)
        engines = [("DuckDB, one process", ["--workers", "1"])]
        for executors in EXECUTORS:
            master = f"local-cluster[{executors},1,1024]"
            engines.append((f"Spark, executors: {executors}", ["--engine", "spark", "--master", master]))
        single: Row | None = None
        for name, flags in engines:
            seconds, watched, sets = _run(corpus, Path(scratch), flags)
            processors = watched.seconds
            row = Row(f"partition of {DOCUMENTS:,} documents: {name}", "processor seconds", processors)
            row.check = f"{sets:,} sets"
            row.notes = {
                "seconds": round(seconds, 1),
                "MB of all processes": watched.megabytes,
                "load": round(os.getloadavg()[0], 1),
            }
            if single is None:
                single = row
            else:
                row.peer, row.peer_name, row.ratio = single.ours, engines[0][0], single.ours / processors
                row.void = "" if row.check == single.check else "other sets than DuckDB's"
            yield row


def split_corpus(folder: Path, documents: int) -> list[Path]:
    folder.mkdir()
    whole = folder / "whole"
    write_corpus(whole, documents)
    lines = whole.read_bytes().splitlines(keepends=True)
    paths = []
    for number in range(FILES):
        paths.append(folder / f"{number:02d}.jsonl")
        paths[-1].write_bytes(b"".join(lines[documents * number // FILES : documents * (number + 1) // FILES]))
    return paths


def _run(corpus: Sequence[Path], scratch: Path, flags: Sequence[str]) -> tuple[float, "Watched", int]:
    """(seconds, its processes, sets) of one partition."""
    command = [
        sys.executable,
        "-c",
        "from streams.commands import main; main()",
        "partition",
        "--method=tlcs",
        *map(str, corpus),
    ]
    out = scratch / "sets"
    began = time.monotonic()
    with subprocess.Popen(
        [*command, "--out", str(out), "--again", "--json", *flags], cwd=scratch, stdout=subprocess.PIPE
    ) as running:
        watched = Watched(running.pid)
        output, _ = running.communicate()
        watched.stop()
    if running.returncode:
        raise RuntimeError(f"the partition ended with {running.returncode}")
    return time.monotonic() - began, watched, json.loads(output)["sets"]


class Watched:
    """Processor time and memory of a process and of all below it: children of children are counted nowhere else."""

    def __init__(self, root: int) -> None:
        self._taken: dict[tuple[int, int], int] = {}  # by process and its start, as numbers come again
        self._pages_most = 0
        self._root, self._done = root, threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    @property
    def seconds(self) -> float:
        return sum(self._taken.values()) / _TICKS

    @property
    def megabytes(self) -> int:
        """The most resident memory of all processes at one time; pages that two share count twice."""
        return self._pages_most * os.sysconf("SC_PAGE_SIZE") >> 20

    def stop(self) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(_EVERY_SECONDS):
            pages = 0
            for process, _, started, ticks, resident in processes_below(self._root):
                self._taken[process, started] = ticks
                pages += resident
            self._pages_most = max(self._pages_most, pages)


def processes_below(root: int) -> Iterator[tuple[int, int, int, int, int]]:
    """(number, parent, start, processor ticks, resident pages) of a process and of all below it."""
    below = {root}
    for one in sorted(_processes()):
        if one[0] in below or one[1] in below:
            below.add(one[0])
            yield one


def _processes() -> Iterator[tuple[int, int, int, int, int]]:
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # ended meanwhile
            yield int(folder.name), int(fields[1]), int(fields[19]), int(fields[11]) + int(fields[12]), int(fields[21])
