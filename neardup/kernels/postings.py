"""Posting lists of a batch's keys as arrays: look-up of candidates, and changes of the lists.

A *slot* is the number of a key in the batch. Its list is words[begin[slot] : begin[slot] + count[slot]], oldest first.
begin leaves room for all postings of the batch. A word (uint64) is page id << 16 | log-length of the tape << 8 |
log-length of the content tape. tags (uint8) holds the site tag of each word, salts (uint64) the factor of each slot's
tags (`neardup.index.posting_rows.salt_of`). A hot key keeps a few words, one per site (`hot`, `left_of`). The argument
`lists` of the functions is (begin, count, words, tags, salts).
"""

import numpy as np

from neardup.kernels import lean_kernel

U64 = np.uint64
#: Values of count[slot] below 0. HOT: the key is hot, its list empty. UNREAD: the list was not read. UNREAD - n: the
#: key is hot, and n words are left.
HOT, UNREAD = -1, -2
_WORD_BYTES = 8
_POSTING_BYTES = _WORD_BYTES + 1
#: Formats of rows: `neardup.index.posting_rows`.
_LIST_FORMAT, _HOT_FORMAT = 1, 2
#: A candidate's weight is multiplied by this, and each shared hot key adds 1, which only orders candidates.
_COLD = 1 << 16
_SPREAD = U64(0x9E3779B97F4A7C15)


@lean_kernel
def hot(many):
    """count[slot] of a hot key with `many` words left."""
    return HOT if many == 0 else UNREAD - many


@lean_kernel
def is_hot(count):
    return count < 0 and count != UNREAD


@lean_kernel
def left_of(count):
    """Number of words of a list, hot or not."""
    return count if count >= 0 else max(UNREAD - count, 0)


@lean_kernel
def load(rows, sizes, lists):
    """Decode rows into words, tags and count -> the first slot whose row has an unknown format, or -1.

    rows uint8: the rows of all slots, joined. sizes: bytes of each row, 0: no row.
    """
    begin, count, words, tags, _ = lists
    at = 0
    for slot in range(len(sizes)):
        size = sizes[slot]
        if size == 0:
            continue
        many = size // _POSTING_BYTES
        if size % _POSTING_BYTES != 1 or not (rows[at] == _HOT_FORMAT or (rows[at] == _LIST_FORMAT and many > 0)):
            return slot
        count[slot] = many if rows[at] == _LIST_FORMAT else hot(many)
        at += 1
        for i in range(begin[slot], begin[slot] + many):
            word = U64(0)
            for k in range(at, at + _WORD_BYTES):
                word = word << U64(8) | U64(rows[k])
            words[i], tags[i] = word, rows[at + _WORD_BYTES]
            at += _POSTING_BYTES
    return -1


@lean_kernel
def store(changed, lists, rows, ends):
    """Encode the lists of the slots in `changed` -> the number of bytes.

    rows uint8 out: the rows, joined. ends out: end of each row. An empty list has no bytes.
    """
    begin, count, words, tags, _ = lists
    at = 0
    for i in range(len(changed)):
        slot = changed[i]
        if count[slot] != 0:
            rows[at] = _HOT_FORMAT if count[slot] < 0 else _LIST_FORMAT
            at += 1
            for j in range(begin[slot], begin[slot] + left_of(count[slot])):
                for k in range(_WORD_BYTES):
                    rows[at + k] = np.uint8(words[j] >> U64(56 - 8 * k) & U64(255))
                rows[at + _WORD_BYTES] = tags[j]
                at += _POSTING_BYTES
        ends[i] = at
    return at


@lean_kernel
def _tag(site, salt):
    return np.uint8(site * salt >> U64(56))


@lean_kernel
def _has_room(first, many, tags, tag, kept):
    """Whether a hot list of `many` words admits one with this site tag: at most `kept` words, one per tag."""
    for j in range(first, first + many):
        if tags[j] == tag:
            return False
    return many < kept


