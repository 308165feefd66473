"""One fetch of one URL."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import product

from neardup.errors import BadPage
from neardup.fetch_times import is_ms, is_readable, read_time
from neardup.url_bytes import without_surrogates

#: Content types of files that hold one page, by suffix.
CONTENT_TYPES = {".html": "text/html", ".htm": "text/html", ".xhtml": "application/xhtml+xml", ".txt": "text/plain"}


@dataclass(frozen=True, slots=True)
class Page:
    """One fetch of one URL.

    Args:
        url: URL as the crawler fetched it. For a document with an id, use `url_of_id(id)`. Surrogates that stand for
            bytes (`bytes.decode("utf-8", "surrogateescape")`) are percent-encoded.
        body: bytes as fetched; a `bytearray`, a `memoryview` and other buffers of bytes are copied. None: the page is
            gone (a tombstone), whether or not the index has the URL.
        content_type: value of the HTTP header. If it is empty, a body with tags is HTML.
        fetched_at: fetch time in milliseconds since 1970. Seconds, a date as text and a `datetime` are converted to
            milliseconds (`neardup.fetch_times`). None: the greatest fetch time of the pages that the index judged
            before.
        status: HTTP status; 404 and 410 mean that the page is gone. Numbers may be numpy scalars.
        problem: reason why the source could not read the page. A page with a reason is rejected.
        score: the crawler's score of the page, 0 to 1, for canonical policies (`neardup.canonical`). It changes no
            verdict.
        truncated: whether the crawler cut the body at its own limit of length. The verdict repeats it.
        time_read_as: unit or form of the given `fetched_at` if it was neither milliseconds nor a date, else empty.
            The constructor sets it.

    Raises:
        TypeError: if a field has another type, such as a body of type `str` or a status `"200"`.
        BadPage: if the score or the fetch time is invalid.

    Example:
        >>> Page("https://a.example/", b"<p>Hello", fetched_at="2026-01-01T00:00:00Z").fetched_at
        1767225600000
    """

    url: str
    body: bytes | None
    content_type: str = ""
    fetched_at: int | None = None
    status: int = 200
    problem: str = ""
    score: float | None = None
    truncated: bool = False
    time_read_as: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if not (self.fetched_at is None or is_ms(self.fetched_at)):
            self._read_time(_plain_number(self.fetched_at))
        given = (self.url, self.body, self.content_type, self.fetched_at, self.status, self.problem, self.score)
        if tuple(map(type, given)) not in _USUAL:  # the quick check, once a page
            for (name, convert), value in zip(_PLAIN.items(), given, strict=True):
                object.__setattr__(self, name, convert(value))
            given = (self.url, self.body, self.content_type, self.fetched_at, self.status, self.problem, self.score)
            for (name, kind, required), value in zip(_REQUIRED, given, strict=True):
                if isinstance(value, bool) or not isinstance(value, kind):
                    of = f" of {self.url!r:.200}" if name != "url" else ""
                    found = "None" if value is None else f"{value!r:.60} of type {type(value).__name__}"
                    raise TypeError(f"Page.{name}{of} must be {required}, not {found}")
        if not self.url.isascii():
            object.__setattr__(self, "url", without_surrogates(self.url))
        if self.score is not None and not 0 <= self.score <= 1:
            raise BadPage("score is not a number from 0 to 1")

    def _read_time(self, given: object) -> None:
        object.__setattr__(self, "fetched_at", given)
        if is_readable(given):
            found = read_time(given)
            object.__setattr__(self, "fetched_at", found.ms)
            object.__setattr__(self, "time_read_as", found.read_as)

    def dated(self, ms: int) -> "Page":
        """Return the page with another fetch time.

        Args:
            ms: fetch time in milliseconds since 1970. It is not checked, because the time of a file may be any number.
        """
        page = replace(self, fetched_at=None)
        object.__setattr__(page, "fetched_at", ms)
        return page


def _plain_text(given: object) -> object:
    """Return the text of a subclass of `str`; other values as they are."""
    return str(given) if isinstance(given, str) else given


def _plain_bytes(given: object) -> object:
    """Return the bytes of a buffer of bytes; other values, and text, as they are."""
    if isinstance(given, str | bytes):
        return bytes(given) if isinstance(given, bytes) else given
    try:
        view = memoryview(given)  # type: ignore[arg-type]
    except TypeError:
        return given
    return view.tobytes() if view.itemsize == 1 else given


def _plain_number(given: object) -> object:
    """Return the number of a numpy scalar, which is known by its attributes; other values as they are."""
    return given.item() if hasattr(given, "item") and getattr(given, "ndim", None) == 0 else given


#: Makes values of a field plain that mean one of its types.
_PLAIN: Mapping[str, Callable[[object], object]] = {
    "url": _plain_text,
    "body": _plain_bytes,
    "content_type": _plain_text,
    "fetched_at": _plain_number,
    "status": _plain_number,
    "problem": _plain_text,
    "score": _plain_number,
}
_NONE = type(None)
#: Name of a field, its types, and the phrase for errors.
_REQUIRED: tuple[tuple[str, tuple[type, ...], str], ...] = (
    ("url", (str,), "a str"),
    ("body", (bytes, _NONE), "bytes (encode text as UTF-8), or None for a page that is gone"),
    ("content_type", (str,), "a str, empty if it is not known"),
    ("fetched_at", (int, _NONE), "a time, such as milliseconds since 1970, or None"),
    ("status", (int,), "an int, such as 200"),
    ("problem", (str,), "a str"),
    ("score", (float, int, _NONE), "a number from 0 to 1, or None"),
)
_USUAL = frozenset(product(*(kinds for _, kinds, _ in _REQUIRED)))
