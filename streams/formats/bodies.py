"""Page bodies that travel beside Kafka: written to a folder, and read by URL under allowed prefixes alone.

`file:`, `http:` and `https:` are read by the standard library, other schemes by fsspec.
"""

import os
import re
import time
from collections.abc import Sequence
from hashlib import sha256
from http.client import IncompleteRead
from pathlib import Path
from typing import IO, Any
from urllib.error import HTTPError
from urllib.parse import quote, unquote, urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, build_opener

from neardup.errors import BadInput, BadPage
from streams.errors import BodiesAway

#: What a URL may not hold: ways up, chains of file systems (`simplecache::`), and their disguises.
_FORBIDDEN = ("::", "\\", "?", "#")
#: Control characters: URL parsers leave tabs and line ends out, and `.\t.` becomes a way up.
_LEFT_OUT = re.compile(r"[\x00-\x1f\x7f]")
_ANSWER_SECONDS_MAX = 30.0
#: An answer that is cut off so often is the page's own fault.
_TRIES_MAX = 3
_PIECE_BYTES = 1 << 20


class Bodies:
    """Reads bodies by reference. prefixes: URLs that end with a slash. bytes_max: a longer body is cut there."""

    def __init__(self, prefixes: Sequence[str], bytes_max: int) -> None:
        self._prefixes = tuple(prefixes)
        self._bytes_max = bytes_max

    def read(self, url: str) -> bytes:
        """Raises BadPage, saying why, for what may not or cannot be read; BodiesAway while nobody answers."""
        prefix = next((prefix for prefix in self._prefixes if url.startswith(prefix)), None)
        plain = unquote(url)
        ways_up = any(part in (".", "..") for part in plain.split("/"))
        if prefix is None or ways_up or _LEFT_OUT.search(plain) or any(part in plain for part in _FORBIDDEN):
            raise BadPage(f"body-ref {url[:200]!r} is not under an allowed prefix")
        scheme = url.partition("://")[0]
        try:
            if scheme in ("file", "local"):
                return self._local(url, prefix)
            return self._web(url) if scheme in ("http", "https") else self._remote(url)
        except (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError) as error:
            raise BadPage(f"body-ref {url[:200]!r} cannot be read: {error.strerror or type(error).__name__}") from error
        except OSError as error:
            raise BodiesAway(
                f"body-ref {url[:200]!r}: its store does not answer: {error.strerror or error}", url=url
            ) from error

    def _local(self, url: str, prefix: str) -> bytes:
        path, root = (os.path.realpath(unquote(urlsplit(each).path)) for each in (url, prefix))
        # A link under the prefix must not lead out of it.
        if os.path.commonpath([path, root]) != root:
            raise BadPage(f"body-ref {url[:200]!r} leads out of its prefix")
        if not os.path.isfile(path):
            raise BadPage(f"body-ref {url[:200]!r} is no file")
        with open(path, "rb") as file:
            return file.read(self._bytes_max + 1)

    def _web(self, url: str) -> bytes:
        """Without redirects: a store that sends elsewhere would lead out of the prefix."""
        for _ in range(_TRIES_MAX):
            try:
                with _OPENER.open(url, timeout=_ANSWER_SECONDS_MAX) as answer:
                    return self._whole(answer)
            except HTTPError as error:
                if error.code in (408, 429) or error.code >= 500:
                    raise OSError(f"HTTP status {error.code}") from error
                raise BadPage(f"body-ref {url[:200]!r} cannot be read: HTTP status {error.code}") from error
            except IncompleteRead:
                continue
            except ValueError as error:
                raise BadPage(f"body-ref {url[:200]!r} cannot be read: {error}") from error
        raise BadPage(f"body-ref {url[:200]!r}: its answer was cut off {_TRIES_MAX} times")

    def _whole(self, answer: IO[bytes]) -> bytes:
        """Up to the bound, and within a bound of time: a store that drips a byte a second is away."""
        deadline = time.monotonic() + _ANSWER_SECONDS_MAX
        data = bytearray()
        while len(data) <= self._bytes_max:
            piece = answer.read(min(_PIECE_BYTES, self._bytes_max + 1 - len(data)))
            if not piece:
                break
            data += piece
            if time.monotonic() > deadline:
                raise TimeoutError(f"no whole answer in {_ANSWER_SECONDS_MAX:.0f} s")
        left = getattr(answer, "length", None)
        if left and len(data) <= self._bytes_max:
            raise IncompleteRead(bytes(data), left)
        return bytes(data)

    def _remote(self, url: str) -> bytes:
        import fsspec  # slow to import, and most deployments have no bodies elsewhere

        try:
            with fsspec.open(url, "rb") as file:
                return bytes(file.read(self._bytes_max + 1))
        except OSError:
            raise  # `read` tells what is away from what is not there
        except (ImportError, ValueError) as error:  # no such scheme, or its package is missing
            raise BadPage(f"body-ref {url[:200]!r} cannot be read: {error}") from error
        except Exception as error:  # clients of stores have errors of their own for a connection that broke
            raise BodiesAway(f"body-ref {url[:200]!r}: its store does not answer: {error!r}", url=url) from error


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """None: the redirect is an error."""
        return None


_OPENER = build_opener(_NoRedirects, ProxyHandler({}))


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
