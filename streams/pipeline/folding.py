"""Folding the sketch log anew: the index as it was at any place of the log."""

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
    """The index right before the page at `place` of the message at `offset` was judged, in memory, and what judged it.

    first: what decides from the log's begin on. progress: messages folded, of how many. Raises CorruptRecord where the
    log cannot be read.
    """
    store = MemoryStore()
    matcher = Matcher(store, first)
    for at, data in log.read(0):
        if at > offset:
            break
        if at < offset:
            matcher.apply(matcher.prepare([(at, data)], tell=False))
        elif isinstance(entry := decode_entry(data, at), Message):
            batch = [(page_id(at, number), record) for number, record in enumerate(entry.records[:place])]
            store.write(fold(batch, store, matcher.decider, tell=False).writes)
        progress(at, offset)
    return store, matcher.decider
