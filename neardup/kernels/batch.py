"""A batch of pages, from bytes to records, in one call."""

from typing import Any, NamedTuple

import numpy as np

from neardup.kernels import lean_kernel
from neardup.kernels.bits import below, ones, word_at
from neardup.kernels.facts import HEADING_END, HEADING_START, TITLE_END, TITLE_START
from neardup.kernels.forms import mark_forms
from neardup.kernels.html import extract
from neardup.kernels.record import FORMS, HOST_WORDS, OPAQUE_MODE, OWN_URL, TRUNCATED, write_record, write_title
from neardup.kernels.sketch import TOKENS_MAX, sketch_tokens
from neardup.kernels.tokens import tokenise
from neardup.kernels.windows import find_byte
from neardup.kernels.writing import BLOCK

U64 = np.uint64
U8 = np.uint8
#: Kinds of bodies for `sketch_batch`. The first two are modes of `extract`; OPAQUE: the header has the digest.
HTML, PLAIN, OPAQUE, NOTHING = 0, 1, OPAQUE_MODE, 3


class Batch(NamedTuple):
    """The input of `sketch_batch` (pages) and its output (records).

    Variable-length values are joined in one array each, with the end of each value in another array.
    """

    buffer: Any  # uint8: bodies, each followed by 256 zero bytes
    starts: Any  # int64[pages]
    ends: Any  # int64[pages]
    modes: Any  # int64[pages]: HTML, PLAIN, OPAQUE, NOTHING
    hosts: Any  # uint8: one entry per page, see `HOST_WORDS` of `neardup.kernels.record`
    host_ends: Any  # int64[pages]
    urls: Any  # uint8: normal forms of the pages' URLs
    url_ends: Any  # int64[pages]
    reasons: Any  # uint8: why pages are rejected
    reason_ends: Any  # int64[pages]
    headers: Any  # HEADER_WORDS[pages] in and out: in, the fields that do not depend on the body
    header_bytes: Any  # uint8: the same memory
    facts: Any  # int64[pages, FACTS] out
    left: Any  # uint8[pages] out: fields that Python must fill in, see CANONICAL_LEFT in `neardup.kernels.record`
    record_ends: Any  # int64[pages] out
    out: Any  # uint8: records, one after another


@lean_kernel
def _host_tokens(batch, page, space):
    """Copy the tokens of the page's host to space.host -> (their number, start, end of the host in batch.hosts)."""
    start = batch.host_ends[page - 1] if page > 0 else np.int64(0)
    many = min(np.int64(word_at(batch.hosts, start + 32)), len(space.host))
    at = start + 8 * HOST_WORDS
    for i in range(many):
        space.host[i] = word_at(batch.hosts, at + 8 * i)
    at += 8 * np.int64(word_at(batch.hosts, start + 32))
    return many, at, at + np.int64(word_at(batch.hosts, start + 16))


@lean_kernel
def _blocks_until(text, at, end):
    """Number of block boundaries in text[at:end]."""
    many = np.int64(0)
    while at < end:
        many += ones(find_byte(text, at, U8(BLOCK)) & below(end - at))
        at += 64
    return many


@lean_kernel
def _first_from(block, low, high, ordinal):
    """Binary search: the first of tokens low to high - 1 whose block number is at least `ordinal`; high if none."""
    while low < high:
        middle = (low + high) >> np.int64(1)
        if np.int64(block[middle]) < ordinal:
            low = middle + 1
        else:
            high = middle
    return low


@lean_kernel
def _tokens_in(block, n, first, end):
    """(first, end) of the tokens in blocks first to end - 1; (0, 0) if first == end."""
    if first == end:
        return np.int64(0), np.int64(0)
    start = _first_from(block, np.int64(0), n, first)
    return start, _first_from(block, start, n, end)


@lean_kernel
def record_of(batch, page, tokens, n, heading, text, title_bytes, shape, work, space, at):
    """Write the record of a page of n tokens (see `sketch_tokens`) to batch.out[at:] -> its end."""
    many, _, _ = _host_tokens(batch, page, space)
    words, numbers = space.words, space.numbers
    header = len(batch.header_bytes) // len(batch.headers)
    url = (batch.urls, batch.url_ends[page - 1] if page > 0 else np.int64(0), batch.url_ends[page])
    given = (space.host, many, shape, work, words, numbers)
    end, printed = sketch_tokens(tokens, n, heading, text, url, *given, batch.out, at + header)
    if printed:
        batch.headers[page]["flags"] |= U8(OWN_URL)
    if n > 0:
        batch.headers[page]["flags"] |= U8(FORMS)
    end = write_record(batch, page, shape, space, at, end, title_bytes, words, numbers, work.article)
    batch.record_ends[page] = end
    return end


@lean_kernel
def sketch_batch(batch, first, last, tables, shape, work, space):
    """Records of pages first to last - 1 of a batch. work and space: scratch that fits the largest of them."""
    at = np.int64(0)
    most = shape.limits[TOKENS_MAX]
    room = min(most + 1, len(space.fp))  # one token more than the limit shows that the page was truncated
    tokens = (space.fp, space.flags[:room], space.block[:room], space.span_start[:room], space.span_end[:room])
    for page in range(first, last):
        facts = batch.facts[page]
        facts[:] = -1
        batch.left[page] = 0
        n = title = np.int64(0)
        heading = (np.int64(0), np.int64(0))
        truncated = False
        if batch.modes[page] < OPAQUE:
            _, host, host_end = _host_tokens(batch, page, space)
            n_text = extract(
                batch.buffer,
                batch.starts[page],
                batch.ends[page],
                batch.modes[page],
                batch.hosts,
                host,
                host_end,
                tables,
                space.text,
                facts,
            )
            title_start, title_end = facts[TITLE_START], facts[TITLE_END]
            if title_start >= 0:
                title = write_title(space.text, title_start, title_end, space.title)
            # The heading is located by its blocks: folding in `tokenise` may move the text.
            first = end = np.int64(0)
            if facts[HEADING_START] >= 0:
                first = _blocks_until(space.text, np.int64(0), facts[HEADING_START])
                end = first + _blocks_until(space.text, facts[HEADING_START], facts[HEADING_END])
            n = tokenise(space.text, n_text, title_start, title_end, shape.token, tables, *tokens)
            if n > most:
                n = most
                truncated = True
            mark_forms(space.text, n, tokens[1], tokens[3], tokens[4])
            heading = _tokens_in(space.block, n, first, end)
        if truncated:
            batch.headers[page]["flags"] |= U8(TRUNCATED)
        at = record_of(batch, page, tokens, n, heading, space.text, title, shape, work, space, at)
