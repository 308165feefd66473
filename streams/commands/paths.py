"""Checks of paths that options name, before anything is begun; and copies of remote inputs."""

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from streams.errors import WrongUsage

Paths = str | Path | Sequence[str | Path]


def _each(given: Paths) -> list[str]:
    return [str(given)] if isinstance(given, str | Path) else [str(one) for one in given]


def must_exist(given: Paths) -> None:
    """Raises WrongUsage for a path that does not exist or cannot be read. URLs and `-` are not checked."""
    for path in _each(given):
        if path == "-" or "://" in path:
            continue
        if not os.path.exists(path):
            raise WrongUsage(f"{path}: no such file or folder")
        if not os.access(path, os.R_OK):
            raise WrongUsage(f"{path}: cannot be read: permission denied")


def must_be_writable(given: Paths) -> None:
    """Raises WrongUsage for a file that cannot be written; `-` is standard output."""
    for path in (Path(one) for one in _each(given) if one != "-"):
        folder = path.absolute().parent
        if path.is_dir():
            raise WrongUsage(f"{path}: is a folder; name a file")
        if not folder.is_dir():
            raise WrongUsage(f"{path}: cannot be written: there is no folder {folder}")
        if not os.access(path if path.exists() else folder, os.W_OK):
            raise WrongUsage(f"{path}: cannot be written: permission denied")


def must_be_folder(given: Paths) -> None:
    """Raises WrongUsage for a folder that could not be made or written to."""
    for path in (Path(one).absolute() for one in _each(given)):
        if path.exists() and not path.is_dir():
            raise WrongUsage(f"{path}: is no folder; name a folder")
        nearest = next(one for one in (path, *path.parents) if one.exists())
        if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
            raise WrongUsage(f"{path}: cannot be written: permission denied")


def must_be_state(state: Path) -> None:
    """Raises WrongUsage for what is no state directory."""
    if not (state / "scheme.json").is_file():
        raise WrongUsage(f"{state} is no state directory; `neardup scan FILE --state {state}` makes one")


def must_be_scan(state: Path) -> None:
    """Raises WrongUsage for what is no state directory of a scan."""
    must_be_state(state)
    if not (state / "log").is_dir():
        raise WrongUsage(f"{state} is the state directory of a matcher; name that of a scan")


@contextmanager
def inputs(given: Sequence[str | Path]) -> Iterator[list[Path]]:
    """Yields inputs as local files (`streams.files.fetching`); copies of remote ones are removed at the end."""
    from streams.files.fetching import fetched

    with tempfile.TemporaryDirectory(prefix="neardup-inputs-") as folder:
        yield fetched(given, Path(folder))
