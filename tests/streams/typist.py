"""Commands of the walks in `deploy/walks/README.md`, typed into a shell as a person does."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from fnmatch import fnmatch
from pathlib import Path
from types import TracebackType

from tests.processes import start

ROOT = Path(__file__).parents[2]
WALKS = ROOT / "deploy" / "walks"
#: A command that takes longer hangs.
PATIENCE_SECONDS = 180.0


def commands(walk: str) -> list[str]:
    """The commands of a walk, without comments. The input of a program behind `<<'END'` belongs to its command.

    walk: heading of a section of `deploy/walks/README.md`.
    """
    section = (WALKS / "README.md").read_text().split(f"\n## {walk}\n")[1].split("\n## ")[0]
    out: list[str] = []
    for block in re.findall(r"^```\n(.*?)^```$", section, re.MULTILINE | re.DOTALL):
        inside = False
        for line in block.splitlines():
            if inside:
                out[-1] += "\n" + line
                inside = line != "END"
            else:
                out.append(re.sub(r"\s{2,}#.*", "", line))
                inside = line.endswith("<<'END'")
    return out


def strangers(folder: Path) -> set[str]:
    """What a walk has left in its folder and git would report in a clone."""
    ignored = {line.strip("/") for line in (ROOT / ".gitignore").read_text().splitlines() if line.startswith("/")}
    patterns = [*ignored, "deploy"]
    return {path.name for path in folder.iterdir() if not any(fnmatch(path.name, pattern) for pattern in patterns)}


class Typist:
    """One shell for all commands of a walk. instead: what a test types in place of what stands there."""

    def __init__(self, folder: Path, environment: Mapping[str, str], instead: Mapping[str, str] | None = None) -> None:
        self.instead, self.folder = dict(instead or {}), folder
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self._shell: subprocess.Popen[str] = start(
            ["bash", "-eu", "-o", "pipefail"],
            cwd=folder,
            env={**os.environ, **environment, "PATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def __call__(self, command: str) -> str:
        """What it printed. Fails where the command does."""
        for there, typed in self.instead.items():
            command = command.replace(there, typed)
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        self._shell.stdin.write(f"{command}\necho '--typed'\n")
        self._shell.stdin.flush()
        impatient = threading.Timer(PATIENCE_SECONDS, self._end)
        impatient.start()
        out: list[str] = []
        try:
            for line in self._shell.stdout:
                if line == "--typed\n":
                    return "".join(out)
                out.append(line)
        finally:
            impatient.cancel()
        raise AssertionError(f"{command}\n{''.join(out)}")

    @staticmethod
    def answers(host: str, port: str) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex((host, int(port))) == 0

    def _end(self) -> None:
        """With all that it has started behind it."""
        os.killpg(self._shell.pid, signal.SIGKILL)

    def __enter__(self) -> "Typist":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()
        self._shell.communicate()
