"""Tracks up to which offset each partition is applied, so that no verdict is lost.

Verdicts are applied in the order of their partition: a row that has one applies no older one. When partitions are
reassigned, consumed verdicts must be skipped; the new owner consumes them again from the committed offset. Until then
no later verdict may be applied, and no later offset committed.
"""

from collections.abc import Collection, Mapping
from typing import Any

from faust.types import TP

_NEVER = -1


class PartitionProgress:
    """State of one worker. In a new generation of the consumer group, partitions are consumed from their commits."""

    def __init__(self) -> None:
        self._applied: dict[TP, tuple[int, int]] = {}
        self._skipped: dict[TP, tuple[int, int]] = {}

    def accepts(self, message: Any, mine: Collection[TP], generation: int) -> bool:
        """Return whether to apply a verdict; otherwise it is skipped. mine: the worker's present partitions."""
        partition, of = TP(message.topic, message.partition), message.generation_id
        if partition in mine and of == generation and of > self._skipped.get(partition, (_NEVER, 0))[0]:
            return True
        self.skipped(partition, of, message.offset)
        return False

    def skipped(self, partition: TP, generation: int, offset: int) -> None:
        """Note that the verdict at an offset was consumed in a generation and not applied."""
        if generation > self._skipped.get(partition, (_NEVER, 0))[0]:
            self._skipped[partition] = generation, offset

    def applied(self, partition: TP, generation: int, end: int) -> None:
        """Note that all verdicts before the offset `end` are applied and their rows handed to the changelogs."""
        self._applied[partition] = generation, end

    def ends(self, generation: int) -> Mapping[TP, int]:
        """Return the offset up to which each partition may be committed; only partitions with applied verdicts."""
        return {partition: end for partition, (of, end) in self._applied.items() if of == generation}

    def waiting(self, partition: TP, generation: int) -> int | None:
        """Return the first offset that was skipped and not consumed again yet."""
        of, offset = self._skipped.get(partition, (_NEVER, 0))
        return offset if of == generation else None
