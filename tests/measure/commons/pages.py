"""The HTML pages of archives: what is in a package, and which page is which in another release."""

import re
import subprocess
import tarfile
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

#: Pages of one release at most, drawn by a hash of their paths: the same paths in each release.
PAGES_MAX = 300
_BYTES_MAX = 2_000_000
#: Folders have numbers, as sites have releases at /15/ and /16/: a word there would part them in the rule's eyes.
_FIRST_RELEASE = 15
_HTML = re.compile(r"\.x?html?$", re.IGNORECASE)
_VERSION = re.compile(r"\d+(?:\.\d+)+[a-z0-9~+]*")


class Served(NamedTuple):
    """One page.

    key: what it is called in every release. release: which one, or an empty string. alone: whether no other release has
    the key. path: in its archive, if it is from one.
    """

    url: str
    key: str
    release: str
    body: bytes
    alone: bool = False
    path: str = ""


def read(package: str, archives: Sequence[tuple[str, Path]], pages_max: int = PAGES_MAX) -> list[Served]:
    """Pages of all releases of a package, as one site, ordered by a hash of their addresses."""
    host = re.sub(r"[^a-z0-9]+", "-", package.lower()).strip("-")
    releases = [dict(_files(archive)) for _, archive in archives]
    pages = []
    numbered = enumerate(zip(archives, releases, _keys(releases), strict=True), _FIRST_RELEASE)
    for number, ((release, _), files, keys) in numbered:
        folder = f"{number}/" if len(archives) > 1 else ""
        for path in sorted(keys, key=lambda path: _rank(keys[path][0]))[:pages_max]:
            key, alone = keys[path]
            pages.append(Served(f"http://{host}.example/{folder}{quote(path)}", key, release, files[path], alone, path))
    return sorted(pages, key=lambda page: _rank(page.url))


def _keys(releases: Sequence[Mapping[str, bytes]]) -> list[dict[str, tuple[str, bool]]]:
    """Path -> (key, whether no other release has it) for each release.

    Versions in folders change with releases. A path that only one release has has moved if its file name comes once
    among such paths of each release: then that name is the key.
    """
    keys = [{path: _VERSION.sub("*", path) for path in sorted(files)} for files in releases]
    counts = Counter(key for each in keys for key in set(each.values()))
    lost = [[path for path, key in each.items() if counts[key] == 1] for each in keys]
    names = [Counter(path.rpartition("/")[2] for path in paths) for paths in lost]
    for each, paths, mine in zip(keys, lost, names, strict=True):
        for path in paths:
            name = path.rpartition("/")[2]
            if mine[name] == 1 and all(others[name] <= 1 for others in names):
                each[path] = f"*/{name}"
    counts = Counter(key for each in keys for key in set(each.values()))
    return [{path: (key, counts[key] == 1) for path, key in each.items()} for each in keys]


def _rank(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "replace"), digest_size=8).digest()


def _files(archive: Path) -> Iterator[tuple[str, bytes]]:
    if archive.suffix in (".jar", ".zip"):
        with zipfile.ZipFile(archive) as packed:
            for name in packed.namelist():
                if _HTML.search(name) and packed.getinfo(name).file_size <= _BYTES_MAX:
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
        wanted = member.isfile() and member.size <= _BYTES_MAX and _HTML.search(member.name)
        if wanted and (file := tar.extractfile(member)):
            yield member.name.removeprefix("./").removeprefix("usr/share/doc/").removeprefix("usr/share/"), file.read()
