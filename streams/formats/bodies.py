"""Page bodies that travel beside Kafka: a record names them by URL, and only what lies under an allowed prefix is read.

`file:` is read by the standard library; other schemes by fsspec, where that is installed.
"""

import os
from collections.abc import Sequence
from urllib.parse import unquote, urlsplit

from neardup.errors import BadPage

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
