"""Variants of B and C: the defaults are the sketches' own, and each option does what it says."""

import numpy as np
import pytest

from neardup.evaluation.texts import page_tokens
from neardup.evaluation.variants import B, C, as_set, chosen_tokens, jaccard
from neardup.sketch import Sketch, sketch_pages
from tests.neardup.evaluation.crawl import SCHEME, html, manual, page, words

PAGES = [
    *manual(items=3),
    page("https://a.example/short", "Four words in all", []),
    page("https://a.example/x", "", []),
]


@pytest.mark.parametrize("number", range(len(PAGES)))
def test_defaults_are_the_sketches_of_the_program(number: int) -> None:
    sketch = Sketch(sketch_pages([PAGES[number]], SCHEME)[0])
    tokens = page_tokens(PAGES[number], SCHEME)
    assert len(tokens.fp) == sketch.tokens == len(tokens.words)
    b, c = B().sketch(tokens, SCHEME), C().sketch(tokens, SCHEME)
    if not sketch.tokens:
        assert b is None
        assert c is None
        return
    assert tuple(b.tolist()) == sketch.supershingles
    assert tuple(c.tolist()) == sketch.simhash
    assert int(tokens.content.sum()) == sketch.content_tokens


def test_fewer_bits_are_the_first_ones() -> None:
    a = np.zeros(6, np.uint64)
    b = a.copy()
    b[0], b[1] = 1 << 63, 1 << 40
    assert C().agreeing(a, b) == 382
    assert C(bits=64).agreeing(a, b) == 63
    assert C(bits=96).agreeing(a, b) == 95
    assert C(bits=128).agreeing(a, b) == 126


def test_frequencies_count_only_when_weighted() -> None:
    one, other = words(1, 100), words(2, 100)
    often = page_tokens(page("https://a.example/1", "t", one + other + other), SCHEME)
    rare = page_tokens(page("https://a.example/2", "t", one + one + other + other), SCHEME)
    plain = np.mean(B(k=1).sketch(often, SCHEME) == B(k=1).sketch(rare, SCHEME))
    weighted = np.mean(B(k=1, weighted=True).sketch(often, SCHEME) == B(k=1, weighted=True).sketch(rare, SCHEME))
    assert plain == 1
    assert weighted < 1


def test_a_multiset_becomes_a_set_by_occurrence() -> None:
    a, b = (as_set(np.array(x, np.uint64)) for x in ([5, 5, 7, 5], [5, 9, 5]))
    assert len(set(a.tolist())) == 4
    assert jaccard(a, b) == pytest.approx(2 / 5)  # min(3, 2) of max(3, 2) + 1 + 1
    assert jaccard(np.empty(0, np.uint64), np.empty(0, np.uint64)) == 0


def test_the_order_of_words_counts_for_shingles_alone() -> None:
    text = words(3, 120)
    forth = page_tokens(page("https://a.example/1", "t", text), SCHEME)
    back = page_tokens(page("https://a.example/2", "t", [*text[60:], *text[:60]]), SCHEME)
    assert C().agreeing(C().sketch(forth, SCHEME), C().sketch(back, SCHEME)) == 384
    over = C(over="shingles", k=2)
    assert 300 < over.agreeing(over.sketch(forth, SCHEME), over.sketch(back, SCHEME)) < 384


def test_other_shingle_lengths_make_other_sketches() -> None:
    tokens = page_tokens(PAGES[0], SCHEME)
    assert not np.array_equal(B(k=5).sketch(tokens, SCHEME), B().sketch(tokens, SCHEME))


def test_main_content_leaves_navigation_out() -> None:
    links = "".join(f'<li><a href="/{i}">go {i}</a></li>' for i in range(40))
    body = html("Title", words(4, 400)).decode()
    tokens = page_tokens(type(PAGES[0])("https://a.example/", f"<ul>{links}</ul>{body}".encode(), "text/html"), SCHEME)
    kept = chosen_tokens(tokens, content=True)
    assert 300 < len(kept) < len(tokens.fp)
    assert len(chosen_tokens(tokens, content=False)) == len(tokens.fp)
