"""A shard: answers messages of the sketch log from posting lists and sketches of its own."""

from collections.abc import Iterator, Sequence

from neardup.decider import Decider
from neardup.index.base import Store
from neardup.sharded.records import Candidates, Effects


class Shard:
    """One of the V shards of a decider, over a store of its own.

    log_position: offset behind the last message that was read. effects_position: offset behind the last message whose
    effects are in the rows.
    """

    log_position: int
    effects_position: int

    def __init__(self, number: int, store: Store, decider: Decider) -> None:
        """Raises StateError if the store is that of another shard, scheme or sharding."""
        raise NotImplementedError

    def read(self, offset: int, records: Sequence[bytes]) -> None:
        """Takes the records of the next message of the log; none for a control record. Offsets may leave some out.

        Messages before `log_position` are ignored. A restarted shard is given the log from `effects_position` on.
        """
        raise NotImplementedError

    def learn(self, effects: Effects) -> None:
        """Takes the effects of the next message; those of messages before are ignored."""
        raise NotImplementedError

    def answers(self) -> Iterator[Candidates]:
        """Answers every message that was read and can be answered, in order, and applies effects as they are due.

        A message waits until the effects of all messages before its `Sharding.stable_to` are there.
        """
        raise NotImplementedError
