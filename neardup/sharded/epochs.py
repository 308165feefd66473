"""The arithmetic of shards and epochs: the shard that holds a page, and the effects that an answer depends on."""

from typing import Any, NamedTuple

from neardup.decider import Decider
from neardup.limits import PLACE_BITS


class Sharding(NamedTuple):
    """shards: V, a power of two. epoch: E, offsets of the log in an epoch, 1 or more."""

    shards: int
    epoch: int

    @classmethod
    def of(cls, decider: Decider) -> "Sharding":
        return cls(decider.shards, decider.epoch)

    def stable_to(self, offset: int) -> int:
        """The offset up to which effects count: the message at `offset` is answered after all effects before it."""
        return max(0, (offset // self.epoch - 1) * self.epoch)

    def shard_of(self, page_id: Any) -> Any:
        """The number of the shard that holds a page's sketch. page_id: a number, or uint64[]."""
        return (page_id >> PLACE_BITS) % self.shards
