"""Makes checkpoints of a state directory in use. `streams.state.restore` restores them.

A checkpoint is an image of the state directory without its lock and its secret seed: `index/` and `decider.json`; of a
scan also `log/`, `verdicts/` and `sources/`.
"""

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol, runtime_checkable

from neardup.decider import Decider
from neardup.errors import NeardupError, StateError
from streams.formats.message import own_version
from streams.state.checkpoint_store import CheckpointStore, Copied
from streams.state.manifest import Manifest

#: The image that is being copied lies here, in the state directory; what a crash left of one goes at the next.
IMAGE = "checkpoint"
#: Kept beside the index in every image.
_DECIDER = "decider.json"
#: Between two attempts to remove the checkpoints made before a takedown, in seconds.
RETRY_SECONDS = 30.0


@runtime_checkable
class CopyableIndex(Protocol):
    """An index that can be copied while it is in use, as `RocksStore`."""

    def checkpoint(self, path: Path) -> None:
        """Makes `path`, which must not exist, an index as it is now. Raises StateError."""
        ...


def make_image(state: Path, store: CopyableIndex, more: Iterator[Path] | tuple[Path, ...] = ()) -> Path:
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
    """What an index was folded from: a `Matcher`, or a shard's.

    next_offset: of the message to fold next. log_time: of the last page folded, in ms. takedowns_to: offset behind the
    last takedown that it has folded, 0 without any.
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


class Checkpointer:
    """Makes checkpoints of a running matcher at fixed positions of the log. A thread of its own copies them.

    The matcher waits for the hard links only. It continues if the copy fails: `failed` has the reason until one
    succeeds.

    Args:
        every: number of messages between two checkpoints.
        keep: number of checkpoints that stay in the store.

    pruned: offset of the checkpoint behind which this process has pruned the store, -1 before the
    first prune. Older checkpoints, also those of a killed process, may still contain the pages of a takedown at a
    greater offset.
    """

    def __init__(
        self,
        store: CheckpointStore,
        state: Path,
        *,
        every: int,
        keep: int,
        done: Callable[[Copied, float], None] = lambda copied, seconds: None,
        steady_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.failed = ""
        self.pruned = -1
        self._store = store
        self._state = state
        self._every = every
        self._keep = keep
        self._done = done
        self._thread: threading.Thread | None = None
        self._last: int | None = None
        self._steady_s = steady_s
        self._retry_at_s = steady_s()
        shutil.rmtree(state / IMAGE, ignore_errors=True)

    def due(self, offset: int) -> bool:
        """Whether `offset` is past the position of the next checkpoint, and none is being copied."""
        if self._last is None:
            self._last = offset  # a start is no place of the log
        return offset // self._every > self._last // self._every and not self.busy

    def owes(self, takedowns_to: int) -> bool:
        """Whether checkpoints made before a takedown must be removed now.

        Not while one is being copied; after a failure only RETRY_SECONDS later. takedowns_to: the offset after the last
        takedown, 0 without any.
        """
        return takedowns_to > max(0, self.pruned) and self.may_retry

    @property
    def may_retry(self) -> bool:
        """Whether nothing is being copied, and the last failure is RETRY_SECONDS ago."""
        return not self.busy and self._steady_s() >= self._retry_at_s

    @property
    def busy(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def begin(self, index: CopyableIndex, manifest: Manifest) -> None:
        """Links the index, and copies it in another thread. Raises nothing if the store or the disk fails."""
        self._last = manifest.offset
        try:
            image = make_image(self._state, index)
        except NeardupError as error:
            self._fail(error)
            return
        self._start(lambda: self._copy(image, manifest))

    def prune(self, newest: int) -> None:
        """Removes old checkpoints in another thread, after a checkpoint behind the last takedown was copied.

        newest: offset of the newest checkpoint.
        """
        self._start(lambda: self._prune(newest))

    def read(self, work: Callable[[], None]) -> None:
        """Reads the store in this thread: `failed` has the reason if that raises NeardupError."""
        try:
            work()
        except NeardupError as error:
            self._fail(error)
        else:
            self.failed = ""

    def read_aside(self, work: Callable[[], None]) -> None:
        """Does the same in another thread."""
        self._start(lambda: self.read(work))

    def wait(self, seconds: float) -> None:
        """Waits until the copy is done, or a time limit.

        If a copy is cut short, the checkpoint before it stays the newest.
        """
        if self._thread is not None:
            self._thread.join(seconds)

    def _start(self, work: Callable[[], None]) -> None:
        self._thread = threading.Thread(target=work, name="checkpoint", daemon=True)
        self._thread.start()

    def _copy(self, image: Path, manifest: Manifest) -> None:
        began = time.monotonic()
        try:
            copied = self._store.write(image, manifest)
        except NeardupError as error:
            self._fail(error)
        else:
            self._done(copied, time.monotonic() - began)
            self._prune(manifest.offset)
        finally:
            shutil.rmtree(image, ignore_errors=True)

    def _prune(self, newest: int) -> None:
        try:
            self._store.prune(self._keep)
        except NeardupError as error:
            self._fail(error)
        else:
            self.failed, self.pruned = "", newest

    def _fail(self, error: NeardupError) -> None:
        self.failed, self._retry_at_s = str(error), self._steady_s() + RETRY_SECONDS
