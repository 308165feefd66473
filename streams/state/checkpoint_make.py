"""Makes checkpoints: the image of a state directory, its manifest, and the checkpoint of a directory not in use.

An image is the state directory without its lock and its secret seed: `index/` and `decider.json`; of a scan also
`log/`, `verdicts/` and `sources/`. `streams.state.checkpoint_role` copies the images of a running role.
"""

import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol, runtime_checkable

from neardup.decider import Decider
from neardup.errors import StateError
from streams.formats.message import own_version
from streams.pipeline.matcher import Matcher
from streams.ports import SketchLog
from streams.state.checkpoint_manifest import Manifest
from streams.state.checkpoint_store import CheckpointStore, Copied, CopyProgress
from streams.state.directory import SCAN_NAMES, Directory
from streams.state.matcher_directory import LogNames, log_names

#: The image that is being copied lies here, in the state directory; what a crash left of one goes at the next.
IMAGE = "checkpoint"
#: Kept beside the index in every image.
_DECIDER = "decider.json"


@runtime_checkable
class CopyableIndex(Protocol):
    """An index that can be copied while it is in use, as `RocksStore`."""

    def checkpoint(self, path: Path) -> None:
        """Makes `path`, which must not exist, an index as it is now. Raises StateError."""
        ...


def make_image(state: Path, store: CopyableIndex, more: Sequence[Path] = ()) -> Path:
    """Makes a folder in `state` with its index, by hard links, and with the other parts of a checkpoint.

    more: folders with files that are only appended to or replaced; linked, too. Raises StateError.
    """
    image = state / IMAGE
    shutil.rmtree(image, ignore_errors=True)
    try:
        image.mkdir()
        store.checkpoint(image / "index")
        shutil.copyfile(state / _DECIDER, image / _DECIDER)
        for folder in more:
            shutil.copytree(folder, image / folder.name)
    except OSError as error:
        raise StateError(f"cannot make a checkpoint in {image}: {error.strerror or error}") from error
    return image


class Folded(Protocol):
    """What an index was folded from: a `Matcher`.

    next_offset: offset of the message to fold next. log_time: log time of the last folded page, ms. takedowns_to:
    offset after the last folded takedown; 0 without a takedown.
    """

    @property
    def next_offset(self) -> int: ...
    @property
    def log_time(self) -> int: ...
    @property
    def takedowns_to(self) -> int: ...
    @property
    def decider(self) -> Decider: ...


def manifest_of(folded: Folded, log: str, generation: str = "") -> Manifest:
    """Returns the manifest of a checkpoint made now. log: identity of the sketch log; empty for a scan."""
    decider = folded.decider
    return Manifest(
        folded.next_offset,
        folded.log_time,
        decider.scheme,
        decider.digest,
        log,
        own_version(),
        takedowns_to=folded.takedowns_to,
        generation=generation,
    )


def identity(log: SketchLog) -> str:
    """Names a sketch log by cluster and topic id; offsets of another log are void in it."""
    return f"{log.cluster_id}/{log.topic.id.hex()}"


def make(
    state: Path, store: CheckpointStore, *, keep: int, progress: CopyProgress = lambda done, total: None
) -> Copied:
    """Makes a checkpoint of the directory of a scan or of a stopped matcher, and removes all but the newest `keep`.

    Raises StateError if the directory is in use or no state.
    """
    if (state / "log").is_dir():
        from streams.state.scan_directory import ScanDirectory  # with all readers of input, which no role needs

        with ScanDirectory.open(state) as opened:
            opened.flush()
            assert isinstance(opened.store, CopyableIndex), "a state in memory has no directory"
            more = tuple(opened.path / name for name in SCAN_NAMES)
            image = make_image(opened.path, opened.store, more)
            return _copied(store, image, manifest_of(opened.matcher, ""), keep, progress)
    with ExitStack() as held:
        directory = Directory(state, held)
        decider = directory.decider()
        if decider is None or not (state / "index").exists():
            raise StateError(f"{state} holds no index to copy")
        index = directory.open_index()
        log = log_names(index) or LogNames()
        image = make_image(directory.path, index)
        manifest = manifest_of(Matcher(index, decider), f"{log.cluster_id}/{log.topic_id}", log.generation)
        return _copied(store, image, manifest, keep, progress)


def _copied(store: CheckpointStore, image: Path, manifest: Manifest, keep: int, progress: CopyProgress) -> Copied:
    try:
        copied = store.write(image, manifest, progress)
    finally:
        shutil.rmtree(image, ignore_errors=True)
    store.prune(keep)
    return copied
