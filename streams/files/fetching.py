"""Copies input that is no local file: URLs (by fsspec), standard input, and the archives in a WACZ file.

Readers need files that they can read again from any position. So other input is first copied, once and as a whole.
"""

import hashlib
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any

from neardup.errors import BadInput
from streams.errors import bad_input, without_credentials
from streams.files.input_formats import PACKED
from streams.files.not_read import NotRead, is_by_product
from streams.files.wacz import unpacked, write_copy

#: Fields of a store's file info that identify a version of a file.
_VERSION = ("size", "ETag", "etag", "md5Hash", "LastModified", "mtime", "created", "generation")


def inputs_of(out: Path) -> Path:
    """The folder for the copies of a partition's input."""
    return out.with_name(out.name + ".inputs")


def fetched(
    given: Sequence[str | Path],
    folder: Path,
    not_read: NotRead,
    on_bytes: Callable[[int], None] = lambda count: None,
) -> list[Path]:
    """Returns local paths for all inputs. URLs, standard input (`-`) and WACZ files are copied to `folder`.

    A copy is complete or absent, and is made again only if the store reports another version of the file. A URL names a
    file, or several by a pattern with `*`. Of several inputs, those that cannot be read are noted in `not_read`.
    on_bytes: called with the size of each copied piece. Raises BadInput for missing input, and if none can be read.
    """
    paths: list[Path] = []
    for text in map(str, given):
        if text == "-":
            found = [_standard_input(folder, on_bytes)]
        elif "://" in text:
            found = _of_url(text, folder, not_read, on_bytes)
        else:
            found = [Path(text)]
        for path in found:
            if not path.name.lower().endswith(PACKED) or path.is_dir():
                paths.append(path)
                continue
            try:
                paths += unpacked(path, folder, not_read, on_bytes)
            except BadInput as error:
                if len(given) == len(found) == 1 or not path.exists():
                    raise
                not_read.add(path, str(error))
    if given and not paths:
        raise BadInput(not_read.lines[0])
    return paths


def forget(out: Path) -> None:
    """Deletes the copies."""
    shutil.rmtree(inputs_of(out), ignore_errors=True)


def _of_url(url: str, folder: Path, not_read: NotRead, on_bytes: Callable[[int], None]) -> list[Path]:
    import fsspec

    shown = without_credentials(url, queries=True)
    try:
        system, place = fsspec.core.url_to_fs(url)
        if "*" in place:
            return _of_pattern(system, url, place, folder, not_read, on_bytes)
        folder.mkdir(parents=True, exist_ok=True)
        return [_copy(system, url.partition("://")[0], place, folder, on_bytes)]
    except ImportError as error:  # its text says what to install
        raise BadInput(f"{shown}: cannot be read: {error}") from error
    except IsADirectoryError as error:
        raise BadInput(f"{shown}: a folder; name its files, as {shown.rstrip('/')}/**.warc.gz") from error
    except Exception as error:
        raise BadInput(f"{shown}: cannot be read: {_reason(error)}") from error


def _of_pattern(
    system: Any, url: str, pattern: str, folder: Path, not_read: NotRead, on_bytes: Callable[[int], None]
) -> list[Path]:
    """Copies of the files that a pattern names. One that cannot be read is noted; raises its error if all cannot."""
    copies: list[Path] = []
    failed: Exception = FileNotFoundError("no file has such a name")
    protocol = url.partition("://")[0]
    folder.mkdir(parents=True, exist_ok=True)
    for name in map(str, sorted(system.glob(pattern))):
        last = PurePosixPath(name).name
        if is_by_product(last):
            not_read.pass_over(last)
            continue
        try:
            copies.append(_copy(system, protocol, name, folder, on_bytes))
        except IsADirectoryError as error:
            failed = error
            if "**" not in pattern:  # else the pattern names what the folder holds, too
                not_read.add(f"{protocol}://{name}", "a folder; not read: a pattern with /** names its files")
        except Exception as error:  # noqa: BLE001 - stores raise what they like
            failed = error
            not_read.add(f"{protocol}://{name}", f"cannot be read: {_reason(error)}")
    if not copies:
        raise failed
    return copies


def _reason(error: Exception) -> str:
    return without_credentials(str(error), queries=True) or type(error).__name__


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
        write_copy(source, copy, on_bytes)
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
        digest = write_copy(sys.stdin.buffer, fresh, on_bytes)
        return fresh.replace(folder / f"standard-input-{digest}")
