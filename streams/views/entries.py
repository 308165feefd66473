"""The lists with pages: each item is a row of the table `entries`, whose keys are in the order of the list.

Keys and rows:

kind, kind, newest          -> item: a verdict of a kind, or of the pages kept apart
site, site, kind, newest    -> {}: that verdict is of a page of the site
rejected, reason, newest    -> item: a rejected page
hot, site or *, newest, i   -> item: an index key that a page made hot; of the whole crawl under *
clusters, newest            -> {cluster, size, canonical, last}: a cluster that has or had several pages
members, cluster, URL       -> {}: a member that the row of its cluster leaves out
sites, site                 -> {}

`newest` is a number that falls with the id of a verdict (or of a cluster), in hexadecimal digits: the newest comes
first. A row follows from one verdict alone, so that a verdict which comes again changes nothing, and no row is read
before it is written. Only a row of a cluster has `last`, which names its newest verdict (`streams.views.view_rows`).

A cursor is the end of a key, behind the name of its list. It stays valid when verdicts are added.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from heapq import merge
from typing import Any, NamedTuple, Protocol

import orjson

Row = dict[str, Any]
#: Of a table `entries`: (end of the key behind the list's name, row).
Entry = tuple[str, Row]
TABLE = "entries"
ITEMS_SHOWN = 25
#: Items of one answer to another worker.
LIMIT_MAX = 1_000
CURSOR_CHARS_MAX = 10_000
#: Names of sites do not contain it.
_EVERYWHERE = "*"
_PAGE_ID_MAX, _N_MAX = (1 << 64) - 1, (1 << 32) - 1
_NAME_CHARS_MAX = 200


class EntrySource(Protocol):
    """A source of entries."""

    def entries(self, of: str, start: str, limit: int, back: bool) -> Sequence[Entry]:
        """Return up to `limit` entries of a list behind a cursor, in their order.

        of: name of the list. start: cursor; "" for the start of the list. back: return those before the cursor, the
        nearest first.
        """
        ...


class Cursor(NamedTuple):
    """Which page of a list: that behind the entry `after`, or before the entry `before`; by default the first one."""

    after: str = ""
    before: str = ""


def newest(page_id: int, n: int = 0) -> str:
    """Return the end of a key. Raises ValueError for a number that is no id."""
    if not 0 <= page_id <= _PAGE_ID_MAX or not 0 <= n <= _N_MAX:
        raise ValueError(f"page id {page_id}, n {n}: no id of a verdict")
    return f"{_PAGE_ID_MAX - page_id:016x}{_N_MAX - n:08x}"


def of_kind(kind: str, site: str | None = None) -> str:
    """Name the list of a kind's verdicts: of one site, or of all."""
    return _named("kind", kind) if site is None else _named("site", site, kind)


def of_reason(reason: str) -> str:
    return _named("rejected", reason)


def of_hot(site: str | None = None) -> str:
    return _named("hot", _EVERYWHERE if site is None else site)


def of_members(cluster: int | str) -> str:
    return _named("members", str(cluster))


CLUSTERS, SITES = "clusters\n", "sites\n"


@lru_cache(maxsize=4_096)
def _named(*names: str) -> str:
    return "".join(f"{name[:_NAME_CHARS_MAX] if len(name) > _NAME_CHARS_MAX else name}\n" for name in names)


def page_of(source: EntrySource, of: str, cursor: Cursor, shown: int = ITEMS_SHOWN) -> tuple[list[Entry], Row]:
    """Return one page of a list, and its cursors: {previous, next}, each None where no page is."""
    before = cursor.before[:CURSOR_CHARS_MAX]
    if before:
        held = list(source.entries(of, before, shown + 1, True))
        if len(held) > shown:
            items = held[:shown][::-1]
            return items, {"previous": items[0][0], "next": items[-1][0]}
    after = "" if before else cursor.after[:CURSOR_CHARS_MAX]
    held = list(source.entries(of, after, shown + 1, False))
    items = held[:shown]
    previous = items[0][0] if after and items else None
    return items, {"previous": previous, "next": items[-1][0] if len(held) > shown else None}


def read(
    rows: Callable[[bytes, bool], Iterable[tuple[bytes, bytes]]], of: str, start: str, limit: int, back: bool
) -> list[Entry]:
    """Read entries of one ordered table; see `EntrySource.entries`.

    rows: returns the table's rows from a key on (its first argument), in the order of keys or, with True, backwards.
    """
    name = of.encode("utf-8", "replace")
    first = name + start.encode("utf-8", "replace")
    found: list[Entry] = []
    for key, value in rows(first, back):
        if not key.startswith(name) or len(found) >= min(limit, LIMIT_MAX):
            break
        if key != first or not start:
            found.append((key[len(name) :].decode("utf-8", "replace"), orjson.loads(value)))
    return found


def joined(parts: Iterable[Sequence[Entry]], limit: int, back: bool) -> list[Entry]:
    """Join the entries of several partitions; an entry that several have is given once."""
    out: list[Entry] = []
    for entry in merge(*parts, key=lambda entry: entry[0], reverse=back):
        if not out or out[-1][0] != entry[0]:
            out.append(entry)
        if len(out) == limit:
            break
    return out
