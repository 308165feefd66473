"""A shell for tests of the command line, and cheap processes for those of scans."""

from pathlib import Path

import pytest

from tests import forked
from tests.streams.shell import Shell

#: Modules that start processes by `get_context`.
STARTING = ("streams.state.scan_shards",)
for each in (*STARTING, "tests.warmed"):
    forked.preload(each)


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(tmp_path, monkeypatch, capsys)


@pytest.fixture
def forking(monkeypatch: pytest.MonkeyPatch) -> None:
    """The processes that a scan starts are forked from the tests' server, in milliseconds."""
    forked.start_server()
    for module in STARTING:
        monkeypatch.setattr(f"{module}.get_context", lambda kind: forked.context)
