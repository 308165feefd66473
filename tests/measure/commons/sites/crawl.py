"""Crawls of sites as WARC files, and their pages as a scan reads them."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from neardup.page import Page
from neardup.scheme import Scheme
from streams.files.not_read import NotRead
from streams.files.sources import open_all
from tests.measure.commons.sites.frame import SitePage

_DATE = b"2024-05-01T10:00:00Z"


def write(pages: Iterable[SitePage], path: Path) -> None:
    """Write a WARC file with one response record for each page."""
    with path.open("wb") as out:
        for number, page in enumerate(pages):
            head = f"HTTP/1.1 200 OK\r\nContent-Type: {page.content_type}\r\nContent-Length: {len(page.body)}\r\n\r\n"
            block = head.encode() + page.body
            record = (
                b"WARC/1.0\r\nWARC-Type: response\r\n"
                b"WARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-%012x>\r\n"
                b"WARC-Target-URI: %s\r\nWARC-Date: %s\r\nContent-Type: application/http; msgtype=response\r\n"
                b"Content-Length: %d\r\n\r\n" % (number, page.url.encode(), _DATE, len(block))
            )
            out.write(record + block + b"\r\n\r\n")


def read(path: Path, scheme: Scheme) -> list[Page]:
    """The pages of a WARC file, read as `neardup scan` reads them. Raises ValueError if a part cannot be read."""
    (source,) = open_all([path], body_bytes_max=scheme.body_bytes_max, not_read=NotRead())
    pages = [each.page for each in source.read()]
    if source.problems or any(page.problem or page.body is None for page in pages):
        raise ValueError(f"{path}: {[*source.problems, *(page.problem for page in pages if page.problem)][:3]}")
    return pages


def crawled(pages: Sequence[SitePage], scheme: Scheme) -> list[Page]:
    """Made-up pages, written as a WARC file and read as a scan reads them."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "site.warc"
        write(pages, path)
        found = read(path, scheme)
    if len(found) != len(pages):
        raise ValueError(f"{len(pages)} pages were written, {len(found)} read")
    return found
