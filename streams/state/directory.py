"""A state directory of a scan, a library or a matcher.

    lock            locked by the one process that has it open; holds its pid
    scheme.json     readable by the owner only: the seed in it is a secret
    decider.json    the decider from the log's start on, until a control record names another one
    index/          the store; its META family names the log that it was folded from
    canonical.json  a scan's policy for canonical pages, if one is set
    inputs/         a scan's copies of remote input (`streams.files.fetching`); may be deleted
    views/          the tables of a scan's views (`streams.state.view_tables`); may be deleted

A matcher has no more: its log and its verdicts are topics. A scan and the library have both here, see
`streams.state.scan_directory`.
"""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import orjson

from neardup.canonical import policy_of, policy_text
from neardup.decider import Decider
from neardup.errors import BadInput, CorruptRecord, StateError
from neardup.scheme import Scheme
from streams.process.disk import lock_directory, state_error, state_errors, write_whole

if TYPE_CHECKING:
    from neardup.index.rocks import RocksSnapshot, RocksStore

_Kept = TypeVar("_Kept", Scheme, Decider)
#: The policy for canonical pages of a scan. No verdict depends on it: a new one needs neither a fold nor the lock.
_POLICY = "canonical.json"
#: Further names in the directory of a scan.
SCAN_NAMES = ("log", "verdicts", "sources")
#: Further names in that of a scan with shards, of earlier versions.
_SHARD_NAMES = ("effects", "shards")
#: A checkpoint that is being restored (`streams.state.checkpoint_restore`).
RESTORING = "restoring"
#: The tables of a scan's views (`streams.state.view_tables`).
VIEWS = "views"
_NAMES = frozenset(
    {"lock", "scheme.json", "decider.json", _POLICY, "index", "inputs", RESTORING, VIEWS, *SCAN_NAMES, *_SHARD_NAMES}
)


class Run(Enum):
    """What a state directory belongs to: a scan or a library, or a matcher of the stream."""

    SCAN = "scan"
    STREAM = "stream"


def refuse_other(path: Path, run: Run) -> None:
    """Raises StateError for a directory of the other run. A directory without scheme and log belongs to none."""
    is_scan = any((path / name).exists() for name in SCAN_NAMES)
    if run is Run.STREAM and is_scan:
        raise StateError(f"{path} belongs to `neardup scan`; name another directory for the stream")
    if run is Run.SCAN and not is_scan and (path / "scheme.json").exists():
        raise StateError(
            f"{path} belongs to `neardup match`, whose log and verdicts are topics of Kafka (see: neardup verdicts); "
            "name a directory of `neardup scan`"
        )


class Directory:
    """A locked directory: its scheme, its first decider, and its index."""

    def __init__(self, path: Path, held: ExitStack, run: Run | None = None) -> None:
        """Creates the directory if it is missing, and locks it until `held` is closed.

        run: run to which an existing directory must belong; None: any run. Raises StateError if the directory is in
        use, cannot be written, is no state directory, or belongs to another run.
        """
        self.path = path.absolute()
        self._held = held
        lock_directory(self.path, _NAMES, held)
        if run is not None:
            refuse_other(self.path, run)

    def scheme(self) -> Scheme | None:
        """Returns the scheme with which it was made; None if there is none. Raises StateError, CorruptRecord."""
        return kept_scheme(self.path)

    def scheme_for(self, required: Scheme | None, way_out: str) -> Scheme:
        """Returns the scheme with which it was made; a new directory keeps `required`, or one with a random seed.

        way_out: advice if it was made with another scheme than `required`; that raises StateError.
        """
        held = self.scheme()
        if held is None:
            return self.keep(required or Scheme.new())
        if required is not None and required.digest != held.digest:
            raise StateError(
                f"{self.path} was made with scheme {held.digest}, and {required.digest} is asked for: their sketches "
                f"cannot be compared; {way_out}",
            )
        return held

    def decider(self) -> Decider | None:
        """Returns the decider at the log's start; None if there is none. Raises StateError, CorruptRecord."""
        return kept_decider(self.path)

    def first_decider(self, required: Callable[[], Decider], *, begun: bool) -> Decider:
        """Returns the decider at the log's start; until the log is begun, it is the required one, which is kept."""
        held = self.decider() if begun else None
        return held or self.keep(required())

    def open_index(self) -> "RocksStore":
        """Opens the index, an empty one if it is missing, until the directory is unlocked. Raises StateError."""
        from neardup.index.rocks import RocksStore  # RocksDB is loaded only when it is used

        store = RocksStore(self.path / "index")
        self._held.callback(store.close)
        return store

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
    """Returns the decider at the log's start of a directory that may be in use; None if there is none.

    Raises StateError, CorruptRecord.
    """
    return _kept(path / "decider.json", "decider", Decider.from_json)


def kept_both(path: Path) -> tuple[Scheme, Decider]:
    """Returns both, for a reader of a directory that may be in use. Raises StateError, also if one is missing."""
    scheme, first = kept_scheme(path), kept_decider(path)
    if scheme is None or first is None:
        raise StateError(f"{path} lacks scheme.json or decider.json; name a state directory, or restore them")
    return scheme, first


@contextmanager
def temporary_index(state: Path | None = None) -> Iterator["RocksStore"]:
    """A temporary index on disk, because that of a long log does not fit into memory.

    state: temporary directory that holds an index to use.
    """
    from neardup.index.rocks import RocksStore  # RocksDB is loaded only when it is used

    with tempfile.TemporaryDirectory(prefix="neardup-index-") as folder:
        store = RocksStore((state or Path(folder)) / "index")
        try:
            yield store
        finally:
            store.close()


def snapshot(index: Path, held: ExitStack, *, cache_bytes: int = 256 << 20) -> "RocksSnapshot":
    """Opens an index, which its process may have open, as that last flushed it, until `held` is closed.

    Raises StateError.
    """
    from neardup.index.rocks import RocksSnapshot  # RocksDB is loaded only when it is used

    scratch = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="neardup-read-", ignore_cleanup_errors=True)))
    store = RocksSnapshot(index, scratch, cache_bytes=cache_bytes)
    held.callback(store.close)
    return store


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
