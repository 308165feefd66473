"""Posting lists of the keys that a batch's pages post, as arrays.

A batch has some ten thousand keys, nearly all of them of one page alone, and their lists are read for every
page: as arrays, a page costs one or two calls of a kernel instead of a lookup for each key.

Hot keys: `neardup.index.posting_rows` has their rows, and says when a key turns hot; `neardup.kernels.postings` does so
for arrays. Here the candidates that share none but hot keys come last.
"""

import copy
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import compress, pairwise

import numpy as np

from neardup.decider import Decider
from neardup.errors import CorruptRecord, InvariantBroken
from neardup.index import posting_rows
from neardup.kernels import postings as kernels
from neardup.rules.key_families import SIMILARITY_BYTES
from neardup.rules.posted_keys import families_of, key_weights, keys_of_columns, length_gap, similarity_columns
from neardup.search.batch_records import Pages

#: Room for postings that a list gets beyond the needs of the batch, once pages of the store are posted.
_MORE_ROOM = 8
#: `posting_rows.salt_of` by the first byte of a key.
_SALTS = np.array([posting_rows.salt_of(first) for first in range(256)], dtype=np.uint64)


class Posted:
    """What the pages of a batch post, and the rows of their keys as far as they were read.

    with_keys: page ids of all pages with keys. families: names of the family of each of a page's keys. keys: all
    keys of all pages, in byte order; the number of a key there is its slot. number_of: page id -> row of the
    following arrays, for pages with keys. slots int64[pages, keys]; tape, content (log-lengths) int64[pages];
    entries uint64[pages]: the page's posting; sites uint64[pages]: fingerprints; firsts bool[pages, keys]: no
    earlier page of the batch has the key, first bool[pages]: nor any of its keys. uses int64[slots]: pages with
    this key; salts uint64[slots]: `posting_rows.salt_of`. read bool[slots].
    """

    def __init__(self, pages: Pages, decider: Decider, alone: frozenset[int] = frozenset()) -> None:
        """alone: pages that no other page can find, now or later; they get no lists, as if they had no keys."""
        posted, columns = similarity_columns(pages.headers, decider)
        self.families = families_of(decider)
        ids = pages.ids[posted]
        self.with_keys = frozenset(ids.tolist())
        if alone:
            listed = np.array([page_id not in alone for page_id in ids.tolist()], dtype=np.bool_)
            columns, ids = columns[listed], ids[listed]
            posted = np.isin(pages.ids, ids)
        self.number_of = {page_id: number for number, page_id in enumerate(ids.tolist())}
        unique, slots, self.uses = np.unique(columns, return_inverse=True, return_counts=True)
        self.keys = keys_of_columns(unique)
        self.salts: np.ndarray = _SALTS[(unique >> np.uint64(48)) & np.uint64(255)]
        self.slots = slots.reshape(columns.shape).astype(np.int64)
        tape, content = pages.tape_logs()
        self.tape, self.content = tape[posted], content[posted]
        self.entries = ids.astype(np.uint64) << np.uint64(16) | (self.tape << 8 | self.content).astype(np.uint64)
        self.sites: np.ndarray = pages.headers["site"][posted].astype(np.uint64)
        owners = np.repeat(np.arange(len(ids)), columns.shape[1])
        first = np.empty(len(unique), dtype=np.int64)
        first[self.slots.reshape(-1)[::-1]] = owners[::-1]  # of several assignments the last one counts
        self.firsts: np.ndarray = first[self.slots] == np.arange(len(ids))[:, None]
        self.first: np.ndarray = self.firsts.all(axis=1)
        self.read = np.zeros(len(unique), dtype=np.bool_)
        self.rows: list[bytes | None] = [None] * len(unique)
        self._lists: Lists | None = None
        self._slot_of: dict[bytes, int] | None = None

    def unread(self) -> "Posted":
        """A copy without rows, for another store."""
        other = copy.copy(self)
        other.read, other.rows, other._lists = np.zeros(len(self.keys), dtype=np.bool_), [None] * len(self.keys), None
        return other

    def of_page(self, page_id: int) -> list[bytes]:
        number = self.number_of.get(page_id)
        return [] if number is None else [self.keys[slot] for slot in self.slots[number].tolist()]

    def slot_of(self, key: bytes) -> int | None:
        """The slot of a key; None if no page of the batch posts it."""
        if self._slot_of is None:
            self._slot_of = {one: slot for slot, one in enumerate(self.keys)}
        return self._slot_of.get(key)

    def unread_of(self, page_ids: Iterable[int]) -> list[int]:
        """Slots of these pages whose rows were not read, ascending."""
        numbers = [number for page_id in page_ids if (number := self.number_of.get(page_id)) is not None]
        required = np.zeros(len(self.read), dtype=np.bool_)
        required[self.slots[numbers].reshape(-1)] = True
        unread: list[int] = np.nonzero(required & ~self.read)[0].tolist()
        return unread

    def put(self, slots: Sequence[int], rows: Sequence[bytes | None]) -> None:
        """Remembers rows that were read."""
        for slot, row in zip(slots, rows, strict=True):
            self.rows[slot] = row
        self.read[slots] = True
        self._lists = None

    def learn(self, names: Iterable[bytes], rows: Mapping[bytes, bytes | None]) -> None:
        """Takes over rows of its keys that `ReadSet.read` has read. names: the keys read."""
        found = [slot for key in names if len(key) == SIMILARITY_BYTES and (slot := self.slot_of(key)) is not None]
        if found:
            self.put(found, [rows[self.keys[slot]] for slot in found])

    def lists(self, decider: Decider) -> "Lists":
        """A copy of the lists as they were read. Raises CorruptRecord."""
        if self._lists is None:
            self._lists = Lists(self, decider)
        return self._lists.copy()


