"""The manifest of a checkpoint: its identity, its offset, and its files with their digests."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BufferedReader
from typing import Any

from msgspec import Struct, to_builtins

from neardup.errors import CorruptRecord
from neardup.typed_json import decode

MANIFEST_VERSION = 1
#: Bytes read and copied at a time.
PIECE_BYTES = 1 << 20


class StoredFile(Struct, frozen=True, forbid_unknown_fields=True):
    """One file of a checkpoint: its path in the state directory, its size in bytes, its BLAKE2b in hex."""

    name: str
    size: int
    digest: str


class _Version(Struct):
    """What every version of a manifest has."""

    version: int


class Manifest(Struct, frozen=True, forbid_unknown_fields=True):
    """The identity of a checkpoint.

    offset: offset of the message to fold next. log_time: log time of the last folded page, ms since 1970.
    log: identity of the sketch log (Kafka: cluster and topic id; a scan: empty).
    program: version of the program that made the checkpoint.
    takedowns_to: offset after the last folded takedown; 0 without a takedown.
    generation: name of the generation; empty for a scan.
    """

    offset: int
    log_time: int
    scheme: str
    decider: str
    log: str
    program: str
    files: tuple[StoredFile, ...] = ()
    version: int = MANIFEST_VERSION
    takedowns_to: int = 0
    generation: str = ""

    @property
    def line(self) -> tuple[str, str, str]:
        """The history that it belongs to; only checkpoints of one line replace each other."""
        return self.generation, self.log, self.scheme

    def is_stale(self, newest: "Manifest") -> bool:
        """Whether it holds pages that were taken down before `newest`, of the same log."""
        return (self.log, self.scheme) == (newest.log, newest.scheme) and self.offset < newest.takedowns_to

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)

    def to_json(self) -> bytes:
        return json.dumps(to_builtins(self), sort_keys=True, separators=(",", ":")).encode()

    @classmethod
    def from_json(cls, data: bytes, where: str) -> "Manifest":
        """Raises CorruptRecord that names `where`."""
        try:
            if (version := decode(data, _Version).version) != MANIFEST_VERSION:
                raise CorruptRecord(f"{where} has version {version}; this program reads {MANIFEST_VERSION}")
            return decode(data, cls)
        except ValueError as error:
            raise CorruptRecord(f"{where} is no manifest of a checkpoint: {error}") from error


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A manifest and its name in the store."""

    name: str
    manifest: Manifest


def describe(checkpoints: Sequence[Checkpoint]) -> list[Mapping[str, Any]]:
    """Return one JSON row per checkpoint, with the number of its files."""
    rows: list[Mapping[str, Any]] = []
    for one in checkpoints:
        row = to_builtins(one.manifest)
        row["files"] = len(one.manifest.files)
        row["stale"] = any(one.manifest.is_stale(other.manifest) for other in checkpoints)
        rows.append({"name": one.name, **row, "bytes": one.manifest.size})
    return rows


def digest_of_file(file: BufferedReader) -> str:
    return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=20)).hexdigest()


def digest_of(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=20).hexdigest()
