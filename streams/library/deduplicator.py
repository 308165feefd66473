"""The library: `open_index` opens an index in memory or the state directory of a scan; `add` judges and adds pages.

The examples of the docstrings share these pages:

    >>> from neardup import Page, Scheme, open_index
    >>> text = b"<title>Wool</title><p>" + b" ".join(b"word%d" % i for i in range(300))
    >>> pages = [Page("https://a.example/", text), Page("https://b.example/", text + b" 9:41")]
"""

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from neardup.decider import Decider
from neardup.errors import BadInput, StateError
from neardup.index.column_families import Family
from neardup.index.memory import MemoryStore
from neardup.limits import MESSAGE_PAGES_MAX
from neardup.page import Page
from neardup.rules import RULES
from neardup.scheme import Scheme
from neardup.sketch.make_sketches import sketch_pages
from neardup.urls import named_url
from neardup.verdict import Coordinates, Verdict
from streams.formats.message import as_first
from streams.library.lookups import Cluster, Entry, LiveCount, entry_of, is_live
from streams.pipeline.follow import Batch, follow
from streams.pipeline.matcher import Matcher, Prepared
from streams.pipeline.packing import pack
from streams.ports import Range
from streams.state.scan_directory import ScanDirectory
from streams.state.scan_reader import LIBRARY


