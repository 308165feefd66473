"""The rows of a batch: those that were read, under the changes of the batch so far, in one buffer and one hash table.

A *row* is named by its *kind* and three words, which are its key in the store, big-endian. An *entry* of the table says
where the row lies in `heap` now and as it was read. `heap` only grows within a batch, so a change is undone by an entry
that points to the former row. Functions return MISSING where a row was not read (`needs` has its key then), BROKEN
where the rows contradict each other, and FULL where an array is too small; the walk undoes the page in each case.
"""

from typing import NamedTuple

import numpy as np

from neardup.index.naming_rows import NAMING_BYTES
from neardup.index.posting_rows import POSTING_BYTES
from neardup.index.rows import (
    CLUSTER_BYTES,
    DIGEST_BYTES,
    MEMBER_BYTES,
    NOTE_BYTES,
    NOTES_MAX,
    STANDINGS,
    URL_BYTES,
)
from neardup.kernels import lean_kernel
from neardup.rules.key_families import KeyFamily

U64 = np.uint64
I64 = np.int64

#: Results below 0.
MISSING, BROKEN, FULL = -1, -2, -3
#: There is no such page or row.
NOBODY = I64(-4)
#: Reasons of BROKEN (`neardup.matching.store_keys.fault`).
NO_ROW, MISPLACED, NOT_LIVE, TOO_FEW, LEANS, NO_MEMBERS, OTHER_CLUSTER, DAMAGED = range(8)

# Kinds of entries: of rows, the column family << 8, and of `keys` the key's first byte.
KEYS, SKETCHES, URLS, CLUSTERS, MEMBERS = 0x100, 0x200, 0x300, 0x400, 0x500
#: A page's whole record: its offset and length.
RECORD = 0x700
#: A prefix: the members of a cluster, and the further pages of a digest (| first byte of their keys).
MEMBERS_OF, MORE_OF = 0x800, 0x900
#: The numbers of a pair of pages: `row` is their place.
SCORE = 0xA00
#: 16 bytes: hash of the URL that a page of the store names as canonical. Python computes it.
CANONICAL = 0xB00
#: A cluster: number of its pages that the batch may remove.
LEAVING = 0xC00
#: Owner and naming of a page of the store: words of the key. Python computes them.
NAMING_OF = 0xD00

# States of an entry.
UNREAD, KNOWN = 0, 1

_DIGEST, _OPAQUE, _NAMING, _LISTS_FROM = (
    int(family) for family in (KeyFamily.DIGEST, KeyFamily.OPAQUE, KeyFamily.NAMING, KeyFamily.HEAD)
)
_STANDINGS = len(STANDINGS)

ENTRY = np.dtype(
    (
        np.record,
        [
            ("a", "<u8"),
            ("b", "<u8"),
            ("c", "<u8"),
            ("row", "<i8"),  # offset in the heap
            ("read", "<i8"),  # offset of the row that was read
            ("next", "<i8"),  # the entry before, under the same prefix; of a prefix: the newest
            ("since", "<u8"),  # of a prefix: the keys after this one, and up to `last`, were read
            ("last", "<u8"),
            ("length", "<i4"),  # bytes; 0: no row
            ("read_length", "<i4"),  # bytes; 0: no row; -1: not read
            ("known", "<i4"),  # of a prefix: number of keys that were read
            ("kind", "<u2"),
            ("state", "u1"),
            ("needed", "u1"),  # the key is among the needs
            ("complete", "u1"),  # of a prefix: no keys are left in the store
        ],
    ),
    align=True,
)

NEED = np.dtype(
    (
        np.record,
        [("a", "<u8"), ("b", "<u8"), ("c", "<u8"), ("entry", "<i8"), ("limit", "<i8"), ("kind", "<u2")],
    ),
    align=True,
)

UNDO = np.dtype((np.record, [("entry", "<i8"), ("row", "<i8"), ("length", "<i4"), ("state", "u1")]), align=True)

