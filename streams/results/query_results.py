"""Results of queries as JSON lines: a page as elsewhere, with the query that found it and its rendered body.

    {"query": TEXT, "url": ..., "body": TEXT or {"base64": ...}, "content_type": ..., "rendered": TEXT or
     {"base64": ...} or null, "lang": TEXT, "fetch_ms": NUMBER, "render_ms": NUMBER}

All but url and body may be left out. A rendered body is the document as a browser serialises it. fetch_ms, render_ms:
the time that fetching and rendering the page took; the crawler and `neardup render` know it.
"""

import base64
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, BinaryIO

import orjson
from msgspec import Meta, Struct

from neardup.errors import BadInput, BadPage
from neardup.evaluation.labels import lines_of
from neardup.limits import BODY_BYTES_MAX
from neardup.page import Page
from neardup.signals.result_pages import Body, Result
from neardup.typed_json import decode
from neardup.urls import normalise_url
from streams.errors import bad_input
from streams.files.not_read import NotRead
from streams.files.sources import ReadOptions, open_all
from streams.formats.compressed import SUFFIXES as COMPRESSIONS
from streams.formats.compressed import compression_of
from streams.formats.json import decode_line, encode
from streams.process.disk import whole_file

LINE_BYTES_MAX = 64_000_000
#: Results of one query are compared with each other.
RESULTS_MAX = 1000
#: The longest time of a page: a day.
MS_MAX = 86_400_000
_GONE = "no body: the page is gone"


@dataclass(frozen=True)
class Line:
    """A result of a query.

    page: page with its normalised URL. rendered: rendered body as UTF-8. fetch_ms, render_ms: times in ms; None if they
    are unknown.
    """

    page: Page
    query: str = ""
    rendered: bytes | None = None
    lang: str = ""
    fetch_ms: float | None = None
    render_ms: float | None = None

    def result(self) -> Result:
        rendered = None if self.rendered is None else Body.of(self.rendered, "text/html; charset=utf-8")
        body = Body.of(self.page.body or b"", self.page.content_type)
        return Result(self.page.url, body, rendered, self.query, self.lang)


_Milliseconds = Annotated[float, Meta(ge=0, le=MS_MAX)]


class _Base64(Struct):
    base64: str

    def decoded(self) -> bytes:
        """Raises ValueError."""
        try:
            return base64.b64decode(self.base64, validate=True)
        except ValueError as error:
            raise ValueError(f"rendered is not base64: {error}") from error


class _Fields(Struct):
    """The fields of a line that a page has not."""

    query: str | None = None
    rendered: str | _Base64 | None = None
    lang: str | None = None
    fetch_ms: _Milliseconds | None = None
    render_ms: _Milliseconds | None = None


def decode_result(line: bytes) -> Line:
    """Raises BadPage for a line that is no result."""
    page = decode_line(line)
    if page.problem or page.body is None:
        raise BadPage(page.problem or _GONE)
    try:
        own = decode(line, _Fields)
        rendered = own.rendered.decoded() if isinstance(own.rendered, _Base64) else own.rendered
    except ValueError as error:
        raise BadPage(str(error)) from error
    if isinstance(rendered, str):
        rendered = rendered.encode("utf-8", "replace")
    return Line(_normal(page), own.query or "", rendered, own.lang or "", own.fetch_ms, own.render_ms)


def encode_result(line: Line, **more: object) -> bytes:
    """Encodes a result without a line end. more: additional fields, as `rendered_url`."""
    fields = orjson.loads(encode(line.page, line.page.url.encode(), False, "").value or b"{}")
    del fields["http_status"]
    own = {"query": line.query, "lang": line.lang, "rendered": (line.rendered or b"").decode("utf-8", "replace")}
    fields |= {name: text for name, text in own.items() if text}
    times = {"fetch_ms": line.fetch_ms, "render_ms": line.render_ms}
    fields |= {name: ms for name, ms in times.items() if ms is not None}
    return orjson.dumps(fields | more)


def _normal(page: Page) -> Page:
    return Page(normalise_url(page.url), page.body, page.content_type)


class ResultFile:
    """The results of a file by query; only their positions are in memory. problems: rejected lines, with the reason."""

    def __init__(self, path: Path) -> None:
        """Raises BadInput for a file that cannot be read."""
        self._path = path
        self.problems: list[str] = []
        self._positions: dict[str, list[int]] = {}
        with bad_input(str(path)):
            with path.open("rb") as file:
                if compression_of(file.read(8)) != "plain":
                    raise BadInput(f"{path}: compressed; unpack it: results of one query may lie far apart")
            for position, result in _results(path, self.problems):
                self._positions.setdefault(result.query, []).append(position)

    def __len__(self) -> int:
        return len(self._positions)

    def lists(self) -> Iterator[tuple[str, list[Result]]]:
        """Yields each query with its results in order, the first of each URL. Raises BadInput for too many."""
        with self._path.open("rb") as file:
            for query, positions in self._positions.items():
                if len(positions) > RESULTS_MAX:
                    raise BadInput(
                        f"{self._path}: {len(positions):,} results of {query!r}; at most {RESULTS_MAX:,} are compared"
                    )
                found: dict[str, Result] = {}
                for position in positions:
                    file.seek(position)
                    result = decode_result(file.readline()).result()
                    found.setdefault(result.url, result)
                yield query, list(found.values())


def read_results(paths: Sequence[Path], base_url: str | None, problems: list[str]) -> Iterator[Line]:
    """Yields all results of some files; pages of other sources (see `open_sources`) are results of no query.

    Notes unreadable parts in `problems`. Raises BadInput for a path that is no source.
    """
    not_read = NotRead()
    for source in open_all(paths, ReadOptions(base_url), body_bytes_max=BODY_BYTES_MAX, not_read=not_read):
        plain = Path(source.record.path)
        if source.record.kind == "jsonl" and not plain.name.endswith(COMPRESSIONS):
            yield from (result for _, result in _results(plain, problems))
            continue
        for sourced in source.read():
            page = sourced.page
            try:
                if page.problem or page.body is None:
                    raise BadPage(page.problem or _GONE)
                yield Line(_normal(page))
            except BadPage as error:
                problems.append(f"{page.url or plain}: {error}")
        problems += map(str, source.problems)
    problems += not_read.lines


def _results(path: Path, problems: list[str]) -> Iterator[tuple[int, Line]]:
    """Yields (byte of its line, result). Notes rejected lines in `problems`. Raises OSError."""
    with path.open("rb") as file:
        for number, line in enumerate(lines_of(file, LINE_BYTES_MAX), 1):
            try:
                if len(line) > LINE_BYTES_MAX:
                    raise BadPage(f"a line of more than {LINE_BYTES_MAX:,} bytes")
                if line.strip():
                    yield file.tell() - len(line), decode_result(line)
            except BadPage as error:
                problems.append(f"{path}:{number}: {error}")


@contextmanager
def result_file(path: Path) -> Iterator[BinaryIO]:
    """Opens a file that gets its name once it is complete. Raises BadInput."""
    with bad_input(str(path)), whole_file(path) as fresh, fresh.open("wb") as file:
        yield file
