"""Posting lists: the candidates of a page, and the postings of founding sketches.

The format of their rows is that of `neardup.index.posting_rows`.
"""

from typing import NamedTuple

import numpy as np

from neardup.index import posting_rows
from neardup.kernels import lean_kernel
from neardup.kernels.bits import ones, word_at
from neardup.matching.kernels import rows
from neardup.matching.kernels.records import (
    SIMHASH_WORDS,
    has_only_copies,
    posting_word,
    record,
    simhash_at,
    site_of,
    tokens_of,
)
from neardup.matching.kernels.rows import I64, KEYS, U64, be64
from neardup.rules.key_families import KEY_BYTES

_LIST, _HOT, _BYTES = 1, 2, posting_rows.POSTING_BYTES
#: A candidate's weight is multiplied by this, and each shared hot key adds 1, which only orders candidates.
_COLD = 1 << 16
#: Below the weight stand the bits of the indexes that found the candidate; they do not order candidates.
_INDEX_BITS = 2
INDEXES = (1 << _INDEX_BITS) - 1
_SPREAD = U64(0x9E3779B97F4A7C15)
_REST = U64((1 << 8 * KEY_BYTES) - 1)

# Places in `Keys.numbers`.
POSTINGS_MAX, HOT_KEPT, LENGTH_GAP, CANDIDATES_MAX, HOT_C_MIN, FEWEST_TOKENS = range(6)


class Keys(NamedTuple):
    """The similarity keys of pages, and what the search needs of the decider.

    keys: uint64[pages of the batch, keys]: keys as numbers. lists: int64[pages, keys], the entries of their lists, -1:
    not entered. first: uint64[keys], first bytes; places: int64[keys, 6], places of the other bytes in a record, -1:
    zero. weights, indexes: int64[keys], of `key_weights`, `key_indexes`. salts: uint64[256], factors of site tags by
    first byte. numbers: int64. found, found_weights: candidates of the page that was searched last; table: int64, all
    -1 between calls.
    """

    keys: np.ndarray
    lists: np.ndarray
    first: np.ndarray
    places: np.ndarray
    weights: np.ndarray
    indexes: np.ndarray
    salts: np.ndarray
    numbers: np.ndarray
    found: np.ndarray
    found_weights: np.ndarray
    table: np.ndarray


@lean_kernel
def key_of(heap, k, at, which):
    """Key number `which` of the record at `at`, as a number."""
    word = k.first[which]
    for i in range(KEY_BYTES):
        place = k.places[which, i]
        word = word << U64(8) | (U64(heap[at + place]) if place >= 0 else U64(0))
    return word


@lean_kernel
def list_of(r, key):
    """The entry of a key's list, or MISSING or FULL."""
    return rows.get(r, KEYS | I64(key >> U64(8 * KEY_BYTES)), key & _REST, U64(0), U64(0))


@lean_kernel
def posts(heap, k, at):
    """Whether the page with the record at `at` has similarity keys."""
    return not has_only_copies(heap, at) and tokens_of(heap, at) >= k.numbers[FEWEST_TOKENS]


@lean_kernel
def lists_of(r, k, at):
    """0 if all lists of the record at `at` were read, else MISSING or FULL."""
    out = I64(0)
    if not posts(r.heap, k, at):
        return out
    for which in range(len(k.first)):
        e = list_of(r, key_of(r.heap, k, at, which))
        out = min(out, e)
    return min(out, 0)


@lean_kernel
def own_list(r, k, i, which):
    """`list_of` key number `which` of page i of the batch."""
    e = k.lists[i, which]
    if e < 0:
        key = k.keys[i, which]
        e = rows.enter(r, KEYS | I64(key >> U64(8 * KEY_BYTES)), key & _REST, U64(0), U64(0))
        if e < 0:
            return e
        k.lists[i, which] = e
    return rows.need(r, e, 0) if r.entries[e].state == rows.UNREAD else e


@lean_kernel
def own_lists(r, k, i):
    """0 if all lists of page i of the batch, which has keys, were read, else MISSING or FULL."""
    out = I64(0)
    for which in range(len(k.first)):
        out = min(out, own_list(r, k, i, which))
    return out


@lean_kernel
def _before(weight_a, word_a, weight_b, word_b):
    a, b = weight_a >> _INDEX_BITS, weight_b >> _INDEX_BITS
    return a > b or (a == b and word_a < word_b)


