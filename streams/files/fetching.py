"""Copies input that is no local file: URLs (by fsspec), standard input, and the archives in a WACZ file.

Readers need files that they can read again from any position. So other input is first copied, once and as a whole.
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
from streams.errors import bad_input
from streams.state.locked_folder import whole_file

_PIECE_BYTES = 1 << 20
#: Largest ratio of unpacked to packed size of a member; archives in a WACZ are compressed already.
_EXPANDS_MAX = 100
#: Characters of a member's name in the name of its copy, from the end.
_NAME_CHARS_MAX = 60
#: What the standard library raises for a damaged ZIP file.
_DAMAGED = (OSError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, ValueError, struct.error)
#: Fields of a store's file info that identify a version of a file.
_VERSION = ("size", "ETag", "etag", "md5Hash", "LastModified", "mtime", "created", "generation")


def inputs_of(out: Path) -> Path:
    """The folder for the copies of a partition's input."""
    return out.with_name(out.name + ".inputs")


def fetched(
    given: Sequence[str | Path], folder: Path, on_bytes: Callable[[int], None] = lambda count: None
) -> list[Path]:
    """Returns local paths for all inputs. URLs, standard input (`-`) and WACZ files are copied to `folder`.

    A copy is complete or absent, and is made again only if the store reports another version of the file. A URL names a
    file, or several by a pattern with `*`. on_bytes: called with the size of each copied piece. Raises BadInput for
    unreadable or missing input.
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
        reason = without_credentials(str(error), queries=True) or type(error).__name__
        raise BadInput(f"{shown}: cannot be read: {reason}") from error


def _copy(system: Any, protocol: str, name: str, folder: Path, on_bytes: Callable[[int], None]) -> Path:
    """The copy has the file's name behind a digest of its URL, because two URLs may have equal file names."""
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
    """Identifies the version of a file; "" if the store does not answer."""
    with suppress(Exception):
        info = system.info(name)
        return repr([(field, str(info[field])) for field in _VERSION if field in info])
    return ""


def _standard_input(folder: Path, on_bytes: Callable[[int], None]) -> Path:
    """Copies standard input to a file named by its digest: equal input gives the same file."""
    with bad_input(f"standard input: cannot be copied to {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
        fresh = folder / "standard-input.new"
        digest = _write(sys.stdin.buffer, fresh, on_bytes)
        return fresh.replace(folder / f"standard-input-{digest}")


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
    """Raises BadInput for members that unpack to far more than their size. size: of the file; members may overlap."""
    for member in members:
        if member.file_size > _EXPANDS_MAX * max(member.compress_size, 1):
            raise BadInput(f"{path}: {member.filename[:200]} would unpack to {member.file_size:,} bytes")
    if (total := sum(member.file_size for member in members)) > _EXPANDS_MAX * size:
        raise BadInput(f"{path}: its archives would unpack to {total:,} bytes")


def _copy_name(where: str, member: zipfile.ZipInfo) -> str:
    """The end of a member's name behind a digest of its position, because two folders may have equal names."""
    place = f"{where} {member.filename} {member.header_offset}".encode("utf-8", "surrogateescape")
    digest = hashlib.blake2b(place, digest_size=6).hexdigest()
    return f"{digest}-{PurePosixPath(member.filename).name[-_NAME_CHARS_MAX:]}"


def _write(source: IO[bytes], target: Path, on_bytes: Callable[[int], None]) -> str:
    """Copies all bytes to a file that gets its name once complete. Returns their digest, as 12 hex digits."""
    digest = hashlib.blake2b(digest_size=6)
    with whole_file(target) as fresh, fresh.open("wb") as file:
        while piece := source.read(_PIECE_BYTES):
            file.write(piece)
            digest.update(piece)
            on_bytes(len(piece))
    return digest.hexdigest()
