"""Names: what a page's title, heading and first tokens say it is about, and the filter that proves a token absent.

A name is 8 bytes: the low 48 bits of mix(token), little-endian; occurrences in the page, at most 255; flags: 1 all
digits, 2 any digit, 4 own host, and of the names of title, heading and URL 8 in the title, 16 in the heading, 32 in
the URL's path: such a name may occur in its page 0 times. The filter is
a Bloom filter of all distinct tokens: of the name's 48 bits the low and the high 24, x and y, give 4 probes
x + i * (y | 1) modulo its size (Kirsch and Mitzenmacher 2006).
"""

import numpy as np

from neardup.kernels import lean_kernel, points
from neardup.kernels.bits import ones, put_quad, word_at
from neardup.kernels.fingerprint import fingerprint
from neardup.kernels.mix import mix
from neardup.kernels.windows import find_byte

U64 = np.uint64
U8 = np.uint8
PROBES = 4
NAME_BYTES = 8
#: Flags of a name, those of `neardup.sketch.layout.NameFlag`.
ALL_DIGITS, ANY_DIGIT, OWN_HOST, IN_TITLE, IN_HEADING, IN_PATH = U8(1), U8(2), U8(4), U8(8), U8(16), U8(32)
#: Flags of a token.
_TOKEN_IN_TITLE, _TOKEN_TERM = U8(points.IN_TITLE), U8(points.TERM)
_TOKEN_ALL_DIGITS, _TOKEN_ANY_DIGIT = U8(points.ALL_DIGITS), U8(points.ANY_DIGIT)
_LOW24, _LOW32, _LOW48 = U64(0xFFFFFF), U64(0xFFFFFFFF), U64(0xFFFFFFFFFFFF)
_ONE = U64(1)
_TOP_TWO, _SECOND = U64(3 << 62), U64(1 << 62)


@lean_kernel
def marked(g, has_digit):
    """mix(token) with its top two bits 00 if the token has a digit, and not 00 if it has none: tapes show which."""
    if has_digit:
        return g & ~_TOP_TWO
    return g if g & _TOP_TWO != U64(0) else g | _SECOND


@lean_kernel
def write_name(token, mixed, count, token_flags, host, host_many, out, at):
    """Write one name to out[at : at + 8]. host uint64[host_many]: tokens of the labels of the page's own host."""
    flags = U8(0)
    if token_flags & _TOKEN_ALL_DIGITS:
        flags |= ALL_DIGITS
    if token_flags & _TOKEN_ANY_DIGIT:
        flags |= ANY_DIGIT
    for h in range(host_many):
        if host[h] == token:
            flags |= OWN_HOST
    put_quad(out, at, np.int64(mixed & _LOW32))
    put_quad(out, at + 4, np.int64((mixed >> U64(32)) & U64(0xFFFF)))
    out[at + 6] = U8(min(np.int64(count), np.int64(255)))
    out[at + 7] = flags


@lean_kernel
def write_names(fp, flags, ids, end, mixed, counts, host, host_many, out, at):
    """Names of the distinct tokens of fp[:end], in order of first appearance -> int64 names written.

    ids, mixed, counts: numbers of tokens, and by number mix(token) and occurrences. Written to uint8 out from `at` on.
    """
    many = 0
    for i in range(end):
        g = mixed[ids[i]]
        seen = False
        for j in range(many):
            if has_fingerprint(out, at + j * NAME_BYTES, g):
                seen = True
                break
        if not seen:
            write_name(fp[i], g, counts[ids[i]], flags[i], host, host_many, out, at + many * NAME_BYTES)
            many += 1
    return np.int64(many)


@lean_kernel
def write_namings(fp, flags, ids, parts, names_max, mixed, counts, distinct, seen, host, host_many, out, at):
    """Names of title and heading -> int64 names written, uint64 fingerprint of those that are not all digits (0: none).

    parts: first and end of the title's tokens in fp, then of the heading's. Of each part the first names_max distinct
    tokens count; a token of both has both flags. Images and frames name nothing. seen uint8[>= distinct] scratch, by
    number of token: a title of a million words is no slower than others. The rest as in `write_names`.
    """
    many = np.int64(0)
    naming = U64(0)
    seen[: U64(distinct)] = U8(0)
    for part in range(2):
        flag = IN_TITLE if part == 0 else IN_HEADING
        fresh = 0
        for i in range(parts[2 * part], parts[2 * part + 1]):
            if flags[i] & _TOKEN_TERM or (part == 0 and not flags[i] & _TOKEN_IN_TITLE):
                continue
            if seen[ids[i]] & flag:
                continue
            seen[ids[i]] |= flag
            g = mixed[ids[i]]
            place = np.int64(-1)
            for j in range(many):
                if has_fingerprint(out, at + j * NAME_BYTES, g):
                    place = at + j * NAME_BYTES
                    break
            if place >= 0:
                out[place + 7] |= flag
                continue
            if fresh == names_max:
                break
            fresh += 1
            place = at + many * NAME_BYTES
            write_name(fp[i], g, counts[ids[i]], flags[i], host, host_many, out, place)
            out[place + 7] |= flag
            many += 1
            if not flags[i] & _TOKEN_ALL_DIGITS:
                naming = mix(naming ^ g)
    return many, naming


