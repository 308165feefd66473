"""A state directory of a scan, a library or a matcher.

    lock            locked by the one process that has it open; holds its pid
    scheme.json     readable by the owner only: the seed in it is a secret
    decider.json    the decider from the log's start on, until a control record names another one
    index/          the store; its META family names the log that it was folded from
    canonical.json  a scan's policy for canonical pages, if one is set
    inputs/         a scan's copies of remote input (`streams.files.fetching`); may be deleted

A matcher has no more: its log and its verdicts are topics. A scan and the library have both here, see
`streams.state.scan_directory`.
"""

from collections.abc import Callable, Collection
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import orjson

from neardup.canonical import policy_of, policy_text
from neardup.decider import Decider
from neardup.errors import BadInput, CorruptRecord, StateError
from neardup.index.column_families import Family, Store
from neardup.scheme import Scheme
from streams.errors import SET_THE_SCHEME
from streams.pipeline.matcher import folded_to
from streams.process.disk import lock_directory, state_error, state_errors, write_whole

if TYPE_CHECKING:
    from neardup.index.rocks import RocksStore

#: What to do where a command does not serve a generation with shards.
ONE_MATCHER = (
    "for that, judge the same sketches by one matcher in another generation (neardup backfill --generation NAME "
    "--shards 0 --sketches-of GENERATION), and name its `generation` and `state`"
)

_Kept = TypeVar("_Kept", Scheme, Decider)
#: The policy for canonical pages of a scan. No verdict depends on it: a new one needs neither a fold nor the lock.
_POLICY = "canonical.json"
_NAMES = frozenset({"lock", "scheme.json", "decider.json", _POLICY, "index", "inputs"})
#: Further names in the directory of a scan.
SCAN_NAMES = ("log", "verdicts", "sources")
#: Further names in that of a scan with shards (`streams.state.scan_shards`).
SHARD_NAMES = ("effects", "shards")


def shard_folder(path: Path, number: int) -> Path:
    """The index of a shard in the state directory of a scan."""
    return path / "shards" / str(number)


class Directory:
    """A locked directory, and the files that name its scheme and decider."""

    def __init__(self, path: Path, held: ExitStack, *, more: Collection[str] = ()) -> None:
        """Creates the directory if it is missing, and locks it until `held` is closed.

        more: names that may lie in it besides those above. Raises StateError: in use, not writable, or not a state
        directory.
        """
        self.path = path.absolute()
        lock_directory(self.path, _NAMES | set(more), held)

    def scheme(self) -> Scheme | None:
        """Returns the scheme with which it was made; None if there is none. Raises StateError, CorruptRecord."""
        return kept_scheme(self.path)

    def decider(self) -> Decider | None:
        """Returns the decider with which it was made; None if there is none. Raises StateError, CorruptRecord."""
        return _kept(self.path / "decider.json", "decider", Decider.from_json)

    def keep(self, made: _Kept) -> _Kept:
        """Writes a scheme or a decider atomically, and returns it. Raises StateError."""
        if isinstance(made, Scheme):
            self.write("scheme.json", made.to_json(), mode=0o600)
        else:
            self.write("decider.json", made.to_json())
        return made

    def write(self, name: str, text: str, mode: int = 0o644) -> None:
        """Replaces a file atomically. Raises StateError."""
        file = self.path / name
        with state_errors("write", file):
            write_whole(file, text, mode)

    def other_scheme(self, held: Scheme, required: Scheme, way_out: str) -> StateError:
        """The error about another scheme than the directory's. way_out: advice."""
        return StateError(
            f"{self.path} was made with scheme {held.digest}, and {required.digest} is asked for: their sketches "
            f"cannot be compared; {way_out}",
        )


def _kept(file: Path, what: str, read: Callable[[str, str], _Kept]) -> _Kept | None:
    try:
        return read(file.read_text(), str(file))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise state_error("read", file, error) from error
    except (ValueError, TypeError, KeyError) as error:
        raise CorruptRecord(f"{file} is not a {what}: {error}; restore it") from error


def kept_scheme(path: Path) -> Scheme | None:
    """Returns the scheme of a directory that may be in use; None if there is none. Raises StateError, CorruptRecord."""
    return _kept(path / "scheme.json", "scheme", Scheme.from_json)


def kept_decider(path: Path) -> Decider | None:
    """Returns the decider at the log's start of a directory that may be in use; None if there is none."""
    try:
        return Decider.from_json((path / "decider.json").read_text())
    except (OSError, ValueError, TypeError, KeyError):
        return None


def kept_policy(path: Path) -> tuple[str, ...]:
    """Return the policy of a scan's directory; empty if none is set. Raises StateError, CorruptRecord."""
    file = path / _POLICY
    try:
        return policy_of(str(orjson.loads(file.read_bytes())["policy"]))
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise state_error("read", file, error) from error
    except (ValueError, TypeError, KeyError, BadInput) as error:
        raise CorruptRecord(f"{file} is no policy: {error}; set it again: neardup canonical") from error


def keep_policy(path: Path, policy: tuple[str, ...]) -> None:
    """Set the policy, whole or not at all; empty: none. Raises StateError."""
    file = path / _POLICY
    with state_errors("write", file):
        write_whole(file, orjson.dumps({"policy": policy_text(policy)}).decode(), 0o644)


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
        StateError: in use, of another scheme, or not a state directory; and what `restore` raises.
        """
        self._held = ExitStack()
        try:
            self._directory = Directory(path, self._held, more=SCAN_NAMES)
            self.path = self._directory.path
            if (self.path / "log").exists():
                raise StateError(
                    f"{self.path} belongs to `neardup scan`; name another directory for the stream",
                )
            held = self._directory.scheme() or self._directory.keep(scheme)
            if held.digest != scheme.digest:
                way_out = (
                    f"{SET_THE_SCHEME} that it was begun with, or begin another generation, with a directory of its own"
                )
                raise self._directory.other_scheme(held, scheme, way_out)
            from neardup.index.rocks import RocksStore  # RocksDB is loaded only when it is used

            if not (self.path / "index").exists():
                restore(self.path)
            self.store = RocksStore(self.path / "index")
            if outlived(self.store):
                self.store.close()
                restore(self.path)
                self.store = RocksStore(self.path / "index")
            self._held.callback(self.store.close)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Flushes the store and unlocks the directory. May be called twice."""
        self._held.close()

    def first_decider(self, decider: Decider) -> Decider:
        """Returns the decider at the log's start; `decider` if nothing is folded yet. Raises StateError."""
        held = self._directory.decider() if folded_to(self.store) else None
        return held or self._directory.keep(decider)


class LogNames(NamedTuple):
    """The log that an index was folded from on Kafka, and its generation: rows of the META family, named as the fields.

    The index of a scan or of the library has none of them: its log lies in the same directory.

    topic_id, verdicts_id: topic ids of log and verdicts in hex; the index of a shard has no `verdicts_id`.
    effects_id: topic id of the effects, for a judge.
    """

    cluster_id: str = ""
    topic_id: str = ""
    generation: str = ""
    verdicts_id: str = ""
    effects_id: str = ""


_KEYS = [name.encode() for name in LogNames._fields]


def log_names(store: Store) -> LogNames | None:
    """Return the names in an index; None for a new one, and for that of a scan."""
    rows = store.get_many(Family.META, _KEYS)
    return LogNames(*((row or b"").decode() for row in rows)) if any(row is not None for row in rows) else None


def keep_log_names(store: Store, names: LogNames) -> None:
    """Write the names into an index, durably."""
    store.write({Family.META: {key: name.encode() for key, name in zip(_KEYS, names, strict=True)}})
    store.flush()
