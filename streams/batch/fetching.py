"""Input that lies elsewhere: files that URLs name are copied beside the workspace, once, by fsspec."""

import hashlib
import shutil
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from neardup.errors import BadInput
from streams.config.settings import without_credentials

_PIECE_BYTES = 1 << 20


def inputs_of(out: Path) -> Path:
    """Where the copies of a partition's input lie."""
    return out.with_name(out.name + ".inputs")


def fetched(given: Sequence[str], folder: Path) -> list[Path]:
    """The paths that were given; of URLs (`s3://...`, `memory://...`) the copies of their files in a folder.

    A copy is there whole or not at all, and is made once. A URL names one file, or some by a pattern with `*`. Raises
    BadInput for what cannot be read, or names nothing.
    """
    paths = []
    for text in given:
        if "://" not in text:
            paths.append(Path(text))
            continue
        try:
            paths += _copies(text, folder)
        except (OSError, ValueError, ImportError) as error:
            shown = without_credentials(text, queries=True)
            raise BadInput(f"{shown}: cannot be read: {without_credentials(str(error), queries=True)}") from error
    return paths


def _copies(url: str, folder: Path) -> list[Path]:
    import fsspec

    system, place = fsspec.core.url_to_fs(url)
    names = sorted(system.glob(place)) if "*" in place else [place]
    if not names:
        raise FileNotFoundError("no file has such a name")
    folder.mkdir(parents=True, exist_ok=True)
    return [_copy(system, url.partition("://")[0], str(name), folder) for name in names]


def _copy(system: Any, protocol: str, name: str, folder: Path) -> Path:
    """Under its own name, after a digest of where it lies: two places may have files of one name."""
    digest = hashlib.blake2b(f"{protocol}://{name}".encode(), digest_size=6).hexdigest()
    copy = folder / f"{digest}-{PurePosixPath(name).name}"
    if not copy.exists():
        fresh = copy.with_name(copy.name + ".new")
        with system.open(name, "rb") as source, fresh.open("wb") as target:
            shutil.copyfileobj(source, target, _PIECE_BYTES)
        fresh.replace(copy)
    return copy


def forget(out: Path) -> None:
    """Deletes the copies."""
    shutil.rmtree(inputs_of(out), ignore_errors=True)
