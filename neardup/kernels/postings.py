"""Posting lists of a batch's keys as arrays: the candidates that a page finds there, and the pages that are posted.

A *slot* is one key. Its list lies in words[begin[slot] :], count[slot] of them, oldest first; a word is page id << 16 |
log-length of the tape << 8 | log-length of the main content's. tags (uint8) are the site tags of words, salts (uint64)
the factors of the slots' tags (`neardup.index.keys.salt_of`). begin leaves room for all that the batch can add. Of a
hot key a few words are left (`hot`, `left_of`), one a site. *Lists* are (begin, count, words, tags, salts).
"""

import numpy as np

from neardup.kernels import lean_kernel

U64 = np.uint64
#: Instead of a count: the key is hot, and nothing is left of its list; its list was not read. Below them: hot, too.
HOT, UNREAD = -1, -2
_WORD_BYTES = 8
_POSTING_BYTES = _WORD_BYTES + 1
#: Formats of rows: `neardup.index.keys`.
_LIST_FORMAT, _HOT_FORMAT = 3, 4
#: Added for a shared key that is not hot; a hot one adds 1, which only orders candidates.
_COLD = 1 << 16
_SPREAD = U64(0x9E3779B97F4A7C15)


@lean_kernel
def hot(many):
    """The count of a hot key of which so many pages are left."""
    return HOT if many == 0 else UNREAD - many


@lean_kernel
def is_hot(count):
    return count < 0 and count != UNREAD


@lean_kernel
def left_of(count):
    """How many words a list has, hot or not."""
    return count if count >= 0 else max(UNREAD - count, 0)


@lean_kernel
def load(rows, sizes, lists):
    """Decode the lists of rows (uint8, joined, sizes[slot] bytes each, 0: none) into words, tags and count.

    -> the first slot whose row has no known format, or -1.
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
    """Encode the lists of the slots `changed`, one after another -> rows (uint8) and where each ends; bytes, all told.

    An empty list has no bytes.
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
    """Whether a hot list of so many words takes one of this site."""
    for j in range(first, first + many):
        if tags[j] == tag:
            return False
    return many < kept


@lean_kernel
def _admit(first, many, words, tags, word, tag, kept):
    """Add a word to a hot list of so many words, if it takes it -> how many there are then."""
    if _has_room(first, many, tags, tag, kept):
        words[first + many], tags[first + many] = word, tag
        many += 1
    return many


@lean_kernel
def find_restless(keys, lists, sites, kept, restless):
    """Mark hot slots whose lists pages of the batch would change: restless[slot] = 1.

    keys: slots of all pages, int64[pages, keys]; sites: their sites, uint64[pages].
    """
    begin, count, _, tags, salts = lists
    for page in range(len(keys)):
        for slot in keys[page]:
            if is_hot(count[slot]) and restless[slot] == 0:
                tag = _tag(sites[page], salts[slot])
                restless[slot] = _has_room(begin[slot], left_of(count[slot]), tags, tag, kept)


@lean_kernel
def post(slots, lists, word, site, most, changed):
    """Append a word to the lists of slots; a list that would become longer than most[0] turns hot, and keeps words of
    most[1] sites.

    -> how many turned, or UNREAD and nothing is done. changed uint8[all slots]: 1 where a list is another now.
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
    """`post` of entries[page] under the slots keys[page], for each of `pages` -> how many keys turned hot."""
    turned = 0
    for page in pages:
        turned += post(keys[page], lists, entries[page], sites[page], most, changed)
    return turned


@lean_kernel
def unpost(slots, lists, word, changed):
    """Take a word out of the lists of slots -> the first slot that lacks it or was not read, or -1.

    Order of the others is kept. Hot lists may lack it.
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
    """Whether page_id is posted in the list of slots[i] -> found[i] uint8."""
    begin, count, words, _, _ = lists
    for i in range(len(slots)):
        slot = slots[i]
        found[i] = 0
        for j in range(begin[slot], begin[slot] + left_of(count[slot])):
            if np.int64(words[j] >> U64(16)) == page_id:
                found[i] = 1


@lean_kernel
def holds_many(pages, keys, lists, page_ids, found):
    """`holds` of page_ids[i] in the lists of the slots keys[pages[i]] -> found[i], uint8[pages, keys]."""
    for i in range(len(pages)):
        holds(keys[pages[i]], lists, page_ids[i], found[i])


