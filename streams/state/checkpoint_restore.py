"""Restores a state directory from a checkpoint: by hand, and at the start of a matcher."""

import shutil
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

from neardup.decider import Decider
from neardup.errors import BadInput, CorruptRecord, StateError
from neardup.index.column_families import Store
from neardup.scheme import VERSION, Scheme
from streams.config.settings import Settings
from streams.errors import NEW_GENERATION, SET_THE_SCHEME
from streams.pipeline.matcher import folded_to
from streams.ports import SketchLog
from streams.process import logs
from streams.process.disk import sync
from streams.process.health import RoleHealth
from streams.state.checkpoint_make import identity
from streams.state.checkpoint_manifest import Checkpoint, Manifest
from streams.state.checkpoint_store import CheckpointStore, CopyProgress
from streams.state.directory import RESTORING, Directory
from streams.state.matcher_directory import log_names

_log = logs.get("match")

#: An index that a checkpoint takes the place of, until that is done.
_OUTLIVED = "outlived"
#: Between two searches of a standby for a checkpoint that fits.
_LOOK_SECONDS = 2.0


def restore_newest(
    store: CheckpointStore,
    state: Path,
    fits: Callable[[Manifest], str],
    warn: Callable[[str], None] = lambda text: None,
    progress: CopyProgress = lambda done, total: None,
    *,
    replace: bool = False,
    tried: set[str] | None = None,
) -> Checkpoint | None:
    """Restores the newest good checkpoint that fits into `state`. Returns None if there is none.

    Args:
        store: store of checkpoints.
        state: state directory.
        fits: function that returns why a checkpoint cannot be used here, or "".
        warn: function that receives a sentence about each checkpoint that is passed over.
        progress: function that receives the copied bytes and all bytes.
        replace: argument of `restore`.
        tried: names of checkpoints to pass over. The call adds the names of checkpoints that it passes over.

    If a checkpoint is damaged, or its writer removes it meanwhile, the newest other checkpoint is used. Raises
    StateError.
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
    progress: CopyProgress = lambda done, total: None,
    *,
    replace: bool = False,
) -> None:
    """Restores a checkpoint into `state`. The index is moved there last, so a crash leaves none.

    replace: remove an existing index once the copy is complete. Raises StateError if there is an index and it may not
    be replaced, CorruptRecord for damage.
    """
    if (state / "index").exists() and not replace:
        raise StateError(f"{state} has an index; name another directory, or move that index away")
    place, outlived = state / RESTORING, state / _OUTLIVED
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


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def restore_directory(
    state: Path,
    store: CheckpointStore,
    *,
    name: str = "",
    seed: int | None = None,
    warn: Callable[[str], None] = lambda text: None,
    progress: CopyProgress = lambda done, total: None,
) -> Checkpoint:
    """Restores the newest good checkpoint, or the one called `name`, into the directory `state`.

    Args:
        state: state directory.
        store: store of checkpoints.
        name: name of a checkpoint; by default the newest good one.
        seed: seed of the deployment, if the directory lacks it. A checkpoint never contains the seed.
        warn: function that receives a sentence about each damaged checkpoint that is skipped.
        progress: function that receives the copied bytes and all bytes.

    Raises:
        BadInput: if there is no checkpoint, or if the checkpoint belongs to another seed.
        StateError: if the directory has an index.
        CorruptRecord: if the named checkpoint is damaged.
    """
    with ExitStack() as held:
        directory = Directory(state, held)
        kept = directory.scheme()

        def fits(manifest: Manifest) -> str:
            scheme = kept or _scheme_of(manifest, seed)
            if scheme.digest != manifest.scheme:
                raise BadInput(
                    f"the checkpoint of offset {manifest.offset} is of scheme {manifest.scheme}, and the seed at hand "
                    f"makes {scheme.digest}; {SET_THE_SCHEME} that it was made with"
                )
            return ""

        found: Checkpoint | None
        if name:
            if name not in store.names():
                raise BadInput(
                    f"there is no checkpoint {name[:80]!r} at {store.url}; `neardup checkpoint list` lists them"
                )
            found = store.read(name)
            fits(found.manifest)
            restore(store, found, directory.path, progress)
        else:
            found = restore_newest(store, directory.path, fits, warn, progress)
        if found is None:
            raise BadInput(f"no good checkpoint lies at {store.url}")
        if kept is None:
            directory.keep(_scheme_of(found.manifest, seed))
        return found


def _scheme_of(manifest: Manifest, seed: int | None) -> Scheme:
    if seed is None:
        raise BadInput(
            "a checkpoint does not hold the secret seed, and this directory has none: set NEARDUP_SEED or "
            f"NEARDUP_SEED_FILE (of scheme {manifest.scheme})"
        )
    versions = (Scheme(seed=seed, version=version) for version in range(1, VERSION + 1))
    return next((scheme for scheme in versions if scheme.digest == manifest.scheme), Scheme(seed=seed))


class Restoring:
    """Fills a state directory from the newest checkpoint of this log that the log still covers.

    It does so if there is no index, or if the index needs messages that retention has removed from the log. A standby
    beside an active matcher waits for a checkpoint that fits, because the active matcher makes more. active: returns
    whether this is a standby and another matcher is active.
    """

    def __init__(
        self,
        settings: Settings,
        log: SketchLog,
        decider: Decider,
        stop: threading.Event,
        health: RoleHealth,
        active: Callable[[], bool] = lambda: False,
    ) -> None:
        """
        Args:
            stop: ends a wait for a checkpoint.
            health: health of the role, which shows the wait and the progress.
            active: function that tells whether the role is active, and not a standby.
        """
        self._settings, self._log, self._decider = settings, log, decider
        self._stop, self._health, self._active = stop, health, active

    def outlived(self, store: Store) -> bool:
        """Whether an index of this log and generation, or an empty one, needs messages that are gone."""
        position = folded_to(store)
        if position >= self._log.first_offset():
            return False
        held = log_names(store)
        own = (self._log.cluster_id, self._log.topic.id.hex(), self._settings.generation)
        return not position or (held is not None and held[:3] == own)

    def restore(self, state: Path) -> bool:
        """Restores a checkpoint that fits, if there is one, into `state`; it replaces an index there.

        Returns whether one was restored. Raises StateError if there is no index, and the log alone cannot build one.
        """
        begin, topic = self._log.first_offset(), self._settings.topics.sketches
        url, there = self._settings.checkpoints, (state / "index").exists()
        lacks = f"{state} has no index that topic {topic} can continue: one that ends at offset {begin} or later"
        if not url:
            if begin and self._active():
                raise StateError(
                    f"{lacks}, and no checkpoints are set: set the same `checkpoints` for all matchers and "
                    "start them again: this one waits for a checkpoint of the active matcher; or copy here the state "
                    "folder of the stopped active matcher",
                )
            return False
        store, tried, warned = CheckpointStore(url), set[str](), False
        while not self._stop.is_set():
            try:
                found = restore_newest(
                    store, state, self._fits, _log.warning, self._progress, replace=there, tried=tried
                )
            except StateError as error:
                if begin or there:  # the log alone cannot build the index
                    raise
                _log.error("goes on without checkpoints: folds the log from its start", reason=str(error))
                return False
            if found is not None:
                size, offset = found.manifest.size, found.manifest.offset
                _log.info("index restored", checkpoint=found.name, bytes=size, offset=offset, replaced=there)
                return True
            if not begin or not self._active():
                break
            why = (
                f"{lacks}, and no checkpoint at {url} fits: waits for the next one of the active matcher, made "
                f"every {self._settings.checkpoint_messages} messages"
            )
            self._health.not_ready(why)
            if not warned:
                _log.warning(why)
            warned = True
            self._health.turned()
            self._stop.wait(_LOOK_SECONDS)
        if begin and not there and not self._stop.is_set():
            raise StateError(f"{lacks}, and no checkpoint at {url} fits: see neardup checkpoint list; {NEW_GENERATION}")
        return False

    def _progress(self, done: int, total: int) -> None:
        self._health.turned()
        self._health.not_ready(f"restores a checkpoint: {done} of {total} bytes")

    def _fits(self, manifest: Manifest) -> str:
        """Why a checkpoint cannot be used here; "" if it can."""
        log = self._log
        if manifest.generation != self._settings.generation:
            return f"it is of another generation, {manifest.generation or '(unnamed)'}"
        if manifest.log != identity(log):
            return f"it is of another log, {manifest.log}"
        if manifest.scheme != self._decider.scheme:
            return f"it is of another scheme, {manifest.scheme}"
        if self._settings.judges_anew and manifest.decider != self._decider.digest:
            return f"it was judged by another decider, {manifest.decider}"
        begin, topic = log.first_offset(), self._settings.topics.sketches
        if not begin <= manifest.offset <= log.end():
            return f"it ends at offset {manifest.offset}, and topic {topic} can continue {begin} to {log.end()} alone"
        return ""
