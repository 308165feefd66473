"""What one member of the group that reads `pages` has read, and what it may commit.

A committed position says of which topic it is, and in which sketch log everything before it can be found (`Hop`): one
of another `pages` topic is void, for a late commit of whoever read the old topic must not move the new one on; and with
another log nothing may be read at all, since it lacks what the positions leave out.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from streams.errors import NEW_GENERATION, TopicError
from streams.ports import Committed, Hop, Range


class Positions:
    """Of one member. due: stops that are acknowledged, but whose commit did not get through yet, by partition."""

    def __init__(self, hop: Hop, sink: str) -> None:
        """sink: the name of the sketch log."""
        self.hop = hop
        self._sink = sink
        self.due: dict[int, int] = {}
        self._starts: dict[int, int] = {}  # assigned partition -> `stop` of its last range
        self._floors: dict[int, int] = {}  # assigned partition -> the offset below which nothing is to be committed

    def begun(self, known: Iterable[Committed | None]) -> bool:
        """Whether the group has a position in any partition. Raises TopicError if one belongs to another log."""
        offsets = [self._offset(each) for each in known]
        return any(offset is not None for offset in offsets)

    def starts(self, known: Mapping[int, Committed | None]) -> dict[int, int]:
        """Where to begin in partitions that come in. Raises TopicError as `begun`.

        One that was added after the group began has no position, and is read from its first record on.
        """
        return {partition: self._offset(each) or 0 for partition, each in known.items()}

    def _offset(self, known: Committed | None) -> int | None:
        if known is None or (known.hop is not None and known.hop.source != self.hop.source):
            return None
        if known.hop is not None and known.hop.sink != self.hop.sink:
            raise TopicError(
                f"what the group has read so far is in topic {self._sink} of id {known.hop.sink.hex()}, which was "
                f"deleted and made anew (now {self.hop.sink.hex()}): {NEW_GENERATION}"
            )
        return known.offset

    def assign(self, starts: Mapping[int, int]) -> None:
        self._starts.update(starts)
        self._floors.update(starts)

    def drop(self, partitions: Collection[int]) -> None:
        """They are another member's now, and what is due there is his business."""
        for partition in partitions:
            for each in (self._starts, self._floors, self.due):
                each.pop(partition, None)

    def assigned(self) -> list[int]:
        return sorted(self._starts)

    def next(self, partition: int) -> int:
        """What is to be read next; 0 for a partition that is not assigned."""
        return self._starts.get(partition, 0)

    def read(self, partition: int, stop: int) -> Range:
        """What a batch with records of this partition accounts for; `stop` is the consumer's position behind it."""
        start, self._starts[partition] = self._starts[partition], stop
        return Range(self.hop.source, partition, start, stop)

    def acknowledge(self, ranges: Sequence[Range]) -> None:
        """Makes the stops due, of partitions that are still assigned.

        Never back: a partition may have gone to another member, which went on, and come again meanwhile.
        """
        for span in ranges:
            if span.partition in self._floors and span.stop > self._floors[span.partition]:
                self._floors[span.partition] = self.due[span.partition] = span.stop
