"""Names (tokens of title, heading, URL and first tokens of a page), and the filter that proves a token absent.

A name is 8 bytes: the low 48 bits of mix(token), little-endian; occurrences in the page, at most 255; flags. The flags
are 1 all digits, 2 any digit, 4 own host, 8 in the title, 16 in the heading, 32 in the path of the URL. A name of the
path may occur 0 times in its page.

The filter is a Bloom filter of all distinct tokens. Let x and y be the low and the high 24 of a name's 48 bits: the 4
probes are x + i * (y | 1) modulo the size of the filter in bits (Kirsch and Mitzenmacher 2006).
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
    """mix(token) with the top two bits 00 if and only if the token has a digit, so that tapes show it."""
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
    """Write the names of the distinct tokens of fp[:end] to out[at:], by first appearance -> int64, names written.

    ids: number of each token; mixed, counts: mix(token) and occurrences, by number. out uint8.
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
    """Write the names of title and heading to out[at:] -> int64, names written; uint64, the naming.

    The naming is the fingerprint of the names that are not all digits, 0 if there are none. A token of both parts gets
    both flags. Terms (URLs of images and frames) are skipped.
    parts: first and end of the title's tokens in fp, then of the heading's.
    names_max: distinct tokens of a part that count.
    seen uint8[>= distinct] scratch, by number of token: it keeps a title of a million words linear.
    Other arguments: see `write_names`.
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
    """Add the words of a URL's path to the names at out[at:] -> int64, names there now.

    path[:size]: the words, as `neardup.kernels.urls.write_path` writes them. Of the last 2 * names_max words the last
    names_max distinct ones are added. names: names at out[at:] before the call; a word among them only gets the flag.
    distinct, mixed, counts: the page's `many` distinct tokens, their mix (see `marked`) and their occurrences.
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
            # same types as in the other calls, so that `write_name` is compiled once
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
    """Write a Bloom filter of mixed[:many] to out[at:] -> int64, its bytes; 0 if there are no tokens.

    The filter has the smallest power of two of at least 8 bits per token, limited by bits_min and bits_max (powers of
    two from 64 to 2**24). marks uint8[>= bits_max] scratch with a byte per bit: storing a byte needs no earlier load,
    unlike setting a bit; 64 bytes become 64 bits in one step.
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
    """Whether the filter data[at : at + size] may contain the token with these 48 bits; False proves it absent."""
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
    """Whether more than half of the bits of the filter data[at : at + size] are set. size: 0, or at least 8 bytes."""
    many = np.int64(0)
    for i in range(at, at + size - 7, 8):
        many += ones(word_at(data, i))
    return many > 4 * size
