"""Reads results of queries for labelling: the queries that found each page, and pages as a browser rendered them."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from streams.results.query_results import read_results


class QueriedPages:
    """Results of queries to label.

    found: (query, URL) of each result.
    """

    def __init__(self, bodies: BinaryIO) -> None:
        self.found: list[tuple[str, str]] = []
        self._bodies = bodies
        self._spans: dict[str, tuple[int, int]] = {}

    def read(self, paths: Sequence[Path], base_url: str | None) -> None:
        """Reads all results; rendered bodies go to the file. Raises BadInput for a path that is no source."""
        for line in read_results(paths, base_url, []):
            url = line.page.url
            self.found.append((line.query, url))
            if line.rendered is not None and url not in self._spans:
                self._spans[url] = self._bodies.tell(), len(line.rendered)
                self._bodies.write(line.rendered)

    def rendered(self, url: str) -> bytes | None:
        """Returns the rendered body of a page in UTF-8, None without one. Not for two threads at once."""
        if url not in self._spans:
            return None
        start, length = self._spans[url]
        self._bodies.seek(start)
        return self._bodies.read(length)


@contextmanager
def queried_pages(paths: Sequence[Path], base_url: str | None) -> Iterator[QueriedPages]:
    """Reads results of queries. Rendered bodies lie in a temporary file until the end."""
    with tempfile.TemporaryFile(prefix="neardup-rendered-") as bodies:
        pages = QueriedPages(bodies)
        pages.read(paths, base_url)
        yield pages
