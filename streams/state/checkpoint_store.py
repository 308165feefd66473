"""Checkpoints: an index with the offset that it was folded to, in a folder or an object store, to restart from.

    files/<digest>                      a file's bytes under their BLAKE2b; what many checkpoints have is there once
    checkpoints/<offset>-<digest>.json  a manifest: offset, identity, and the files, each with its name, size and digest
    damaged/<digest>                    empty: a restore found that the stored file has another digest

One folder holds the checkpoints of one generation, so that `prune` removes no other generation's files. A manifest is
named by its own digest and written last, so a checkpoint exists whole or not at all. A crash leaves files without a
manifest; the next `prune` removes them. If a file is torn or damaged, its digest differs, and `restore` uses another
checkpoint. A damaged file can be part of every checkpoint, also of later ones. So `restore` marks it, and `write`
verifies each file that is marked, or that no sound manifest names, and copies it again if its digest is wrong. The seed
is never among the files: it is a secret.

Two processes may write at once: an active matcher that is fenced already, and its successor. Each may then remove
files that the other one needs. So `write` checks its files again after its manifest, and copies missing ones again;
`prune` reads the manifests again immediately before it removes files. One case remains: a process that is suspended
between that reading and a removal. The checkpoint then lacks that file until the next `write`.
"""

import contextlib
import hashlib
import io
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from neardup.errors import CorruptRecord, StateError
from streams.process.disk import sync
from streams.state.checkpoint_folder import FULL, RemoteFolder
from streams.state.checkpoint_manifest import PIECE_BYTES, Checkpoint, Manifest, StoredFile, digest_of, digest_of_file

_FILES, _MANIFESTS, _DAMAGED = "files", "checkpoints", "damaged"
#: `prune` removes files by manifests that were read at most so long ago.
_FRESH_SECONDS = 2.0
#: Called with the bytes copied so far, and how many there are.
CopyProgress = Callable[[int, int], None]


def sync_tree(folder: Path) -> None:
    for place, _, files in os.walk(folder):
        for name in files:
            sync(Path(place, name))
        sync(Path(place))


@dataclass(slots=True)
class Copied:
    """The result of a write: files and bytes copied, of all bytes of the checkpoint."""

    checkpoint: str
    files: int = 0
    bytes: int = 0
    of_bytes: int = 0


@dataclass(slots=True)
class Known:
    """A cache of files' digests by (inode, mtime in ns, size). RocksDB's table files never change."""

    digests: dict[tuple[int, int, int], str] = field(default_factory=dict)

    def of(self, path: Path) -> str:
        """Return the BLAKE2b of a file, from the cache if possible. Raises OSError."""
        status = path.stat()
        key = (status.st_ino, status.st_mtime_ns, status.st_size)
        if key not in self.digests:
            with path.open("rb") as file:
                self.digests[key] = digest_of_file(file)
        return self.digests[key]

    def forget_others(self, digests: Iterable[str]) -> None:
        """Keep these digests only."""
        required = set(digests)
        self.digests = {key: digest for key, digest in self.digests.items() if digest in required}


