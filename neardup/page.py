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
        url: as the crawler gave it; of a document with an id: `url_of_id(id)`. Surrogates that stand for bytes
            (`bytes.decode("utf-8", "surrogateescape")`) are percent-encoded.
        body: bytes as fetched; None if the page is gone (a tombstone), whether or not the index has the URL.
        content_type: value of the header; may be empty: then a body with tags is HTML.
        fetched_at: ms since the epoch, or what `neardup.fetch_times` reads as such, which is then replaced by the ms:
            seconds, a date as text, a `datetime`. None: the greatest one of the pages that the index judged before.
        status: HTTP status; 404 and 410 mean gone.
        truncated: the crawler cut the body at its own limit of length; the verdict says so.
        score: the crawler's score, 0 to 1, for canonical policies (`neardup.canonical`); it affects no verdict.
        problem: why the source could not read the page; such a page is rejected.
        time_read_as: unit or form of the given `fetched_at` if it was neither ms nor a date, else "". Set by the page.

    Raises TypeError for a field of another type, such as a body of text or a status "200"; BadPage for an invalid
    score or fetch time.
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
        """Returns the page with another fetch time, which is not read: a time of a file may be any."""
        page = replace(self, fetched_at=None)
        object.__setattr__(page, "fetched_at", ms)
        return page


_NONE = type(None)
#: Field, types, and what it must be, in words.
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