class Deduplicator:
    """An open index: judges pages in their order, each against the earlier pages that share a key with it.

    `open_index` makes it. `scheme` is the scheme of the index, `decider` its rule with all numbers. To change a number,
    close the index and open it with `decider=replace(index.decider, tape_min=0.9)` (`dataclasses.replace`) and
    `new_decider=True`.

    On disk, `add` writes the sketches of its pages to the state directory and syncs the file, so the pages that `add`
    has judged survive a crash.

    Threads may share an index. One call runs at a time, so pages of several threads are judged in the order in which
    the calls begin. A child process that `fork` made may query an index in memory, and do nothing else.

    Example:
        >>> with open_index(scheme=Scheme(seed=7)) as index:
        ...     print([verdict.verdict.value for verdict in index.add(pages)])
        ['unique', 'near_duplicate']
    """

    def __init__(self, holder: "ScanDirectory | _InMemory") -> None:
        """Call `open_index` instead.

        Args:
            holder: the open state directory, or what stands for it in memory.
        """
        self._holder = holder
        self.scheme, self._store = holder.scheme, holder.store
        self._live = LiveCount(holder.store)
        self._closed, self._process = False, os.getpid()
        # Of each process its own: a thread that does not exist in the child may hold the parent's at the fork.
        self._locks: dict[int, threading.RLock] = {}

    @property
    def decider(self) -> Decider:
        """The rule with its numbers."""
        return self._matcher.decider

    @property
    def _matcher(self) -> Matcher:
        return self._holder.matcher

    def add(self, pages: Iterable[Page], *, threads: int = 1) -> list[Verdict]:
        """Judge pages, add them to the index, and return their verdicts in the order of the pages.

        A page can change the verdict on other pages, for example when the representative of a cluster is gone. Such
        verdicts (`promoted` and others) follow the page's own verdict, so the list may be longer than `pages`. The
        page's own verdict has `n == 0`.

        A page that cannot be read gets the verdict `rejected` with a reason. Splitting the pages into several calls
        changes page ids, and nothing else of a verdict. Calls with hundreds of pages are faster than calls with one.

        Args:
            pages: the pages, in the order of the crawl. The call holds all of them in memory: see `stream`.
            threads: number of threads that sketch the pages and read the index.

        Raises:
            TypeError: if an element of `pages` is not a `Page`.
            StateError: if the index is closed, if this process is a child made by `fork`, or if the directory cannot
                be written. No page of the call is added, and the call can be repeated.

        Example:
            >>> with open_index(scheme=Scheme(seed=7)) as index:
            ...     for verdict in index.add(pages):
            ...         print(verdict.verdict, verdict.url, verdict.evidence.get("score"))
            ...     for verdict in index.add([Page("https://a.example/", None)]):  # the page is gone
            ...         print(verdict.n, verdict.verdict, verdict.url)
            unique https://a.example/ None
            near_duplicate https://b.example/ 0.9934
            0 gone https://a.example/
            1 promoted https://b.example/
        """
        if isinstance(pages, Page):
            raise TypeError("add takes pages in a list: add([page])")
        pages = list(pages)
        if not pages:
            return []
        with self._alone(writing=True):
            messages = self._packed(self._sketched(pages, threads))
            self._matcher.threads = threads
            prepared = self._holder.add(messages, self._count_before)
            self._live.after(prepared.next_offset)
            return list(prepared.verdicts)

    def stream(self, pages: Iterable[Page], *, threads: int = 1) -> Iterator[Verdict]:
        """Judge and add pages as `add` does, and yield the verdicts. Holds 512 pages in memory at a time.

        A caller that stops early has added all pages of the last 512.

        Args:
            pages: the pages, in the order of the crawl; a generator is read 512 pages at a time.
            threads: number of threads that sketch the pages and read the index.

        Raises:
            TypeError: if an element of `pages` is not a `Page`.
            StateError: if `add` raises it; the pages of earlier batches stay in the index.

        Example:
            >>> with open_index(scheme=Scheme(seed=7)) as index:
            ...     print(sum(verdict.verdict == "unique" for verdict in index.stream(iter(pages))))
            1
        """
        rest = iter(pages)
        while batch := list(islice(rest, MESSAGE_PAGES_MAX)):
            yield from self.add(batch, threads=threads)

    def query(self, page: Page) -> Verdict:
        """Return the verdict that `add` would give the page. The index does not change.

        Verdicts that the page would cause on other pages are left out.

        Args:
            page: the page to judge.

        Raises:
            TypeError: if `page` is not a `Page`.
            StateError: if the index is closed, or an index on disk in a child process made by `fork`.

        Example:
            >>> with open_index(scheme=Scheme(seed=7)) as index:
            ...     _ = index.add(pages[:1])
            ...     print(index.query(pages[1]).verdict, index.cluster("https://b.example/"))
            near_duplicate None
        """
        with self._alone():
            return self._matcher.query(self._sketched([page], 1)[0])

    def cluster(self, url: str) -> Cluster | None:
        """Return the cluster of a URL as it is now; None if the index does not hold the URL or the URL is gone.

        A page without duplicates is alone in its cluster.

        Args:
            url: URL of the page, or id of a document. If a scan added documents of several files with one id, the name
                is `FILE#ID`.

        Raises:
            TypeError: if `url` is not a `str`.
            NeardupError: if `url` is not a URL, or is the id of several documents.
            StateError: if the index is closed.

        Example:
            >>> with open_index(scheme=Scheme(seed=7)) as index:
            ...     _ = index.add(pages)
            ...     print(index.cluster("https://b.example/"))
            Cluster(id=0, representative='https://a.example/', members=('https://b.example/',))
        """
        entry = self.get(url)
        return None if entry is None else entry.cluster

    def get(self, url: str) -> Entry | None:
        """Return the entry of a URL as it is now; None if the index does not hold the URL or the URL is gone.

        The entry has the `verdict` in force, and the `cluster` with its `representative` and `members`.

        Args:
            url: URL of the page, or id of a document, as for `cluster`.

        Raises:
            TypeError: if `url` is not a `str`.
            NeardupError: if `cluster` raises it.
            StateError: if the index is closed.

        Example:
            >>> with open_index(scheme=Scheme(seed=7)) as index:
            ...     _ = index.add(pages)
            ...     entry = index.get("https://b.example/")
            ...     print(entry.verdict, entry.shown, entry.cluster.representative)
            near_duplicate False https://a.example/
        """
        with self._alone():
            self._holder.settle()
            return entry_of(self._store, self._holder.url_of(_checked_name(url)))

    def remove(self, url: str) -> list[Verdict]:
        """Remove a URL, and return the verdicts: `gone`, and `promoted` if another page represents its cluster now.

        The same as adding `Page(url, None)`: a record of the log, which every later fold repeats. Later pages are not
        compared with the page any more. The URL may be added again. `neardup forget` also removes the URL from the
        verdicts that were emitted before.

        Args:
            url: URL of the page, or id of a document, as for `cluster`.

        Raises:
            KeyError: if the index does not hold the URL, or the URL is gone.
            TypeError: if `url` is not a `str`.
            NeardupError: if `cluster` raises it.
            StateError: if `add` raises it.

        Example:
            >>> with open_index(scheme=Scheme(seed=7)) as index:
            ...     _ = index.add(pages)
            ...     print([verdict.verdict.value for verdict in index.remove("https://a.example/")], len(index))
            ['gone', 'promoted'] 1
        """
        with self._alone(writing=True):
            self._holder.settle()
            required = self._holder.url_of(_checked_name(url))
            if not is_live(self._store, required):
                raise KeyError(url)
            return self.add([Page(required, None)])

    def __contains__(self, url: object) -> bool:
        """Whether the index holds a URL, or a document with this id, that is not gone.

        Raises:
            TypeError: if `url` is not a `str`.
            NeardupError: if `cluster` raises it.
            StateError: if the index is closed.
        """
        name = _checked_name(url)
        with self._alone():
            self._holder.settle()
            return is_live(self._store, self._holder.url_of(name))

    def __len__(self) -> int:
        """Return the number of URLs that are not gone.

        The first call reads the rows of all URLs; later calls return a count that `add` keeps.

        Raises:
            StateError: if the index is closed.
        """
        with self._alone():
            self._holder.settle()
            return self._live.value(self._matcher.next_offset)

    def __bool__(self) -> bool:
        """Return True, also for an empty index: `if index` tells an open index from None."""
        return True

    def _count_before(self, prepared: Prepared) -> None:
        self._live.before(prepared.writes.get(Family.URLS, {}), self._matcher.next_offset)

    def _sketched(self, pages: Sequence[Page], threads: int) -> list[bytes]:
        """Return the sketches of pages as the next ones of this index."""
        for page in pages:
            if not isinstance(page, Page):
                raise TypeError(f"a page must be a neardup.Page(url, body), not {type(page).__name__}: {page!r:.80}")
        self._holder.settle()
        matcher = self._matcher
        first, log_time, times = matcher.mark(LIBRARY).offset, matcher.log_time, []
        for page in pages:
            log_time = max(log_time, page.fetched_at or 0)
            times.append(log_time)
        places = [Coordinates(LIBRARY, offset=first + number) for number in range(len(pages))]
        return sketch_pages(pages, self.scheme, coordinates=places, log_times=times, threads=threads)

    def _packed(self, records: Sequence[bytes]) -> list[bytes]:
        """Return the messages of the log that hold the next sketches."""
        first = self._matcher.mark(LIBRARY).offset
        ordinals = range(first, first + len(records))
        messages = pack(
            bytes.fromhex(self.scheme.digest),
            [Range(bytes.fromhex(LIBRARY), 0, ordinals.start, ordinals.stop)],
            [(0, ordinal) for ordinal in ordinals],
            records,
        )
        if not self._matcher.next_offset:
            messages[0] = as_first(messages[0])
        return messages

    def flush(self) -> None:
        """Write the index to disk, so that opening the directory after a crash does not fold the log again.

        Raises:
            StateError: if the index is closed, if this process is a child made by `fork`, or if the directory cannot
                be written.
        """
        with self._alone(writing=True):
            self._holder.flush()

    @contextmanager
    def _alone(self, *, writing: bool = False) -> Iterator[None]:
        """Run a block alone among the threads of this process.

        A child made by `fork` has a copy of the index, and a copy of RocksDB without its threads.

        Args:
            writing: whether the block changes the index.

        Raises:
            StateError: if the index is closed, or if the effect of the block would be lost in a child process.
        """
        if os.getpid() != self._process and (writing or self._holder.path):
            raise StateError(
                f"the index was opened by process {self._process}, and this is process {os.getpid()}, made of it by "
                "fork: nothing that is added here would be kept; add pages in the process that opened the index"
            )
        with self._locks.setdefault(os.getpid(), threading.RLock()):
            if self._closed:
                raise StateError("the index is closed; open it again with neardup.open_index")
            yield

    def __repr__(self) -> str:
        place = str(self._holder.path or "in memory")
        return f"<neardup.Deduplicator: {place}, rule {self.decider.rule}>"

    def close(self) -> None:
        """Flush the index and unlock the directory.

        Closing twice is harmless. In a child process made by `fork` the call does nothing.
        """
        if os.getpid() != self._process:
            return
        with self._locks.setdefault(os.getpid(), threading.RLock()):
            self._closed = True
            self._holder.close()

    def __enter__(self) -> "Deduplicator":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _InMemory:
    """An index in memory, with what the library needs of a `ScanDirectory`. Nothing of it is written."""

    path = None

    def __init__(self, scheme: Scheme, decider: Decider) -> None:
        self.scheme, self.store = scheme, MemoryStore()
        self.matcher = Matcher(self.store, decider)

    def add(self, messages: Sequence[bytes], judged: Callable[[Prepared], None]) -> Prepared:
        (prepared,) = follow([Batch(list(enumerate(messages, self.matcher.next_offset)))], self.matcher, judged)
        assert prepared is not None
        return prepared

    def url_of(self, given: str) -> str:
        return named_url(given)

    def settle(self) -> None: ...
    def flush(self) -> None: ...
    def close(self) -> None: ...