# Places in `n`: how much of each array is in use, and the reason of the last failure.
HEAP, ENTRIES, UNDONE, NEEDED = 0, 1, 2, 3
FULL_OF, WANTED = 4, 5  # the array that is full; the least length that it needs
WHY, WHY_A, WHY_B = 6, 7, 8  # of BROKEN
PAIRS, VERDICTS, SEARCHES, CANDIDATES, CHECKS, TURNED, NUMBERS = 9, 10, 11, 12, 13, 14, 15

#: Arrays that may be full.
OF_HEAP, OF_ENTRIES, OF_UNDO, OF_PAIRS, OF_TAPES, OF_VERDICTS, OF_SEARCHES, OF_CANDIDATES, OF_CHECKS, OF_TURNED = range(
    10
)


class Rows(NamedTuple):
    """heap uint8; entries ENTRY; table int64: entries by hash, -1: none; undo UNDO; needs NEED; n int64[NUMBERS]."""

    heap: np.ndarray
    entries: np.ndarray
    table: np.ndarray
    undo: np.ndarray
    needs: np.ndarray
    n: np.ndarray


# ---- bytes ---------------------------------------------------------------------------------------------------------


@lean_kernel
def be64(heap, at):
    """The big-endian uint64 at heap[at]."""
    word = U64(0)
    for k in range(8):
        word = word << U64(8) | U64(heap[at + k])
    return word


@lean_kernel
def be32(heap, at):
    return (I64(heap[at]) << 24) | (I64(heap[at + 1]) << 16) | (I64(heap[at + 2]) << 8) | I64(heap[at + 3])


@lean_kernel
def be48(heap, at):
    word = I64(0)
    for k in range(6):
        word = word << 8 | I64(heap[at + k])
    return word


@lean_kernel
def put_be64(heap, at, word):
    for k in range(8):
        heap[at + k] = np.uint8(word >> U64(56 - 8 * k) & U64(255))


@lean_kernel
def put_be32(heap, at, number):
    for k in range(4):
        heap[at + k] = np.uint8(number >> (24 - 8 * k) & 255)


@lean_kernel
def put_be48(heap, at, number):
    for k in range(6):
        heap[at + k] = np.uint8(number >> (40 - 8 * k) & 255)


@lean_kernel
def copy(heap, to, start, size):
    for k in range(size):
        heap[to + k] = heap[start + k]


@lean_kernel
def same_bytes(heap, one, other, size):
    for k in range(size):  # noqa: SIM110  (numba has no generator expressions)
        if heap[one + k] != heap[other + k]:
            return False
    return True


# ---- entries -------------------------------------------------------------------------------------------------------


@lean_kernel
def full(r, what, wanted):
    r.n[FULL_OF], r.n[WANTED] = what, wanted
    return FULL


@lean_kernel
def broken(r, why, a, b):
    """Notes which invariant does not hold; see `neardup.matching.store_keys.fault`."""
    r.n[WHY], r.n[WHY_A], r.n[WHY_B] = why, I64(a), I64(b)
    return BROKEN


@lean_kernel
def room(r, size):
    """Takes `size` bytes of the heap -> their offset, or FULL."""
    at = r.n[HEAP]
    if at + size > len(r.heap):
        return full(r, OF_HEAP, at + size)
    r.n[HEAP] = at + size
    return at


@lean_kernel
def _hash(kind, a, b, c):
    word = a ^ (b << U64(23) | b >> U64(41)) ^ (c << U64(47) | c >> U64(17)) ^ U64(kind) * U64(0x9E3779B97F4A7C15)
    word = (word ^ word >> U64(30)) * U64(0xBF58476D1CE4E5B9)
    word = (word ^ word >> U64(27)) * U64(0x94D049BB133111EB)
    return word ^ word >> U64(31)


