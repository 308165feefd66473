"""Positions of one member of the group that consumes `pages`: what it has consumed, and what it may commit.

A committed position names its topic and the sketch log that holds everything before it (`TopicIds`). A position of
another `pages` topic is void: a late commit by a consumer of the old topic must not advance the new one. Positions of
another log are rejected: the new log does not contain the records before them.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from streams.errors import NEW_GENERATION, TopicError
from streams.ports import Committed, Range, TopicIds


class Positions:
    """Positions of one member. due: acknowledged positions, not yet committed, by partition."""

    def __init__(self, topic_ids: TopicIds, sink: str) -> None:
        """sink: the name of the sketch log."""
        self.topic_ids = topic_ids
        self._sink = sink
        self.due: dict[int, int] = {}
        self._starts: dict[int, int] = {}  # assigned partition -> `stop` of its last range
        self._floors: dict[int, int] = {}  # assigned partition -> lowest position that may be committed

    def begun(self, known: Iterable[Committed | None]) -> bool:
        """Return whether the group has a position in any partition. Raises TopicError if one belongs to another log."""
        offsets = [self._offset(each) for each in known]
        return any(offset is not None for offset in offsets)

    def starts(self, known: Mapping[int, Committed | None]) -> dict[int, int]:
        """Return the start of newly assigned partitions. Raises TopicError as `begun`.

        A partition added after the group began has no position and is consumed from its first record.
        """
        return {partition: self._offset(each) or 0 for partition, each in known.items()}

    def _offset(self, known: Committed | None) -> int | None:
        if known is None or (known.topic_ids is not None and known.topic_ids.source != self.topic_ids.source):
            return None
        if known.topic_ids is not None and known.topic_ids.sink != self.topic_ids.sink:
            raise TopicError(
                f"the group's sketches are in topic {self._sink} of id {known.topic_ids.sink.hex()}, which "
                f"was deleted and recreated (now {self.topic_ids.sink.hex()}): {NEW_GENERATION}"
            )
        return known.offset

    def assign(self, starts: Mapping[int, int]) -> None:
        self._starts.update(starts)
        self._floors.update(starts)

    def drop(self, partitions: Collection[int]) -> None:
        """Forget revoked partitions: their new owner commits them."""
        for partition in partitions:
            for each in (self._starts, self._floors, self.due):
                each.pop(partition, None)

    def assigned(self) -> list[int]:
        return sorted(self._starts)

    def next(self, partition: int) -> int:
        """Return the next position; 0 for a partition that is not assigned."""
        return self._starts.get(partition, 0)

    def read(self, partition: int, stop: int) -> Range:
        """Advance to `stop`, and return the range of a batch. stop: the consumer's position after the batch."""
        start, self._starts[partition] = self._starts[partition], stop
        return Range(self.topic_ids.source, partition, start, stop)

    def acknowledge(self, ranges: Sequence[Range]) -> None:
        """Make the ends of ranges due, in partitions that are still assigned.

        Positions never go back: a partition may have been revoked, advanced by another member, and assigned again.
        """
        for span in ranges:
            if span.partition in self._floors and span.stop > self._floors[span.partition]:
                self._floors[span.partition] = self.due[span.partition] = span.stop