class CheckpointStore(RemoteFolder):
    """Checkpoints under one fsspec URL, or in a folder. steady_s: a monotonic clock, in seconds."""

    def __init__(self, url: str, steady_s: Callable[[], float] = time.monotonic) -> None:
        super().__init__(url)
        self._steady_s = steady_s
        self.known = Known()

    def names(self) -> list[str]:
        """Return the names of all manifests, newest first. Raises StateError."""
        with self._explained("list"):
            names = list(self._listed(_MANIFESTS))
        return sorted((name.removesuffix(".json") for name in names if name.endswith(".json")), reverse=True)

    def read(self, name: str) -> Checkpoint:
        """Raises CorruptRecord if the manifest is not what its name says, StateError if it cannot be read."""
        with self._explained("read"):
            path = f"{self._root}/{_MANIFESTS}/{name}.json"
            data: bytes = self._fs.cat_file(path)
        if name.rpartition("-")[2] != digest_of(data):
            raise CorruptRecord(f"{self.url}: checkpoint {name} is torn or changed: its digest is another")
        return Checkpoint(name, Manifest.from_json(data, f"{self.url}: checkpoint {name}"))

    def usable(self, warn: Callable[[str], None] = lambda text: None) -> Iterator[Checkpoint]:
        """Yield checkpoints with a sound manifest, newest first; call `warn` for each of the others.

        A checkpoint that another process removes meanwhile is left out.
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
        progress: CopyProgress = lambda done, total: None,
    ) -> Copied:
        """Copy `folder`, which must not change meanwhile, and then the manifest. manifest: manifest without files.

        Steps: (1) copy the files that the store lacks, each under its digest; (2) write the manifest; (3) copy files
        that another writer has removed meanwhile. A crash in 1 leaves files that no manifest names; after 2 the
        checkpoint exists. If the store is full, the oldest checkpoints are removed, all but the newest. Raises
        StateError; if the store has checkpoints of another generation, before anything is written.
        """
        trusted = self._refuse_strangers(manifest)
        paths: dict[StoredFile, Path] = {}
        with self._explained("write"):
            for path in sorted(path for path in folder.rglob("*") if path.is_file()):
                name = path.relative_to(folder).as_posix()
                paths[StoredFile(name, path.stat().st_size, self.known.of(path))] = path
            data = replace(manifest, files=tuple(paths)).to_json()
            name = f"{manifest.offset:020d}-{digest_of(data)}"
            copied = Copied(name, of_bytes=sum(file.size for file in paths))
            while True:
                try:
                    self._put_missing(paths, trusted, copied, progress)  # (1)
                    self._store(f"{self._root}/{_MANIFESTS}/{name}.json", io.BytesIO(data))  # (2)
                    self._put_missing(paths, trusted, copied)  # (3)
                    break
                except OSError as error:
                    if error.errno not in FULL or not self._make_room({file.digest for file in paths}):
                        raise
        self.known.forget_others(file.digest for file in paths)
        return copied

    def restore(self, checkpoint: Checkpoint, folder: Path, progress: CopyProgress = lambda done, total: None) -> None:
        """Copy the checkpoint to `folder`, which must not exist, and verify each file.

        The folder appears whole or not at all. Files of an earlier attempt, also of another checkpoint, are verified
        and used. Raises CorruptRecord for a file that is missing or has another digest, StateError for errors of the
        store or the disk.
        """
        fresh = folder.with_name(folder.name + ".restoring")
        done, total = 0, checkpoint.manifest.size
        with self._explained("restore"):
            fresh.mkdir(parents=True, exist_ok=True)
            targets: dict[Path, StoredFile] = {}
            for file in checkpoint.manifest.files:
                target = fresh / file.name
                if not target.resolve().is_relative_to(fresh.resolve()):
                    raise CorruptRecord(
                        f"{self.url}: checkpoint {checkpoint.name}: {file.name!r} is outside its folder"
                    )
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
            sync_tree(fresh)
            fresh.rename(folder)
            sync(folder.parent)

    def prune(self, keep: int) -> int:
        """Remove old checkpoints, and files that no manifest names; return the number of checkpoints removed.

        Kept are the newest `keep` of a line, without those that hold pages taken down since. A manifest that cannot be
        read keeps no files; it is removed once it is not among the newest. Raises StateError.
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
            stale = any(one.manifest.is_stale(newer.manifest) for newer in kept)
            before = sum(newer.manifest.line == one.manifest.line for newer in kept)
            if not stale and before < max(1, keep):
                kept.append(one)
            else:
                gone.append(name)
        with self._explained("tidy"):
            for name in gone:
                self._remove(_MANIFESTS, f"{name}.json")
            self._sweep(stored)
        return len(gone)

    def _sweep(self, stored: Collection[str], spared: Collection[str] = ()) -> None:
        """Remove files that no manifest names. stored: the candidates. spared: always kept."""
        required: set[str] = set()
        read_at: float | None = None
        marked = self._listed(_DAMAGED)
        for name in stored:
            if read_at is None or self._steady_s() - read_at > _FRESH_SECONDS:
                read_at = self._steady_s()
                manifests = [one.manifest for one in self.usable()]
                if len({manifest.line for manifest in manifests}) > 1:
                    return  # another writer may have stored files before their manifest
                required = {file.digest for manifest in manifests for file in manifest.files}
            if name not in required and name not in spared:
                self._remove(_FILES, name)
                if name in marked:
                    self._remove(_DAMAGED, name)

    def _make_room(self, spared: Collection[str]) -> bool:
        """Remove the oldest checkpoint but one, and all files that no manifest names, except `spared`.

        Without a second checkpoint `spared` are removed, too. Return whether a checkpoint was removed.
        """
        oldest = self.names()[1:][-1:]
        for name in oldest:
            self._remove(_MANIFESTS, f"{name}.json")
        self._sweep(self._listed(_FILES), spared if oldest else ())
        return bool(oldest)

    def _refuse_strangers(self, manifest: Manifest) -> set[str]:
        """Return the digests of all files. Raises StateError if there are checkpoints of another line."""
        named: set[str] = set()
        for one in self.usable():
            named |= {file.digest for file in one.manifest.files}
            names = ("generation", "log", "scheme")
            for what, held, required in zip(names, one.manifest.line, manifest.line, strict=True):
                if held != required:
                    raise StateError(
                        f"{self.url} holds checkpoints of {what} {held or '(unnamed)'}, and this one is of "
                        f"{required or '(unnamed)'}: each would remove the other's; name another folder, or remove "
                        "those",
                    )
        return named

    def _read_if_there(self, name: str) -> Checkpoint | None:
        """Return None for a checkpoint that another process has removed. Raises CorruptRecord, StateError."""
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
        progress: CopyProgress = lambda done, total: None,
    ) -> None:
        """Copy the files that the store lacks, and those that are damaged there.

        trusted: digests of files that are verified only if they are marked; all files' digests are added.
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
            return digest_of_file(source)

    def _get(self, checkpoint: Checkpoint, file: StoredFile, target: Path) -> None:
        digest = hashlib.blake2b(digest_size=20)
        try:
            with self._fs.open(f"{self._root}/{_FILES}/{file.digest}", "rb") as source, target.open("wb") as out:
                while piece := source.read(PIECE_BYTES):
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
