"""Counts each page of each source once, however often a sketcher sent it.

A sketcher delivers at least once: after a crash or a rebalance it sends the same pages again, cut into other messages.
Each message names the source ranges `[start, stop)` that it accounts for. For each partition of a source there is a
mark: the offset that must come next. The first range of a partition sets its mark. Afterwards:

* a range that ends at or before the mark is dropped;
* of a range that begins at or before the mark, the records from the mark on are new;
* a range that begins behind the mark would lose pages silently: `account` raises SourceGap.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from neardup.errors import CorruptRecord
from neardup.sketch.header import Header, headers_of_valid
from streams.errors import SourceGap
from streams.formats.message import Message
from streams.ports import Range

#: A partition of a source: (16 bytes that name the source, partition).
Key = tuple[bytes, int]


@dataclass(frozen=True, slots=True)
class Mark:
    """How far the log accounts for one partition of a source: next offset, and the position of the record before."""

    offset: int = 0
    position: int | None = None


class CountedRecord(NamedTuple):
    """A record of a message, with the fields of its header that are counted."""

    record: bytes
    source: bytes
    partition: int
    offset: int
    position: int
    log_time: int


@dataclass(slots=True)
class Account:
    """What one message adds.

    new: (number in the message, record) of each new record, in order. marks: changed ones. dropped: ranges that add
    nothing. duplicates: records counted before. accepted: gaps that the operator accepted. skipped: the reason of each
    record that the operator skipped.
    """

    new: list[tuple[int, CountedRecord]] = field(default_factory=list)
    marks: dict[Key, Mark] = field(default_factory=dict)
    dropped: int = 0
    duplicates: int = 0
    accepted: int = 0
    skipped: list[str] = field(default_factory=list)


def account(
    message: Message,
    offset: int,
    known: Mapping[Key, Mark],
    *,
    accept_gaps: Callable[[], bool] = lambda: False,
    skip_records: Callable[[], bool] = lambda: False,
) -> Account:
    """Compare the message at `offset` with the marks in `known`.

    accept_gaps, skip_records: whether the operator decided so about this message; called only where it matters. Raises
    SourceGap, and CorruptRecord for a record that is unreadable or outside the message's ranges.
    """
    found = Account()
    spans = {(span.source, span.partition): span for span in message.ranges}
    gaps = [span for key, span in spans.items() if key in known and span.start > known[key].offset]
    if gaps and not accept_gaps():
        raise SourceGap(
            f"the message at offset {offset} of the sketch log leaves out records of its sources: "
            + "; ".join(_gap(span, known[span.source, span.partition].offset) for span in gaps)
        )
    found.accepted = len(gaps)
    starts = {}
    for key, span in spans.items():
        mark = known.get(key)
        starts[key] = span.start if mark is None else max(mark.offset, span.start if span in gaps else 0)
        if mark is not None and span.stop <= mark.offset and span.start < span.stop:
            found.dropped += 1
        found.marks[key] = Mark(max(span.stop, starts[key]), mark.position if mark else None)
    if (records := _all_read(message.records, spans)) is not None:
        _count(found, records, starts)
        return found
    last: dict[Key, int] = {}
    for number, record in enumerate(message.records):
        try:
            header = _read(record, spans, last)
        except CorruptRecord as error:
            why = f"record {number} of the message at offset {offset} of the sketch log: {error}"
            if not skip_records():
                raise CorruptRecord(why) from error
            found.skipped.append(why)
            continue
        key = (header.source, header.partition)
        if header.offset < starts[key]:
            found.duplicates += 1
            continue
        found.new.append((number, _counted(header)))
        found.marks[key] = Mark(found.marks[key].offset, header.position)
    return found


def _all_read(records: Sequence[bytes], spans: Mapping[Key, Range]) -> list[CountedRecord] | None:
    """The records of a message, read together; None if `_read` would refuse one of them."""
    headers = headers_of_valid(records)
    if headers is None:
        return None
    ranges = np.zeros(len(headers), dtype=np.int64)  # by record, 1 + number of its range
    sources = headers["source"]
    for number, ((source, partition), span) in enumerate(spans.items(), 1):
        own = (sources == np.void(source)) & (headers["partition"] == partition)
        offsets = headers["offset"][own]
        if len(offsets) and not (span.start <= offsets[0] and offsets[-1] < span.stop and (np.diff(offsets) > 0).all()):
            return None
        ranges[own] = number
    if not ranges.all():
        return None
    columns = (headers[name].tolist() for name in CountedRecord._fields[1:])
    return list(map(CountedRecord._make, zip(records, *columns, strict=True)))


def _count(found: Account, records: Sequence[CountedRecord], starts: Mapping[Key, int]) -> None:
    """Add records that were read together. starts: first offset that counts, by source partition."""
    newest: dict[Key, int] = {}
    for number, record in enumerate(records):
        key = record.source, record.partition
        if record.offset < starts[key]:
            found.duplicates += 1
            continue
        found.new.append((number, record))
        newest[key] = record.position
    for key, position in newest.items():
        found.marks[key] = Mark(found.marks[key].offset, position)


def _counted(header: Header) -> CountedRecord:
    names = CountedRecord._fields
    return CountedRecord._make(getattr(header, name) for name in names)


def _read(record: bytes, spans: Mapping[Key, Range], last: dict[Key, int]) -> Header:
    try:
        header = Header(record)
    except ValueError as error:
        raise CorruptRecord(f"not a sketch record: {error}") from error
    if problem := header.problem():
        raise CorruptRecord(problem)
    key = (header.source, header.partition)
    span = spans.get(key)
    if span is None or not span.start <= header.offset < span.stop or header.offset <= last.get(key, -1):
        raise CorruptRecord(
            f"offset {header.offset}, partition {header.partition} of source {header.source.hex()} is in no range of "
            "the message, or out of order"
        )
    last[key] = header.offset
    return header


def _gap(span: Range, mark: int) -> str:
    return (
        f"partition {span.partition} of source {span.source.hex()} continues at offset {span.start}, and the log "
        f"accounts for it up to {mark}: records {mark} to {span.start - 1} are missing"
    )
