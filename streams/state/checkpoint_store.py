"""Checkpoints: an index with the offset that it was folded to, in a folder or an object store, to restart from.

    files/<digest>                      a file's bytes under their BLAKE2b; what many checkpoints have is there once
    checkpoints/<offset>-<digest>.json  a manifest: offset, identity, and the files, each with its name, size and digest
    damaged/<digest>                    empty: a restore found that the stored file has another digest

One folder holds the checkpoints of one generation, so that nobody takes another one's away with its own old ones. A
manifest is named by its own digest and written last, so a checkpoint is there whole or not at all: what a crash
leaves is files without a manifest, which the next `prune` takes away. Whatever was torn or has flipped bits does not
have its digest, and `restore` takes another checkpoint. A damaged file can be part of every checkpoint, also of those
to come. So `restore` marks it, and `write` reads what is marked, or named by no sound manifest, before it relies on it,
and copies it again if its digest is wrong. The seed is never among the files: it is a secret.

Two processes may write at once: a slow active matcher that is fenced already, and its successor. Each may then remove
files that the other one needs. `write` therefore looks for its files once more behind its manifest, and copies again
what is missing; `prune` reads the manifests again immediately before it removes files. What remains is a process that
is suspended between that reading and a removal: the checkpoint lacks that file until the next `write`.
"""

import contextlib
import errno
import hashlib
import io
import json
import os
import secrets
import shutil
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

import fsspec

from neardup.errors import BadInput, CorruptRecord, StateError

MANIFEST_VERSION = 1
_PIECE_BYTES = 1 << 20
_FILES, _MANIFESTS, _DAMAGED = "files", "checkpoints", "damaged"
#: `prune` removes files by manifests that were read at most so long ago.
_FRESH_SECONDS = 2.0
#: A copy whose temporary file was removed by another process is made again so often.
_TRIES = 3
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})

#: Called with the bytes copied so far, and how many there are.
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class StoredFile:
    """One file of a checkpoint: its path in the state directory, its size in bytes, its BLAKE2b in hex."""

    name: str
    size: int
    digest: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a checkpoint is: offset: of the message to fold next. log_time: ms since the epoch, of the last page folded.

    log: identity of the sketch log (Kafka: cluster and topic id; a scan: empty). program: version that made it.
    forgot: the offset behind the last takedown that it has folded, 0 if there was none. generation: "" for a scan's.
    """

    offset: int
    log_time: int
    scheme: str
    decider: str
    log: str
    program: str
    files: tuple[StoredFile, ...] = ()
    version: int = MANIFEST_VERSION
    forgot: int = 0
    generation: str = ""

    @property
    def line(self) -> tuple[str, str, str]:
        """What it is of: checkpoints of another line are never used for this one, nor do they make it old."""
        return self.generation, self.log, self.scheme

    def is_stale(self, newest: "Manifest") -> bool:
        """Whether it still holds what was taken down since, as a newer one of the same log knows."""
        return (self.log, self.scheme) == (newest.log, newest.scheme) and self.offset < newest.forgot

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)

    def to_json(self) -> bytes:
        return json.dumps(asdict(self), sort_keys=True, separators=(",", ":")).encode()

    @classmethod
    def from_json(cls, data: bytes, where: str) -> "Manifest":
        """Raises CorruptRecord, saying what is wrong with the manifest at `where`."""
        try:
            value = json.loads(data)
            if value["version"] != MANIFEST_VERSION:
                raise CorruptRecord(f"{where} is of version {value['version']}, and this program reads 1")
            files = tuple(StoredFile(**file) for file in value.pop("files"))
            return cls(**value, files=files)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CorruptRecord(f"{where} is no manifest of a checkpoint: {error}") from error


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A manifest and its name in the store."""

    name: str
    manifest: Manifest


@dataclass(slots=True)
class Copied:
    """What writing a checkpoint did: files and bytes that were not there before, of all its bytes."""

    checkpoint: str
    files: int = 0
    bytes: int = 0
    of_bytes: int = 0


@dataclass(slots=True)
class Known:
    """Digests of files that cannot have changed since: by (inode, mtime in ns, size). Table files never change."""

    digests: dict[tuple[int, int, int], str] = field(default_factory=dict)

    def of(self, path: Path) -> str:
        """The BLAKE2b of a file, read only if it was not before. Raises OSError."""
        status = path.stat()
        key = (status.st_ino, status.st_mtime_ns, status.st_size)
        if key not in self.digests:
            with path.open("rb") as file:
                self.digests[key] = _digest(file)
        return self.digests[key]

    def forget_others(self, digests: Iterable[str]) -> None:
        """Keeps those of a checkpoint just made; the others' files are gone."""
        wanted = set(digests)
        self.digests = {key: digest for key, digest in self.digests.items() if digest in wanted}


