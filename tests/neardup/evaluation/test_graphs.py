"""The joins against plain comparison of all pairs, what they miss, and what bounds them."""

import numpy as np
import pytest

from neardup.errors import BadInput
from neardup.evaluation.corpus import Corpus, CorpusCounts
from neardup.evaluation.graphs import Graph, b_graph, blocks, c_graph, c_graph_of_all
from tests.neardup.evaluation.crawl import crawl_of, manual, page, words

pytestmark = [pytest.mark.kernel, pytest.mark.filterwarnings("ignore:overflow")]


def corpus(supershingles: np.ndarray, simhash: np.ndarray) -> Corpus:
    n = len(supershingles)
    site = (np.arange(n) % 3).astype(np.int32)
    urls = [f"https://s{site[i]}.example/{i}" for i in range(n)]
    names = [f"s{one}.example" for one in site]
    return Corpus([b""] * n, urls, names, site, supershingles, simhash, np.ones(n, np.int64), CorpusCounts(pages=n), {})


def planted(seed: int, n: int = 60) -> Corpus:
    """Pages in families that share supershingles and differ in a few bits of their simhash."""
    rng = np.random.default_rng(seed)
    family = rng.integers(0, 8, n)
    supershingles = rng.integers(0, 2**63, (8, 6), dtype=np.uint64)[family]
    fresh = rng.random((n, 6)) < 0.5
    supershingles = np.where(fresh, rng.integers(0, 2**63, (n, 6), dtype=np.uint64), supershingles)
    simhash = rng.integers(0, 2**63, (8, 6), dtype=np.uint64)[family]
    for i in range(n):
        for bit in rng.choice(384, rng.integers(0, 12), replace=False).tolist():
            simhash[i, bit // 64] ^= np.uint64(1) << np.uint64(bit % 64)
    return corpus(supershingles, simhash)


def naive(c: Corpus) -> list[tuple[int, int, int, int]]:
    out = []
    for a in range(len(c)):
        for b in range(a + 1, len(c)):
            equal = sum(int(x) == int(y) for x, y in zip(c.supershingles[a], c.supershingles[b], strict=True))
            bits = sum(bin(int(x) ^ int(y)).count("1") for x, y in zip(c.simhash[a], c.simhash[b], strict=True))
            out.append((a, b, equal, 384 - bits))
    return out


def rows(g: Graph) -> list[tuple[int, int, int, int]]:
    return list(zip(g.a.tolist(), g.b.tolist(), g.b_similarity.tolist(), g.c_similarity.tolist(), strict=True))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("threads", [1, 3])
def test_joins_equal_comparing_all_pairs(seed: int, threads: int) -> None:
    c = planted(seed)
    every = naive(c)
    assert rows(b_graph(c, threads=threads)) == [row for row in every if row[2] >= 2]
    assert rows(c_graph(c, c_min=373, threads=threads)) == [row for row in every if row[3] >= 373]
    assert rows(c_graph_of_all(c, c_min=350, threads=threads)) == [row for row in every if row[3] >= 350]


def test_counts_and_degrees_are_those_of_the_edges() -> None:
    c = planted(9)
    g = b_graph(c)
    degrees = np.zeros(len(c), int)
    joint = np.zeros((2, 7, 385), int)
    for a, b, equal, agree in rows(g):
        degrees[[a, b]] += 1
        joint[int(c.site[a] == c.site[b]), equal, agree] += 1
    assert g.edges == len(g.a) > 20
    assert g.degrees.tolist() == degrees.tolist()
    assert np.array_equal(g.joint, joint)


def test_blocks_miss_only_one_bit_in_each_block_at_twelve() -> None:
    simhash = np.zeros((3, 6), np.uint64)
    for block in range(12):  # page 1: a bit in each block; page 2: two bits in the first, none in the last
        simhash[1, block // 2] ^= np.uint64(1) << np.uint64(32 * (block % 2) + 5)
    for bit in (0, 1, *[32 * block for block in range(1, 11)]):
        simhash[2, bit // 64] ^= np.uint64(1) << np.uint64(bit % 64)
    c = corpus(np.arange(18, dtype=np.uint64).reshape(3, 6), simhash)
    found = c_graph(c, c_min=372)
    assert rows(found) == [(0, 2, 0, 372)]
    assert rows(c_graph_of_all(c, c_min=372)) == [(0, 1, 0, 372), (0, 2, 0, 372)]


def test_blocks_are_the_pieces_of_four_bytes() -> None:
    assert blocks(np.array([[0x0000000200000001] + [0] * 5], np.uint64)).tolist()[0][:2] == [1, 2]


def test_a_larger_graph_keeps_a_sample_and_exact_counts() -> None:
    n = 60
    c = corpus(np.ones((n, 6), np.uint64), np.zeros((n, 6), np.uint64))
    whole, part = b_graph(c), b_graph(c, pairs_max=170, seed=3)
    assert whole.edges == part.edges == n * (n - 1) // 2
    assert np.array_equal(whole.degrees, part.degrees)
    assert np.array_equal(whole.joint, part.joint)
    assert 120 < len(part.a) < 220
    assert not part.whole
    assert whole.whole
    again, other = b_graph(c, pairs_max=170, seed=3, threads=2), b_graph(c, pairs_max=170, seed=4)
    assert rows(again) == rows(part)
    assert rows(other) != rows(part)


def test_a_template_too_large_to_join_is_refused_with_its_size() -> None:
    c = corpus(np.ones((50, 6), np.uint64), np.zeros((50, 6), np.uint64))
    with pytest.raises(BadInput, match="50 pages share one key"):
        b_graph(c, comparisons_max=1000)
    with pytest.raises(BadInput, match="50 pages have"):
        c_graph_of_all(c, c_min=350, comparisons_max=1000)


@pytest.mark.parametrize("n", [0, 1])
def test_no_pairs_of_no_page_and_one(n: int) -> None:
    c = corpus(np.ones((n, 6), np.uint64), np.zeros((n, 6), np.uint64))
    for g in (b_graph(c), c_graph(c), c_graph_of_all(c, c_min=300, threads=2)):
        assert (g.edges, len(g.a), len(g.degrees), int(g.joint.sum())) == (0, 0, n, 0)


def test_thresholds_out_of_range_are_refused() -> None:
    c = planted(1, 5)
    for bad in (0, 7):
        with pytest.raises(BadInput, match="supershingles"):
            b_graph(c, b_min=bad)
    with pytest.raises(BadInput, match="agreeing bits"):
        c_graph(c, c_min=385)


def test_identity_sets_and_empty_texts_are_set_aside() -> None:
    text = words(1, 60)
    first = page("https://a.example/1", "One", text)
    pages = [
        first,
        page("https://a.example/2", "One", text),
        page("https://b.example/3", "One", [*text, "more"]),
        page("https://b.example/3", "One", [*text, "later"]),
        page("https://b.example/4", "", []),
    ]
    pages += [
        type(first)("https://c.example/5", None),
        type(first)("https://c.example/6", b"%PDF-1", "application/pdf"),
    ]
    pages.append(type(first)("not a url", b"text"))
    c = crawl_of(pages).corpus
    assert c.urls == ["https://a.example/1", "https://b.example/3"]
    assert c.find("https://a.example/2") == 0
    assert c.find("HTTPS://A.example:443/2#part") == 0
    assert c.find("https://nowhere.example/") is None
    assert c.find("no url") is None
    counts = c.counts
    assert (counts.fetches, counts.rejected, counts.gone, counts.fetched_again) == (8, 1, 1, 1)
    assert (counts.opaque, counts.empty, counts.identity_sets, counts.repeats, counts.pages) == (1, 1, 1, 1, 2)


def test_the_graph_of_real_sketches_joins_releases() -> None:
    crawl = crawl_of(manual(items=3))
    g = b_graph(crawl.corpus)
    items = {
        (crawl.corpus.urls[a].rpartition("/")[2], crawl.corpus.urls[b].rpartition("/")[2]) for a, b, _, _ in rows(g)
    }
    assert items
    assert all(one == other for one, other in items)
