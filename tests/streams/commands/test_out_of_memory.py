"""A command that gets no memory says so, and which limits it met; also where a library ends the process."""

import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from streams.process.resource_limits import memory_limits, out_of_memory
from streams.state.scan_directory import ScanDirectory
from tests.streams.archives import crawl, write_warc

MAIN = "from streams.commands import main; main()"
LIMITED = (
    r"neardup: out of memory \([\d,]+ MB in use so far; limits: .*ulimit -v 4194304 \(4,096 MB\).*\): raise the limit "
    r"or use fewer --threads; nothing is lost, the same command goes on from where it stopped"
)
#: Ends the process in the middle of a scan as libraries and Python do: exit code, code, what is written.
ENDS = {
    "abort": (-6, "import os; os.abort()", r"Fatal Python error: Aborted\n[\s\S]*in prepare"),
    "segment": (
        -11,
        "import ctypes; ctypes.string_at(0)",
        r"Fatal Python error: Segmentation fault\n[\s\S]*in prepare",
    ),
    "memory": (1, "raise MemoryError", LIMITED),
}
IN_THE_MIDDLE = """
from streams.pipeline import matcher
def prepare(self, *given, **how):
    {end}
matcher.Matcher.prepare = prepare
"""


def limited() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


@pytest.mark.parametrize("how", ENDS)
def test_scan_that_ends_for_lack_of_memory_says_so_and_goes_on(tmp_path: Path, how: str) -> None:
    code, end, words = ENDS[how]
    archive = write_warc(tmp_path / "a.warc", crawl(5))
    arguments = ["scan", str(archive), "--state", str(tmp_path / "state"), "--quiet", "--threads", "1"]
    broken = [sys.executable, "-c", IN_THE_MIDDLE.format(end=end) + MAIN, *arguments]
    found = subprocess.run(broken, capture_output=True, text=True, preexec_fn=limited, timeout=120)
    assert found.returncode == code, found.stderr
    assert re.search(words, found.stderr), found.stderr
    if how == "segment":
        return
    again = subprocess.run([sys.executable, "-c", MAIN, *arguments], capture_output=True, text=True, timeout=120)
    assert (again.returncode, again.stderr) == (0, "")
    with ScanDirectory.open(tmp_path / "state") as state:
        assert sum(source.pages for source in state.sources.values()) == len(crawl(5))


def test_limits_name_the_machine() -> None:
    assert re.search(r"the machine's [\d,]+ MB", memory_limits())
    assert memory_limits() in out_of_memory()
