"""A shell for tests of the command line."""

from pathlib import Path

import pytest

from tests import forked
from tests.streams.shell import Shell

forked.preload("tests.warmed")


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(tmp_path, monkeypatch, capsys)
