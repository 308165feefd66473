"""Computes, in one call, all parts of a sketch that follow from a page's tokens."""

from typing import Any, NamedTuple

import numpy as np

from neardup.kernels import lean_kernel, points
from neardup.kernels.article import choose_article
from neardup.kernels.bits import put_quad
from neardup.kernels.content import blocks, choose, longest, occurrences_in
from neardup.kernels.forms import values_and_words
from neardup.kernels.mix import mix
from neardup.kernels.names import NAME_BYTES, marked, write_filter, write_names, write_namings, write_path_names
from neardup.kernels.occurrences import occurrences
from neardup.kernels.own_url import path_of, write_others
from neardup.kernels.shingling import chain, minvalues, shingles, supershingles
from neardup.kernels.simhash import simhashes
from neardup.kernels.tape import leave_out, prepare, put_back, write
from neardup.kernels.urls import write_path
from neardup.kernels.xxh64 import xxh64_twice

U64 = np.uint64
U8 = np.uint8
_ANY_DIGIT = U8(points.ANY_DIGIT)


class Shape(NamedTuple):
    """The scheme as arrays (uint64 unless noted). `neardup.sketch.shape.shape_of` makes it."""

    token: Any  # [12] key of token fingerprints
    digest: Any  # [2] seeds
    shingle: Any  # [k] odd factors
    multiplier: Any  # [m / 4, padded to 8] odd
    chains: Any  # [4] seeds: supershingles, wide supershingles, head, start of the main content
    offsets: Any  # [8] of the words of a projection
    weights: Any  # [256] by occurrences: log-tf
    names: Any  # [12] key of fingerprints of titles and URLs
    limits: Any  # int64[16]: see TOKENS_MAX and the constants beside it
    points: Any  # uint32: the table of `neardup.text.unicode`


#: Indices in Shape.limits.
PER_SUPERSHINGLE, PER_WIDE, TAPE_MAX, CONTENT_MAX, OCCURRENCES_MAX = 0, 1, 2, 3, 4
HEAD_TOKENS, HEAD_KEY_TOKENS, TITLE_NAMES_MAX, BLOOM_MIN, BLOOM_MAX = 5, 6, 7, 8, 9
TITLE_MAX, URL_MAX, LANG_MAX = 10, 11, 12
#: Tokens of the page's own URL that its tapes leave out, at most; tokens of a page that count, at most.
OWN_URL_WORDS_MAX, TOKENS_MAX = 13, 14
#: Bytes of the article's tape; 0: records hold none.
ARTICLE_MAX = 15
#: Least tokens of an article: a shorter one cannot have the common stretch that a rule needs for two sites.
ARTICLE_TOKENS_MIN = 100
#: Bytes behind the tape, in its section: the low halves of the hashes of values and of words (`neardup.kernels.forms`).
HASHES_BYTES = 8
_LOW32 = U64(0xFFFFFFFF)


class Workspace(NamedTuple):
    """Scratch arrays of one thread, for pages of up to `tokens` tokens. `neardup.sketch.shape` makes them."""

    ids: Any  # uint32[tokens]
    slots: Any  # uint32[8 * tokens]
    distinct: Any  # uint64[tokens]
    counts: Any  # uint32[tokens]
    mixed: Any  # uint64[tokens]
    shingle: Any  # uint64[tokens]
    fronts: Any  # uint64[m, padded to 32]
    leading: Any  # uint16[m, padded to 32]
    pieces: Any  # uint16[tokens]
    seen: Any  # uint64[SEEN] of shingles
    low: Any  # uint64[m]
    left: Any  # uint8[tokens, at least 2**18]
    byte: Any  # uint8[tokens]
    starts: Any  # uint32[tokens]
    ends: Any  # uint32[tokens]
    linked: Any  # uint32[tokens]
    widths: Any  # uint32[tokens]
    chosen: Any  # uint8[tokens]
    content_counts: Any  # uint32[tokens]
    place: Any  # int64[257]
    order: Any  # uint32[tokens]
    counters: Any  # uint64[COUNTERS]
    article: Any  # uint8[32768]: the article's tape


