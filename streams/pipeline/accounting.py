"""What counts of a message of the sketch log: every page of every source once, whoever sent it how often.

A sketcher sends at least once: after a crash or a rebalance the same pages come again, cut into other messages. Each
message says which positions `[start, stop)` of which source it accounts for, and for each source there is a mark: the
position that must come next. A range that ends at or before the mark is dropped; of one that begins at or before it,
the records from the mark on are taken; one that begins after it would leave pages out in silence, and stops the line.
The first range of a source sets its mark.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from neardup.errors import CorruptRecord
from neardup.sketch.header import Header
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


@dataclass(slots=True)
class Account:
    """What one message adds. taken: (place in the message, record's header) of what is new, in its order.

    marks: new ones, by partition of a source. dropped: ranges that add nothing. duplicates: records that were there
    already. accepted: gaps let pass. skipped: why records were left out, on the operator's word.
    """

    taken: list[tuple[int, Header]] = field(default_factory=list)
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
    """Weighs the message at `offset` against the marks in `known`.

    accept_gaps and skip_records are asked, when it matters, whether an operator has settled this message. Raises
    SourceGap, and CorruptRecord for a record that cannot be read or lies in none of the message's ranges.
    """
    found = Account()
    spans = {(span.source, span.partition): span for span in message.ranges}
    gaps = [span for key, span in spans.items() if key in known and span.start > known[key].offset]
    if gaps and not accept_gaps():
        raise SourceGap(
            f"the message at offset {offset} of the sketch log leaves out what it does not account for before: "
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
    last: dict[Key, int] = {}
    for place, record in enumerate(message.records):
        try:
            header = _read(record, spans, last)
        except CorruptRecord as error:
            why = f"record {place} of the message at offset {offset} of the sketch log: {error}"
            if not skip_records():
                raise CorruptRecord(why) from error
            found.skipped.append(why)
            continue
        key = (header.source, header.partition)
        if header.offset < starts[key]:
            found.duplicates += 1
            continue
        found.taken.append((place, header))
        found.marks[key] = Mark(found.marks[key].offset, header.position)
    return found


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
            f"it is of offset {header.offset}, partition {header.partition} of source {header.source.hex()}, which no "
            "range of the message holds, or not there"
        )
    last[key] = header.offset
    return header


def _gap(span: Range, mark: int) -> str:
    return (
        f"partition {span.partition} of source {span.source.hex()} goes on at offset {span.start}, and the log "
        f"accounts for it up to {mark}: records {mark} to {span.start - 1} are missing"
    )
