"""The command line in this process, in a folder of its own."""

from pathlib import Path
from typing import NamedTuple

import pytest

from neardup import warm
from streams.commands import app as cli


class Ended(NamedTuple):
    code: int
    out: str
    err: str


class Shell:
    """Runs commands in this process, in a folder of its own."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._monkeypatch = monkeypatch
        self._capsys = capsys
        monkeypatch.chdir(folder)
        monkeypatch.setenv("COLUMNS", "100")
        monkeypatch.setattr(warm, "notice", lambda needs: "")  # kernels may be cold or warm

    def __call__(self, *arguments: str) -> Ended:
        self._monkeypatch.setattr("sys.argv", ["neardup", *arguments])
        code: object = 0
        try:
            cli.main()
        except SystemExit as end:
            code = end.code
        out, err = self._capsys.readouterr()
        assert isinstance(code, int)
        assert "Traceback" not in err
        return Ended(code, out, err)


def words(name: str, count: int = 200) -> str:
    return " ".join(f"{name}{i}" for i in range(count))


def site(folder: Path) -> Path:
    """Three pages: one, its near-duplicate, another."""
    folder.mkdir()
    (folder / "a.html").write_text(f"<title>Wool</title><p>{words('a')}")
    (folder / "b.html").write_text(f"<title>Wool</title><p>{words('a')} 9:41")
    (folder / "c.html").write_text(f"<title>Tin</title><p>{words('c')}")
    return folder
