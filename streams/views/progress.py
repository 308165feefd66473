"""How far each partition is taken in, so that no verdict is left out for good.

Verdicts are applied in the order of their partition: a row that has one takes none that is older. When partitions move,
some that were read already must be left out; whoever has the partition then reads them anew, from what was committed
last. So nothing behind them may be taken in before that, and no offset behind them committed.
"""

from collections.abc import Collection, Mapping
from typing import Any

from faust.types import TP

_NEVER = -1


class Progress:
    """Of one worker. A generation is the group's: a partition that comes in a new one is read from its commit on."""

    def __init__(self) -> None:
        self._kept: dict[TP, tuple[int, int]] = {}
        self._left: dict[TP, tuple[int, int]] = {}

    def takes(self, message: Any, mine: Collection[TP], generation: int) -> bool:
        """Whether a verdict is to be taken in; otherwise it is left out. mine: the worker's partitions now."""
        place, of = TP(message.topic, message.partition), message.generation_id
        if place in mine and of == generation and of > self._left.get(place, (_NEVER, 0))[0]:
            return True
        self.left_out(place, of, message.offset)
        return False

    def left_out(self, place: TP, generation: int, offset: int) -> None:
        """The verdict at an offset was read in a generation, and not taken in."""
        if generation > self._left.get(place, (_NEVER, 0))[0]:
            self._left[place] = generation, offset

    def kept(self, place: TP, generation: int, end: int) -> None:
        """All before the offset `end` that was read in a generation is taken in, and its rows are on their way."""
        self._kept[place] = generation, end

    def ends(self, generation: int) -> Mapping[TP, int]:
        """Up to which offset each partition may be committed in a generation; without those where nothing is kept."""
        return {place: end for place, (of, end) in self._kept.items() if of == generation}

    def waiting(self, place: TP, generation: int) -> int | None:
        """The first offset that was left out and is not read anew yet."""
        of, offset = self._left.get(place, (_NEVER, 0))
        return offset if of == generation else None