@lean_kernel
def enter(r, kind, a, b, c):
    """The entry of a key, which is made if there is none -> its number, or FULL."""
    mask = U64(len(r.table) - 1)
    place = _hash(kind, a, b, c) & mask
    while True:
        e = r.table[place]
        if e < 0:
            break
        one = r.entries[e]
        if one.a == a and one.b == b and one.c == c and one.kind == kind:
            return e
        place = (place + U64(1)) & mask
    e = r.n[ENTRIES]
    if e >= len(r.entries):
        return full(r, OF_ENTRIES, e + 1)
    r.n[ENTRIES] = e + 1
    r.table[place] = e
    one = r.entries[e]
    one.kind, one.a, one.b, one.c = kind, a, b, c
    one.row = one.read = one.next = -1
    one.since = one.last = U64(0)
    one.length = one.known = 0
    one.read_length = -1
    one.state = one.needed = one.complete = 0
    return e


@lean_kernel
def rehash(r):
    """Fills an empty table, after it has grown."""
    mask = U64(len(r.table) - 1)
    for e in range(r.n[ENTRIES]):
        one = r.entries[e]
        place = _hash(one.kind, one.a, one.b, one.c) & mask
        while r.table[place] >= 0:
            place = (place + U64(1)) & mask
        r.table[place] = e


@lean_kernel
def need(r, e, limit):
    """Notes that an entry must be read -> MISSING. limit: number of keys to read of a prefix; else 0.

    If there is no room, the page asks again in the next round.
    """
    one = r.entries[e]
    if one.needed == 0 and r.n[NEEDED] < len(r.needs):
        here = r.needs[r.n[NEEDED]]
        r.n[NEEDED] += 1
        one.needed = 1
        here.kind, here.a, here.b, here.c, here.entry, here.limit = one.kind, one.a, one.b, one.c, e, limit
    return MISSING


@lean_kernel
def get(r, kind, a, b, c):
    """The entry of a row as it is now (`size` 0: no row) -> its number, MISSING or FULL."""
    e = enter(r, kind, a, b, c)
    if e >= 0 and r.entries[e].state == UNREAD:
        return need(r, e, 0)
    return e


@lean_kernel
def get_existing(r, kind, a, b, c):
    """`get` of a row that must exist -> BROKEN if there is none."""
    e = get(r, kind, a, b, c)
    if e >= 0 and r.entries[e].length == 0:
        return broken(r, NO_ROW, e, 0)
    return e


@lean_kernel
def put_at(r, e, at, size):
    """Makes heap[at : at + size] the row of an entry; size 0 deletes it -> 0 or FULL."""
    if r.n[UNDONE] >= len(r.undo):
        return full(r, OF_UNDO, r.n[UNDONE] + 1)
    before = r.undo[r.n[UNDONE]]
    r.n[UNDONE] += 1
    one = r.entries[e]
    before.entry, before.row, before.length, before.state = e, one.row, one.length, one.state
    one.row, one.length, one.state = at, size, KNOWN
    return 0


@lean_kernel
def put(r, kind, a, b, c, at, size):
    """`put_at` of the row of a key."""
    e = enter(r, kind, a, b, c)
    return put_at(r, e, at, size) if e >= 0 else e


@lean_kernel
def undo(r, first):
    """Takes back the changes from number `first` on."""
    for i in range(r.n[UNDONE] - 1, first - 1, -1):
        before = r.undo[i]
        one = r.entries[before.entry]
        one.row, one.length, one.state = before.row, before.length, before.state
    r.n[UNDONE] = first


# ---- results -------------------------------------------------------------------------------------------------------


@lean_kernel
def changes(r, out):
    """Finds the rows that differ from those that were read -> (how many, bytes of all).

    out int64[entries]: their entries.
    """
    many, total = 0, I64(0)
    for e in range(r.n[ENTRIES]):
        one = r.entries[e]
        if one.state != KNOWN or one.kind >= RECORD:
            continue
        if one.length == one.read_length and (one.row == one.read or same_bytes(r.heap, one.row, one.read, one.length)):
            continue
        out[many] = e
        many += 1
        total += one.length
    return many, total


@lean_kernel
def gather(r, entries, out, ends):
    """Copies the rows of entries, one after another -> out uint8; ends int64[rows]: where each ends in out."""
    to = I64(0)
    for i in range(len(entries)):
        one = r.entries[entries[i]]
        for k in range(one.length):
            out[to + k] = r.heap[one.row + k]
        to += one.length
        ends[i] = to


