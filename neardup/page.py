"""One fetch of one URL."""

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
        body: bytes as fetched. None: the page is gone (a tombstone), whether or not the index has the URL.
        content_type: value of the HTTP header. If it is empty, a body with tags is HTML.
        fetched_at: fetch time in milliseconds since 1970. Seconds, a date as text and a `datetime` are converted to
            milliseconds (`neardup.fetch_times`). None: the greatest fetch time of the pages that the index judged
            before.
        status: HTTP status; 404 and 410 mean that the page is gone.
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
            self._read_time(self.fetched_at)
        given = (self.url, self.body, self.content_type, self.fetched_at, self.status, self.problem, self.score)
        if tuple(map(type, given)) not in _USUAL:  # the quick check, once a page
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
