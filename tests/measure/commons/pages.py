"""The HTML pages of archives: what is in a package, and which page is which in another release."""

import re
import subprocess
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

#: Pages of one release at most, drawn by a hash of their paths: the same paths in each release.
PAGES_MAX = 600
_BYTES_MAX = 2_000_000
_HTML = re.compile(r"\.x?html?$", re.IGNORECASE)
_VERSION = re.compile(r"\d+(?:\.\d+)+[a-z0-9~+]*")


class Served(NamedTuple):
    """One page. key: what it is called in every release; release: which one, or an empty string."""

    url: str
    key: str
    release: str
    body: bytes


def read(package: str, archives: Sequence[tuple[str, Path]], pages_max: int = PAGES_MAX) -> list[Served]:
    """Pages of all releases of a package, as one site, ordered by a hash of their addresses."""
    pages = []
    host = re.sub(r"[^a-z0-9]+", "-", package.lower()).strip("-")
    for release, archive in archives:
        found = {_key(path): (path, body) for path, body in sorted(_files(archive)) if len(body) <= _BYTES_MAX}
        for key in sorted(found, key=_rank)[:pages_max]:
            path, body = found[key]
            folder = f"{release}/" if len(archives) > 1 else ""
            pages.append(Served(f"http://{host}.example/{folder}{path}", key, release, body))
    return sorted(pages, key=lambda page: _rank(page.url))


def _rank(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "replace"), digest_size=8).digest()


def _key(path: str) -> str:
    """Versions in folders change with releases."""
    return _VERSION.sub("*", path)


def _files(archive: Path) -> Iterator[tuple[str, bytes]]:
    if archive.suffix in (".jar", ".zip"):
        with zipfile.ZipFile(archive) as packed:
            for name in packed.namelist():
                if _HTML.search(name):
                    yield name, packed.read(name)
        return
    if archive.suffix != ".deb":
        with tarfile.open(archive) as tar:
            yield from _members(tar)
        return
    unpack = ["dpkg-deb", "--fsys-tarfile", str(archive)]
    with (
        subprocess.Popen(unpack, stdout=subprocess.PIPE) as unpacking,
        tarfile.open(fileobj=unpacking.stdout, mode="r|") as tar,
    ):
        yield from _members(tar)


def _members(tar: tarfile.TarFile) -> Iterator[tuple[str, bytes]]:
    for member in tar:
        if member.isfile() and _HTML.search(member.name) and (file := tar.extractfile(member)):
            yield member.name.removeprefix("./").removeprefix("usr/share/doc/").removeprefix("usr/share/"), file.read()
