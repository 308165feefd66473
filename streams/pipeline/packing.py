"""Packs sketch records into messages of the sketch log. Each message names the source ranges it accounts for.

Page ids depend on the boundaries of messages, so scan and stream both cut by `full_message`.
"""

from collections.abc import Sequence

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
    messages: list[bytes] = []
    first = 0
    while first < len(records) or not messages:
        full = full_message(records, first, pages_max=pages_max, bytes_max=bytes_max)
        end = first + full if full else len(records)
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


def full_message(records: Sequence[bytes], first: int = 0, *, pages_max: int, bytes_max: int) -> int:
    """Return how many records, from `first` on, make a full message; 0 if the message can still grow.

    A message is full when the next record would exceed a bound. It has at least one record, however large.
    """
    size = 0
    for count, number in enumerate(range(first, len(records))):
        size += len(records[number])
        if count == pages_max or (size > bytes_max and count):
            return count
    return 0
