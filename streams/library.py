"""The library: `open_index` opens an index in memory, or the state directory of a scan, and adds pages to it."""

import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from neardup.decider import Decider
from neardup.errors import BadInput, StateError
from neardup.index.column_families import Family, Store
from neardup.index.memory import MemoryStore
from neardup.index.rows import decode_cluster, decode_member, decode_url, id_key
from neardup.index.sketch_rows import records_of
from neardup.limits import MESSAGE_BYTES_MAX, MESSAGE_PAGES_MAX
from neardup.page import Page
from neardup.rules import RULES
from neardup.scheme import Scheme
from neardup.sketch.header import Header
from neardup.sketch.make_sketches import sketch_pages
from neardup.urls import named_url, url_hash
from neardup.verdict import Coordinates, Verdict
from streams.files.scan_reader import LIBRARY
from streams.files.state import State
from streams.formats.message import as_first
from streams.pipeline.matcher import Matcher, Prepared
from streams.pipeline.packing import pack
from streams.ports import Range


class Cluster(NamedTuple):
    """A cluster as it is now. members: the other live URLs, in the order in which they joined."""

    id: int
    representative: str
    members: tuple[str, ...]


class Deduplicator:
    """Judges pages in the order given, each against the earlier ones that share a key with it.

    Threads may share it: one call at a time runs, so pages that several threads add are judged in the order in which
    their calls begin. A child that `fork` made of the process may only query an index in memory.

    `scheme` is the scheme of the index, `decider` its rule with all numbers; `open_index` sets both. To change a
    number, close the index and open it with `decider=replace(index.decider, tape_min=0.9)` and `new_decider=True`
    (`dataclasses.replace`).

    On disk, `add` writes the sketches of its pages to the state directory and syncs them: pages that `add` has judged
    survive a crash.
    """

    def __init__(self, scheme: Scheme, holder: State | Matcher, store: Store) -> None:
        """holder: a state directory, or the matcher of an index in memory. `open_index` makes it."""
        self.scheme, self._store = scheme, store
        self._holder = holder
        self._closed, self._process = False, os.getpid()
        # Of each process its own: a thread that does not exist in the child may hold the parent's at the fork.
        self._locks: dict[int, threading.RLock] = {}

    @property
    def decider(self) -> Decider:
        """The rule with its numbers."""
        return self._matcher.decider

    @property
    def _matcher(self) -> Matcher:
        return self._holder.matcher if isinstance(self._holder, State) else self._holder

    def add(self, pages: Iterable[Page], *, threads: int = 1) -> list[Verdict]:
        """Return the verdict on each page, in their order, each followed by those that the page caused on others.

        threads: number of threads that sketch the pages and read the index.
        The list is longer than the pages if there are such (`promoted`); a page's own verdict has n = 0. Splitting
        pages into calls changes page ids, and nothing else of a verdict. Larger calls are faster (hundreds of pages),
        and hold all their pages in memory: see `stream`. A page that cannot be read is `rejected` with a reason.
        Raises TypeError for what is no `Page`; StateError if the index is closed, in the child of a fork, or if the
        directory cannot be written: then no page of the call is added, and the call can be repeated.
        """
        if isinstance(pages, Page):
            raise TypeError("add takes pages in a list: add([page])")
        pages = list(pages)
        if not pages:
            return []
        with self._alone(writing=True):
            messages, prepared = self._judged(pages, threads)
            if isinstance(self._holder, State):
                self._holder.add(messages, prepared)
            else:
                self._holder.apply(prepared)
            return list(prepared.verdicts)

    def stream(self, pages: Iterable[Page], *, threads: int = 1) -> Iterator[Verdict]:
        """Yield what `add` returns, holding 512 pages in memory at a time."""
        rest = iter(pages)
        while batch := list(islice(rest, MESSAGE_PAGES_MAX)):
            yield from self.add(batch, threads=threads)

    def query(self, page: Page) -> Verdict:
        """Return the page's own verdict, as `add` would give it; the index does not change."""
        with self._alone():
            return self._judged([page], 1)[1].verdicts[0]

    def cluster(self, url: str) -> Cluster | None:
        """Return the cluster of a URL; None if the index does not hold it, or if it is gone.

        url: or an id, or FILE#ID where documents of several files that a scan added have it. A page without duplicates
        is alone in its cluster. Raises NeardupError for what is no URL, or an id of several documents.
        """
        with self._alone():
            return self._cluster(url)

    def _cluster(self, url: str) -> Cluster | None:
        if isinstance(self._holder, State):
            self._holder.settle()
        required = self._holder.url_of(url) if isinstance(self._holder, State) else named_url(url)
        (row,) = self._store.get_many(Family.URLS, [url_hash(required)])
        if row is None or not (held := decode_url(row)).live:
            return None
        (row,) = self._store.get_many(Family.CLUSTERS, [id_key(held.cluster)])
        assert row is not None
        joined = self._store.first(Family.MEMBERS, id_key(held.cluster), decode_cluster(row).size)
        hashes = [decode_member(member).url_hash for _, member in joined]
        urls = self._store.get_many(Family.URLS, hashes)
        pages = [decode_cluster(row).current, *(decode_url(member or b"").page_id for member in urls)]
        representative, *members = (Header(record).url for record in records_of(self._store, pages))
        return Cluster(held.cluster, representative, tuple(members))

    def _judged(self, pages: Sequence[Page], threads: int) -> tuple[list[bytes], Prepared]:
        """Messages of these pages, and what they lead to. Nothing is written."""
        for page in pages:
            if not isinstance(page, Page):
                raise TypeError(f"a page must be a neardup.Page(url, body), not {type(page).__name__}: {page!r:.80}")
        if isinstance(self._holder, State):
            self._holder.settle()
        matcher = self._matcher
        first, log_time, times = matcher.mark(LIBRARY).offset, matcher.log_time, []
        for page in pages:
            log_time = max(log_time, page.fetched_at or 0)
            times.append(log_time)
        places = [Coordinates(LIBRARY, offset=first + number) for number in range(len(pages))]
        records = sketch_pages(pages, self.scheme, coordinates=places, log_times=times, threads=threads)
        messages = pack(
            bytes.fromhex(self.scheme.digest),
            [Range(bytes.fromhex(LIBRARY), 0, first, first + len(pages))],
            [(0, place.offset) for place in places],
            records,
            pages_max=MESSAGE_PAGES_MAX,
            bytes_max=MESSAGE_BYTES_MAX,
        )
        if not matcher.next_offset:
            messages[0] = as_first(messages[0])
        matcher.threads = threads
        return messages, matcher.prepare(list(enumerate(messages, matcher.next_offset)))

    def flush(self) -> None:
        """Write the index to disk, so that opening it after a crash does not fold the log."""
        with self._alone(writing=True):
            if isinstance(self._holder, State):
                self._holder.flush()

    @contextmanager
    def _alone(self, *, writing: bool = False) -> Iterator[None]:
        """Runs the block alone among the threads of this process.

        Raises StateError if the index is closed, and where the block's effect would be lost: a child of a fork has a
        copy of the index, and of RocksDB without its threads.
        """
        if os.getpid() != self._process and (writing or isinstance(self._holder, State)):
            raise StateError(
                f"the index was opened by process {self._process}, and this is process {os.getpid()}, made of it by "
                "fork: nothing that is added here would be kept; add pages in the process that opened the index"
            )
        with self._locks.setdefault(os.getpid(), threading.RLock()):
            if self._closed:
                raise StateError("the index is closed; open it again with neardup.open_index")
            yield

    def __repr__(self) -> str:
        place = str(self._holder.path) if isinstance(self._holder, State) else "in memory"
        return f"<neardup.Deduplicator: {place}, rule {self.decider.rule}>"

    def close(self) -> None:
        """Flush, and unlock the directory. Closing twice is harmless, and in the child of a fork it does nothing."""
        if os.getpid() != self._process:
            return
        with self._locks.setdefault(os.getpid(), threading.RLock()):
            self._closed = True
            if isinstance(self._holder, State):
                self._holder.close()

    def __enter__(self) -> "Deduplicator":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_index(
    path: str | Path | None = None,
    *,
    scheme: Scheme | None = None,
    rule: str | None = None,
    decider: Decider | None = None,
    new_decider: bool = False,
) -> Deduplicator:
    """Open the state directory `path`, an empty one if missing; with None, an index in memory.

    `neardup scan --state path` and this function open the same directories.

    Args:
        scheme: by default the directory's, or a new one with a random seed. A directory keeps its first scheme.
        rule: name of a rule, to be used with its default numbers; ignored if there is a `decider`.
        decider: by default `rule` with its own thresholds; without either, the directory's, or the rule `verified`.
        new_decider: if the directory has a decider with other thresholds, this one decides from here on. A rule that
            keeps other keys needs a new directory.

    Raises BadInput for an unknown rule; StateError if the directory has another scheme or decider, is in use, belongs
    to `neardup match`, has shards, or cannot be written; CorruptRecord if its log is damaged.
    """
    required = decider.rule if decider else rule
    if required is not None and required not in RULES:
        raise BadInput(f"there is no rule {required!r}; there is {', '.join(RULES)}")

    def decider_of(known: Scheme) -> Decider:
        if decider is not None and decider.scheme != known.digest:
            raise StateError(f"the decider is for scheme {decider.scheme}, and the index has {known.digest}")
        return decider or (Decider(known.digest, rule=rule) if rule else Decider(known.digest))

    if path is None:
        scheme = scheme or Scheme.new()
        store = MemoryStore()
        return Deduplicator(scheme, Matcher(store, decider_of(scheme)), store)
    given = decider_of if required is not None else None
    state = State.open(Path(path), scheme=scheme, decider=given, new_decider=new_decider)
    if state.first_decider.epoch:
        state.close()
        raise StateError(
            f"{state.path} has {state.first_decider.shards} shards, and open_index runs none: add pages by `neardup "
            "scan`, query them by `neardup ask`, or scan the same sources into another directory without "
            "--shard-processes"
        )
    return Deduplicator(state.scheme, state, state.store)
