"""The library's front door: an index, and pages streamed through it."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from types import TracebackType

from neardup.decider import Decider
from neardup.errors import BadInput, StateError
from neardup.fold import Outcome, fold
from neardup.index.base import Family, Store
from neardup.index.memory import MemoryStore
from neardup.limits import MESSAGE_PAGES_MAX
from neardup.page import Page
from neardup.rules import RULES
from neardup.scheme import Scheme
from neardup.sketch.making import sketch_pages
from neardup.verdict import Coordinates, Verdict

_SCHEME, _DECIDER, _NEXT, _LOG_TIME = b"scheme", b"decider", b"next_page_id", b"log_time"


class Deduplicator:
    """Judges pages in the order given, each against all before it. One writer; not safe for several threads.

    Page ids count from 0; the log time is the greatest `fetched_at` seen. On disk, pages become durable with `flush`
    and `close`; after a crash the index is as it was at the last of these.
    """

    def __init__(self, store: Store, scheme: Scheme, decider: Decider) -> None:
        self.scheme = scheme
        self.decider = decider
        self._store = store
        page_id, log_time = store.get_many(Family.META, [_NEXT, _LOG_TIME])
        self._next = int(page_id or 0)
        self._log_time = int(log_time or 0)

    def add(self, pages: Iterable[Page], *, threads: int = 1) -> list[Verdict]:
        """Verdicts in the order of `pages`, one a page; after a page's own, those that it caused (`promoted`).

        How pages are split into calls changes no verdict; larger calls are faster (hundreds of pages), and hold all
        their pages in memory: see `stream`. A page that cannot be read is `rejected` with its reason, never raised.
        Raises StateError where the index cannot be written: then nothing of the call counts, and the same call may be
        made again.
        """
        pages = list(pages)
        outcome, log_time = self._judged(pages, threads)
        following = self._next + len(pages)
        meta = {_NEXT: b"%d" % following, _LOG_TIME: b"%d" % log_time}
        self._store.write({**outcome.writes, Family.META: meta})
        self._next, self._log_time = following, log_time
        return outcome.verdicts

    def stream(self, pages: Iterable[Page], *, threads: int = 1) -> Iterator[Verdict]:
        """What `add` says of pages that come one after the other; memory for some hundred of them at a time."""
        rest = iter(pages)
        while batch := list(islice(rest, MESSAGE_PAGES_MAX)):
            yield from self.add(batch, threads=threads)

    def query(self, page: Page) -> Verdict:
        """What `add` would say of this page; the index stays as it is. Its page id is the next page's."""
        return self._judged([page], 1)[0].verdicts[0]

    def _judged(self, pages: Sequence[Page], threads: int) -> tuple[Outcome, int]:
        """Nothing is written. Also the log time after these pages."""
        log_time, times = self._log_time, []
        for page in pages:
            log_time = max(log_time, page.fetched_at or 0)
            times.append(log_time)
        places = [Coordinates(offset=self._next + i) for i in range(len(pages))]
        records = sketch_pages(pages, self.scheme, coordinates=places, log_times=times, threads=threads)
        return fold(list(enumerate(records, self._next)), self._store, self.decider, threads=threads), log_time

    def flush(self) -> None:
        """Makes all pages added so far durable."""
        self._store.flush()

    def close(self) -> None:
        """Flushes and lets go of the directory."""
        self._store.close()

    def __enter__(self) -> "Deduplicator":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_index(
    path: str | Path | None = None,
    *,
    scheme: Scheme | None = None,
    rule: str | None = None,
    decider: Decider | None = None,
) -> Deduplicator:
    """An index in the directory `path` (made if missing), or in memory if None.

    scheme: by default the directory's, or a new one with a random seed. decider: by default `rule` with its own
    thresholds; with neither, the directory's, or the rule `verified`. Raises BadInput for an unknown rule; StateError
    if the directory holds another scheme or decider, is in use, or cannot be written.
    """
    asked = decider.rule if decider else rule
    if asked is not None and asked not in RULES:
        raise BadInput(f"there is no rule {asked!r}; there is {', '.join(RULES)}")
    store: Store
    if path is None:
        store = MemoryStore()
    else:
        from neardup.index.rocks import RocksStore  # loads RocksDB only for those who use it

        store = RocksStore(Path(path))
    try:
        return _opened(store, path, scheme, rule, decider)
    except BaseException:
        store.close()
        raise


def _opened(
    store: Store, path: str | Path | None, scheme: Scheme | None, rule: str | None, decider: Decider | None
) -> Deduplicator:
    known_scheme, known_decider = store.get_many(Family.META, [_SCHEME, _DECIDER])
    if known_scheme is None:
        scheme = scheme or Scheme.new()
    else:
        try:
            held = Scheme.from_json(known_scheme.decode(), str(path))
        except (ValueError, TypeError) as error:
            raise StateError(
                f"{path}: not made by open_index (part of a scan's state?); use another directory"
            ) from error
        if scheme is not None and scheme.begun_as(held.digest).digest != held.digest:
            raise StateError(f"{path}: made with scheme {held.digest}, not {scheme.digest}; use another directory")
        scheme = held
    if decider is None and rule is None and known_decider is not None:
        decider = Decider.from_json(known_decider.decode(), str(path))
    if decider is not None and decider.expiry_days:
        raise BadInput("expiry_days counts in the log's time, and open_index keeps no log: scan, or run the matcher")
    decider = decider or (Decider(scheme.digest, rule=rule) if rule else Decider(scheme.digest))
    if decider.scheme != scheme.digest:
        raise StateError(f"the decider is for scheme {decider.scheme}, the index has {scheme.digest}")
    if known_decider is not None and known_decider != decider.to_json().encode():
        raise StateError(f"{path}: made with decider {known_decider.decode()}; use that one or another directory")
    meta = {_SCHEME: scheme.to_json().encode(), _DECIDER: decider.to_json().encode()}
    store.write({Family.META: meta})
    return Deduplicator(store, scheme, decider)