def _checked_name(name: object) -> str:
    """Return the name of a page as it is; raise TypeError if it is not a `str`."""
    if not isinstance(name, str):
        raise TypeError(f"an index contains pages by their names: a URL or an id, not {type(name).__name__}")
    return name


def open_index(
    path: str | Path | None = None,
    *,
    scheme: Scheme | None = None,
    rule: str | None = None,
    decider: Decider | None = None,
    new_decider: bool = False,
) -> Deduplicator:
    """Open an index in memory, or the state directory `path`. A missing directory is created.

    `neardup scan --state PATH` opens the same directories. Use the result in a `with` statement, or call `close`.

    Args:
        path: the state directory. None: an index in memory, which is lost with the process.
        scheme: parameters of the sketches. By default the scheme of the directory, or a new one with a random seed. A
            directory keeps its first scheme.
        rule: name of a rule, which is used with its default numbers. Ignored if `decider` is given.
        decider: a rule with all its numbers. By default the decider of the directory, else the rule `verified`.
        new_decider: if the directory has another decider, `decider` decides from here on; earlier verdicts stay. A
            rule with other index keys needs a new directory.

    Returns:
        The open index.

    Raises:
        BadInput: if no rule has the name `rule`.
        StateError: if `decider` belongs to another scheme, or if the directory has another scheme or decider, is in use
            by another process, belongs to `neardup match`, or cannot be written.
        CorruptRecord: if the log of the directory is damaged.

    Example:
        >>> with open_index(scheme=Scheme(seed=7), rule="tape") as index:
        ...     print(index, [verdict.verdict.value for verdict in index.add(pages)])
        <neardup.Deduplicator: in memory, rule tape> ['unique', 'near_duplicate']
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
        return Deduplicator(_InMemory(scheme, decider_of(scheme)))
    given = decider_of if required is not None else None
    state = ScanDirectory.open(Path(path), scheme=scheme, decider=given, new_decider=new_decider)
    return Deduplicator(state)
