"""Page bodies stored outside Kafka: written to a folder, and read by URL below allowed prefixes only.

`file:`, `http:` and `https:` are read by the standard library, other schemes by fsspec.
"""

import base64
import errno
import os
import re
import secrets
import stat
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from http.client import IncompleteRead, InvalidURL
from pathlib import Path
from typing import IO, Any
from urllib.error import HTTPError
from urllib.parse import quote, unquote, urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from neardup.errors import BadInput, BadPage
from streams.errors import HIDDEN, BodiesAway, bad_input, without_credentials

#: What a URL may not hold: ways up, chains of file systems (`simplecache::`), and their disguises.
_FORBIDDEN = ("::", "\\", "?", "#")
#: Control characters: URL parsers leave tabs and line ends out, and `.\t.` becomes a way up.
_LEFT_OUT = re.compile(r"[\x00-\x1f\x7f]")
_ANSWER_SECONDS_MAX = 30.0
_PIECE_BYTES = 1 << 20
_SHOWN_CHARS_MAX = 200
#: Errors that are an answer of the store; and, of a file system, those about the name.
_ANSWERS = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError)
_NAME_ERRNOS = (errno.ENAMETOOLONG, errno.EINVAL, errno.ELOOP)


class Bodies:
    """Reads bodies by reference. prefixes: URLs that end with a slash. bytes_max: longer bodies are cut to this length.

    A prefix may contain credentials. References below it are accepted with or without them.
    """

    def __init__(self, prefixes: Sequence[str], bytes_max: int) -> None:
        self._prefixes = [_Prefix.of(prefix) for prefix in prefixes]
        self._bytes_max = bytes_max

    def read(self, url: str) -> bytes:
        """The body at `url`. Raises no other errors than these two, and neither shows credentials.

        BadPage: the store's answer is that the object may not or cannot be read. BodiesAway: the store does not
        answer, or its answer is broken; `answers` tells a broken object from a store that is down.
        """
        found = self._prefix(url)
        if found is None:
            raise BadPage(f"body-ref {_shown(url)} is not under an allowed prefix")
        prefix, rest = found
        plain = unquote(rest)
        ways_up = any(part in (".", "..") for part in plain.split("/"))
        if ways_up or _LEFT_OUT.search(plain) or any(part in plain for part in _FORBIDDEN):
            raise BadPage(f"body-ref {_shown(url)} is not under an allowed prefix")
        try:
            return self._read(prefix, rest)
        except Exception as error:  # noqa: BLE001 - clients of stores have errors of their own
            # Not `from error`: its text may show credentials.
            raise _error_of(error, prefix, url) from None

    def answers(self, url: str) -> bool:
        """Whether the store of `url` answers for another object, one that does not exist. url: a body or a prefix."""
        found = self._prefix(url)
        if found is None:
            return False
        try:
            self.read(f"{found[0].url}neardup-{secrets.token_hex(8)}")
        except BodiesAway:
            return False
        except BadPage:
            return True
        return True

    def _prefix(self, url: str) -> tuple["_Prefix", str] | None:
        """Returns the prefix of `url`, and the rest of the URL."""
        for prefix in self._prefixes:
            for begin in (prefix.url, prefix.plain):
                if url.startswith(begin):
                    return prefix, url[len(begin) :]
        return None

    def _read(self, prefix: "_Prefix", rest: str) -> bytes:
        if prefix.is_file:
            return self._local(prefix, rest)
        return self._web(prefix, rest) if prefix.is_web else self._remote(prefix.url + rest)

    def _local(self, prefix: "_Prefix", rest: str) -> bytes:
        path, root = (os.path.realpath(unquote(urlsplit(each).path)) for each in (prefix.url + rest, prefix.url))
        # A link under the prefix must not lead out of it.
        if os.path.commonpath([path, root]) != root:
            raise BadPage("leads out of its prefix")
        if not stat.S_ISREG(os.stat(path).st_mode):  # a pipe would block
            raise BadPage("is no file")
        with open(path, "rb") as file:
            return file.read(self._bytes_max + 1)

    def _web(self, prefix: "_Prefix", rest: str) -> bytes:
        """Reads without following redirects: a redirect could lead out of the prefix."""
        try:
            with _OPENER.open(
                Request(prefix.plain + rest, headers=prefix.headers), timeout=_ANSWER_SECONDS_MAX
            ) as answer:
                data = self._whole(answer)
                left = getattr(answer, "length", None)
                if left and len(data) <= self._bytes_max:
                    raise IncompleteRead(data, left)
                return data
        except HTTPError as error:
            if error.code in (408, 429) or error.code >= 500 or error.code < 200:
                raise OSError(f"HTTP status {error.code}") from error
            raise BadPage(f"cannot be read: HTTP status {error.code}") from error
        except (InvalidURL, UnicodeError) as error:
            raise BadPage(f"cannot be read: {error}") from error

    def _whole(self, answer: IO[bytes]) -> bytes:
        """Reads up to the size limit, within a time limit: a store that sends a byte a second counts as away."""
        deadline = time.monotonic() + _ANSWER_SECONDS_MAX
        data = bytearray()
        while len(data) <= self._bytes_max:
            piece = answer.read(min(_PIECE_BYTES, self._bytes_max + 1 - len(data)))
            if not piece:
                break
            data += piece
            if time.monotonic() > deadline:
                raise TimeoutError(f"no whole answer in {_ANSWER_SECONDS_MAX:.0f} s")
        return bytes(data)

    def _remote(self, url: str) -> bytes:
        import fsspec  # slow to import, and most deployments have no bodies elsewhere

        try:
            with fsspec.open(url, "rb") as file:
                return self._whole(file)
        except (ImportError, ValueError) as error:  # no such scheme, or its package is missing
            raise BadPage(f"cannot be read: {error}") from error


