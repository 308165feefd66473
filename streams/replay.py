"""Folding the sketch log anew: the index as it was at any place of the log."""

from collections.abc import Callable

from neardup.decider import Decider
from neardup.index.memory import MemoryStore
from neardup.matching import fold
from streams.ports import LogReader
from streams.records import decode_message, page_id


def fold_until(
    log: LogReader,
    offset: int,
    decider: Decider,
    progress: Callable[[int, int], None] = lambda done, total: None,
    *,
    place: int = 0,
) -> MemoryStore:
    """The index right before the page at `place` of the message at `offset` was judged, in memory.

    progress: messages folded, of how many. Raises CorruptRecord where the log cannot be read.
    """
    store = MemoryStore()
    for at, data in log.read(0):
        if at > offset:
            break
        records = decode_message(data, at).records
        if at == offset:
            records = records[:place]
        batch = [(page_id(at, number), record) for number, record in enumerate(records)]
        if batch:
            store.write(fold(batch, store, decider, tell=False).writes)
        progress(at, offset)
    return store