#: Candidates of a page and their weights: the sum of `key_weights` of the common keys that are not hot. Greatest first,
#: then oldest; whether there are more. Those that share none but hot keys come last, with 0.
Gathered = tuple[list[int], list[int], bool]


class Lists:
    """Posting lists of a batch's keys, as they are now. turned: slots of those that turned hot."""

    def __init__(self, posted: Posted, decider: Decider) -> None:
        self.posted = posted
        self._decider = decider
        rows = posted.rows
        sizes = np.array([len(row) if row else 0 for row in rows], dtype=np.int64)
        held = sizes // posting_rows.POSTING_BYTES
        most = max(decider.postings_max, decider.hot_postings_kept)
        self._room = np.maximum(held, np.minimum(held + posted.uses, most))
        self._begin = np.cumsum(self._room) - self._room
        self._count = np.where(posted.read, 0, kernels.UNREAD)
        self._words = np.empty(int(self._room.sum()), dtype=np.uint64)
        self._tags = np.empty(len(self._words), dtype=np.uint8)
        self._salts = posted.salts
        joined = np.frombuffer(b"".join(filter(None, rows)), dtype=np.uint8)
        bad = kernels.load(joined, sizes, self._arrays)
        if bad >= 0:
            row = rows[bad] or b""
            raise CorruptRecord(f"not a posting list of a known format: {row[:9].hex()}, {len(row)} bytes")
        counts = self._count[posted.slots]
        restless = np.zeros(len(rows), dtype=np.uint8)
        kernels.find_restless(posted.slots, self._arrays, posted.sites, decider.hot_postings_kept, restless)
        still = posted.firsts | (restless[posted.slots] == 0)
        first: np.ndarray = posted.firsts & (counts == 0)
        lonely: np.ndarray = (first | (still & (counts == kernels.HOT))).all(axis=1)
        self._lonely: list[bool] = lonely.tolist()
        # Only hot keys lead to candidates, and no earlier page of the batch is added to these lists.
        hot = (counts == kernels.HOT) | (counts < kernels.UNREAD)
        self._quiet: np.ndarray = (first | (still & hot)).all(axis=1)
        self._touched = False  # a page was posted or removed
        self._disturbed = False  # a page of the store was posted, or a hot list has room again
        self._thinned = False  # a page was removed
        self._changed = np.zeros(len(rows), dtype=np.uint8)
        self._due: list[int] = []
        self._weights = key_weights(decider)
        self._most = np.array((decider.postings_max, decider.hot_postings_kept), dtype=np.int64)
        self.turned: set[int] = set()
        self._make_scratch()

    def copy(self) -> "Lists":
        other: Lists = object.__new__(Lists)
        other.__dict__.update(self.__dict__)
        other._due, other.turned = [], set(self.turned)
        for name in ("_count", "_words", "_tags", "_changed"):
            setattr(other, name, getattr(self, name).copy())
        return other

    @property
    def _arrays(self) -> tuple[np.ndarray, ...]:
        return self._begin, self._count, self._words, self._tags, self._salts

    def _make_scratch(self) -> None:
        most = int(self._room[self.posted.slots].sum(axis=1).max(initial=1))
        table = np.full(2 << most.bit_length(), -1, dtype=np.int64)
        self._scratch = table, np.empty(most, dtype=np.uint64), np.empty(most, dtype=np.int64)

    @property
    def _gap(self) -> int:
        return length_gap(self._decider)

    def is_lonely(self, number: int) -> bool:
        """Whether all lists of a page, named by its row of `Posted`, are empty or hot when its turn comes."""
        return self._lonely[number] and not self._disturbed

    @property
    def is_disturbed(self) -> bool:
        """Whether a page of the store was posted, or a hot list has room again: then no page of the batch is lonely."""
        return self._disturbed

    def mark_lonely(self, page_ids: Iterable[int]) -> None:
        """Marks pages that have no candidates in the lists as they were read."""
        for page_id in page_ids:
            number = self.posted.number_of[page_id]
            if self._quiet[number]:
                self._lonely[number] = True

    @property
    def is_untouched(self) -> bool:
        """Whether no page was posted or removed."""
        return not (self._touched or self._due)

    def is_as_read(self, page_id: int) -> bool:
        """Whether the lists of a page of the batch are as they were read."""
        if self.is_untouched:
            return True
        number = self.posted.number_of.get(page_id)
        if number is None or not (self._disturbed or self._thinned or not self.posted.first[number]):
            return True
        self._settle()
        return not self._changed[self.posted.slots[number]].any()

    # ---- reading ---------------------------------------------------------------------------------------------------

    def gather(self, page_id: int) -> Gathered | None:
        """Candidates of a page of the batch. None if a list was not read."""
        number = self.posted.number_of.get(page_id)
        if number is None:
            return [], [], False
        self._settle()
        posted, (_, words, weights) = self.posted, self._scratch
        many = kernels.gather(
            posted.slots[number],
            self._weights,
            self._arrays,
            posted.tape[number],
            posted.content[number],
            self._gap,
            self._scratch,
        )
        if many == kernels.UNREAD:
            return None
        kept = min(many, self._decider.candidates_max)
        return (words[:kept] >> np.uint64(16)).tolist(), weights[:kept].tolist(), many > kept

    def meet(self, page_ids: Sequence[int]) -> bool:
        """Whether one of these pages has a key of an earlier page of the batch."""
        numbers = [number for page_id in page_ids if (number := self.posted.number_of.get(page_id)) is not None]
        return not self.posted.first[numbers].all()

    def gather_many(self, page_ids: Sequence[int], posts: Sequence[bool]) -> dict[int, Gathered]:
        """Return the results of `gather` for the pages with candidates, as far as lists were read. Changes no list.

        Args:
            page_ids: ids of the pages, in order.
            posts: whether each page is posted before the next page is searched.
        """
        self._settle()
        posted = self.posted
        numbers = np.array([posted.number_of.get(page_id, -1) for page_id in page_ids], dtype=np.int64)
        known = numbers >= 0
        posting = np.zeros(len(posted.entries), dtype=np.bool_)
        posting[numbers[known]] = np.array(posts, dtype=np.bool_)[known]
        most = self._decider.candidates_max
        found = np.empty((int(known.sum()), most), dtype=np.uint64)
        weights = np.empty(found.shape, dtype=np.int64)
        many = np.zeros(len(found), dtype=np.int64)
        kernels.gather_many(
            numbers[known],
            posted.slots,
            self._weights,
            (self._begin, self._count.copy(), self._words.copy(), self._tags.copy(), self._salts),
            (posted.tape, posted.content),
            self._gap,
            self._scratch,
            (posted.entries, posted.sites, posting, self._most, np.empty_like(self._changed)),
            found,
            weights,
            many,
        )
        ids = np.array(page_ids, dtype=np.int64)[known]
        found >>= np.uint64(16)
        where = np.nonzero(many > 0)[0]
        return {
            page_id: (found[i, :size].tolist(), weights[i, :size].tolist(), size > most)
            for page_id, i, size in zip(ids[where].tolist(), where.tolist(), many[where].tolist(), strict=True)
        }

    def keys_shared(self, pairs: Sequence[tuple[int, int]]) -> np.ndarray:
        """Return whether the second page of each pair is posted under each key of the first, bool[pairs, keys].

        pairs: page ids of a page of the batch, which posts keys, and of another page.
        """
        self._settle()
        posted = self.posted
        found = np.empty((len(pairs), len(posted.families)), dtype=np.uint8)
        kernels.holds_many(
            np.array([posted.number_of[page_id] for page_id, _ in pairs], dtype=np.int64),
            posted.slots,
            self._arrays,
            np.array([other for _, other in pairs], dtype=np.int64),
            found,
        )
        return found

    def families_many(self, pairs: Sequence[tuple[int, int]]) -> dict[tuple[int, int], dict[str, int]]:
        """How many keys of each family are shared by pairs of a page of the batch, which posts any, and another."""
        posted, found = self.posted, self.keys_shared(pairs)
        known: dict[bytes, dict[str, int]] = {}
        out = {}
        for i, pair in enumerate(pairs):
            pattern = found[i].tobytes()
            if pattern not in known:
                known[pattern] = dict(Counter(compress(posted.families, pattern)))
            out[pair] = dict(known[pattern])
        return out

    # ---- changing --------------------------------------------------------------------------------------------------

    def post_lonely(self, numbers: Sequence[int]) -> None:
        """Posts lonely pages of the batch; done together with others, before the next read of the lists."""
        self._due += numbers

    def _settle(self) -> None:
        if self._due:
            due = np.array(self._due, dtype=np.int64)
            self._due = []
            self._touched = True
            posted = self.posted
            # Empty lists and hot ones: none turns.
            kernels.post_many(due, posted.slots, self._arrays, posted.entries, posted.sites, self._most, self._changed)

    def post(self, slots: np.ndarray, word: int, site: int, *, foreign: bool = False) -> bool:
        """Appends a posting to the lists of slots, int64; False, and nothing is done, if one was not read.

        site: fingerprint of the page's site. foreign: of a page that is not of the batch.
        """
        self._settle()
        self._touched = True
        if foreign:
            self._disturbed = True
            full = self._left_of(slots) + self.posted.uses[slots] >= self._room[slots]
            if full.any():
                self._grow(slots[full])
        turned = kernels.post(slots, self._arrays, np.uint64(word), np.uint64(site), self._most, self._changed)
        if turned == kernels.UNREAD:
            return False
        if turned:
            counts = self._count[slots]
            for slot in slots[(counts < 0) & (counts != kernels.UNREAD)].tolist():
                if not posting_rows.is_hot(self.posted.rows[slot]):
                    self.turned.add(slot)
        return True

    def _left_of(self, slots: np.ndarray) -> np.ndarray:
        """Number of postings in the lists of slots, hot ones included."""
        counts = self._count[slots]
        left: np.ndarray = np.where(counts >= 0, counts, np.maximum(kernels.UNREAD - counts, 0))
        return left

    def are_read(self, slots: np.ndarray) -> bool:
        """Whether the lists of all of these slots were read."""
        return not (self._count[slots] == kernels.UNREAD).any()

    def _grow(self, slots: np.ndarray) -> None:
        room = self._room.copy()
        room[slots] += _MORE_ROOM
        begin = np.cumsum(room) - room
        places = np.repeat(begin - self._begin, self._room) + np.arange(len(self._words))
        words, tags = np.empty(int(room.sum()), dtype=np.uint64), np.empty(int(room.sum()), dtype=np.uint8)
        words[places], tags[places] = self._words, self._tags
        self._room, self._begin, self._words, self._tags = room, begin, words, tags
        self._make_scratch()

    def unpost(self, slots: np.ndarray, word: int) -> bool:
        """Takes a posting out of lists; False if one was not read. Hot ones may lack it; raises InvariantBroken."""
        self._settle()
        if not self.are_read(slots):
            return False
        self._thinned = self._touched = True
        self._disturbed |= bool((self._count[slots] < kernels.UNREAD).any())
        if kernels.unpost(slots, self._arrays, np.uint64(word), self._changed) >= 0:
            raise InvariantBroken(f"posting {word:016x} is not where it was put")
        return True

    def writes(self) -> dict[bytes, bytes | None]:
        """Rows that differ from what was read; None: deleted."""
        self._settle()
        changed = np.nonzero(self._changed)[0]
        size = int((1 + posting_rows.POSTING_BYTES * self._left_of(changed)).sum())
        rows, ends = np.empty(size, dtype=np.uint8), np.empty(len(changed), dtype=np.int64)
        kernels.store(changed, self._arrays, rows, ends)
        encoded = rows.tobytes()
        slots, cuts = changed.tolist(), [0, *ends.tolist()]
        names, known = self.posted.keys, self.posted.rows
        return {
            names[slot]: row
            for slot, (start, end) in zip(slots, pairwise(cuts), strict=True)
            if (row := encoded[start:end] or None) != known[slot]
        }
