"""A scan that gets no memory says which limit it met and what it read, also where it is killed or aborted."""

import os
import re
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from streams.files.state import State
from streams.process.out_of_memory import LastWords, limits
from tests.streams.archives import crawl, write_warc

MAIN = "from streams.commands import main; main()"
#: Ends the process in the middle of a scan as libraries, the kernel and Python do.
ENDS = {
    "abort": (134, "import os; os.abort()"),
    "kill": (137, "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"),
    "memory": (1, "raise MemoryError"),
}
IN_THE_MIDDLE = """
from streams.pipeline import matcher
def step(self, offset, data):
    {end}
matcher.Matcher.step = step
"""
WORDS = r"while it read \S*/a\.warc \(memory: [\d,]+ MB in use so far; limits: .*ulimit -v 4194304 \(4,096 MB\).*\)"


def limited() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))


@pytest.mark.parametrize("how", ENDS)
def test_a_scan_without_memory_says_its_limits_and_goes_on(tmp_path: Path, how: str) -> None:
    code, end = ENDS[how]
    archive = write_warc(tmp_path / "a.warc", crawl(5))
    arguments = ["scan", str(archive), "--state", str(tmp_path / "state"), "--quiet", "--threads", "1"]
    broken = [sys.executable, "-c", IN_THE_MIDDLE.format(end=end) + MAIN, *arguments]
    found = subprocess.run(broken, capture_output=True, text=True, preexec_fn=limited, timeout=120)
    assert found.returncode in (code, 128 - code), found.stderr
    assert re.search(WORDS, found.stderr), found.stderr
    assert "use fewer --threads; the same command goes on from where it stopped" in found.stderr
    assert "Traceback" not in found.stderr
    if how != "kill":
        return
    again = subprocess.run([sys.executable, "-c", MAIN, *arguments], capture_output=True, text=True, timeout=120)
    assert (again.returncode, again.stderr) == (0, "")
    with State.open(tmp_path / "state") as state:
        assert sum(source.pages for source in state.sources.values()) == len(crawl(5))


def test_a_process_that_ends_by_itself_has_no_last_words(capfd: pytest.CaptureFixture[str]) -> None:
    with LastWords() as last:
        last.reading = "a.warc"
    with pytest.raises(KeyError), LastWords():
        raise KeyError
    assert capfd.readouterr().err == ""


def test_signals_that_are_meant_for_the_scan_do_not_end_its_watcher(capfd: pytest.CaptureFixture[str]) -> None:
    last = LastWords()
    with last:
        last.reading = "a.warc"
        watcher = last._watcher
        assert watcher is not None
        until_ignored(watcher.pid)
        os.kill(watcher.pid, signal.SIGINT)
        os.kill(watcher.pid, signal.SIGTERM)
        assert watcher.poll() is None
        assert watcher.stdin is not None
        watcher.stdin.close()  # as when this process is killed
        assert watcher.wait(60) == 0
        last._watcher = None
    assert f"process {os.getpid()} was killed or aborted while it read a.warc" in capfd.readouterr().err


def until_ignored(process: int) -> None:
    """Returns once it ignores SIGTERM."""
    for _ in range(100_000):
        mask = re.search(r"SigIgn:\s*(\w+)", Path(f"/proc/{process}/status").read_text())
        if mask and int(mask[1], 16) >> (signal.SIGTERM - 1) & 1 and int(mask[1], 16) >> (signal.SIGHUP - 1) & 1:
            return
    raise AssertionError("it never ignored SIGTERM")


def test_limits_name_the_machine() -> None:
    assert re.search(r"the machine's [\d,]+ MB", limits())