class PageSpace(NamedTuple):
    """Scratch arrays of one thread for text and tokens of a page. `neardup.sketch.shape` makes them."""

    text: Any  # uint8[bytes]
    fp: Any  # uint64[tokens]
    flags: Any  # uint8[tokens]
    block: Any  # int32[tokens]
    span_start: Any  # uint32[tokens]
    span_end: Any  # uint32[tokens]
    host: Any  # uint64: tokens of a host
    title: Any  # uint8[title_bytes_max]
    line: Any  # uint8: a title, or site and URL
    cluster: Any  # uint64[CLUSTER_POINTS] of `neardup.kernels.composition`
    words: Any  # uint64[WORDS]
    numbers: Any  # int64[NUMBERS]


#: Indices in the words (uint64) and the numbers (int64) of a page.
DIGEST, HEAD, B, C, WIDE, CONTENT_START, LOGTF, NAMING, WORDS = 0, 2, 3, 9, 15, 22, 23, 26, 27
TOKENS, DISTINCT, CONTENT_TOKENS, TAPE_LEVEL, CONTENT_LEVEL = 0, 1, 2, 3, 4
TAPE_BYTES, CONTENT_BYTES, TITLE_NAMES, HEAD_NAMES, BLOOM_BYTES = 5, 6, 7, 8, 9
ARTICLE_TOKENS, ARTICLE_LEVEL, ARTICLE_BYTES, NUMBERS = 10, 11, 12, 13


@lean_kernel
def _count_in(n, parts, chosen, tokens, many, work):
    """Count the occurrences of each token in the chosen blocks -> work.content_counts.

    many: distinct tokens of the page, before the one of relative times. Other arguments: see `occurrences_in`.
    """
    counts = work.content_counts
    occurrences_in(work.ids, n, work.counts, parts, work.starts, work.ends, chosen, tokens, counts, many + 1)
    counts[many] = np.uint32(0)


@lean_kernel
def _write_article(n, parts, many, most, bytes_max, work, numbers):
    """Write the article's tape to work.article, if there is an article.

    parts: number of blocks; many: distinct tokens.
    """
    starts, ends, chosen, counts = work.starts, work.ends, work.chosen, work.content_counts
    tokens = choose_article(parts, starts, ends, work.linked, chosen)
    if tokens < ARTICLE_TOKENS_MIN:
        return
    _count_in(n, parts, chosen, tokens, many, work)
    level, stop = prepare(work.mixed, counts, many + 1, most, bytes_max, work.left, work.byte)
    end = np.int64(0)
    for j in range(parts):
        if chosen[j]:
            end = write(work.ids, np.int64(starts[j]), np.int64(ends[j]), work.left, work.byte, work.article, end, stop)
    numbers[ARTICLE_TOKENS], numbers[ARTICLE_LEVEL], numbers[ARTICLE_BYTES] = tokens, level, end