@lean_kernel
def _before(shared_a, word_a, shared_b, word_b):
    return shared_a > shared_b or (shared_a == shared_b and word_a < word_b)


@lean_kernel
def _sink(words, shared, i, many):
    """Let entry i of a heap sink; on top lies the one that comes last."""
    word, times = words[i], shared[i]
    while True:
        child = 2 * i + 1
        if child >= many:
            break
        if child + 1 < many and _before(shared[child], words[child], shared[child + 1], words[child + 1]):
            child += 1
        if not _before(times, word, shared[child], words[child]):
            break
        words[i], shared[i] = words[child], shared[child]
        i = child
    words[i], shared[i] = word, times


@lean_kernel
def _order(words, shared, many):
    """Sort by shared, descending, then by word."""
    for i in range(many // 2 - 1, -1, -1):
        _sink(words, shared, i, many)
    for last in range(many - 1, 0, -1):
        words[0], words[last] = words[last], words[0]
        shared[0], shared[last] = shared[last], shared[0]
        _sink(words, shared, 0, last)


@lean_kernel
def gather(slots, lists, tape, content, gap, scratch):
    """Count in how many lists of slots, hot ones excepted, each word is; the most shared come first, then
    those with the most hot lists, then the oldest.

    Words whose log-lengths both differ by more than gap from tape and content are left out, unless gap is negative.
    scratch: table int64[a power of two of at least twice the words there can be], all -1 before and after; words_out,
    shared_out: room for as many words. -> how many, or UNREAD.
    """
    begin, count, words, _, _ = lists
    table, words_out, shared_out = scratch
    mask = U64(len(table) - 1)
    many = 0
    for i in range(len(slots)):
        slot = slots[i]
        if count[slot] == UNREAD:
            for j in range(many):
                _forget(words_out[j], table, mask)
            return UNREAD
        times = _COLD if count[slot] > 0 else 1
        for j in range(begin[slot], begin[slot] + left_of(count[slot])):
            word = words[j]
            place = (word * _SPREAD >> U64(32)) & mask
            while table[place] >= 0 and words_out[table[place]] != word:
                place = (place + U64(1)) & mask
            if table[place] < 0:
                table[place] = many
                words_out[many] = word
                shared_out[many] = 0
                many += 1
            shared_out[table[place]] += times
    for j in range(many):
        _forget(words_out[j], table, mask)
    kept = many
    if gap >= 0:
        kept = 0
        for j in range(many):
            word = words_out[j]
            apart = abs(np.int64(word >> U64(8) & U64(255)) - tape)
            if apart <= gap or abs(np.int64(word & U64(255)) - content) <= gap:
                words_out[kept], shared_out[kept] = word, shared_out[j]
                kept += 1
    _order(words_out, shared_out, kept)
    for j in range(kept):
        shared_out[j] //= _COLD
    return kept


@lean_kernel
def _forget(word, table, mask):
    """Empty the run of places of the table from a word's on."""
    place = (word * _SPREAD >> U64(32)) & mask
    while table[place] >= 0:
        table[place] = -1
        place = (place + U64(1)) & mask


@lean_kernel
def gather_many(pages, keys, lists, lengths, gap, scratch, posted, found, times, many):
    """`gather` for each of `pages`, one after another: the first words -> found[i], in how many lists each is ->
    times[i], how many there are -> many[i].

    keys: slots of all pages, int64[pages, keys]; lengths: tape, content of all pages; scratch: as for `gather`.
    posted: entries uint64, sites uint64 and posts (whether a page is posted before the next one looks) of all pages,
    most as for `post`, changed. Of pages whose lists were not read many[i] is UNREAD.
    """
    tape, content = lengths
    _, words_out, shared_out = scratch
    entries, sites, posts, most, changed = posted
    for i in range(len(pages)):
        page = pages[i]
        slots = keys[page]
        size = gather(slots, lists, tape[page], content[page], gap, scratch)
        many[i] = size
        for j in range(min(size, found.shape[1])):
            found[i, j], times[i, j] = words_out[j], shared_out[j]
        if posts[page]:
            post(slots, lists, entries[page], sites[page], most, changed)
