"""WARC files for tests: the same records in every packing, and a reading of them that checks their places."""

import gzip
import io
from collections.abc import Callable
from pathlib import Path

from fastwarc.stream_io import BrotliWriter, ZstdWriter

from neardup.page import Page
from streams.files.not_read import NotRead
from streams.files.sources import LocalSource, open_sources
from streams.ports import SourcedPage
from tests.streams.archives import http, record

BOUND = 100_000


def gz(data: bytes) -> bytes:
    """Without the time in it: workers name tests by their data, and must agree."""
    return gzip.compress(data, mtime=0)


RECORDS = [record(f"http://a.example/{i}", http(b"<p>hello %d</p>" % i * (i + 1))) for i in range(6)]
BODIES = [b"<p>hello %d</p>" % i * (i + 1) for i in range(6)]
ZIPPED = [gz(r) for r in RECORDS]


def zstd(data: bytes) -> bytes:
    out = io.BytesIO()
    writer = ZstdWriter(out)
    writer.write(data)
    writer.close()
    return out.getvalue()


def brotli(data: bytes) -> bytes:
    out = io.BytesIO()
    writer = BrotliWriter(out)
    writer.write(data)
    writer.close()
    return out.getvalue()


def source(tmp_path: Path, data: bytes, name: str = "x.warc") -> LocalSource:
    file = tmp_path / name
    file.write_bytes(data)
    (found,) = open_sources(file, not_read=NotRead(), body_bytes_max=BOUND)
    return found


def read(tmp_path: Path, data: bytes) -> tuple[list[Page], list[str]]:
    """All pages and problems; on the way, that each page can be read again and reading can go on after each."""
    archive = source(tmp_path, data)
    pages = list(archive.read())
    problems = [f"{p.byte}: {p.what}" for p in archive.problems]
    check_places(archive, pages)
    return [page.page for page in pages], problems


def check_places(archive: LocalSource, pages: list[SourcedPage]) -> None:
    assert [page.coordinates.offset for page in pages] == list(range(len(pages)))
    for i, page in enumerate(pages):
        assert archive.read_at(page.coordinates) == page.page
        assert list(archive.read(i + 1, page.coordinates.position)) == pages[i + 1 :]


PACKINGS: dict[str, Callable[[list[bytes]], bytes]] = {
    "plain": b"".join,
    "gzip per record": lambda records: b"".join(gz(r) for r in records),
    "one gzip member": lambda records: gz(b"".join(records)),
    "a member, then one of all": lambda records: gz(records[0]) + gz(b"".join(records[1:])),
    "gzip in blocks of 100 bytes": lambda records: b"".join(
        gz(b"".join(records)[i : i + 100]) for i in range(0, len(b"".join(records)), 100)
    ),
    "gzip with padding": lambda records: b"".join(gz(r) + bytes(7) for r in records),
    "zstd per record": lambda records: b"".join(map(zstd, records)),
    "one zstd frame": lambda records: zstd(b"".join(records)),
}
