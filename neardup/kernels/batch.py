"""A batch of pages, from bytes to sketches, in one call."""

from typing import Any, NamedTuple

import numpy as np

from neardup.kernels import lean_kernel
from neardup.kernels.facts import HEADING_END, HEADING_START, TITLE_END, TITLE_START
from neardup.kernels.html import extract
from neardup.kernels.sketch import DIGEST, sketch_tokens
from neardup.kernels.tokens import tokenise
from neardup.kernels.xxh64 import xxh64

U64 = np.uint64
#: What a page is to `sketch_batch`: the first two are modes of `extract`; an opaque body is only digested.
HTML, PLAIN, OPAQUE, NOTHING = 0, 1, 2, 3


class Batch(NamedTuple):
    """Pages in and their sketches out, one row a page."""

    buffer: Any  # uint8: bodies, each followed by 256 zero bytes
    starts: Any  # int64[pages]
    ends: Any  # int64[pages]
    modes: Any  # int64[pages]: HTML, PLAIN, OPAQUE, NOTHING
    hosts: Any  # uint8: the pages' hosts, one after another, with 256 bytes of padding
    host_starts: Any  # int64[pages + 1]
    labels: Any  # uint8: the hosts as texts, one after another, with 256 bytes of padding
    label_starts: Any  # int64[pages + 1]
    words: Any  # uint64[pages, WORDS]
    numbers: Any  # int64[pages, NUMBERS]
    sections: Any  # uint8[pages, bytes]
    titles: Any  # uint8[pages, bytes]
    title_bytes: Any  # int64[pages]
    facts: Any  # int64[pages, FACTS]


@lean_kernel
def _host_tokens(batch, page, space, seed, tables):
    """Tokens of the page's host in space.host_fp -> how many."""
    start = batch.label_starts[page]
    n = min(batch.label_starts[page + 1] - start, len(space.host_text) // 2)
    space.host_text[:] = np.uint8(0)
    for i in range(n):
        space.host_text[i] = batch.labels[start + i]
    return tokenise(
        space.host_text,
        n,
        0,
        0,
        seed,
        tables,
        space.host_fp,
        space.host_flags,
        space.host_block,
        space.host_start,
        space.host_end,
    )


@lean_kernel
def _tokens_in(span_start, n, start, end):
    """First and end of the tokens that begin in text[start:end]; 0, 0 for start -1."""
    if start < 0:
        return np.int64(0), np.int64(0)
    spans = span_start[:n]
    return np.int64(np.searchsorted(spans, start)), np.int64(np.searchsorted(spans, end))


@lean_kernel
def sketch_batch(batch, first, last, tables, shape, work, space):
    """Sketch pages first to last - 1 of the batch. work and space: scratch that fits the largest of them."""
    seed = shape.seed[0]
    for page in range(first, last):
        start, end, mode = batch.starts[page], batch.ends[page], batch.modes[page]
        words, numbers, facts = batch.words[page], batch.numbers[page], batch.facts[page]
        words[:] = U64(0)
        numbers[:] = 0
        facts[:] = -1
        batch.title_bytes[page] = 0
        if mode == OPAQUE and end > start:
            for i in range(2):
                words[DIGEST + i] = xxh64(batch.buffer, start, end, shape.opaque[i])
        if mode >= OPAQUE:
            continue
        n_text = extract(
            batch.buffer,
            start,
            end,
            mode,
            batch.hosts,
            batch.host_starts[page],
            batch.host_starts[page + 1],
            tables,
            space.text,
            facts,
        )
        title_start = facts[TITLE_START]
        title = min(facts[TITLE_END] - title_start, np.int64(batch.titles.shape[1]))
        if title_start >= 0 and title > 0:
            for i in range(title):
                batch.titles[page, i] = space.text[title_start + i]
            batch.title_bytes[page] = title
        n = tokenise(
            space.text,
            n_text,
            title_start,
            facts[TITLE_END],
            seed,
            tables,
            space.fp,
            space.flags,
            space.block,
            space.span_start,
            space.span_end,
        )
        many = np.int64(0)
        if n > 0:
            many = _host_tokens(batch, page, space, seed, tables)
        heading = _tokens_in(space.span_start, n, facts[HEADING_START], facts[HEADING_END])
        tokens = (space.fp, space.flags, space.block, space.span_start, space.span_end)
        sketch_tokens(
            tokens, n, heading, space.text, space.host_fp, many, shape, work, words, numbers, batch.sections[page]
        )