@lean_kernel
def write_path_names(path, size, names, names_max, token_key, distinct, mixed, counts, many, host, host_many, out, at):
    """Add the words of a URL's path, path[:size] as `neardup.kernels.urls.write_path` has it -> int64 names there are.

    The last distinct ones count, names_max at most, of twice as many words. distinct, mixed, counts: the page's `many`
    tokens, marked mix of them, and their occurrences. out[at:] has `names` names already; a word among them gets the
    flag.
    """
    fresh = 0
    end = size
    for _ in range(2 * names_max):
        while end > 0 and path[end - 1] == U8(0x20):
            end -= 1
        start = end
        digits = 0
        while start > 0 and path[start - 1] != U8(0x20):
            start -= 1
            digits += path[start] >= U8(48) and path[start] <= U8(57)
        if start == end or fresh == names_max:
            break
        flags = _TOKEN_ANY_DIGIT if digits > 0 else U8(0)
        if digits == end - start:
            flags |= _TOKEN_ALL_DIGITS
        token = fingerprint(path, start, end, token_key)
        end = start
        found = np.int64(-1)
        for j in range(U64(many)):
            found = max(found, np.int64(j) if distinct[j] == token else np.int64(-1))
        g = mixed[found] if found >= 0 else marked(mix(token), digits > 0)
        place = np.int64(-1)
        for j in range(names):
            if has_fingerprint(out, at + j * NAME_BYTES, g):
                place = at + j * NAME_BYTES
        if place < 0:
            fresh += 1
            place = at + names * NAME_BYTES
            # of the types of the other calls: `write_name` is compiled once
            count = counts[found] if found >= 0 else np.uint32(0)
            write_name(token, g, count, U8(flags), host, host_many, out, place)
            names += 1
        out[place + 7] |= IN_PATH
    return np.int64(names)


@lean_kernel
def has_fingerprint(names, at, mixed):
    """Whether the name at names[at] has the low 48 bits of mixed."""
    return fingerprint_at(names, at) == mixed & _LOW48


@lean_kernel
def fingerprint_at(names, at):
    """The 48 bits of the name at names[at], uint64."""
    return word_at(names, at) & _LOW48


@lean_kernel
def write_filter(mixed, many, bits_min, bits_max, marks, out, at):
    """Bloom filter of mixed[:many] at out[at:] -> int64 bytes: the smallest power of two of at least 8 bits a token.

    Bits at least bits_min, at most bits_max, both powers of two, at least 64 and at most 2**24. No tokens: no filter.
    marks uint8[>= bits_max] scratch: a byte a bit. Storing a byte waits for nothing, setting a bit for the byte it is
    in; 64 bytes become 64 bits at once.
    """
    if many == 0:
        return np.int64(0)
    bits = bits_min
    while bits < 8 * many and bits < bits_max:
        bits *= 2
    marks[: U64(bits)] = U8(0)
    mask = U64(bits - 1)
    for i in range(U64(many)):
        x = mixed[i] & _LOW24
        y = ((mixed[i] >> U64(24)) & _LOW24) | _ONE
        for _ in range(PROBES):
            marks[x & mask] = U8(1)
            x += y
    for bit in range(0, bits, 64):
        word = find_byte(marks, bit, U8(1))
        put_quad(out, at + bit // 8, np.int64(word & _LOW32))
        put_quad(out, at + bit // 8 + 4, np.int64(word >> U64(32)))
    return np.int64(bits // 8)


@lean_kernel
def in_filter(mixed, data, at, size):
    """Whether the filter data[at : at + size] may hold the token of these 48 bits; False proves it absent."""
    mask = U64(size * 8 - 1)
    x = mixed & _LOW24
    y = ((mixed >> U64(24)) & _LOW24) | _ONE
    for _ in range(PROBES):
        bit = x & mask
        if not (U64(data[U64(at) + (bit >> U64(3))]) >> (bit & U64(7))) & _ONE:
            return False
        x += y
    return True


@lean_kernel
def is_saturated(data, at, size):
    """Whether more than half of the bits of data[at : at + size] are set; size: of a filter, no bytes or 8 or more."""
    many = np.int64(0)
    for i in range(at, at + size - 7, 8):
        many += ones(word_at(data, i))
    return many > 4 * size
