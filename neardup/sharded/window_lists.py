"""The posting lists of a judge's window.

Most pages of a window share no key with another page of it: they are *alone*. The list of each of their keys would have
one posting, which no other page reads. So the window keeps no list for these keys. `alone` contains the pages of the
current message that need no list while they are judged. If a later page reads such a key, `get_many` makes its row.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from neardup.decider import Decider
from neardup.index import posting_rows
from neardup.index.column_families import Family
from neardup.kernels import key_table
from neardup.limits import PLACE_BITS
from neardup.rules.posted_keys import similarity_columns
from neardup.search.batch_records import Records
from neardup.sharded.apply_effects import changes
from neardup.sharded.messages import EFFECT, EffectKind, Effects, joined
from neardup.sketch.header import Header
from neardup.sketch.layout import HEADER

# Enumerations cost a tenth of a microsecond each time they are compared; a message has thousands of effects.
_POST, _UNPOST = int(EffectKind.POST), int(EffectKind.UNPOST)
#: Number of slots of the smallest table.
_LEAST = 1 << 10


class _Table:
    """A growing hash table from keys, as numbers, to one page each."""

    def __init__(self) -> None:
        self._arrays = _empty(_LEAST)
        self._count = 0

    def insert(self, columns: np.ndarray, page_ids: np.ndarray) -> None:
        """Adds keys; a key that is in the table keeps its page. columns: uint64[pages, keys]."""
        size = len(self._arrays[0])
        if 2 * (self._count + columns.size) > size:
            held, pages = self._arrays
            self._arrays = _empty(4 * (self._count + columns.size))
            key_table.insert(held[held != 0][:, None], pages[held != 0], self._arrays)
        self._count += key_table.insert(columns, page_ids, self._arrays)

    def find(self, numbers: np.ndarray) -> np.ndarray:
        """int64[numbers]: the page id of each key; -1: the key is not in the table."""
        found = np.empty(len(numbers), dtype=np.int64)
        key_table.find(numbers, self._arrays, found)
        return found

    def meet(self, columns: np.ndarray) -> np.ndarray:
        """bool[pages]: whether a row of `columns` shares a key with the table or with another row."""
        meeting = np.zeros(len(columns), dtype=np.uint8)
        key_table.meet(columns, self._arrays, _empty(2 * columns.size), meeting)
        return meeting.astype(np.bool_)


def _empty(least: int) -> tuple[np.ndarray, np.ndarray]:
    size = 1 << max(1, least - 1).bit_length()
    return np.zeros(size, dtype=np.uint64), np.zeros(size, dtype=np.int64)


class WindowLists:
    """Lists of the pages of a window, as a Reader of KEYS.

    For each message call `add`, `begin` (again if the message is judged again), `note` and `end`. `start` moves the
    window by an epoch. For messages that were judged before a restart call only `add`, before `start`.
    """

    def __init__(self, decider: Decider) -> None:
        self._decider = decider
        #: Records of the pages of the window, by page id.
        self.records: dict[int, bytes] = {}
        self._headers: dict[int, Header] = {}  # of the pages whose lists were made
        self._table = _Table()  # each key with its first page in the window, posted or not
        #: Pages of the message that share no key with another page of the window.
        self.alone: frozenset[int] = frozenset()
        self._posted_alone: set[int] = set()  # pages that were alone when their own message posted them
        self._in_message: set[int] = set()  # pages that the current message has posted so far
        self._rows: dict[bytes, bytes | None] = {}  # rows that were written; None: deleted

    def add(self, pages: Records) -> None:
        """Adds the pages of the next message."""
        self.records.update(pages)
        columns, page_ids = self._keys_of(pages)
        self.alone = frozenset(page_ids[~self._table.meet(columns)].tolist())
        self._table.insert(columns, page_ids)

    def _keys_of(self, pages: Records) -> tuple[np.ndarray, np.ndarray]:
        """uint64[pages, keys], int64[pages]: the keys and page ids of the pages that have keys."""
        size = HEADER.itemsize
        joined = b"".join([record[:size] for _, record in pages if len(record) >= size])
        page_ids = np.array([page_id for page_id, record in pages if len(record) >= size], dtype=np.int64)
        posted, columns = similarity_columns(np.frombuffer(joined, dtype=HEADER), self._decider)
        return columns, page_ids[posted]

    def start(self, first: int, parts: Sequence[Effects]) -> None:
        """Drops the pages before page id `first`, and rebuilds the lists of the others from `parts`, their effects."""
        self.records = {page_id: record for page_id, record in self.records.items() if page_id >= first}
        self._headers.clear()
        self._posted_alone, self._in_message, self._rows, self._table = set(), set(), {}, _Table()
        columns, page_ids = self._keys_of(sorted(self.records.items()))
        items = joined([part.items for part in parts]) if parts else np.zeros(0, dtype=EFFECT)
        offsets = np.repeat([part.offset for part in parts], [len(part.items) for part in parts])
        listed = np.isin(items["kind"], (EffectKind.POST, EffectKind.UNPOST)) & (items["page_id"] >= first)
        items, offsets = items[listed], offsets[listed]
        _, numbers, counts = np.unique(items["page_id"], return_inverse=True, return_counts=True)
        once = (counts[numbers] == 1) & (items["page_id"] >> np.uint64(PLACE_BITS) == offsets)
        posted = np.isin(page_ids, items["page_id"].astype(np.int64))
        alone = np.isin(page_ids, items["page_id"][once].astype(np.int64))
        alone[posted] &= ~self._table.meet(columns[posted])
        self._posted_alone = set(page_ids[alone].tolist())
        self._table.insert(columns[alone], page_ids[alone])
        self._table.insert(columns[~alone], page_ids[~alone])
        rest = [item for item in items.tolist() if item[1] not in self._posted_alone]
        self._rows.update(changes(rest, self.records, self, self._decider, lambda page_id: True)[Family.KEYS])

    def begin(self) -> None:
        """Starts to judge the message that was added last, or starts again."""
        self._in_message = set()

    def note(self, effects: Iterable[tuple[int, int, bytes]]) -> None:
        """Notes the effects of pages of the message that were judged after `begin`."""
        for kind, page_id, _ in effects:
            if kind == _POST:
                self._in_message.add(page_id)
            elif kind == _UNPOST:
                self._in_message.discard(page_id)

    def end(self, rows: Mapping[bytes, bytes | None]) -> None:
        """Ends the message. rows: the lists that it changed."""
        self._posted_alone |= self._in_message & self.alone
        self._in_message = set()
        self._rows.update(rows)

    def get_many(self, family: Family, names: Sequence[bytes]) -> list[bytes | None]:
        """Rows of posting lists; other families are empty."""
        if family is not Family.KEYS or not names:
            return [None] * len(names)
        held = self._rows
        pages = self._table.find(_numbers(names)).tolist()
        pairs = zip(names, pages, strict=True)
        return [held[name] if name in held else self._row_of_one(name, page_id) for name, page_id in pairs]

    def _row_of_one(self, name: bytes, page_id: int) -> bytes | None:
        """Return the list of a key without a written row.

        Args:
            name: the key.
            page_id: id of the first page of the window that has the key.
        """
        if page_id not in self._posted_alone and not (page_id in self._in_message and page_id in self.alone):
            return None
        header = self._headers.get(page_id)
        if header is None:
            header = self._headers[page_id] = Header(self.records[page_id])
        entry = posting_rows.posting(page_id, header, name)
        return posting_rows.with_posting(None, entry, self._decider.postings_max, self._decider.hot_postings_kept)

    def first(self, family: Family, prefix: bytes, limit: int, after: bytes = b"") -> list[tuple[bytes, bytes]]:
        return []

    def scan(self, family: Family) -> Iterator[tuple[bytes, bytes]]:
        return iter(())


def _numbers(names: Sequence[bytes]) -> np.ndarray:
    """Keys as numbers, in the form of `similarity_columns`."""
    raw = np.zeros((len(names), 8), dtype=np.uint8)
    raw[:, 1:] = np.frombuffer(b"".join(names), dtype=np.uint8).reshape(len(names), -1)
    numbers: np.ndarray = raw.view(">u8")[:, 0].astype(np.uint64)
    return numbers
