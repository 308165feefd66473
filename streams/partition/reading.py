"""Reads sources as chunks of numbered pages, starting where an earlier run stopped."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from neardup.errors import BadInput
from neardup.limits import BODY_BYTES_MAX
from neardup.page import Page
from neardup.partition.plan import PLACE_BITS, SOURCE_BITS
from streams.files.not_read import NotRead
from streams.files.sources import LocalSource, ReadOptions, open_all

#: Limits of a chunk, the unit of work of a process: pages, and bytes of their bodies.
CHUNK_PAGES, CHUNK_BYTES = 1000, 16 << 20


@dataclass(frozen=True)
class ReadMark:
    """The input position to resume at: source, ordinal in it, and the file position of the page before that ordinal."""

    source: int = 0
    place: int = 0
    position: int | None = None


@dataclass
class Chunk:
    """Numbered pages. after: where the next chunk starts. problems: places of the input that could not be read."""

    pages: list[tuple[int, Page]]
    after: ReadMark
    problems: list[str] = field(default_factory=list)
    bytes_done: int = 0


def sources_of(paths: Sequence[Path], options: ReadOptions, not_read: NotRead) -> list[LocalSource]:
    """Opens the sources of some paths, each once. not_read: gets the files that are not read. Raises BadInput."""
    found: dict[str, LocalSource] = {}
    for source in open_all(paths, options, body_bytes_max=BODY_BYTES_MAX, not_read=not_read):
        if found.setdefault(source.record.content, source) is source:
            source.settle_ids()
    if len(found) >= 1 << SOURCE_BITS:
        raise BadInput(f"{len(found):,} files; a partition reads at most {1 << SOURCE_BITS:,}")
    return list(found.values())


def number_of(source: int, place: int) -> int:
    """Packs a source and an ordinal into a document's number."""
    return source << PLACE_BITS | place


def place_of(doc: int) -> tuple[int, int]:
    """Unpacks a document's number into (source, ordinal)."""
    return doc >> PLACE_BITS, doc & ((1 << PLACE_BITS) - 1)


def chunks(sources: Sequence[LocalSource], start: ReadMark) -> Iterator[Chunk]:
    """Reads pages from a mark on. The last chunk of a source may be empty except for problems."""
    before = sum(source.bytes_total for source in sources[: start.source])
    for number in range(start.source, len(sources)):
        first = start if number == start.source else ReadMark(number)
        for chunk in chunks_of(sources[number], number, first):
            chunk.bytes_done += before
            yield chunk
        before += sources[number].bytes_total


def chunks_of(source: LocalSource, number: int, start: ReadMark, end: int | None = None) -> Iterator[Chunk]:
    """Reads the pages of one source from a mark on, up to the ordinal `end`."""
    pages: list[tuple[int, Page]] = []
    size = reported = 0
    try:
        for sourced in source.read(start.place, start.position):
            place = sourced.coordinates.offset
            if end is not None and place >= end:
                break
            pages.append((number_of(number, place), sourced.page))
            size += len(sourced.page.body or b"")
            if len(pages) == CHUNK_PAGES or size >= CHUNK_BYTES:
                fresh = [str(problem) for problem in source.problems[reported:]]
                reported = len(source.problems)
                after = ReadMark(number, place + 1, sourced.coordinates.position)
                yield Chunk(pages, after, fresh, source.bytes_read)
                pages, size = [], 0
    except OSError as error:
        source.cannot_go_on(error)
    fresh = [str(problem) for problem in source.problems[reported:]]
    yield Chunk(pages, ReadMark(number + 1), fresh, source.bytes_total)


def read_places(sources: Sequence[LocalSource], places: set[tuple[str, int]]) -> dict[tuple[str, int], Page]:
    """Reads pages by (source, offset): single files from folders, other sources in one pass each.

    Pages that cannot be read are missing from the result.
    """
    found: dict[tuple[str, int], Page] = {}
    for source in sources:
        name = source.record.id
        offsets = sorted(offset for of, offset in places if of == name)
        required = set(offsets)
        with suppress(OSError):
            if source.record.format is None:
                for offset in offsets:
                    for sourced in islice(source.read(offset, offset - 1 if offset else None), 1):
                        found[name, offset] = sourced.page
            elif offsets:
                for sourced in islice(source.read(), offsets[-1] + 1):
                    if sourced.coordinates.offset in required:
                        found[name, sourced.coordinates.offset] = sourced.page
    return found
