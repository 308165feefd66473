"""The readable part of a state directory of a scan: verdicts, sources, and pages read again."""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import orjson

from neardup.decider import Decider
from neardup.errors import BadInput, CorruptRecord
from neardup.index.column_families import Store
from neardup.limits import PLACE_BITS
from neardup.page import Page
from neardup.scheme import Scheme
from neardup.sketch.takedown_hashes import Takedown
from neardup.standing import VerdictFields
from neardup.verdict import Coordinates, Verdict
from streams.files.sources import LocalSource, SourceRecord, unchanged
from streams.formats.message import decode_verdict_fields, decode_verdicts, verdict_lines
from streams.pipeline.folded_takedowns import takedowns_of, without
from streams.process.disk import state_errors
from streams.state.named_documents import indexed

#: Source of pages that `neardup.open_index` added; offset: their ordinal in this directory.
LIBRARY = "0" * 32
#: Bodies that `read_pages` holds.
AHEAD_BYTES_MAX = 256 << 20


class Frames(Protocol):
    """A log of a state directory, for reading."""

    def end(self) -> int: ...
    def read(self, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, bytes]]: ...


class ScanReader:
    """What can be read of a state directory.

    sources: sources by id (32 hex digits), in the order of their names.
    first_decider: decider at the start of the log. store: rows of the index.
    log, verdict_frames: messages of sketches, and the verdicts of each message at the same offset.
    """

    path: Path
    scheme: Scheme
    first_decider: Decider
    store: Store
    log: Frames
    verdict_frames: Frames
    sources: dict[str, SourceRecord]

    def __init__(self) -> None:
        self._readable: dict[str, bool] = {}

    @property
    def decider(self) -> Decider:
        """The current decider."""
        raise NotImplementedError

    def verdicts(self) -> Iterator[dict[str, Any]]:
        """Yield verdicts as JSON objects, in the log's order, without pages that were taken down later.

        Such a page has only the verdict `gone` of its takedown, and no verdict on another page contains its URL.
        """
        for _, verdicts in self.verdicts_from(0):
            yield from verdicts

    def verdicts_from(self, start: int) -> Iterator[tuple[int, Iterator[dict[str, Any]]]]:
        """Yield (offset, verdicts) of each frame from an offset on; see `verdicts`."""
        for offset, frame, later in self._frames(start):
            verdicts = decode_verdicts(frame, offset)
            left = (without(later, verdict) for verdict in verdicts) if later else verdicts
            yield offset, (verdict for verdict in left if verdict is not None)

    def verdict_fields(self) -> Iterator[VerdictFields]:
        """Yield the same verdicts as `verdicts`, each as the fields that tables have."""
        for offset, frame, later in self._frames(0):
            if not later:
                yield from decode_verdict_fields(frame, offset)
                continue
            for verdict in decode_verdicts(frame, offset):
                if (left := without(later, verdict)) is not None:
                    yield VerdictFields.of(left)

    def _frames(self, start: int) -> Iterator[tuple[int, bytes, list[Takedown]]]:
        """Yield (offset, frame, later takedowns) of the verdicts of each message from an offset on."""
        done = list(takedowns_of(self.store))
        for offset, frame in self.verdict_frames.read(start):
            yield offset, frame, [one.takedown for one in done if one.offset >= offset]

    def last_takedown(self) -> int:
        """Return the offset of the latest takedown's control record; -1 without one."""
        return max((one.offset for one in takedowns_of(self.store)), default=-1)

    def url_of(self, given: str) -> str:
        """Return the normalised URL of a document, named by its URL, its id, or FILE#ID.

        Without such a document it is the URL of what was named. Raises BadInput for an id that several documents have.
        """
        return indexed(given, self.sources.values(), self.store, self.scheme.url_bytes_max)

    def takedowns_after(self, offset: int) -> list[Takedown]:
        """Return the takedowns at `offset` of the log and behind it."""
        return [one.takedown for one in takedowns_of(self.store) if one.offset >= offset]

    def kept_lines(self) -> Callable[[Verdict], bytes | None]:
        """Return a lookup of a verdict's stored JSON line (or None); it is called in the log's order, once each."""
        frames = self.verdict_frames.read()
        lines: dict[tuple[int, int], bytes] = {}
        last = -1

        def line_of(verdict: Verdict) -> bytes | None:
            nonlocal last
            required = verdict.page_id >> PLACE_BITS
            while last < required and (frame := next(frames, None)) is not None:
                last = frame[0]
                if last >= required:
                    found = verdict_lines(frame[1], last).splitlines()
                    lines.clear()
                    lines.update({(one["page_id"], one["n"]): line for line in found for one in [orjson.loads(line)]})
            return lines.get((verdict.page_id, verdict.n)) if last == required else None

        return line_of

    def read_pages(self, places: Iterable[Coordinates]) -> dict[tuple[str, int], Page]:
        """Read pages again, by source and offset: those of each source together, where one alone costs a lot.

        Pages are missing that cost little, that `read_page` cannot read, or that do not fit into AHEAD_BYTES_MAX.
        """
        of_sources: dict[str, list[Coordinates]] = {}
        for place in places:
            of_sources.setdefault(place.source, []).append(place)
        found: dict[tuple[str, int], Page] = {}
        left = AHEAD_BYTES_MAX
        for some in of_sources.values():
            with suppress(OSError, BadInput):  # `read_page` says it
                source = LocalSource(self._readable_source(some[0]), self.scheme.body_bytes_max)
                for place, page in source.read_many(some):
                    left -= len(page.body or b"")
                    if left < 0:
                        return found
                    found[place.source, place.offset] = page
        return found

    def read_page(self, coordinates: Coordinates) -> Page:
        """Read a page again from its source. Raises BadInput if the source is gone, changed or unknown."""
        record = self._readable_source(coordinates)
        try:
            page = LocalSource(record, self.scheme.body_bytes_max).read_at(coordinates)
        except OSError as error:
            raise _unreadable(record, error) from error
        if page is None:
            raise BadInput(f"{record.path}: holds no page {coordinates.offset}")
        return page

    def _readable_source(self, coordinates: Coordinates) -> SourceRecord:
        """The source of a page, unchanged. Raises BadInput."""
        record = self.sources.get(coordinates.source)
        if coordinates.source == LIBRARY:
            raise BadInput("added by neardup.open_index, which keeps no pages")
        if record is None:
            raise BadInput(f"no source {coordinates.source} is known here")
        name = None
        if record.format is None:
            if not 0 <= coordinates.position < len(record.files):
                raise BadInput(f"{record.path}: holds no file {coordinates.position}")
            name = record.files[coordinates.position][0]
        key = coordinates.source if name is None else f"{coordinates.source}/{name}"
        if key not in self._readable:
            try:
                self._readable[key] = unchanged(record, name)
            except OSError as error:
                raise _unreadable(record, error) from error
        if not self._readable[key]:
            raise BadInput(f"{Path(record.path, name or '')}: has changed since it was scanned")
        return record


def _unreadable(record: SourceRecord, error: OSError) -> BadInput:
    return BadInput(f"{error.filename or record.path}: cannot be read any more: {error.strerror}")


def read_sources(path: Path) -> dict[str, SourceRecord]:
    """Reads the records of a state directory's sources. Raises StateError, CorruptRecord."""
    found = {}
    with state_errors("open", path / "sources"):
        records = [(file, file.read_text()) for file in sorted((path / "sources").glob("*.json"))]
    for file, text in records:
        try:
            record = SourceRecord.from_json(json.loads(text))
        except (ValueError, TypeError) as error:
            raise CorruptRecord(f"{file} is not a source's record: {error}; delete it to scan it again") from error
        found[record.id] = record
    return found