@lean_kernel
def sketch_tokens(tokens, n, heading, text, url, host, host_many, shape, work, words, numbers, out, at):
    """Sketch one page's tokens.

    -> end of the sections in out; whether the page prints its own URL.

    tokens: (fp uint64, flags uint8, block int32, span_start uint32, span_end uint32), each [>= n]; spans in text,
    uint8.
    heading: first and end of the heading's tokens.
    url: (uint8 array, start, end) of the page's own URL.
    host uint64[host_many]: tokens of the page's own host.
    words uint64[27], numbers int64[13]: out, with the indices above.
    out uint8: from `at` on, the sections tape, content tape, title names, head names and filter.
    work.article: out, the article's tape.
    """
    fp, flags, block, span_start, span_end = tokens
    limits = shape.limits
    words[:] = U64(0)
    numbers[:] = 0
    if n == 0:
        return at, False
    words[DIGEST], words[DIGEST + 1] = xxh64_twice(fp, n, shape.digest[0], shape.digest[1], work.shingle)
    words[HEAD] = chain(fp, 0, min(n, limits[HEAD_KEY_TOKENS]), shape.chains[2])

    # algorithm B
    many = shingles(fp, n, shape.shingle, work.shingle)
    minvalues(work.shingle, many, shape.multiplier, work.fronts, work.leading, work.pieces, work.seen, work.low)
    supershingles(work.low, limits[PER_SUPERSHINGLE], shape.chains[0], words[B : B + 6])
    supershingles(work.low, limits[PER_WIDE], shape.chains[1], words[WIDE : WIDE + 7])

    # algorithm C, raw and log-tf
    many = occurrences(fp, flags, n, work.ids, work.slots, work.distinct, work.counts, work.left)
    simhashes(
        work.distinct,
        work.counts,
        many,
        shape.weights,
        shape.offsets,
        work.place,
        work.order,
        work.starts,
        work.counters,
        words[C : C + 6],
        words[LOGTF : LOGTF + 3],
    )
    # equal tokens are equal strings, so the digit flags of the first occurrence hold for all
    for i in range(U64(many)):
        work.mixed[i] = marked(mix(work.distinct[i]), work.left[i] & _ANY_DIGIT != U8(0))
    numbers[TOKENS], numbers[DISTINCT] = n, many

    # tape
    most = limits[OCCURRENCES_MAX]
    left_out = leave_out(flags, n, work.ids, work.mixed, work.counts, many, work.slots)
    level, kept = prepare(work.mixed, work.counts, many + 1, most, limits[TAPE_MAX], work.left, work.byte)
    numbers[TAPE_LEVEL] = level
    urls, url_start, url_end = url
    own = (urls, path_of(urls, url_start, url_end), url_end, limits[OWN_URL_WORDS_MAX])
    stop = at + kept
    spans = (flags, span_start, span_end)
    end, printed = write_others(work.ids, n, text, *spans, *own, work.left, work.byte, out, at, stop)
    values, rest = values_and_words(fp, flags, n, work.distinct, work.counts, many)
    put_quad(out, end, np.int64(values & _LOW32))
    put_quad(out, end + 4, np.int64(rest & _LOW32))
    end += HASHES_BYTES
    numbers[TAPE_BYTES] = end - at

    # content tape
    start = end
    parts, title_start, title_end = blocks(
        flags, block, n, text, span_start, span_end, work.starts, work.ends, work.linked, work.widths
    )
    chosen = choose(parts, work.starts, work.ends, work.linked, work.widths, work.chosen)
    numbers[CONTENT_TOKENS] = chosen
    first, many_in = longest(parts, work.starts, work.ends, work.chosen)
    if many_in == 0:  # no main content
        words[CONTENT_START] = words[HEAD]
    else:
        words[CONTENT_START] = chain(fp, first, min(many_in, limits[HEAD_KEY_TOKENS]), shape.chains[3])
    _count_in(n, parts, work.chosen, chosen, many, work)
    level, kept = prepare(work.mixed, work.content_counts, many + 1, most, limits[CONTENT_MAX], work.left, work.byte)
    numbers[CONTENT_LEVEL] = level
    stop = start + kept
    for j in range(parts):
        if work.chosen[j]:
            end = write(
                work.ids, np.int64(work.starts[j]), np.int64(work.ends[j]), work.left, work.byte, out, end, stop
            )
    numbers[CONTENT_BYTES] = end - start
    if limits[ARTICLE_MAX] > 0:
        _write_article(n, parts, many, most, limits[ARTICLE_MAX], work, numbers)
    put_back(work.ids, work.counts, work.slots, left_out)

    # names and filter
    most = limits[TITLE_NAMES_MAX]
    parts = (title_start, title_end, heading[0], heading[1])
    names, words[NAMING] = write_namings(
        fp, flags, work.ids, parts, most, work.mixed, work.counts, many, work.byte, host, host_many, out, end
    )
    if words[NAMING] == U64(0):
        words[NAMING] = words[HEAD]
    size = write_path(*url, work.left)
    given = (shape.token, work.distinct, work.mixed, work.counts, many, host, host_many)
    names = write_path_names(work.left, size, names, most, *given, out, end)
    numbers[TITLE_NAMES] = names
    end += names * NAME_BYTES
    head = min(n, limits[HEAD_TOKENS])
    names = write_names(fp, flags, work.ids, head, work.mixed, work.counts, host, host_many, out, end)
    numbers[HEAD_NAMES] = names
    end += names * NAME_BYTES
    numbers[BLOOM_BYTES] = write_filter(work.mixed, many, limits[BLOOM_MIN], limits[BLOOM_MAX], work.left, out, end)
    return end + numbers[BLOOM_BYTES], printed
