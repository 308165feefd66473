"""Made-up verdicts for tests of the views: URLs that come again, change clusters, go, and are promoted."""

import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import orjson

from neardup.decider import Decider
from neardup.errors import BadInput
from neardup.page import Page
from neardup.verdict import Coordinates
from streams.views.audited_pairs import Audits, NoAudits
from streams.views.entries import Entry, read
from streams.views.health import of_stream
from streams.views.lists import Row, closeness_to
from streams.views.search import search_rows
from streams.views.source import Origin
from streams.views.view_rows import TABLES, apply

DECIDER = Decider(scheme="5" * 32)
#: Two days ago: a broker would take away what is old, and refuse what is of the future.
_BEGAN = time.time_ns() // 86_400_000_000_000 * 86_400_000 - 2 * 86_400_000
CLOSENESS = closeness_to(DECIDER)


class Nowhere:
    """An origin that has nothing."""

    def record(self, page_id: int, log: str | None) -> bytes:
        raise BadInput(f"no page {page_id} here")

    def page(self, coordinates: Coordinates) -> Page:
        raise BadInput("no pages here")

    sends_again = False

    def send_again(self, coordinates: Coordinates) -> None:
        raise BadInput("no pages here")


class MemoryRows:
    """`view_rows.Rows` in memory."""

    def __init__(self) -> None:
        self.tables: dict[str, dict[str, Row]] = {table: {} for table in TABLES}

    def get(self, table: str, key: str) -> Row | None:
        return self.tables[table].get(key)

    def put(self, table: str, key: str, row: Row) -> None:
        self.tables[table][key] = row


def in_memory(held: Iterable[tuple[str, Row]]) -> Callable[[bytes, bool], Iterator[tuple[bytes, bytes]]]:
    """`rows` of `entries.read`, over entries in memory."""
    pairs = sorted((key.encode("utf-8", "replace"), orjson.dumps(row)) for key, row in held)

    def rows(start: bytes, back: bool) -> Iterator[tuple[bytes, bytes]]:
        if back:
            return (pair for pair in reversed(pairs) if pair[0] <= start)
        return (pair for pair in pairs if pair[0] >= start)

    return rows


class Held:
    """The rows as if every verdict had come once, in one partition, as a source of pages."""

    partitions: int | None = None
    origin: Origin = Nowhere()
    audits: Audits = NoAudits()
    chosen_by: tuple[str, ...] = ()

    def __init__(self, verdicts: list[dict[str, Any]], where: str = "a test") -> None:
        self.where = where
        self._rows = MemoryRows()
        for verdict in verdicts:
            apply(verdict, self._rows, emitted_at(verdict), CLOSENESS)

    def policy(self) -> tuple[str, ...]:
        return self.chosen_by

    def rows(self, table: str, key: str) -> list[Row]:
        row = self._rows.get(table, key)
        return [] if row is None else [row]

    own_rows = rows

    def documents(self, given: str) -> dict[str, str]:
        return {}

    def entries(self, of: str, start: str, limit: int, back: bool) -> Sequence[Entry]:
        return read(in_memory(self._rows.tables["entries"].items()), of, start, limit, back)

    own_entries = entries

    def search(self, text: str, after: str = "") -> dict[str, Any]:
        return search_rows(stored(self._rows, "urls", after), text)

    own_search = search

    def rate(self) -> float | None:
        return None

    async def own(self) -> dict[str, Any]:
        return {"lag": {}, "rate": 0.0, "tables": {}}

    async def health(self) -> dict[str, Any]:
        return of_stream(self.where, None, [], 0, [], None)

    async def lag(self) -> dict[int, int] | None:
        return None


def stored(rows: MemoryRows, table: str, after: str = "") -> list[tuple[bytes, bytes]]:
    """The rows behind a key, as a table on disk has them."""
    return sorted((key.encode(), orjson.dumps(row)) for key, row in rows.tables[table].items() if key > after)


def emitted_at(verdict: dict[str, Any]) -> int:
    """A time that ascends with the page ids: some hours over all of them."""
    return _BEGAN + int(verdict["page_id"]) * 40_000


def random_verdicts(count: int, seed: int = 1, *, urls: int = 40) -> list[dict[str, Any]]:
    """`count` verdicts in the order of the log: ids ascend, some pages cause a second one."""
    chance = random.Random(seed)
    out: list[dict[str, Any]] = []
    page_id = 0
    while len(out) < count:
        page_id += chance.randint(1, 5)
        number = int(chance.paretovariate(0.6)) % urls
        kind = chance.choice(["unique", "near_duplicate", "near_duplicate", "unchanged", "gone", "rejected"])
        out.append(_verdict(chance, page_id, 0, f"https://www.site{number % 7}.example/{number}", kind))
        if kind == "gone" and chance.random() < 0.7:
            other = chance.randrange(urls)
            out.append(_verdict(chance, page_id, 1, f"https://www.site{other % 7}.example/{other}", "promoted"))
    return out[:count]


def _verdict(chance: random.Random, page_id: int, n: int, url: str, kind: str) -> dict[str, Any]:
    verdict: dict[str, Any] = {
        "version": 1, "verdict": kind, "page_id": page_id, "n": n, "url": url, "fetched_at": 1_700_000_000_000 + n,
        "scheme": DECIDER.scheme, "decider": DECIDER.digest, "site": url.split("/")[2].removeprefix("www."),
    }  # fmt: skip
    cluster = chance.randrange(9)
    if kind == "rejected":
        verdict["reason"] = chance.choice(["HTTP status 500", "truncated gzip: 17 bytes", "truncated gzip: 18 bytes"])
        if chance.random() < 0.5:
            verdict["standing"] = {"verdict": "unique", "cluster": cluster}
    elif kind == "unchanged":
        verdict["standing"] = {"verdict": "near_duplicate", "cluster": cluster}
    elif kind != "gone":
        size, revision = chance.randint(1, 40), page_id
        verdict |= {"cluster": cluster, "cluster_size": size, "revision": revision, "canonical": url}
    if kind == "near_duplicate":
        score = 0.74 + page_id % 25 / 100 if page_id % 3 == 1 else 0.91
        verdict["evidence"] = {
            "by": "tape",
            "score": score,
            "demand": 0.7,
            "tape_score": score,
            "same_site": False,
            "keys": {"wide": 2},
        }
        verdict["representative"] = {"page_id": 0, "url": "https://www.site0.example/0", "fetched_at": 1}
    if kind in ("near_duplicate", "unique") and page_id % 17 == 4:
        turned = [f"wide:3{page_id % 8}{page_id:012x}", f"head:10{page_id:012x}"][: 1 + page_id % 2]
        verdict["evidence"] = {**verdict.get("evidence", {}), "turned_hot": turned}
    return verdict
