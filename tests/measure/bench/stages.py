"""Where a page's microseconds go: each stage of the kernels alone, and what Python adds around them."""

from collections.abc import Callable, Sequence

import numpy as np

from neardup.kernels import batch as batches
from neardup.kernels import sketch as kernels
from neardup.kernels.content import blocks, choose, occurrences_in
from neardup.kernels.facts import FACTS, TITLE_END, TITLE_START
from neardup.kernels.html import PADDING_BYTES, extract
from neardup.kernels.mix import mix
from neardup.kernels.names import write_filter, write_names, write_namings
from neardup.kernels.occurrences import occurrences
from neardup.kernels.shingling import minvalues, shingles, supershingles
from neardup.kernels.simhash import simhashes
from neardup.kernels.tape import prepare
from neardup.kernels.tape import write as write_tape
from neardup.kernels.tokens import tokenise
from neardup.kernels.xxh64 import xxh64_twice
from neardup.page import Page
from neardup.scheme import Scheme
from neardup.sketch import make_sketches as sketching
from neardup.sketch.addresses import addresses_of
from neardup.sketch.shape import record_bytes_max, shape_of, space_for
from neardup.text.decoding import decode_into
from neardup.text.tables import tables

Stage = tuple[str, Callable[[], object]]


def batch_of(pages: Sequence[Page], scheme: Scheme) -> Callable[[], None]:
    """A call of the one kernel that `sketch_pages` makes for these pages (HTML in UTF-8), and of nothing else."""
    bodies, n = [page.body for page in pages], len(pages)
    named = addresses_of(pages, scheme)
    headers = sketching._headers(pages, named, None, [0] * n)
    batch, _ = decode_into(
        sketching._batch(named, headers), bodies, [page.content_type for page in pages], 0, scheme.body_bytes_max
    )
    shape, constants = shape_of(scheme), tables()
    space = space_for(max(len(body or b"") for body in bodies), scheme)
    batch = batch._replace(out=space.out(named.bytes_of(0, n) + n * record_bytes_max(scheme)))

    def run() -> None:
        batches.sketch_batch(batch, 0, n, constants, shape, space.work, space.page)

    run()
    return run


def to_tokens(body: bytes) -> Callable[[], None]:
    """A call that takes a page in UTF-8 to its tokens, and no further."""
    page = space_for(len(body), Scheme(seed=1)).page
    buffer = np.frombuffer(body + bytes(PADDING_BYTES), np.uint8)
    host, facts, key = np.frombuffer(b"s.example", np.uint8), np.zeros(FACTS, np.int64), shape_of(Scheme(seed=1)).token
    arrays = (page.fp, page.flags, page.block, page.span_start, page.span_end)

    def run() -> None:
        n_text = extract(buffer, 0, len(body), 0, host, 0, 9, tables(), page.text, facts)
        tokenise(page.text, n_text, facts[TITLE_START], facts[TITLE_END], key, tables(), *arrays)

    run()
    return run


