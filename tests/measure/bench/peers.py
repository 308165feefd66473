"""The peers in an environment of their own, so that their versions and ours do not meet."""

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

PACKAGES = {
    "datasketch": "datasketch==2.0.0",
    "rensa": "rensa==0.5.0",
    "gaoya": "gaoya==0.2.2",
    "text_dedup": "text-dedup==0.4.0",
    "datatrove": "datatrove[processing,multilingual]==0.10.1 numba",
}
_INSTALL_S_MAX = 300


def environment(folder: Path) -> tuple[Path, dict[str, str]]:
    """Python of the peers' environment, made if missing, and what could not be installed: {peer: why}."""
    python = folder / "bin" / "python"
    answer = folder / "peers.json"
    if answer.exists() and json.loads(answer.read_text())["packages"] == PACKAGES:
        return python, json.loads(answer.read_text())["missing"]
    install = _make(folder, python)
    missing = {}
    for name, package in {"xxhash": "xxhash", **PACKAGES}.items():
        command = [*install, *package.split()]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_INSTALL_S_MAX, check=False)
            if done.returncode:
                missing[name] = (done.stderr.strip().splitlines() or ["not installed"])[-1][:200]
        except subprocess.TimeoutExpired:
            missing[name] = f"not installed in {_INSTALL_S_MAX} s"
    answer.write_text(json.dumps({"packages": PACKAGES, "missing": missing}))
    return python, missing


def made(folder: Path, packages: Sequence[str]) -> Path:
    """Python of an environment with these packages, made if missing. Raises CalledProcessError if it cannot be."""
    python, answer = folder / "bin" / "python", folder / "packages.json"
    if not answer.exists() or json.loads(answer.read_text()) != list(packages):
        subprocess.run([*_make(folder, python), *packages], check=True, timeout=_INSTALL_S_MAX)
        answer.write_text(json.dumps(list(packages)))
    return python


def _make(folder: Path, python: Path) -> list[str]:
    """Makes an empty environment, with uv where it is installed, and returns the command that installs into it."""
    if shutil.which("uv"):
        subprocess.run(["uv", "venv", "-q", "--allow-existing", "--python", sys.executable, str(folder)], check=True)
        return ["uv", "pip", "install", "-q", "--python", str(python)]
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    return [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]


class Peers:
    """A process of theirs that answers requests; a context."""

    def __init__(self, python: Path) -> None:
        self._process = subprocess.Popen(
            # -P: not the script's folder but only their own packages; else their `import profile` finds ours.
            [str(python), "-P", str(Path(__file__).with_name("peer.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def ask(self, **request: Any) -> dict[str, Any]:
        """Raises RuntimeError for a peer that failed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        while line := self._process.stdout.readline():
            if line.startswith("{"):  # some print greetings
                reply: dict[str, Any] = json.loads(line)
                if "error" in reply:
                    raise RuntimeError(reply["error"])
                return reply
        raise RuntimeError("the peers' process ended")

    def load(self, texts: Sequence[str], planted: int, folder: Path) -> None:
        """The last `planted` texts are copies of the first."""
        path = folder / "texts.json"
        path.write_text(json.dumps(texts), encoding="utf-8")
        self.ask(load=str(path), planted=planted)

    def __enter__(self) -> "Peers":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=30)
