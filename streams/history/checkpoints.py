"""Makes and restores checkpoints of a state directory that no process has open."""

import shutil
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from neardup.errors import BadInput, StateError
from neardup.index.rocks import RocksStore
from neardup.scheme import VERSION, Scheme
from neardup.sharded.shard import owner_of
from streams.errors import SET_THE_SCHEME
from streams.pipeline.matcher import Matcher
from streams.state.checkpoint_store import CheckpointStore, Copied, Progress
from streams.state.checkpointer import make_image, manifest_of
from streams.state.directory import SCAN_NAMES, SHARD_NAMES, Directory, LogNames, log_names
from streams.state.manifest import Checkpoint, Manifest
from streams.state.restore import restore, restore_newest
from streams.state.scan_directory import State


def make(state: Path, store: CheckpointStore, *, keep: int, progress: Progress = lambda done, total: None) -> Copied:
    """Makes a checkpoint of the directory of a scan or of a stopped matcher, and removes all but the newest `keep`.

    Raises StateError if the directory is in use or no state.
    """
    if (state / "log").is_dir():
        with State.open(state) as opened:
            opened.flush()
            if not isinstance(opened.store, RocksStore):
                raise StateError(f"{state} is kept in memory alone")
            names = (*SCAN_NAMES, "effects") if opened.decider.epoch else SCAN_NAMES  # shards are rebuilt from them
            more = tuple(opened.path / name for name in names)
            image = make_image(opened.path, opened.store, more)
            return _copied(store, image, manifest_of(opened.matcher, ""), keep, progress)
    with ExitStack() as held:
        directory = Directory(state, held)
        decider = directory.decider()
        if decider is None or not (state / "index").exists():
            raise StateError(f"{state} holds no index to copy")
        index = RocksStore(directory.path / "index")
        held.callback(index.close)
        if owner := owner_of(index):
            raise StateError(
                f"{state} has the index of shard {owner}: a running shard makes checkpoints itself where `checkpoints` "
                "is set (NEARDUP_CHECKPOINTS); to move the shard, copy the folder of the stopped one"
            )
        log = log_names(index) or LogNames()
        image = make_image(directory.path, index)
        manifest = manifest_of(Matcher(index, decider), f"{log.cluster_id}/{log.topic_id}", log.generation)
        return _copied(store, image, manifest, keep, progress)


def _copied(store: CheckpointStore, image: Path, manifest: Manifest, keep: int, progress: Progress) -> Copied:
    try:
        copied = store.write(image, manifest, progress)
    finally:
        shutil.rmtree(image, ignore_errors=True)
    store.prune(keep)
    return copied


def bring_back(
    state: Path,
    store: CheckpointStore,
    *,
    name: str = "",
    seed: int | None = None,
    warn: Callable[[str], None] = lambda text: None,
    progress: Progress = lambda done, total: None,
) -> Checkpoint:
    """Restores the newest good checkpoint, or the one called `name`, into the directory `state`.

    seed: of the deployment, if the directory lacks it; a checkpoint never holds it. warn: called for each damaged
    checkpoint that is skipped. Raises BadInput if there is none, or it is of another seed; StateError for a directory
    with an index; CorruptRecord if the named one is damaged.
    """
    with ExitStack() as held:
        directory = Directory(state, held, more=("restoring", *SCAN_NAMES, *SHARD_NAMES))
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
