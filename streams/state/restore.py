"""Restores a state directory from a checkpoint."""

import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from neardup.errors import CorruptRecord, StateError
from streams.process.disk import state_errors, sync
from streams.state.checkpoint_store import CheckpointStore, Progress
from streams.state.manifest import Checkpoint, Manifest

_RESTORING = "restoring"
#: An index that a checkpoint takes the place of, until that is done.
_OUTLIVED = "outlived"


def restore_newest(
    store: CheckpointStore,
    state: Path,
    fits: Callable[[Manifest], str],
    warn: Callable[[str], None] = lambda text: None,
    progress: Progress = lambda done, total: None,
    *,
    replace: bool = False,
    tried: set[str] | None = None,
) -> Checkpoint | None:
    """Restores the newest good checkpoint that fits into `state`. Returns None if there is none.

    Args:
        tried: names of checkpoints to pass over; gets those that this call passes over.
        fits: returns why a checkpoint cannot be used here, or "".
        warn: called with each checkpoint that is passed over, and the reason.
        replace: as for `restore`.

    If a checkpoint is damaged, or its writer removes it meanwhile, the newest other one is used. Raises StateError.
    """
    tried = set() if tried is None else tried
    while True:
        checkpoint = _untried(store, tried, fits, warn)
        if checkpoint is None:
            return None
        try:
            restore(store, checkpoint, state, progress, replace=replace)
        except CorruptRecord as error:
            warn(f"{error}; another checkpoint is tried")
        else:
            return checkpoint


def _untried(
    store: CheckpointStore, tried: set[str], fits: Callable[[Manifest], str], warn: Callable[[str], None]
) -> Checkpoint | None:
    """Returns the newest checkpoint that fits and was not tried. Adds it, and those that do not fit, to `tried`."""

    def warn_once(text: str) -> None:
        if text not in tried:
            tried.add(text)
            warn(text)

    for checkpoint in store.usable(warn_once):
        if checkpoint.name in tried:
            continue
        tried.add(checkpoint.name)
        reason = fits(checkpoint.manifest)
        if not reason:
            return checkpoint
        warn(f"checkpoint {checkpoint.name} is passed over: {reason}")
    return None


def restore(
    store: CheckpointStore,
    checkpoint: Checkpoint,
    state: Path,
    progress: Progress = lambda done, total: None,
    *,
    replace: bool = False,
) -> None:
    """Restores a checkpoint into `state`. The index is moved there last, so a crash leaves none.

    replace: remove an existing index once the copy is complete. Raises StateError if there is an index and it may not
    be replaced, CorruptRecord for damage.
    """
    if (state / "index").exists() and not replace:
        raise StateError(f"{state} has an index; name another directory, or move that index away")
    place, outlived = state / _RESTORING, state / _OUTLIVED
    shutil.rmtree(place, ignore_errors=True)
    shutil.rmtree(outlived, ignore_errors=True)
    store.restore(checkpoint, place, progress)
    try:
        if (state / "index").exists():
            (state / "index").rename(outlived)  # at once: half an index would be opened as one
        for entry in sorted(place.iterdir(), key=lambda entry: entry.name == "index"):
            with suppress(FileNotFoundError):
                _remove(state / entry.name)
            entry.rename(state / entry.name)
        place.rmdir()
        sync(state)
        shutil.rmtree(outlived, ignore_errors=True)
    except OSError as error:
        raise StateError(f"cannot restore into {state}: {error.strerror or error}") from error


def remove_index(state: Path) -> None:
    """Removes an index, which the log can build again. A crash leaves it whole, or none. Raises StateError."""
    outlived = state / _OUTLIVED
    with state_errors("remove", state / "index"):
        shutil.rmtree(outlived, ignore_errors=True)
        (state / "index").rename(outlived)
        shutil.rmtree(outlived)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
