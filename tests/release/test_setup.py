"""deploy/setup.sh with pip: what each of the processes that run side by side installs."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.release.building import REPOSITORY

# Keeps its own arguments and the requirements that it is given, in a folder.
PIP = """#!/bin/sh
echo "$@" >"$KEPT/arguments.$$"
for last; do :; done
[ "$last" = . ] || cp "$last" "$KEPT/requirements.$$"
"""


def program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def locked(path: Path) -> list[str]:
    """The lines that name a package; some packages have one for each platform."""
    return [line for line in path.read_text().splitlines() if re.match(r"[\w.-]+==", line)]


def test_each_locked_package_is_installed_once_and_no_pip_replaces_pip(tmp_path: Path) -> None:
    """A pip that replaces pip takes its files from the others: they warn of `~ip`, or miss a module."""
    venv, kept = tmp_path / "venv", tmp_path / "kept"
    kept.mkdir()
    program(venv / "bin" / "pip", PIP)
    program(venv / "bin" / "python", "#!/bin/sh\n")
    tools = tmp_path / "tools"  # of a machine without uv
    tools.mkdir()
    for name in ("awk", "cp", "grep", "mktemp", "rm"):
        (tools / name).symlink_to(str(shutil.which(name)))
    environment = {**os.environ, "KEPT": str(kept), "PATH": str(tools)}
    subprocess.run(["deploy/setup.sh", sys.executable, venv], cwd=REPOSITORY, env=environment, check=True)
    installed = [line for path in kept.glob("requirements.*") for line in locked(path)]
    assert sorted(installed) == [
        line for line in sorted(locked(REPOSITORY / "requirements.lock")) if not line.startswith("pip==")
    ]
    assert sum(" -e ." in path.read_text() for path in kept.glob("arguments.*")) == 1