# ---- prefixes ------------------------------------------------------------------------------------------------------


@lean_kernel
def link(r, e, prefix):
    """Lists an entry under its prefix, once. e, prefix: numbers of entries."""
    one, above = r.entries[e], r.entries[prefix]
    if one.next == -1:
        one.next = above.next if above.next >= 0 else -2  # -2: the last one of the list
        above.next = e


@lean_kernel
def first_under(r, prefix, by_c, after, fewest):
    """The row of the smallest id after `after` under a prefix -> its entry, NOBODY or MISSING.

    prefix: the entry of the prefix. by_c: whether the id is word c of the keys, else word b. fewest: number of keys
    that are read together, at least.
    """
    above = r.entries[prefix]
    best, best_id = NOBODY, U64(0xFFFFFFFFFFFFFFFF)
    e = above.next
    while e >= 0:
        one = r.entries[e]
        number = one.c if by_c else one.b
        if one.state == KNOWN and one.length > 0 and number > after and number <= best_id:
            best, best_id = e, number
        e = one.next
    if above.complete == 1 and above.since <= after:
        return best
    if above.known > 0 and above.since <= after and best >= 0 and best_id <= above.last:
        return best
    if above.known == 0 or after < above.since:
        above.since = after
    return need(r, prefix, max(fewest, 2 * above.known))


@lean_kernel
def load(r, entries, sizes, at):
    """Makes the rows heap[at:] those of entries, as they were read -> -1, or the number of a malformed one.

    entries int64; sizes int64: bytes of each row, 0: none.
    """
    for i in range(len(entries)):
        one, size = r.entries[entries[i]], sizes[i]
        if size > 0 and not _is_row(r.heap, one.kind, at, size):
            return i
        one.needed = 0
        if one.state == UNREAD:
            one.row = one.read = at
            one.length = one.read_length = size
            one.state = KNOWN
        at += size
    return -1


@lean_kernel
def _is_row(heap, kind, at, size):
    """Whether bytes have the form of a row of a kind; see `neardup.index`."""
    form = heap[at]
    if kind == URLS:
        noted = (size - URL_BYTES) // NOTE_BYTES
        if size < URL_BYTES or (size - URL_BYTES) % NOTE_BYTES != 0 or noted > NOTES_MAX:
            return False
        return form == (2 if noted > 0 else 1) and 1 <= heap[at + 1] <= _STANDINGS
    if kind == CLUSTERS:
        return (form == 1 and size >= CLUSTER_BYTES) or (form == 2 and size >= CLUSTER_BYTES + 8)
    if kind == MEMBERS:
        return form == 1 and size == MEMBER_BYTES
    if kind == SKETCHES:
        return form == 1 or (form == 2 and size >= 9)
    first = kind & 255
    if first in (_DIGEST, _OPAQUE):
        return form == 1 and size >= DIGEST_BYTES and (size - DIGEST_BYTES) % 6 == 0
    if first == _NAMING:
        return form == 1 and size == NAMING_BYTES
    if first < _LISTS_FROM:
        return True
    return size % POSTING_BYTES == 1 and (form == 2 or (form == 1 and size > 1))


@lean_kernel
def load_prefix(r, prefix, ids, sizes, at, limit, by_c, kind):
    """Makes the rows heap[at:] the first ones under a prefix -> 0 or FULL. ids uint64[rows], ascending."""
    above = r.entries[prefix]
    above.needed = 0
    for i in range(len(ids)):
        e = enter(r, kind, above.a, above.b, ids[i]) if by_c else enter(r, kind, above.a, ids[i], U64(0))
        if e < 0:
            return e
        one = r.entries[e]
        link(r, e, prefix)
        if one.read_length < 0:
            one.read, one.read_length = at, sizes[i]
            if one.state == UNREAD:
                one.row, one.length, one.state = at, sizes[i], KNOWN
        at += sizes[i]
    above = r.entries[prefix]
    above.known = len(ids)
    above.complete = len(ids) < limit
    above.last = ids[len(ids) - 1] if len(ids) > 0 else above.since
    return 0
