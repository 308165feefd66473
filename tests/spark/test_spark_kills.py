"""The partition on Spark while processes are killed: executors, the command itself, and by SIGTERM.

Each test runs the command as a process. NEARDUP_TEST_SPARK_DOCUMENTS: documents of the corpus; `make test-spark-large`
has 100,000.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.measure.bench.spark_rows import Watched, processes_below, split_corpus

pytestmark = pytest.mark.whole

DOCUMENTS = int(os.environ.get("NEARDUP_TEST_SPARK_DOCUMENTS", "600"))
CLUSTER = ["--engine", "spark", "--master", "local-cluster[2,1,1024]"]
#: Long enough for the large corpus on a busy machine.
DEADLINE_SECONDS = 600 + DOCUMENTS / 10


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return split_corpus(tmp_path_factory.mktemp("corpus") / "files", DOCUMENTS)


@pytest.fixture(scope="module")
def expected(corpus: list[Path], tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The sets that one process makes with DuckDB."""
    out = tmp_path_factory.mktemp("duck") / "out"
    with started(corpus, out, ["--workers", "1"]) as running:
        report("one process", *ended(running))
    return (out / "sets.jsonl").read_bytes()


@contextmanager
def started(corpus: list[Path], out: Path, flags: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    command = [
        sys.executable,
        "-c",
        "from streams.commands import main; main()",
        "partition",
        "--method=tlcs",
        *map(str, corpus),
    ]
    out.parent.mkdir(exist_ok=True)
    path = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    with subprocess.Popen(
        [*command, "--out", str(out), "--json", *flags],
        cwd=out.parent,
        env=os.environ | {"PYTHONPATH": path},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as running:
        try:
            yield running
        finally:
            if running.poll() is None:
                running.kill()


def ended(running: subprocess.Popen[bytes]) -> tuple[float, Watched]:
    """Waits until the command ends without an error; returns seconds and its processes."""
    began, watched = time.monotonic(), Watched(running.pid)
    try:
        assert running.wait(DEADLINE_SECONDS) == 0
    finally:
        watched.stop()
    return time.monotonic() - began, watched


def report(name: str, seconds: float, watched: Watched) -> None:
    print(
        f"\n{name}, {DOCUMENTS:,} documents: {seconds:,.0f} s, {watched.seconds:,.0f} s of processors, "
        f"{watched.megabytes:,} MB at most"
    )


def until(condition: Callable[[], object], running: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert running.poll() is None, "the command ended before it reached the stage"
        assert time.monotonic() < deadline
        time.sleep(0.01)  # a poll of another process's files: nothing to wait on


def at_work(out: Path, table: str) -> Callable[[], object]:
    """Whether a table is being written: its tasks have begun, and Spark has not marked it as complete."""
    folder = out / "work" / table

    def check() -> object:
        return not (folder / "_SUCCESS").exists() and any(folder.glob("_temporary/*/*/*"))

    return check


def executors(root: int) -> list[int]:
    found = []
    for process, *_ in processes_below(root):
        try:
            command = Path(f"/proc/{process}/cmdline").read_bytes()
        except OSError:
            continue  # ended meanwhile
        if b"CoarseGrainedExecutorBackend" in command and b"java" in command.split(b"\0")[0]:
            found.append(process)
    return found


#: A table of each stage: signing, grouping, comparing, writing.
STAGES = ("signed", "uses", "compared_0", "outcome")


def test_the_sets_are_those_of_one_machine_though_an_executor_is_killed_in_each_stage(
    corpus: list[Path], expected: bytes, tmp_path: Path
) -> None:
    out, killed = tmp_path / "spark" / "out", []
    with started(corpus, out, CLUSTER) as running:
        watched, began = Watched(running.pid), time.monotonic()
        try:
            for table in STAGES:
                until(at_work(out, table), running)
                before = executors(running.pid)
                os.kill(before[0], signal.SIGKILL)
                killed.append(before[0])
            assert running.wait(DEADLINE_SECONDS) == 0
        finally:
            watched.stop()
    assert len(set(killed)) == len(STAGES)
    report("two executors, one killed in each stage", time.monotonic() - began, watched)
    assert (out / "sets.jsonl").read_bytes() == expected
    assert json.loads((out / "summary.json").read_bytes())["counts"]["documents"] == DOCUMENTS


@pytest.mark.parametrize("table", ["signed", "compared_0"])
def test_sigterm_ends_the_command_within_ten_seconds_and_it_goes_on(
    corpus: list[Path], expected: bytes, tmp_path: Path, table: str
) -> None:
    out = tmp_path / "spark" / "out"
    with started(corpus, out, CLUSTER) as running:
        until(at_work(out, table), running)
        below = [process for process, *_ in processes_below(running.pid)]
        running.terminate()
        assert running.wait(10) == 130
    until_gone(below)
    with started(corpus, out, CLUSTER) as running:
        ended(running)
    assert (out / "sets.jsonl").read_bytes() == expected


def test_a_command_that_is_killed_goes_on(corpus: list[Path], expected: bytes, tmp_path: Path) -> None:
    """What was complete is not made again."""
    out = tmp_path / "spark" / "out"
    with started(corpus, out, CLUSTER) as running:
        until(at_work(out, "compared_0"), running)
        below = [process for process, *_ in processes_below(running.pid)]
        running.kill()
    until_gone(below)
    signed = (out / "work" / "signed" / "_SUCCESS").stat().st_mtime_ns
    with started(corpus, out, [*CLUSTER, "--keep"]) as running:
        ended(running)
    assert (out / "sets.jsonl").read_bytes() == expected
    assert (out / "work" / "signed" / "_SUCCESS").stat().st_mtime_ns == signed


def until_gone(processes: list[int]) -> None:
    """Waits until the processes of a command have ended: Java ends once its parent is gone."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while any(Path(f"/proc/{process}/cmdline").exists() and _runs(process) for process in processes):
        assert time.monotonic() < deadline
        time.sleep(0.05)  # a poll of processes that are no children: nothing to wait on


def _runs(process: int) -> bool:
    try:
        return (Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]) != "Z"
    except OSError:
        return False
