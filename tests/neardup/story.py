"""Streams of records, judged by the matcher in every slicing; the result must not depend on it."""

import itertools
import random
from dataclasses import replace

import orjson

from neardup.decider import Decider
from neardup.fold import fold
from neardup.index.memory import MemoryStore
from tests.neardup.invariants import Checked, contents_of
from tests.oracle.fold.judging import fold as fold_in_python

#: The default rule for texts of a few dozen words.
SMALL = Decider(scheme="5" * 32, thin_tokens=5, short_tokens=8, two_sites_tape_min=0.74)

A, B, C, D = (f"http://{name}.org/" for name in "abcd")
BASE = [f"word{i}" for i in range(60)]


def text(*edits, words=BASE):
    """The base text with words replaced: (place, word) pairs, or (place, number) for so many fresh words there."""
    out = list(words)
    for place, what in edits:
        many = what if isinstance(what, int) else 1
        for i in range(many):
            out[place + i] = f"new{place + i}" if isinstance(what, int) else what
    return " ".join(out)


NEAR = text((10, 2))
NEARER = text((10, "other"))
FAR = " ".join(f"far{i}" for i in range(60))
FARTHER = " ".join(f"farther{i}" for i in range(60))


def slices_of(records, sizes):
    """Batches of (page id, record); page ids count from 1."""
    numbered = list(enumerate(records, 1))
    at = 0
    while at < len(numbered):
        size = next(sizes)
        yield numbered[at : at + size]
        at += size


def folded(records, sizes, *, decider=SMALL, store=None, checked=True, traces=None):
    """Verdicts of a stream, and the store that it leaves; its invariants are checked after every batch."""
    store = store or MemoryStore()
    verdicts = []
    for batch in slices_of(records, sizes):
        outcome = fold(batch, store, decider, trace=None if traces is None else traces.append)
        store.write(outcome.writes)
        verdicts += outcome.verdicts
        if checked:
            Checked(store, decider)
    return verdicts, store


def endless(size):
    while True:
        yield size


def as_in_python(records, sizes, decider):
    """Yields each batch's store before it and its outcome, which equals in every byte the fold in Python, page by page.

    The store is that of the compiled fold: a caller may read it until it takes the next batch.
    """
    stores = MemoryStore(), MemoryStore()
    for batch in slices_of(records, sizes):
        compiled, slow = fold(batch, stores[0], decider), fold_in_python(batch, stores[1], decider)
        assert compiled.verdicts.lines() == slow.verdicts.lines()
        assert (compiled.scored_by_page, compiled.cut, compiled.hot_turned) == (
            slow.scored_by_page,
            slow.cut,
            slow.hot_turned,
        )
        assert (compiled.candidates_by, compiled.repeats_by) == (slow.candidates_by, slow.repeats_by)
        assert sum(compiled.candidates_by) == compiled.scored
        yield stores[0], compiled
        for store, outcome in zip(stores, (compiled, slow), strict=True):
            store.write(outcome.writes)
        assert contents_of(stores[0]) == contents_of(stores[1])


def in_any_slices(records, seed, *, decider=SMALL):
    """Verdicts and store of a stream, which slicing does not change: singly, all at once, and in slices by the seed.

    A fold that emits nothing writes the same rows.
    """
    rng = random.Random(seed)
    singly, expected = folded(records, endless(1), decider=decider, checked=False)
    Checked(expected, decider)
    for sizes in (endless(len(records)), (rng.randrange(1, 60) for _ in itertools.count())):
        verdicts, store = folded(records, sizes, decider=decider)
        assert [verdict.to_json() for verdict in verdicts] == [verdict.to_json() for verdict in singly]
        assert contents_of(store) == contents_of(expected)
    silent = MemoryStore()
    for batch in slices_of(records, (rng.randrange(1, 60) for _ in itertools.count())):
        values, outcome = fold(batch, silent, decider), fold(batch, silent, decider, emit=False)
        assert outcome == replace(values, verdicts=[], repeats_by=[0] * 4)
        silent.write(outcome.writes)
    assert contents_of(silent) == contents_of(expected)
    assert [verdict.page_id for verdict in singly if verdict.n == 0] == list(range(1, len(records) + 1))
    return singly, expected


class Story:
    """Verdicts of a stream, judged one record at a time; one batch must give the same, in every stored byte."""

    def __init__(self, *records, decider=SMALL):
        self.traces = []
        self.all, self.store = folded(records, endless(1), decider=decider, traces=self.traces)
        at_once, other = folded(records, endless(len(records)), decider=decider)
        assert [v.to_json() for v in at_once] == [v.to_json() for v in self.all]
        assert contents_of(other) == contents_of(self.store)
        self.verdicts = [verdict for verdict in self.all if verdict.n == 0]
        assert [verdict.page_id for verdict in self.verdicts] == list(range(1, len(records) + 1))
        self.promoted = [verdict for verdict in self.all if verdict.n]
        self.state = Checked(self.store, decider)

    @property
    def kinds(self):
        return [str(verdict.verdict) for verdict in self.all]

    def json(self, page_id):
        return orjson.loads(self.verdicts[page_id - 1].to_json())
