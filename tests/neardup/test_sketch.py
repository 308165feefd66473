"""A page's whole sketch from its tokens, against the oracle; records and their view."""

import random

import pytest

from neardup.scheme import Scheme
from neardup.sketch import Sketch, sketch_words
from tests.oracle import sketches as oracle

SEED = 0x0123456789ABCDEF
SCHEME = Scheme(seed=SEED)


def words_of(count, seed, vocabulary=3000):
    """A text with a few frequent and many rare words, some of them numbers."""
    rng = random.Random(seed)
    return [
        f"w{int(rng.paretovariate(0.6)) % vocabulary}" if rng.random() < 0.9 else str(rng.randrange(50))
        for _ in range(count)
    ]


def layout_of(count, seed):
    """Block numbers with gaps, and words in links."""
    rng = random.Random(seed)
    blocks, links, block = [], [], 0
    while len(blocks) < count:
        size = rng.choice((1, 2, 3, 8, 15, 40, 90))
        if rng.random() < 0.3:
            links += [i for i in range(len(blocks), min(count, len(blocks) + size)) if rng.random() < 0.8]
        blocks += [block] * size
        block += rng.choice((1, 1, 3))
    return blocks[:count], links


def fields_of(record):
    view = Sketch(record)
    out = view.to_dict()
    names = {n: [list(x) for x in getattr(view, n)] for n in ("title_names", "head_names")}
    tuples = {n: list(out[n]) for n in ("supershingles", "simhash", "wide", "logtf")}
    raw = {n: getattr(view, n) for n in ("tape", "content_tape", "bloom")}
    return out | names | tuples | raw


@pytest.mark.parametrize("count", [0, 1, 2, 7, 8, 9, 15, 16, 17, 18, 63, 200, 1000])
def test_every_field_is_the_oracles(count):
    words = words_of(count, count)
    blocks, links = layout_of(count, count)
    title = min(count, 5)
    record = sketch_words(words, SCHEME, title_words=title, links=links, blocks=blocks)
    expected = oracle.sketch(words, SEED, title=title, links=links, blocks=blocks)
    found = fields_of(record)
    assert {name: found[name] for name in expected} == expected
