"""One fetch of one URL, and what a URL says: its normal form, host and sites."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Page:
    """One fetch of one URL.

    url: as the crawler gave it. body: bytes as fetched, None for a tombstone. content_type: the header's value, may be
    empty. fetched_at: ms since the epoch; None: the log time counts. status: HTTP status, 404 and 410 mean gone.
    problem: why the source could not read the page; such a page becomes `rejected`.
    """

    url: str
    body: bytes | None
    content_type: str = ""
    fetched_at: int | None = None
    status: int = 200
    problem: str = ""
