"""The verdicts of a batch, in order. Those on plain pages, most of all, are made only when they are read one by one."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, overload

from neardup.clusters.page_fields import Joined, PageFields
from neardup.verdict import Kind, Verdict


class PlainPage(NamedTuple):
    """What counts need of a plain page.

    source: source of the page's coordinates.
    site: site of the page; empty if it has none.
    """

    kind: Kind
    page_id: int
    source: str
    url: str
    site: str


#: A plain page whose verdict has not been made: its batch, its position there, and how it joined a cluster, if it did.
_Plain = tuple[PageFields, int, Joined | None]


class BatchVerdicts(Sequence[Verdict]):
    """The verdicts of a batch in order. Verdicts on plain pages, the most frequent, are made when a caller reads them.

    log, generation: log and generation of all verdicts; None before `name_origin` was called.
    """

    def __init__(self, verdicts: Iterable[Verdict] = ()) -> None:
        self._items: list[Verdict | _Plain] = list(verdicts)
        self._log: str | None = None
        self._generation: str | None = None

    def add_plain(self, fields: PageFields, first: int, last: int) -> None:
        """Adds the verdicts on a run of plain pages, by position in the batch of `fields`."""
        self._items += [(fields, i, None) for i in range(first, last)]

    def add_joined(self, fields: PageFields, i: int, joined: Joined) -> None:
        """Adds the verdict on a plain member, by position in the batch of `fields`."""
        self._items.append((fields, i, joined))

    def name_origin(self, log: str | None, generation: str | None) -> None:
        """Sets log and generation of all verdicts, once all are there."""
        self._log, self._generation = log, generation
        for verdict in self.made():
            verdict.log, verdict.generation = log, generation

    def lines(self) -> list[bytes]:
        """`Verdict.to_json` of each."""
        log, generation = self._log, self._generation
        return [
            item[0].line(item[1], item[2], log, generation) if isinstance(item, tuple) else item.to_json()
            for item in self._items
        ]

    def made(self) -> Iterator[Verdict]:
        """Yields the verdicts without those of `plain_pages`."""
        return (item for item in self._items if not isinstance(item, tuple))

    def plain_pages(self) -> Iterator[PlainPage]:
        """Yields the plain pages whose verdicts were not made, in order."""
        for item in self._items:
            if isinstance(item, tuple):
                fields, i, joined = item
                kind = Kind.UNIQUE if joined is None else joined.kind
                yield PlainPage(kind, fields.page_id(i), fields.source(i), fields.url(i), fields.site(i))

    def page_ids(self) -> list[int]:
        """The pages' own verdicts, by page id, in order."""
        ids = (
            (item[0].page_id(item[1]), 0) if isinstance(item, tuple) else (item.page_id, item.n) for item in self._items
        )
        return [page_id for page_id, n in ids if not n]

    def urls(self) -> list[bytes]:
        """The URLs of their pages, in UTF-8."""
        return [
            (item[0].url(item[1]) if isinstance(item, tuple) else item.url).encode("utf-8", "replace")
            for item in self._items
        ]

    def sources(self) -> set[str]:
        """The sources of the pages' own verdicts."""
        own = {verdict.coordinates.source for verdict in self.made() if not verdict.n}
        return own | {item[0].source(item[1]) for item in self._items if isinstance(item, tuple)}

    def kinds(self) -> Counter[Kind]:
        return Counter(
            item.verdict if not isinstance(item, tuple) else Kind.UNIQUE if item[2] is None else item[2].kind
            for item in self._items
        )

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, at: int) -> Verdict: ...
    @overload
    def __getitem__(self, at: slice) -> list[Verdict]: ...
    def __getitem__(self, at: int | slice) -> Verdict | list[Verdict]:
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(len(self)))]
        item = self._items[at]
        if isinstance(item, tuple):
            item = self._items[at] = item[0].plain(item[1], item[2])
            item.log, item.generation = self._log, self._generation
        return item

    def __iadd__(self, others: Iterable[Verdict]) -> "BatchVerdicts":
        self._items += others._items if isinstance(others, BatchVerdicts) else others
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def __repr__(self) -> str:
        return f"BatchVerdicts({list(self)})"
