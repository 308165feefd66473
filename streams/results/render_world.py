"""Answers page requests from archives: records by URL, with their redirects."""

import tempfile
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from neardup.errors import BadPage
from neardup.limits import BODY_BYTES_MAX
from neardup.page import Page
from neardup.urls import normalise_url
from streams.files.exchanges import with_methods
from streams.files.not_read import NotRead
from streams.files.sources import ReadOptions, open_all
from streams.files.warc_reader import WarcReader
from streams.formats.http_answer import HEADER_BYTES_MAX, fields_of
from streams.formats.no_page import NoPage
from streams.formats.warc import contained_page_of

REDIRECTS = (301, 302, 303, 307, 308)


@dataclass(frozen=True)
class Answer:
    """The answer to a request. location: the target of a redirect as given; empty for other answers."""

    status: int = 200
    content_type: str = ""
    body: bytes = b""
    location: str = ""


class World:
    """Stores answers by normalised URL, the last record of each.

    Bodies lie in a temporary file that is deleted with it.

    problems: parts of the archives that could not be read.
    """

    def __init__(self, paths: Sequence[Path] = (), *, base_url: str | None = None) -> None:
        """Raises BadInput for a path that is no source."""
        self.problems: list[str] = []
        self._places: dict[str, tuple[Answer, int, int]] = {}  # answer without body, its start and size in the file
        self._bodies = tempfile.TemporaryFile()  # noqa: SIM115
        not_read = NotRead()
        for source in open_all(paths, ReadOptions(base_url), body_bytes_max=BODY_BYTES_MAX, not_read=not_read):
            form = source.record.format
            if form is not None and form.records is not None and not form.converted:
                reader = form.records(
                    Path(source.record.path), BODY_BYTES_MAX + HEADER_BYTES_MAX, problems=source.problems
                )
                self._take_records(reader)
            else:
                for sourced in source.read():
                    self._take(sourced.page)
            self.problems += map(str, source.problems)
        self.problems += not_read.lines

    def __enter__(self) -> "World":
        return self

    def __exit__(self, *_: object) -> None:
        self._bodies.close()

    def find(self, url: str) -> Answer | None:
        """Returns the answer to a normalised URL, None if no archive has one."""
        if url not in self._places:
            return None
        answer, start, size = self._places[url]
        self._bodies.seek(start)
        return replace(answer, body=self._bodies.read(size))

    def _take_records(self, reader: WarcReader) -> None:
        with closing(reader.stream):
            for record, method in with_methods(reader.records()):
                page = contained_page_of(record, BODY_BYTES_MAX, converted=False, file=reader.path, method=method)
                if isinstance(page, NoPage):
                    continue
                if page.problem and page.status in REDIRECTS:
                    head = record.content[:HEADER_BYTES_MAX].partition(b"\r\n\r\n")[0]
                    self._put(page.url, Answer(page.status, location=fields_of(head).get("location", "")))
                else:
                    self._take(page)

    def _take(self, page: Page) -> None:
        if page.body is not None and not page.problem and len(page.body) <= BODY_BYTES_MAX:
            self._put(page.url, Answer(page.status, page.content_type, page.body))

    def _put(self, url: str, answer: Answer) -> None:
        try:
            known = normalise_url(url)
        except BadPage as error:
            self.problems.append(str(error))
            return
        start = self._bodies.seek(0, 2)
        self._bodies.write(answer.body)
        self._places[known] = replace(answer, body=b""), start, len(answer.body)