@lean_kernel
def _sink(words, weights, i, many):
    """Restore the heap order from entry i down. The top entry is the one that sorts last."""
    word, weight = words[i], weights[i]
    while True:
        child = 2 * i + 1
        if child >= many:
            break
        if child + 1 < many and _before(weights[child], words[child], weights[child + 1], words[child + 1]):
            child += 1
        if not _before(weight, word, weights[child], words[child]):
            break
        words[i], weights[i] = words[child], weights[child]
        i = child
    words[i], weights[i] = word, weight


@lean_kernel
def order(words, weights, many):
    """Sort by weight without its lowest bits, descending, then by word."""
    for i in range(many // 2 - 1, -1, -1):
        _sink(words, weights, i, many)
    for last in range(many - 1, 0, -1):
        words[0], words[last] = words[last], words[0]
        weights[0], weights[last] = weights[last], weights[0]
        _sink(words, weights, 0, last)


@lean_kernel
def gather(r, k, i, tape, content):
    """Finds the candidates of page i of the batch: their words, best first -> their number, MISSING or FULL.

    tape, content: the page's log-lengths. k.found out: the candidates' words; k.found_weights out: the weight of each,
    the sum of k.weights of the lists (without hot ones) that it is in, and below it, in INDEXES, the indexes of all
    lists that it is in. They are in the order of weight, then of the
    number of hot lists, both descending, then of age, oldest first. A word whose two log-lengths both differ from the
    page's by more than numbers[LENGTH_GAP] is left out; a negative gap leaves out none.
    """
    heap, words, weights, table = r.heap, k.found, k.found_weights, k.table
    mask = U64(len(table) - 1)
    many, lacking = 0, own_lists(r, k, i)
    if lacking < 0:
        return lacking
    for which in range(len(k.first)):
        e = k.lists[i, which]
        at, size = r.entries[e].row, I64(r.entries[e].length)
        if size <= 1:
            continue
        weight = 1 if heap[at] == _HOT else k.weights[which] * _COLD
        for j in range(at + 1, at + size, _BYTES):
            word = be64(heap, j)
            place = (word * _SPREAD >> U64(32)) & mask
            while table[place] >= 0 and words[table[place]] != word:
                place = (place + U64(1)) & mask
            if table[place] < 0:
                table[place] = many
                words[many] = word
                weights[many] = 0
                many += 1
            weights[table[place]] = weights[table[place]] + (weight << _INDEX_BITS) | k.indexes[which]
    for j in range(many):
        place = (words[j] * _SPREAD >> U64(32)) & mask
        while table[place] >= 0:
            table[place] = -1
            place = (place + U64(1)) & mask
    gap = k.numbers[LENGTH_GAP]
    kept = many
    if gap >= 0:
        kept = 0
        for j in range(many):
            word = words[j]
            apart = abs(I64(word >> U64(8) & U64(255)) - tape)
            if apart <= gap or abs(I64(word & U64(255)) - content) <= gap:
                words[kept], weights[kept] = word, weights[j]
                kept += 1
    order(words, weights, kept)
    for j in range(kept):
        weights[j] = (weights[j] >> _INDEX_BITS) // _COLD << _INDEX_BITS | weights[j] & INDEXES
    return kept


@lean_kernel
def likely(r, k, at, many):
    """Drops candidates that share only hot keys with the page at `at`, and are of its site or unlike it -> how many
    are left, MISSING or FULL.

    Their sketches are read for this.
    """
    words, weights = k.found, k.found_weights
    out = I64(0)
    for j in range(many):
        if weights[j] >> _INDEX_BITS == 0:
            out = min(out, record(r, I64(words[j] >> U64(16))))
    if out < 0:
        return out
    kept = 0
    for j in range(many):
        if weights[j] >> _INDEX_BITS == 0:
            other = record(r, I64(words[j] >> U64(16)))
            agreeing = 0
            for word in range(SIMHASH_WORDS):
                differing = word_at(r.heap, simhash_at(at) + 8 * word) ^ word_at(r.heap, simhash_at(other) + 8 * word)
                agreeing += 64 - ones(differing)
            if agreeing < k.numbers[HOT_C_MIN] or site_of(r.heap, at) == site_of(r.heap, other):
                continue
        words[kept], weights[kept] = words[j], weights[j]
        kept += 1
    return kept


@lean_kernel
def shared(r, k, i, page_id):
    """The keys of page i of the batch under which another page is posted, as bits, or MISSING or FULL."""
    out = I64(0)
    for which in range(len(k.first)):
        e = own_list(r, k, i, which)
        if e < 0:
            return e
        at, size = r.entries[e].row, I64(r.entries[e].length)
        for j in range(at + 1, at + size, _BYTES):
            if I64(be64(r.heap, j) >> U64(16)) == page_id:
                out |= I64(1) << which
    return out


@lean_kernel
def _has_room(heap, first, end, tag, kept):
    """Whether a hot list admits a posting with this site tag: at most `kept` postings, one per tag."""
    for j in range(first, end, _BYTES):
        if heap[j + 8] == tag:
            return False
    return (end - first) // _BYTES < kept


@lean_kernel
def _put_posting(heap, at, word, tag):
    rows.put_be64(heap, at, word)
    heap[at + 8] = tag


@lean_kernel
def post(r, k, own, page_id, at, logs, turned):
    """Posts the record at `at` under its keys -> 0, MISSING or FULL.

    own: number of the page in the batch, or -1. turned uint64 out: keys that turn hot are appended.
    """
    if not posts(r.heap, k, at):
        return I64(0)
    lacking = own_lists(r, k, own) if own >= 0 else lists_of(r, k, at)
    if lacking < 0:
        return lacking
    heap, word, site = r.heap, posting_word(r.heap, logs, page_id, at), site_of(r.heap, at)
    for which in range(len(k.first)):
        key = k.keys[own, which] if own >= 0 else key_of(heap, k, at, which)
        e = k.lists[own, which] if own >= 0 else list_of(r, key)
        row, size = r.entries[e].row, I64(r.entries[e].length)
        tag = np.uint8(site * k.salts[key >> U64(8 * KEY_BYTES)] >> U64(56))
        is_hot = size > 0 and heap[row] == _HOT
        many = (size - 1) // _BYTES if size > 0 else 0
        if is_hot and not _has_room(heap, row + 1, row + size, tag, k.numbers[HOT_KEPT]):
            continue
        to = rows.room(r, 1 + _BYTES * (many + 1))
        if to < 0:
            return to
        if is_hot or many < k.numbers[POSTINGS_MAX]:
            heap[to] = _HOT if is_hot else _LIST
            rows.copy(heap, to + 1, row + 1, _BYTES * many)
            _put_posting(heap, to + 1 + _BYTES * many, word, tag)
            end = to + 1 + _BYTES * (many + 1)
        else:
            if r.n[rows.TURNED] >= len(turned):
                return rows.full(r, rows.OF_TURNED, r.n[rows.TURNED] + 1)
            turned[r.n[rows.TURNED]] = key
            r.n[rows.TURNED] += 1
            heap[to] = _HOT
            end = to + 1
            for j in range(row + 1, row + size, _BYTES):
                if _has_room(heap, to + 1, end, heap[j + 8], k.numbers[HOT_KEPT]):
                    rows.copy(heap, end, j, _BYTES)
                    end += _BYTES
            if _has_room(heap, to + 1, end, tag, k.numbers[HOT_KEPT]):
                _put_posting(heap, end, word, tag)
                end += _BYTES
        out = rows.put_at(r, e, to, end - to)
        if out < 0:
            return out
    return I64(0)


@lean_kernel
def unpost(r, k, page_id, at):
    """Removes the postings of the record at `at` -> 0, MISSING, BROKEN or FULL. A hot list may lack the posting."""
    lacking = lists_of(r, k, at)
    if lacking < 0 or not posts(r.heap, k, at):
        return lacking
    heap = r.heap
    for which in range(len(k.first)):
        e = list_of(r, key_of(heap, k, at, which))
        row, size = r.entries[e].row, I64(r.entries[e].length)
        here = row + 1
        while here < row + size and I64(be64(heap, here) >> U64(16)) != page_id:
            here += _BYTES
        if size == 0 or here >= row + size:
            if size > 0 and heap[row] == _HOT:
                continue
            return rows.broken(r, rows.MISPLACED, page_id, which)
        if size == 1 + _BYTES and heap[row] == _LIST:
            out = rows.put_at(r, e, row, 0)
        else:
            to = rows.room(r, size - _BYTES)
            if to < 0:
                return to
            rows.copy(heap, to, row, here - row)
            rows.copy(heap, to + here - row, here + _BYTES, row + size - here - _BYTES)
            out = rows.put_at(r, e, to, size - _BYTES)
        if out < 0:
            return out
    return I64(0)
