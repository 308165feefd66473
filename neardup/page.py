"""One fetch of one URL."""

from dataclasses import dataclass

from neardup.errors import BadPage

#: Content types of files that hold one page, by suffix.
CONTENT_TYPES = {".html": "text/html", ".htm": "text/html", ".xhtml": "application/xhtml+xml", ".txt": "text/plain"}


@dataclass(frozen=True, slots=True)
class Page:
    """One fetch of one URL.

    Args:
        url: as the crawler gave it; of a document with an id: `url_of_id(id)`.
        body: bytes as fetched; None if the page is gone (a tombstone), whether or not the index has the URL.
        content_type: value of the header; may be empty: then a body with tags is HTML.
        fetched_at: ms since the epoch; None: the greatest `fetched_at` of the pages that the index judged before.
        status: HTTP status; 404 and 410 mean gone.
        score: the crawler's score, 0 to 1, for canonical policies (`neardup.canonical`); it affects no verdict.
        problem: why the source could not read the page; such a page is rejected.

    Raises TypeError for a body of text, a URL of bytes, or a time that is no int; BadPage for an invalid score.
    """

    url: str
    body: bytes | None
    content_type: str = ""
    fetched_at: int | None = None
    status: int = 200
    problem: str = ""
    score: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.url, str):
            raise TypeError(f"the URL {self.url!r} is {type(self.url).__name__}, not str")
        if self.fetched_at is not None and not isinstance(self.fetched_at, int):
            found = type(self.fetched_at).__name__
            raise TypeError(f"fetched_at of {self.url} is {found}, not int: give milliseconds since 1970")
        if self.body is not None and not isinstance(self.body, bytes):
            raise TypeError(f"the body of {self.url} is {type(self.body).__name__}, not bytes: encode text as UTF-8")
        if self.score is not None and not 0 <= self.score <= 1:
            raise BadPage("score is not a number from 0 to 1")