class OnePage:
    """One page between the stages: what each stage reads lies ready in arrays of its own."""

    def __init__(self, page: Page, scheme: Scheme) -> None:
        body = page.body or b""
        self.shape, self.tables = shape_of(scheme), tables()
        self.space = space_for(len(body), scheme)
        self.buffer = np.frombuffer(body + bytes(PADDING_BYTES), np.uint8)
        self.size = len(body)
        self.host = np.frombuffer(b"s.example", np.uint8)
        self.facts = np.zeros(FACTS, np.int64)
        self.words, self.numbers = np.zeros(kernels.WORDS, np.uint64), np.zeros(kernels.NUMBERS, np.int64)
        self.sections = np.empty(record_bytes_max(scheme), np.uint8)
        self.hosts = np.zeros(4, np.uint64)
        self.extract()
        self.n = self.tokenise()
        if not self.n:
            return
        self.many_shingles = self.shingles()
        self.many = self.occurrences()
        self.mix()
        self.parts = self.blocks()

    def extract(self) -> None:
        text = self.space.page.text
        self.n_text = extract(self.buffer, 0, self.size, 0, self.host, 0, 9, self.tables, text, self.facts)

    def tokenise(self) -> int:
        page, facts = self.space.page, self.facts
        arrays = (page.fp, page.flags, page.block, page.span_start, page.span_end)
        title = (facts[TITLE_START], facts[TITLE_END])
        return int(tokenise(page.text, self.n_text, *title, self.shape.token, self.tables, *arrays))

    def digest(self) -> None:
        xxh64_twice(self.space.page.fp, self.n, *self.shape.digest, self.space.work.shingle)

    def shingles(self) -> int:
        return int(shingles(self.space.page.fp, self.n, self.shape.shingle, self.space.work.shingle))

    def minvalues(self) -> None:
        work = self.space.work
        scratch = (work.fronts, work.leading, work.pieces, work.seen)
        minvalues(work.shingle, self.many_shingles, self.shape.multiplier, *scratch, work.low)
        supershingles(work.low, 14, self.shape.chains[0], self.words[3:9])
        supershingles(work.low, 3, self.shape.chains[1], self.words[15:23])

    def occurrences(self) -> int:
        page, work = self.space.page, self.space.work
        arrays = (work.ids, work.slots, work.distinct, work.counts, work.left)
        return int(occurrences(page.fp, page.flags, self.n, *arrays))

    def simhashes(self) -> None:
        w, s = self.space.work, self.shape
        arrays = (w.place, w.order, w.starts, w.counters, self.words[9:15], self.words[23:26])
        simhashes(w.distinct, w.counts, self.many, s.weights, s.offsets, *arrays)

    def mix(self) -> None:
        work = self.space.work
        for i in range(self.many):
            work.mixed[i] = mix(work.distinct[i])

    def tape(self) -> None:
        work = self.space.work
        _, kept = prepare(work.mixed, work.counts, self.many, 8, 500, work.left, work.byte)
        write_tape(work.ids, 0, self.n, work.left, work.byte, self.sections, 0, kept)

    def blocks(self) -> int:
        page, work = self.space.page, self.space.work
        arrays = (work.starts, work.ends, work.linked, work.widths)
        spans = (page.span_start, page.span_end)
        return int(blocks(page.flags, page.block, self.n, page.text, *spans, *arrays)[0])

    def content(self) -> None:
        work = self.space.work
        self.blocks()
        tokens = choose(self.parts, work.starts, work.ends, work.linked, work.widths, work.chosen)
        chosen, counts = (work.starts, work.ends, work.chosen, tokens), (work.content_counts, self.many)
        occurrences_in(work.ids, self.n, work.counts, self.parts, *chosen, *counts)
        prepare(work.mixed, work.content_counts, self.many, 8, 250, work.left, work.byte)

    def names(self) -> None:
        page, work = self.space.page, self.space.work
        known, given = (work.mixed, work.counts), (self.hosts, 2, self.sections, 800)
        parts = (0, min(self.n, 8), 0, 0)
        write_namings(page.fp, page.flags, work.ids, parts, 24, *known, self.many, work.byte, *given)
        write_names(page.fp, page.flags, work.ids, min(self.n, 16), *known, *given)

    def bloom(self) -> None:
        write_filter(self.space.work.mixed, self.many, 512, 8192, self.space.work.left, self.sections, 800)

    def stages(self) -> list[Stage]:
        return [
            ("extract", self.extract),
            ("tokenise", self.tokenise),
            ("digest", self.digest),
            ("shingles", self.shingles),
            ("minvalues", self.minvalues),
            ("occurrences", self.occurrences),
            ("simhashes", self.simhashes),
            ("tape", self.tape),
            ("content", self.content),
            ("names", self.names),
            ("filter", self.bloom),
        ]
