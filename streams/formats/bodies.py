"""Page bodies that travel beside Kafka: written to a folder, and read by URL under allowed prefixes alone.

`file:` is read by the standard library; other schemes by fsspec, where that is installed.
"""

import os
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from neardup.errors import BadInput, BadPage

#: What a URL may not hold: ways up, chains of file systems (`simplecache::`), and their disguises.
_FORBIDDEN = ("::", "\\", "\0", "?", "#")


class Bodies:
    """Reads bodies by reference. prefixes: URLs that end with a slash. bytes_max: a longer body is cut there."""

    def __init__(self, prefixes: Sequence[str], bytes_max: int) -> None:
        self._prefixes = tuple(prefixes)
        self._bytes_max = bytes_max

    def read(self, url: str) -> bytes:
        """Raises BadPage, saying why, for what may not or cannot be read."""
        prefix = next((prefix for prefix in self._prefixes if url.startswith(prefix)), None)
        plain = unquote(url)
        ways_up = any(part in (".", "..") for part in plain.split("/"))
        if prefix is None or ways_up or any(part in plain for part in _FORBIDDEN):
            raise BadPage(f"body-ref {url[:200]!r} is not under an allowed prefix")
        try:
            return self._local(url, prefix) if url.startswith("file://") else self._remote(url)
        except OSError as error:
            raise BadPage(f"body-ref {url[:200]!r} cannot be read: {error.strerror or type(error).__name__}") from error

    def _local(self, url: str, prefix: str) -> bytes:
        path, root = (os.path.realpath(unquote(urlsplit(each).path)) for each in (url, prefix))
        # A link under the prefix must not lead out of it.
        if os.path.commonpath([path, root]) != root:
            raise BadPage(f"body-ref {url[:200]!r} leads out of its prefix")
        if not os.path.isfile(path):
            raise BadPage(f"body-ref {url[:200]!r} is no file")
        with open(path, "rb") as file:
            return file.read(self._bytes_max + 1)

    def _remote(self, url: str) -> bytes:
        try:
            import fsspec  # type: ignore[import-not-found, import-untyped, unused-ignore]
        except ModuleNotFoundError:
            raise BadPage(f"body-ref {url[:200]!r} needs the package fsspec, which is not installed") from None
        try:
            with fsspec.open(url, "rb") as file:
                return bytes(file.read(self._bytes_max + 1))
        except (ImportError, ValueError) as error:  # no such scheme, or its package is missing
            raise BadPage(f"body-ref {url[:200]!r} cannot be read: {error}") from error


class BodyFolder:
    """Where bodies go that no record can hold. A file is named by its content: published twice, it is there once."""

    def __init__(self, place: str | Path) -> None:
        """place: a folder or a `file:` URL; it is made when the first body comes. Raises BadInput for other URLs."""
        text = str(place)
        if "://" in text and not text.startswith("file:///"):
            raise BadInput(f"bodies go to a folder or a file:/// URL, not to {text}")
        self.folder = Path(unquote(urlsplit(text).path) if text.startswith("file:///") else os.path.abspath(text))
        self.url = "file://" + quote(os.fsencode(self.folder)).rstrip("/") + "/"

    def put(self, body: bytes) -> str:
        """The URL of the body, which is on disk when this returns. Raises BadInput if it cannot be written."""
        name = sha256(body).hexdigest()
        path = self.folder / name[:2] / name
        try:
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                part = path.with_name(f"{name}.{os.getpid()}.part")
                with part.open("wb") as file:
                    file.write(body)
                    file.flush()
                    os.fsync(file.fileno())
                part.rename(path)
        except OSError as error:
            raise BadInput(f"cannot write a body to {path}: {error.strerror}") from error
        return f"{self.url}{name[:2]}/{name}"