@dataclass(frozen=True)
class _Prefix:
    """An allowed prefix.

    url: configured URL. plain: URL without credentials. secrets: texts that no error may contain.
    """

    url: str
    plain: str
    headers: Mapping[str, str]
    secrets: tuple[str, ...]

    @classmethod
    def of(cls, url: str) -> "_Prefix":
        scheme, _, rest = url.partition("://")
        place, slash, path = rest.partition("/")
        user, at, host = place.rpartition("@")
        if not at:
            return cls(url, url, {}, ())
        name, _, password = user.partition(":")
        basic = base64.b64encode(f"{unquote(name)}:{unquote(password)}".encode()).decode()
        secrets = tuple(each for each in (user, unquote(user), password, unquote(password)) if each)
        return cls(url, f"{scheme}://{host}{slash}{path}", {"Authorization": f"Basic {basic}"}, secrets)

    @property
    def is_file(self) -> bool:
        return self.url.startswith(("file://", "local://"))

    @property
    def is_web(self) -> bool:
        return self.url.startswith(("http://", "https://"))

    def without_secrets(self, text: str) -> str:
        for secret in self.secrets:
            text = text.replace(secret, HIDDEN)
        return without_credentials(text, queries=True)


def _error_of(error: Exception, prefix: _Prefix, url: str) -> BadPage | BodiesAway:
    """The exception of `Bodies.read` for an error: BadPage if it is an answer about this body, else BodiesAway."""
    body = f"body-ref {_shown(url)}"
    if isinstance(error, BadPage):
        return BadPage(f"{body} {prefix.without_secrets(str(error))}")
    system = (isinstance(error, OSError) and error.strerror) or ""
    if isinstance(error, _ANSWERS) or (prefix.is_file and isinstance(error, OSError) and error.errno in _NAME_ERRNOS):
        return BadPage(f"{body} cannot be read: {system or type(error).__name__}")
    why = prefix.without_secrets(system or f"{type(error).__name__}: {error}")
    return BodiesAway(f"{body}: its store does not answer: {why}", store=prefix.plain)


def _quoted(url: str) -> str:
    """Percent-encodes spaces, quotes and commas of a URL, so that its credentials can be found."""
    return quote(url.encode("utf-8", "replace"), safe=":/?#[]@!$&()*+;=%~")


def _shown(url: str) -> str:
    return repr(without_credentials(_quoted(url))[:_SHOWN_CHARS_MAX])


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """None: the redirect is an error."""
        return None


_OPENER = build_opener(_NoRedirects, ProxyHandler({}))


class BodyFolder:
    """A folder for bodies too large for a record.

    Files are named by content, so a body published twice is stored once.
    """

    def __init__(self, place: str | Path) -> None:
        """place: a folder or a `file:` URL. It is created with the first body. Raises BadInput for other URLs."""
        text = str(place)
        if "://" in text and not text.startswith("file:///"):
            raise BadInput(f"bodies go to a folder or a file:/// URL, not to {text}")
        self.folder = Path(unquote(urlsplit(text).path) if text.startswith("file:///") else os.path.abspath(text))
        self.url = "file://" + quote(os.fsencode(self.folder)).rstrip("/") + "/"

    def put(self, body: bytes) -> str:
        """Writes a body durably and returns its URL. Raises BadInput if it cannot be written."""
        name = sha256(body).hexdigest()
        path = self.folder / name[:2] / name
        with bad_input(f"cannot write a body to {path}"):
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                part = path.with_name(f"{name}.{os.getpid()}.part")
                with part.open("wb") as file:
                    file.write(body)
                    file.flush()
                    os.fsync(file.fileno())
                part.rename(path)
        return f"{self.url}{name[:2]}/{name}"
