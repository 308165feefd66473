"""Records cut into messages of the sketch log, each saying what it accounts for.

Page ids hang on where messages are cut, so scan and stream cut by `full_message`, and nothing else does.
"""

from collections.abc import Sequence

from neardup.limits import MESSAGE_BYTES_MAX, MESSAGE_PAGES_MAX
from streams.formats.message import ANY_LOG, Message, encode_message
from streams.ports import Range


def pack(
    scheme: bytes,
    ranges: Sequence[Range],
    places: Sequence[tuple[int, int]],
    records: Sequence[bytes],
    *,
    log: bytes = ANY_LOG,
    pages_max: int = MESSAGE_PAGES_MAX,
    bytes_max: int = MESSAGE_BYTES_MAX,
) -> list[bytes]:
    """Messages that account for all of `ranges`, one range a partition.

    scheme: the 16 bytes of its digest. log: topic id of the log that they are meant for. places: (partition, offset) of
    each record, in the order in which they came. A message that is cut within a partition accounts for it up to its
    last record; the next one goes on from there.
    """
    starts = {span.partition: span.start for span in ranges}
    spans = {span.partition: span for span in ranges}
    ends = {partition: number for number, (partition, _) in enumerate(places)}  # the last record of each
    messages: list[bytes] = []
    first = 0
    while first < len(records) or not messages:
        full = full_message(records, first, pages_max=pages_max, bytes_max=bytes_max)
        after = first + full if full else len(records)
        here: dict[int, int] = {}  # partition -> stop
        for number in range(first, after):
            partition, offset = places[number]
            here[partition] = spans[partition].stop if number == ends[partition] else offset + 1
        if after == len(records):
            here |= {partition: span.stop for partition, span in spans.items() if partition not in ends}
        cut = [Range(spans[p].source, p, starts[p], stop) for p, stop in sorted(here.items())]
        starts |= here
        messages.append(encode_message(Message(scheme, tuple(cut), tuple(records[first:after]), log)))
        first = after
    return messages


def full_message(
    records: Sequence[bytes],
    first: int = 0,
    *,
    pages_max: int,
    bytes_max: int,
) -> int:
    """How many records, from `first` on, make a full message; 0 if all that there are fit in one that may grow.

    A message is full when the next record would exceed a bound; it has at least one record, however large.
    """
    size = 0
    for count, number in enumerate(range(first, len(records))):
        size += len(records[number])
        if count == pages_max or (size > bytes_max and count):
            return count
    return 0
