"""Copies the archives out of a WACZ file, which is a ZIP file with archives in `archive/`.

Readers need files that they can read again from any position.
"""

import hashlib
import lzma
import struct
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from typing import IO

from neardup.errors import BadInput
from streams.files.input_formats import FORMATS
from streams.files.not_read import NotRead, is_by_product, why_not_read
from streams.process.disk import whole_file

_PIECE_BYTES = 1 << 20
#: Largest ratio of unpacked to packed size of a member; archives in a WACZ are compressed already.
_EXPANDS_MAX = 100
#: Characters of a member's name in the name of its copy, from the end, and in messages.
_NAME_CHARS_MAX, _NAME_CHARS_SHOWN = 60, 200
_ARCHIVES = tuple(suffix for each in FORMATS.values() if each.records for suffix in each.suffixes)
_ENCRYPTED = 1
#: What the standard library raises for a damaged ZIP file, and for what it cannot unpack.
_DAMAGED = (
    *(OSError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, ValueError, struct.error),
    *(NotImplementedError, RuntimeError),
)


def unpacked(path: Path, folder: Path, not_read: NotRead, on_bytes: Callable[[int], None]) -> list[Path]:
    """Copies the archives of a WACZ file to `folder`, and returns the copies in the order of the archives' names.

    A member that cannot be read is a problem of `not_read`. Raises BadInput for a file without a readable archive.
    """
    try:
        status = path.stat()
        where = f"{path.absolute()} {status.st_size} {status.st_mtime_ns}"
        folder.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(path) as packed:
            members = _archives_of(path, packed, not_read)
            _must_be_of_their_size(path, members, status.st_size)
            copies = []
            for member in sorted(members, key=lambda one: one.filename):
                copy = folder / _copy_name(where, member)
                try:
                    if not copy.exists():
                        with packed.open(member) as source:
                            write_copy(source, copy, on_bytes)
                    copies.append(copy)
                except _DAMAGED as error:
                    not_read.add(path, f"{path}: {_shown(member)} cannot be read: {error}")
    except FileNotFoundError as error:
        raise BadInput(f"{path}: no such file or folder") from error
    except _DAMAGED as error:
        raise BadInput(f"{path}: cannot be read as WACZ: {error}") from error
    if not copies:
        first = f": {not_read.lines[0]}" if not_read.lines else ""
        raise BadInput(f"{path}: a WACZ file without an archive in archive/ that can be read{first}")
    return copies


def write_copy(source: IO[bytes], target: Path, on_bytes: Callable[[int], None]) -> str:
    """Copies all bytes to a file that gets its name once complete. Returns their digest, as 12 hex digits."""
    digest = hashlib.blake2b(digest_size=6)
    with whole_file(target) as fresh, fresh.open("wb") as file:
        while piece := source.read(_PIECE_BYTES):
            file.write(piece)
            digest.update(piece)
            on_bytes(len(piece))
    return digest.hexdigest()


def _archives_of(path: Path, packed: zipfile.ZipFile, not_read: NotRead) -> list[zipfile.ZipInfo]:
    """The members that are archives."""
    found = []
    for member in packed.infolist():
        if not member.filename.startswith("archive/") or member.is_dir():
            continue
        name = PurePosixPath(member.filename).name
        if is_by_product(name):
            not_read.pass_over(name)
        elif not name.lower().endswith(_ARCHIVES):
            not_read.add(path, f"{path}: {_shown(member)}: {why_not_read(name)}")
        elif member.flag_bits & _ENCRYPTED:
            not_read.add(path, f"{path}: {_shown(member)} is encrypted; decrypt it first")
        elif member.file_size > _EXPANDS_MAX * max(member.compress_size, 1):
            not_read.add(path, f"{path}: {_shown(member)} would unpack to {member.file_size:,} bytes")
        else:
            found.append(member)
    return found


def _must_be_of_their_size(path: Path, members: Sequence[zipfile.ZipInfo], size: int) -> None:
    """Raise BadInput if members unpack to far more than the file's size.

    size: size of the file in bytes; members may overlap.
    """
    if (total := sum(member.file_size for member in members)) > _EXPANDS_MAX * size:
        raise BadInput(f"{path}: its archives would unpack to {total:,} bytes")


def _copy_name(where: str, member: zipfile.ZipInfo) -> str:
    """The end of a member's name behind a digest of its position, because two folders may have equal names."""
    place = f"{where} {member.filename} {member.header_offset}".encode("utf-8", "surrogateescape")
    digest = hashlib.blake2b(place, digest_size=6).hexdigest()
    return f"{digest}-{PurePosixPath(member.filename).name[-_NAME_CHARS_MAX:]}"


def _shown(member: zipfile.ZipInfo) -> str:
    return member.filename[:_NAME_CHARS_SHOWN]
