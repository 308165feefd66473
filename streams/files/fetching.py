"""Input that is no file here yet: what URLs name, standard input, and the archives in a WACZ file, copied by fsspec.

Everything else reads files, which it can read again from any place: so what comes from elsewhere becomes a file first,
once, and whole.
"""

import hashlib
import lzma
import shutil
import struct
import sys
import zipfile
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import IO, Any

from neardup.errors import BadInput
from streams.config.settings import without_credentials

_PIECE_BYTES = 1 << 20
#: Members that unpack to more than so many times their size are refused: archives in a WACZ are compressed already.
_EXPANDS_MAX = 100
#: Of the end of a member's name, in the name of its copy.
_NAME_CHARS_MAX = 60
#: What the standard library raises for a damaged ZIP file.
_DAMAGED = (OSError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, ValueError, struct.error)
#: By what a store says of a file: other values, another file.
_VERSION = ("size", "ETag", "etag", "md5Hash", "LastModified", "mtime", "created", "generation")


def inputs_of(out: Path) -> Path:
    """Where the copies of a partition's input lie."""
    return out.with_name(out.name + ".inputs")


def fetched(
    given: Sequence[str | Path], folder: Path, on_bytes: Callable[[int], None] = lambda count: None
) -> list[Path]:
    """The paths that were given; copies in a folder of what URLs name (`s3://...`, `memory://...`), of standard input
    (`-`), and of the archives in a WACZ file.

    A copy is there whole or not at all, and is made once, unless the store says that the file is another one now. A URL
    names one file, or some by a pattern with `*`. on_bytes: told of each stretch of bytes copied. Raises BadInput for
    what cannot be read, or names nothing.
    """
    paths = []
    for text in map(str, given):
        if text == "-":
            found = [_standard_input(folder, on_bytes)]
        elif "://" in text:
            found = _of_url(text, folder, on_bytes)
        else:
            found = [Path(text)]
        for path in found:
            paths += _unpacked(path, folder, on_bytes) if path.name.lower().endswith(".wacz") else [path]
    return paths


def forget(out: Path) -> None:
    """Deletes the copies."""
    shutil.rmtree(inputs_of(out), ignore_errors=True)


def _of_url(url: str, folder: Path, on_bytes: Callable[[int], None]) -> list[Path]:
    import fsspec

    shown = without_credentials(url, queries=True)
    try:
        system, place = fsspec.core.url_to_fs(url)
        names = sorted(system.glob(place)) if "*" in place else [place]
        if not names:
            raise FileNotFoundError("no file has such a name")
        folder.mkdir(parents=True, exist_ok=True)
        return [_copy(system, url.partition("://")[0], str(name), folder, on_bytes) for name in names]
    except ImportError as error:  # its text says what to install
        raise BadInput(f"{shown}: cannot be read: {error}") from error
    except IsADirectoryError as error:
        raise BadInput(f"{shown}: a folder; name its files, as {shown.rstrip('/')}/**.warc.gz") from error
    except Exception as error:
        told = without_credentials(str(error), queries=True) or type(error).__name__
        raise BadInput(f"{shown}: cannot be read: {told}") from error


def _copy(system: Any, protocol: str, name: str, folder: Path, on_bytes: Callable[[int], None]) -> Path:
    """Under its own name, after a digest of where it lies: two places may have files of one name."""
    digest = hashlib.blake2b(f"{protocol}://{name}".encode(), digest_size=6).hexdigest()
    copy = folder / f"{digest}-{PurePosixPath(name).name}"
    version, kept = _version(system, name), copy.with_name(copy.name + ".version")
    if copy.exists() and (not version or (kept.exists() and kept.read_text() == version)):
        return copy
    copy.unlink(missing_ok=True)  # first, so that a version is never that of another copy
    kept.write_text(version)
    if system.isdir(name):
        raise IsADirectoryError(name)
    with system.open(name, "rb") as source:
        _write(source, copy, on_bytes)
    return copy


def _version(system: Any, name: str) -> str:
    """What tells a file from another one under its name; "" where the store does not answer."""
    with suppress(Exception):
        told = system.info(name)
        return repr([(field, str(told[field])) for field in _VERSION if field in told])
    return ""


def _standard_input(folder: Path, on_bytes: Callable[[int], None]) -> Path:
    """Named by what it holds: the same input again is the same file."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        fresh = folder / "standard-input.new"
        digest = _write(sys.stdin.buffer, fresh, on_bytes)
        return fresh.replace(folder / f"standard-input-{digest}")
    except OSError as error:
        raise BadInput(f"standard input: cannot be copied to {folder}: {error.strerror}") from error


def _unpacked(path: Path, folder: Path, on_bytes: Callable[[int], None]) -> list[Path]:
    """The WARC files of a WACZ file, in the order of their names. Raises BadInput."""
    try:
        status = path.stat()
        where = f"{path.absolute()} {status.st_size} {status.st_mtime_ns}"
        folder.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(path) as packed:
            members = [one for one in packed.infolist() if one.filename.startswith("archive/") and not one.is_dir()]
            if not members:
                raise BadInput(f"{path}: a WACZ file without anything in archive/")
            _must_be_of_their_size(path, members, status.st_size)
            copies = []
            for member in sorted(members, key=lambda one: one.filename):
                copy = folder / _copy_name(where, member)
                if not copy.exists():
                    with packed.open(member) as source:
                        _write(source, copy, on_bytes)
                copies.append(copy)
            return copies
    except FileNotFoundError as error:
        raise BadInput(f"{path}: no such file or folder") from error
    except (*_DAMAGED, NotImplementedError, RuntimeError) as error:
        raise BadInput(f"{path}: cannot be read as WACZ: {error}") from error


def _must_be_of_their_size(path: Path, members: Sequence[zipfile.ZipInfo], size: int) -> None:
    """Raises BadInput for members that unpack to much more than they are. size: of the file: members may overlap."""
    for member in members:
        if member.file_size > _EXPANDS_MAX * max(member.compress_size, 1):
            raise BadInput(f"{path}: {member.filename[:200]} would unpack to {member.file_size:,} bytes")
    if (total := sum(member.file_size for member in members)) > _EXPANDS_MAX * size:
        raise BadInput(f"{path}: its archives would unpack to {total:,} bytes")


def _copy_name(where: str, member: zipfile.ZipInfo) -> str:
    """The end of a member's name, after a digest of its place: two folders may have members of one name."""
    place = f"{where} {member.filename} {member.header_offset}".encode("utf-8", "surrogateescape")
    digest = hashlib.blake2b(place, digest_size=6).hexdigest()
    return f"{digest}-{PurePosixPath(member.filename).name[-_NAME_CHARS_MAX:]}"


def _write(source: IO[bytes], target: Path, on_bytes: Callable[[int], None]) -> str:
    """Copies all bytes; the file has its name when all are there. Returns their digest, as 12 hex digits."""
    fresh, digest = target.with_name(target.name + ".part"), hashlib.blake2b(digest_size=6)
    try:
        with fresh.open("wb") as file:
            while piece := source.read(_PIECE_BYTES):
                file.write(piece)
                digest.update(piece)
                on_bytes(len(piece))
        fresh.replace(target)
    finally:
        fresh.unlink(missing_ok=True)
    return digest.hexdigest()
