"""The limit of open files: raised as far as it may be, and refused with words where that is too little."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from streams.process.resource_limits import OPEN_FILES_MIN
from tests import whole
from tests.streams.archives import crawl, write_warc

MAIN = "from streams.commands import main; main()"


def started(soft: int, hard: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    command = [sys.executable, "-c", MAIN, *arguments]
    seed = {**os.environ, "NEARDUP_SEED": "7", "NEARDUP_BOOTSTRAP": "127.0.0.1:1"}
    return subprocess.run(command, env=seed, capture_output=True, text=True, preexec_fn=limited, timeout=120)


@pytest.mark.parametrize("role", whole.first(["match", "scan", "sketch"], 1))
def test_too_few_are_refused_before_anything_is_begun(tmp_path: Path, role: str) -> None:
    state = tmp_path / "state"
    archive = write_warc(tmp_path / "a.warc", crawl(3))
    arguments = {"scan": [str(archive), "--state", str(state)], "match": ["--state", str(state)]}
    found = started(60, 60, role, *arguments.get(role, []))
    assert found.returncode == 1, found.stderr
    assert f"may open 60 files only, needed: {OPEN_FILES_MIN} or more: raise its hard limit" in found.stderr
    assert "Traceback" not in found.stderr
    assert not state.exists()


def test_a_low_soft_limit_is_raised(tmp_path: Path) -> None:
    archive = write_warc(tmp_path / "a.warc", crawl(3))
    found = started(20, OPEN_FILES_MIN, "scan", str(archive), "--state", str(tmp_path / "state"), "--quiet")
    assert (found.returncode, found.stderr) == (0, "")