class CheckpointStore:
    """Checkpoints under one URL that fsspec knows, or in a folder. steady_s: a clock that nobody sets, in seconds."""

    def __init__(self, url: str, steady_s: Callable[[], float] = time.monotonic) -> None:
        """Raises BadInput for a URL of a kind that nothing here can read."""
        self.url = url
        self._steady_s = steady_s
        try:
            self._fs, root = fsspec.core.url_to_fs(url)
        except (ImportError, ValueError) as error:
            raise BadInput(f"checkpoints at {url}: {error}") from error
        self._root = root.rstrip("/")
        self._local = "file" in ((self._fs.protocol,) if isinstance(self._fs.protocol, str) else self._fs.protocol)
        self.known = Known()

    def names(self) -> list[str]:
        """Names of all manifests, newest first. Raises StateError."""
        with self._explained("list"):
            names = list(self._listed(_MANIFESTS))
        return sorted((name.removesuffix(".json") for name in names if name.endswith(".json")), reverse=True)

    def read(self, name: str) -> Checkpoint:
        """Raises CorruptRecord if the manifest is not what its name says, StateError if it cannot be read."""
        path = f"{self._root}/{_MANIFESTS}/{name}.json"
        with self._explained("read"):
            data: bytes = self._fs.cat_file(path)
        if name.rpartition("-")[2] != _digest_of(data):
            raise CorruptRecord(f"{self.url}: checkpoint {name} is torn or changed: its digest is another")
        return Checkpoint(name, Manifest.from_json(data, f"{self.url}: checkpoint {name}"))

    def usable(self, warn: Callable[[str], None] = lambda text: None) -> Iterator[Checkpoint]:
        """Checkpoints whose manifests are sound, newest first; `warn` hears of the others. One that its writer has
        taken away since they were listed is none.
        """
        for name in self.names():
            try:
                found = self._read_if_there(name)
            except CorruptRecord as error:
                warn(f"{error}; passed over")
            else:
                if found is not None:
                    yield found

    def write(
        self,
        folder: Path,
        manifest: Manifest,
        progress: Progress = lambda done, total: None,
    ) -> Copied:
        """Copies `folder`, which nobody changes meanwhile, and then the manifest. manifest: without files.

        Each step may be the last: (1) files that the store lacks, each under its digest; (2) the manifest; (3) files
        that another writer has removed meanwhile. A crash in 1 leaves files that no manifest names; after 2 the
        checkpoint is there. Where the store is full the oldest checkpoints are removed, all but the newest. Raises
        StateError; also where checkpoints of another generation lie, before anything is written.
        """
        trusted = self._refuse_strangers(manifest)
        paths: dict[StoredFile, Path] = {}
        with self._explained("write"):
            for path in sorted(path for path in folder.rglob("*") if path.is_file()):
                name = path.relative_to(folder).as_posix()
                paths[StoredFile(name, path.stat().st_size, self.known.of(path))] = path
            data = replace(manifest, files=tuple(paths)).to_json()
            name = f"{manifest.offset:020d}-{_digest_of(data)}"
            copied = Copied(name, of_bytes=sum(file.size for file in paths))
            while True:
                try:
                    self._put_missing(paths, trusted, copied, progress)  # (1)
                    self._store(f"{self._root}/{_MANIFESTS}/{name}.json", io.BytesIO(data))  # (2)
                    self._put_missing(paths, trusted, copied)  # (3)
                    break
                except OSError as error:
                    if error.errno not in _FULL or not self._make_room({file.digest for file in paths}):
                        raise
        self.known.forget_others(file.digest for file in paths)
        return copied

    def restore(self, checkpoint: Checkpoint, folder: Path, progress: Progress = lambda done, total: None) -> None:
        """Makes `folder`, which must not exist, what the checkpoint holds; each file is verified as it is copied.

        The folder appears whole or not at all. What an earlier attempt has copied, also of another checkpoint, is
        verified and used. Raises CorruptRecord for a file that is missing or not what its digest says, StateError if
        the store or the disk refuses.
        """
        fresh = folder.with_name(folder.name + ".restoring")
        done, total = 0, checkpoint.manifest.size
        with self._explained("restore"):
            fresh.mkdir(parents=True, exist_ok=True)
            targets: dict[Path, StoredFile] = {}
            for file in checkpoint.manifest.files:
                target = fresh / file.name
                if not target.resolve().is_relative_to(fresh.resolve()):
                    raise CorruptRecord(f"{self.url}: checkpoint {checkpoint.name} leads out by {file.name!r}")
                targets[target] = file
            for path in [path for path in fresh.rglob("*") if path.is_file() and path not in targets]:
                path.unlink()
            damage: CorruptRecord | None = None
            for target, file in targets.items():
                target.parent.mkdir(parents=True, exist_ok=True)
                if not (target.exists() and self.known.of(target) == file.digest):
                    try:
                        self._get(checkpoint, file, target)
                    except CorruptRecord as error:  # the others may be damaged, too, or serve another checkpoint
                        damage = damage or error
                done += file.size
                progress(done, total)
            if damage is not None:
                raise damage
            _sync_tree(fresh)
            fresh.rename(folder)
            _sync(folder.parent)

    def prune(self, keep: int, *, younger_than_ms: int | None = None) -> int:
        """Removes all but the newest `keep` checkpoints of a line, those that hold what was taken down since, and files
        that no manifest names; returns how many manifests.

        younger_than_ms: those whose log time is at least this are kept, too. Raises StateError; CorruptRecord never: a
        manifest that cannot be read keeps nothing, and goes when it is not among the newest.
        """
        with self._explained("tidy"):
            stored = self._listed(_FILES)  # before the manifests: what is copied from now on is not removed
        kept: list[Checkpoint] = []
        gone: list[str] = []
        for place, name in enumerate(self.names()):
            try:
                one = self._read_if_there(name)
            except CorruptRecord:
                if place >= keep:
                    gone.append(name)
                continue
            if one is None:
                continue
            young = younger_than_ms is not None and one.manifest.log_time >= younger_than_ms
            stale = any(one.manifest.is_stale(newer.manifest) for newer in kept)
            before = sum(newer.manifest.line == one.manifest.line for newer in kept)
            if not stale and (before < max(1, keep) or young):
                kept.append(one)
            else:
                gone.append(name)
        with self._explained("tidy"):
            for name in gone:
                self._remove(_MANIFESTS, f"{name}.json")
            self._sweep(stored)
        return len(gone)

    def _sweep(self, stored: Collection[str], spared: Collection[str] = ()) -> None:
        """Removes files that no manifest names. stored: those to look at. spared: are kept in any case."""
        wanted: set[str] = set()
        read_at: float | None = None
        marked = self._listed(_DAMAGED)
        for name in stored:
            if read_at is None or self._steady_s() - read_at > _FRESH_SECONDS:
                read_at = self._steady_s()
                manifests = [one.manifest for one in self.usable()]
                if len({manifest.line for manifest in manifests}) > 1:
                    return  # who else writes here may have files whose manifest is still to come
                wanted = {file.digest for manifest in manifests for file in manifest.files}
            if name not in wanted and name not in spared:
                self._remove(_FILES, name)
                if name in marked:
                    self._remove(_DAMAGED, name)

    def _make_room(self, spared: Collection[str]) -> bool:
        """Removes the oldest checkpoint, and files of none but for `spared`; without a second checkpoint, all files
        of none. Returns whether that was a checkpoint.
        """
        oldest = self.names()[1:][-1:]
        for name in oldest:
            self._remove(_MANIFESTS, f"{name}.json")
        self._sweep(self._listed(_FILES), spared if oldest else ())
        return bool(oldest)

    def _refuse_strangers(self, manifest: Manifest) -> set[str]:
        """Raises StateError if checkpoints of another line lie here; else returns the digests of the files of all."""
        named: set[str] = set()
        for one in self.usable():
            named |= {file.digest for file in one.manifest.files}
            names = ("generation", "log", "scheme")
            for what, held, wanted in zip(names, one.manifest.line, manifest.line, strict=True):
                if held != wanted:
                    raise StateError(
                        f"{self.url} holds checkpoints of {what} {held or '(unnamed)'}, and this one is of "
                        f"{wanted or '(unnamed)'}: each would take the other's away; name another folder, or remove "
                        "those",
                    )
        return named

    def _listed(self, folder: str) -> dict[str, int]:
        """Names of what lies in a folder of the store, and their sizes in bytes."""
        path = f"{self._root}/{folder}"
        self._fs.invalidate_cache()
        try:
            entries = self._fs.ls(path, detail=True)
        except FileNotFoundError:
            return {}
        return {entry["name"].rsplit("/", 1)[-1]: entry["size"] for entry in entries}

    def _remove(self, folder: str, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._fs.rm_file(f"{self._root}/{folder}/{name}")

    def _read_if_there(self, name: str) -> Checkpoint | None:
        """None for a checkpoint that another process has removed. Raises CorruptRecord, StateError."""
        try:
            return self.read(name)
        except StateError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return None
            raise

    def _put_missing(
        self,
        paths: Mapping[StoredFile, Path],
        trusted: set[str],
        copied: Copied,
        progress: Progress = lambda done, total: None,
    ) -> None:
        """Copies the files that the store lacks, and those that are damaged there. trusted: digests of files that are
        read only if they are marked; gets those of all files.
        """
        sizes, marked, done = self._listed(_FILES), self._listed(_DAMAGED), 0
        for file, path in paths.items():
            sound = sizes.get(file.digest) == file.size
            if sound and (file.digest in marked or file.digest not in trusted):
                sound = self._stored_digest(file) == file.digest
            if not sound:
                with path.open("rb") as source:
                    self._store(f"{self._root}/{_FILES}/{file.digest}", source)
                sizes[file.digest] = file.size
                copied.files += 1
                copied.bytes += file.size
            if file.digest in marked:
                self._remove(_DAMAGED, file.digest)
            trusted.add(file.digest)
            done += file.size
            progress(done, copied.of_bytes)

    def _stored_digest(self, file: StoredFile) -> str:
        with self._fs.open(f"{self._root}/{_FILES}/{file.digest}", "rb") as source:
            return _digest(source)

    def _store(self, target: str, source: BinaryIO) -> None:
        """An object store shows an object when it is whole; on a disk a name is given to what is whole and synced."""
        if not self._local:
            with self._fs.open(target, "wb") as out:
                shutil.copyfileobj(source, out, _PIECE_BYTES)
            return
        path = Path(target)
        path.parent.mkdir(parents=True, exist_ok=True)
        for tried in range(1, _TRIES + 1):
            fresh = path.with_name(f"{path.name}.{secrets.token_hex(4)}.part")  # another process may copy the same file
            source.seek(0)
            try:
                with fresh.open("wb") as out:
                    shutil.copyfileobj(source, out, _PIECE_BYTES)
                    out.flush()
                    os.fsync(out.fileno())
                fresh.rename(path)
                break
            except FileNotFoundError:  # another process takes it for what a crash has left
                if tried == _TRIES:
                    raise
            finally:
                fresh.unlink(missing_ok=True)
        _sync(path.parent)

    def _get(self, checkpoint: Checkpoint, file: StoredFile, target: Path) -> None:
        digest = hashlib.blake2b(digest_size=20)
        try:
            with self._fs.open(f"{self._root}/{_FILES}/{file.digest}", "rb") as source, target.open("wb") as out:
                while piece := source.read(_PIECE_BYTES):
                    digest.update(piece)
                    out.write(piece)
        except FileNotFoundError as error:
            raise CorruptRecord(f"{self.url}: checkpoint {checkpoint.name} lacks its file {file.name}") from error
        if digest.hexdigest() != file.digest:
            with contextlib.suppress(Exception):  # a store that may only be read
                self._store(f"{self._root}/{_DAMAGED}/{file.digest}", io.BytesIO())
            raise CorruptRecord(
                f"{self.url}: checkpoint {checkpoint.name}: {file.name} is torn or changed: its digest is another",
            )

    @contextlib.contextmanager
    def _explained(self, doing: str) -> Iterator[None]:
        """A store refuses in its own words and types: here all of them are errors that an operator can read."""
        try:
            yield
        except (CorruptRecord, StateError):
            raise
        except Exception as error:
            full = isinstance(error, OSError) and error.errno in _FULL
            advice = "make room, beside the newest checkpoint there is none" if full else "mend that and try again"
            raise StateError(
                f"cannot {doing} checkpoints at {self.url}: {getattr(error, 'strerror', None) or error}; {advice}, "
                "nothing is lost",
            ) from error


def _digest(file: BinaryIO) -> str:
    digest = hashlib.blake2b(digest_size=20)
    while piece := file.read(_PIECE_BYTES):
        digest.update(piece)
    return digest.hexdigest()


def _digest_of(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=20).hexdigest()


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sync_tree(folder: Path) -> None:
    for place, _, files in os.walk(folder):
        for name in files:
            _sync(Path(place, name))
        _sync(Path(place))


def describe(checkpoints: Sequence[Checkpoint]) -> list[Mapping[str, Any]]:
    """For people and machines: a row a checkpoint, without its files."""
    rows: list[Mapping[str, Any]] = []
    for one in checkpoints:
        row = asdict(one.manifest)
        row["files"] = len(one.manifest.files)
        row["stale"] = any(one.manifest.is_stale(other.manifest) for other in checkpoints)
        rows.append({"name": one.name, **row, "bytes": one.manifest.size})
    return rows
