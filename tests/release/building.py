"""Wheel and sdist, built of what git knows, as a release would be."""

import subprocess
import sys
import tarfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
#: Files that git tracks or would add: ignored files are in no release.
LISTED = ("git", "ls-files", "--cached", "--others", "--exclude-standard")


def copy(folder: Path) -> Path:
    """The files of a release, as they are now."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=REPOSITORY,
        capture_output=True,
        check=True,
        text=True,
    ).stdout.split("\0")
    for name in filter(None, listed):
        source, target = REPOSITORY / name, folder / name
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
            target.chmod(source.stat().st_mode)
    return folder


def build(source: Path, out: Path, *kinds: str) -> dict[str, Path]:
    """Built by the backend that pyproject.toml names, from this environment: without the network."""
    made = {}
    for kind in kinds:
        code = f"from hatchling.build import build_{kind} as b; print(b({str(out)!r}))"
        done = subprocess.run([sys.executable, "-c", code], cwd=source, capture_output=True, check=True, text=True)
        made[kind] = out / done.stdout.split()[-1]
    return made


def unpack(sdist: Path, folder: Path) -> Path:
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (found,) = folder.iterdir()
    return found