@lean_kernel
def _admit(first, many, words, tags, word, tag, kept):
    """Add a word to a hot list of `many` words, if `_has_room` -> the new number of words."""
    if _has_room(first, many, tags, tag, kept):
        words[first + many], tags[first + many] = word, tag
        many += 1
    return many


@lean_kernel
def find_restless(keys, lists, sites, kept, restless):
    """Set restless[slot] = 1 for each hot slot whose list a page of the batch would change.

    keys: slots of all pages, int64[pages, keys]; sites uint64[pages].
    """
    begin, count, _, tags, salts = lists
    for page in range(len(keys)):
        for slot in keys[page]:
            if is_hot(count[slot]) and restless[slot] == 0:
                tag = _tag(sites[page], salts[slot])
                restless[slot] = _has_room(begin[slot], left_of(count[slot]), tags, tag, kept)


@lean_kernel
def post(slots, lists, word, site, most, changed):
    """Append a word to the lists of slots -> number of keys that turned hot; UNREAD (and no change) if one is not read.

    A list that would exceed most[0] words turns hot, and keeps words of most[1] sites.
    changed uint8[all slots]: set to 1 for each list that changed.
    """
    begin, count, words, tags, salts = lists
    turned = 0
    for i in range(len(slots)):
        if count[slots[i]] == UNREAD:
            return UNREAD
    for i in range(len(slots)):
        slot = slots[i]
        first, many, tag = begin[slot], left_of(count[slot]), _tag(site, salts[slot])
        if not is_hot(count[slot]):
            changed[slot] = 1
            if many < most[0]:
                words[first + many], tags[first + many] = word, tag
                count[slot] += 1
                continue
            turned += 1
            kept = 0
            for j in range(first, first + many):
                kept = _admit(first, kept, words, tags, words[j], tags[j], most[1])
            many = kept
            count[slot] = hot(many)
        kept = _admit(first, many, words, tags, word, tag, most[1])
        if kept > many:
            changed[slot] = 1
            count[slot] = hot(kept)
    return turned


@lean_kernel
def post_many(pages, keys, lists, entries, sites, most, changed):
    """`post` entries[page] to the slots keys[page], for each of `pages` -> number of keys that turned hot."""
    turned = 0
    for page in pages:
        turned += post(keys[page], lists, entries[page], sites[page], most, changed)
    return turned


@lean_kernel
def unpost(slots, lists, word, changed):
    """Remove a word from the lists of slots -> the first slot that lacks it or was not read, or -1.

    The other words keep their order. A hot list may lack the word.
    """
    begin, count, words, tags, _ = lists
    for i in range(len(slots)):
        slot = slots[i]
        here = begin[slot]
        end = here + left_of(count[slot])
        while here < end and words[here] != word:
            here += 1
        if here >= end:
            if is_hot(count[slot]):
                continue
            return slot
        changed[slot] = 1
        count[slot] = hot(end - begin[slot] - 1) if is_hot(count[slot]) else count[slot] - 1
        for j in range(here, end - 1):
            words[j], tags[j] = words[j + 1], tags[j + 1]
    return -1


@lean_kernel
def holds(slots, lists, page_id, found):
    """found[i] uint8 = whether the list of slots[i] has page_id."""
    begin, count, words, _, _ = lists
    for i in range(len(slots)):
        slot = slots[i]
        found[i] = 0
        for j in range(begin[slot], begin[slot] + left_of(count[slot])):
            if np.int64(words[j] >> U64(16)) == page_id:
                found[i] = 1


@lean_kernel
def holds_many(pages, keys, lists, page_ids, found):
    """`holds` page_ids[i] in the slots keys[pages[i]] -> found[i], uint8[pages, keys]."""
    for i in range(len(pages)):
        holds(keys[pages[i]], lists, page_ids[i], found[i])


