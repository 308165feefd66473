"""Packs sketch records into messages of the sketch log. Each message names the source ranges it accounts for.

Page ids depend on the boundaries of messages, so scan and stream both cut by `full_message`.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from neardup.limits import MESSAGE_BYTES_MAX, MESSAGE_PAGES_MAX
from streams.formats.message import ANY_LOG, Message, encode_message
from streams.ports import Range


def pack(
    scheme: bytes,
    ranges: Sequence[Range],
    coordinates: Sequence[tuple[int, int]],
    records: Sequence[bytes],
    *,
    log: bytes = ANY_LOG,
    pages_max: int = MESSAGE_PAGES_MAX,
    bytes_max: int = MESSAGE_BYTES_MAX,
) -> list[bytes]:
    """Return messages that together account for all of `ranges`.

    A message that ends within a partition accounts for it up to its last record; the next message continues there.

    Args:
        scheme: digest of the scheme, 16 bytes.
        ranges: one for each partition.
        coordinates: (partition, offset) of each record, in the order of arrival.
        log: topic id of the log that the messages are meant for.
    """
    starts = {span.partition: span.start for span in ranges}
    spans = {span.partition: span for span in ranges}
    last = {partition: number for number, (partition, _) in enumerate(coordinates)}
    ends = np.cumsum([0, *map(len, records)])
    messages: list[bytes] = []
    first = 0
    while first < len(records) or not messages:
        full = full_message(ends, first, pages_max=pages_max, bytes_max=bytes_max) if records else 0
        end = full or len(records)
        stops: dict[int, int] = {}
        for number in range(first, end):
            partition, offset = coordinates[number]
            stops[partition] = spans[partition].stop if number == last[partition] else offset + 1
        if end == len(records):
            stops |= {partition: span.stop for partition, span in spans.items() if partition not in last}
        cut = [Range(spans[p].source, p, starts[p], stop) for p, stop in sorted(stops.items())]
        starts |= stops
        messages.append(encode_message(Message(scheme, tuple(cut), tuple(records[first:end]), log)))
        first = end
    return messages


def full_message(ends: npt.NDArray[np.int64], first: int, *, pages_max: int, bytes_max: int) -> int:
    """Return the number of the record behind the full message that begins at `first`; 0 if it can still grow.

    A message is full when the next record would exceed a bound. It has at least one record, however large.

    Args:
        ends: bytes of all records before each record, and of all at last, int64[records + 1].
        first: number of the message's first record.
        pages_max: most records of a message.
        bytes_max: most bytes of the records of a message.
    """
    fitting = int(np.searchsorted(ends, ends[first] + bytes_max, side="right")) - 1
    stop = max(first + 1, min(fitting, first + pages_max))
    return stop if stop < len(ends) - 1 else 0
