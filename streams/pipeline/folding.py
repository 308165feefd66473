"""Rebuilds the index in memory as it was at any page of the sketch log."""

from collections.abc import Callable

from neardup.decider import Decider
from neardup.fold import fold
from neardup.index.memory import MemoryStore
from streams.formats.message import Message, decode_entry, page_id
from streams.pipeline.matcher import Matcher
from streams.ports import LogReader


def fold_until(
    log: LogReader,
    offset: int,
    first: Decider,
    progress: Callable[[int, int], None] = lambda done, total: None,
    *,
    place: int = 0,
) -> tuple[MemoryStore, Decider]:
    """Return index and decider right before page number `place` of the message at `offset` was judged.

    first: the decider at the log's begin. progress: called with messages folded and their total. Raises CorruptRecord.
    """
    store = MemoryStore()
    matcher = Matcher(store, first)
    for position, data in log.read(0):
        if position > offset:
            break
        if position < offset:
            matcher.apply(matcher.prepare([(position, data)], emit=False))
        elif isinstance(entry := decode_entry(data, position), Message):
            batch = [(page_id(position, number), record) for number, record in enumerate(entry.records[:place])]
            store.write(fold(batch, store, matcher.decider, emit=False).writes)
        progress(position, offset)
    return store, matcher.decider