@lean_kernel
def _before(weight_a, word_a, weight_b, word_b):
    return weight_a > weight_b or (weight_a == weight_b and word_a < word_b)


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
    """Sort by weight, descending, then by word."""
    for i in range(many // 2 - 1, -1, -1):
        _sink(words, weights, i, many)
    for last in range(many - 1, 0, -1):
        words[0], words[last] = words[last], words[0]
        weights[0], weights[last] = weights[last], weights[0]
        _sink(words, weights, 0, last)


@lean_kernel
def gather(slots, key_weights, lists, tape, content, gap, scratch):
    """Find the candidates of a page -> their number, or UNREAD if a list was not read.

    words_out holds the candidates' words, weights_out the weight of each: the sum of key_weights of the lists (without
    hot ones) that it is in. They are sorted by weight, then by the number of hot lists, both descending, then by age,
    oldest first.
    key_weights: int64, one for each of slots.
    tape, content, gap: log-lengths of the page's tapes; a word whose two log-lengths both differ from them by more than
    gap is left out. A negative gap leaves out none.
    scratch: (table, words_out, weights_out). table int64, its length a power of two of at least twice the number of
    words, all -1 before and after the call.
    """
    begin, count, words, _, _ = lists
    table, words_out, weights_out = scratch
    mask = U64(len(table) - 1)
    many = 0
    for i in range(len(slots)):
        slot = slots[i]
        if count[slot] == UNREAD:
            for j in range(many):
                _forget(words_out[j], table, mask)
            return UNREAD
        weight = key_weights[i] * _COLD if count[slot] > 0 else 1
        for j in range(begin[slot], begin[slot] + left_of(count[slot])):
            word = words[j]
            place = (word * _SPREAD >> U64(32)) & mask
            while table[place] >= 0 and words_out[table[place]] != word:
                place = (place + U64(1)) & mask
            if table[place] < 0:
                table[place] = many
                words_out[many] = word
                weights_out[many] = 0
                many += 1
            weights_out[table[place]] += weight
    for j in range(many):
        _forget(words_out[j], table, mask)
    kept = many
    if gap >= 0:
        kept = 0
        for j in range(many):
            word = words_out[j]
            apart = abs(np.int64(word >> U64(8) & U64(255)) - tape)
            if apart <= gap or abs(np.int64(word & U64(255)) - content) <= gap:
                words_out[kept], weights_out[kept] = word, weights_out[j]
                kept += 1
    order(words_out, weights_out, kept)
    for j in range(kept):
        weights_out[j] //= _COLD
    return kept


@lean_kernel
def _forget(word, table, mask):
    """Clear the slots of the table from the first slot of this word to the next empty one."""
    place = (word * _SPREAD >> U64(32)) & mask
    while table[place] >= 0:
        table[place] = -1
        place = (place + U64(1)) & mask


@lean_kernel
def gather_many(pages, keys, key_weights, lists, lengths, gap, scratch, posted, found, weights, many):
    """`gather` for each of `pages`, in order, and post each page before the next one is looked up.

    found[i], weights[i] out: the first candidates of pages[i], and the weight of each. many[i] out: the number of
    candidates, or UNREAD.
    keys: slots of all pages, int64[pages, keys]. key_weights, scratch: see `gather`.
    lengths: (tape, content) log-lengths of all pages.
    posted: (entries uint64, sites uint64, posts, most, changed). posts: whether a page is posted; most, changed: see
    `post`.
    """
    tape, content = lengths
    _, words_out, weights_out = scratch
    entries, sites, posts, most, changed = posted
    for i in range(len(pages)):
        page = pages[i]
        slots = keys[page]
        size = gather(slots, key_weights, lists, tape[page], content[page], gap, scratch)
        many[i] = size
        for j in range(min(size, found.shape[1])):
            found[i, j], weights[i, j] = words_out[j], weights_out[j]
        if posts[page]:
            post(slots, lists, entries[page], sites[page], most, changed)
