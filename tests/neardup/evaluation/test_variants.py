"""Variants of B and C: the defaults are the sketches' own, and each option does what it says."""

import math
from collections import Counter
from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytest

from neardup.evaluation.corpus_texts import page_tokens
from neardup.evaluation.henzinger_variants import B, C, ablation_section, as_set, chosen_tokens, jaccard
from neardup.evaluation.labels import Judgement, label_of
from neardup.scheme import Scheme
from neardup.sketch.make_sketches import sketch_pages
from neardup.sketch.sketch_record import Sketch
from tests.neardup.evaluation.crawl import SCHEME, crawl_of, html, manual, page, words
from tests.oracle.lcs import lcs

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


# What the formulas promise, from the words alone: no code is shared with the variants but the pages themselves.

FORTH = words(21, 220)
BACK = [*FORTH[:100], "another", "word", *FORTH[102:], *FORTH[40:52]]


def shingles_of(text: Sequence[str], k: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(text[i : i + k]) for i in range(len(text) - k + 1))


@pytest.mark.parametrize(("variant", "weighted"), [(B(), False), (B(k=5), False), (B(k=5, weighted=True), True)])
def test_supershingles_agree_as_often_as_the_resemblance_says(variant: B, weighted: bool) -> None:
    """Broder 1997: a minvalue agrees with probability R, so 14 together with R ** 14; over 150 seeds, 6 places each."""
    texts = [["t", *FORTH, *["low", "high"] * 20], ["t", *BACK, *["low", "high"] * 20]]
    one, other = (shingles_of(text, variant.k) for text in texts)
    if not weighted:
        one, other = Counter(set(one)), Counter(set(other))
    resemblance = (one & other).total() / (one | other).total()
    pages = [type(PAGES[0])("https://a.example/", " ".join(text).encode(), "text/plain") for text in texts]
    agreed = []
    for seed in range(150):
        scheme = Scheme(seed=seed)
        a, b = (variant.sketch(page_tokens(one, scheme), scheme) for one in pages)
        agreed.append(np.mean(a == b))
    wanted = resemblance**14
    assert 0.1 < wanted < 0.9
    assert np.mean(agreed) == pytest.approx(wanted, abs=4 * math.sqrt(wanted * (1 - wanted) / (6 * 150)))


@pytest.mark.parametrize(("variant", "k"), [(C(), 1), (C(bits=96), 1), (C(over="shingles", k=2), 2)])
def test_bits_agree_as_often_as_the_angle_says(variant: C, k: int) -> None:
    """Charikar 2002: a bit agrees with probability 1 - angle / pi, tokens or shingles by frequency; over 60 seeds.

    That is of normal numbers. Bits are of signs, which differ from it by up to .01 where few words are frequent: what
    signs give is drawn here.
    """
    texts = [[*FORTH, *["low"] * 9], [*BACK, *["low"] * 4, *["high"] * 5]]
    one, other = (shingles_of(text, k) for text in texts)
    dot = sum(count * other[name] for name, count in one.items())
    norms = [math.sqrt(sum(count * count for count in counts.values())) for counts in (one, other)]
    signs = np.random.default_rng(1).choice([-1, 1], (20_000, len(one | other)))
    sums = [signs @ np.array([counts[name] for name in one | other]) for counts in (one, other)]
    wanted = np.mean((sums[0] > 0) == (sums[1] > 0))
    assert wanted == pytest.approx(1 - math.acos(dot / norms[0] / norms[1]) / math.pi, abs=0.01)
    shares = []
    for seed in range(60):
        scheme = Scheme(seed=seed)
        pages = [type(PAGES[0])("https://a.example/", " ".join(text).encode(), "text/plain") for text in texts]
        a, b = (variant.sketch(page_tokens(one, scheme), scheme) for one in pages)
        shares.append(variant.agreeing(a, b) / variant.bits)
    assert 0.6 < wanted < 0.98
    chance = 4 * math.sqrt(wanted * (1 - wanted) * (1 / (variant.bits * 60) + 1 / len(signs)))
    assert np.mean(shares) == pytest.approx(wanted, abs=chance)


def test_the_slower_rule_and_the_yardsticks_by_hand() -> None:
    text, other = words(31, 80), words(32, 80)
    pages = [
        page(
            f"https://{site}/{changed}",
            "Some words",
            [*other[:changed], *text[changed:], *["often"] * 9, f"at{site[0]}"],
        )
        for site in ("a.example", "b.example")
        for changed in (0, 1, 2, 4, 8, 16, 40)
    ]
    crawl = crawl_of(pages)
    urls = crawl.corpus.urls
    texts = [page_tokens(crawl.texts.page(number), SCHEME).words for number in range(len(urls))]
    pairs = list(combinations(range(len(urls)), 2))
    kinds = [Judgement.CORRECT, Judgement.INCORRECT]
    values = [label_of(urls[a], urls[b], kinds[(a * b) % 3 == 0]) for a, b in pairs]
    study = crawl.study(values)
    rows = {row[0]: row for row in ablation_section(study).tables[0].rows}

    def measured(accepted: Sequence[bool]) -> tuple[float, float]:
        correct = [label.label is Judgement.CORRECT for label in study.labels.labels]
        right = sum(one and other for one, other in zip(accepted, correct, strict=True))
        return right / sum(accepted), right / sum(correct)

    ratios, resemblances = [], []
    for a, b in zip(study.labels.a, study.labels.b, strict=True):
        both = lcs(texts[a], texts[b])
        ratios.append(both / (len(texts[a]) + len(texts[b]) - both))
        one, other = set(shingles_of(texts[a], 5)), set(shingles_of(texts[b], 5))
        resemblances.append(len(one & other) / len(one | other))
    by_ratio = [ratio >= 0.75 for ratio in ratios]
    same = study.same_site.tolist()
    near = [c >= 372 for c in study.c_similarity.tolist()]
    slower = [one if on_one else two for one, two, on_one in zip(by_ratio, near, same, strict=True)]
    assert 0 < sum(slower) < len(slower)
    assert len({tuple(by_ratio), tuple(near), tuple(slower)}) == 3
    for name, accepted in (
        ("C on two sites, LCS ratio on one", slower),
        ("yardstick: LCS ratio of the full text", by_ratio),
        ("yardstick: exact Jaccard of 5-shingles", [one >= 0.8 for one in resemblances]),
        (
            "combined, as published (B >= 2, C >= 355)",
            [
                b >= 2 and c >= 355
                for b, c in zip(study.b_similarity.tolist(), study.c_similarity.tolist(), strict=True)
            ],
        ),
    ):
        assert (rows[name][3], rows[name][5]) == pytest.approx(measured(accepted)), name
