"""The state directory of a matcher, and the names of the log that its index was folded from."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from neardup.decider import Decider
from neardup.index.column_families import Family, Store
from neardup.scheme import Scheme
from streams.errors import SET_THE_SCHEME
from streams.pipeline.matcher import folded_to
from streams.state.directory import Directory, Run

if TYPE_CHECKING:
    from neardup.index.rocks import RocksStore


class MatcherDirectory:
    """The matcher's open directory; `store` is in it."""

    store: "RocksStore"

    def __init__(
        self,
        path: Path,
        scheme: Scheme,
        *,
        restore: Callable[[Path], object] = lambda path: None,
        outlived: Callable[["RocksStore"], bool] = lambda store: False,
    ) -> None:
        """Creates the directory if it is missing, and opens its store.

        restore: called to restore an index if there is none, or if the log lacks messages that it needs. Raises
        StateError: if the directory is in use, of another scheme, or no state directory. Also what `restore` raises.
        """
        self._held = ExitStack()
        try:
            self._directory = Directory(path, self._held, Run.STREAM)
            self.path = self._directory.path
            self._directory.scheme_for(
                scheme,
                f"{SET_THE_SCHEME} that it was begun with, or begin another generation, with a directory of its own",
            )
            if not (self.path / "index").exists():
                restore(self.path)
            self.store = self._directory.open_index()
            if outlived(self.store):
                self.store.close()
                restore(self.path)
                self.store = self._directory.open_index()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Flushes the store and unlocks the directory. May be called twice."""
        self._held.close()

    def first_decider(self, decider: Decider) -> Decider:
        """Returns the decider at the log's start; `decider` if nothing is folded yet. Raises StateError."""
        return self._directory.first_decider(lambda: decider, begun=bool(folded_to(self.store)))


class LogNames(NamedTuple):
    """The log that an index was folded from on Kafka, and its generation: rows of the META family, named as the fields.

    The index of a scan or of the library has none of them: its log lies in the same directory.

    topic_id, verdicts_id: topic ids of log and verdicts in hex.
    """

    cluster_id: str = ""
    topic_id: str = ""
    generation: str = ""
    verdicts_id: str = ""


_KEYS = [name.encode() for name in LogNames._fields]


def log_names(store: Store) -> LogNames | None:
    """Return the names in an index; None for a new one, and for that of a scan."""
    rows = store.get_many(Family.META, _KEYS)
    return LogNames(*((row or b"").decode() for row in rows)) if any(row is not None for row in rows) else None


def keep_log_names(store: Store, names: LogNames) -> None:
    """Write the names into an index, durably."""
    store.write({Family.META: {key: name.encode() for key, name in zip(_KEYS, names, strict=True)}})
    store.flush()
