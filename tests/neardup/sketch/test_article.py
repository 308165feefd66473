"""The article, against every run of blocks added up."""

import random

import pytest

from neardup.sketch.one_page_content import article
from tests.neardup.sketch.sketch_inputs import blocks_of, chosen_by, layout_of, words_of
from tests.oracle import sketches as oracle


def chosen_by_kernel(words, title, links, blocks):
    return chosen_by(article, words, title, links, blocks)


@pytest.mark.kernel
@pytest.mark.parametrize("seed", range(30))
def test_any_layout_is_the_oracles(seed):
    rng = random.Random(seed)
    count = rng.choice((1, 30, 150))
    words = words_of(count, seed)
    blocks, links = layout_of(count, seed)
    title = rng.choice((0, 4)) if count > 4 else 0
    assert chosen_by_kernel(words, title, links, blocks) == oracle.article(words, title, set(links), blocks)


@pytest.mark.kernel
@pytest.mark.parametrize("seed", range(60))
def test_blocks_about_as_large_as_their_price(seed):
    # so that runs of equal worth come up, and blocks with a third in links
    rng = random.Random(seed)
    sizes = [rng.randint(3, 14) for _ in range(9)]
    words = [f"w{i}" for i in range(sum(sizes))]
    links = [i for i in range(len(words)) if rng.random() < rng.choice((0, 0.33, 0.55))]
    blocks = blocks_of(*sizes)
    assert chosen_by_kernel(words, 0, links, blocks) == oracle.article(words, 0, set(links), blocks)


@pytest.mark.kernel
def test_article_between_navigation_and_footer():
    blocks = blocks_of(5, 4, 6, 60, 45, 80, 3, 7, 5)
    words = [f"word{i}" for i in range(len(blocks))]
    links = [i for i, block in enumerate(blocks) if block in (1, 2, 7, 8)]
    assert {blocks[i] for i in chosen_by_kernel(words, 5, links, blocks)} == {3, 4, 5}


@pytest.mark.kernel
def test_a_short_block_within_the_text_is_of_it_and_related_links_are_not():
    blocks = blocks_of(60, 3, 12, 70, 6)
    links = [i for i, block in enumerate(blocks) if block == 2]
    words = [f"word{i}" for i in range(len(blocks))]
    assert {blocks[i] for i in chosen_by_kernel(words, 0, links, blocks)} == {0, 1, 3}


@pytest.mark.kernel
def test_short_pieces_after_an_article_are_left_out():
    # a name, a date and two buttons about each comment
    blocks = blocks_of(80, 90, *(1, 3, 12, 1, 1) * 4, 2, 8)
    words = [f"word{i}" for i in range(len(blocks))]
    assert {blocks[i] for i in chosen_by_kernel(words, 0, [], blocks)} == {0, 1}


@pytest.mark.kernel
def test_of_runs_of_equal_worth_the_first_counts():
    blocks = blocks_of(20, 20, 20)
    links = range(20, 40)
    words = [f"word{i}" for i in range(60)]
    assert {blocks[i] for i in chosen_by_kernel(words, 0, links, blocks)} == {0}


@pytest.mark.kernel
def test_a_page_of_one_block_is_its_own_content():
    words = [f"w{i}" for i in range(40)]
    assert chosen_by_kernel(words, 0, [], [7] * 40) == list(range(40))
    assert chosen_by_kernel(words, 4, [], [7] * 40) == list(range(4, 40))
    assert chosen_by_kernel(words, 0, range(14), [7] * 40) == []  # over a third lies in links
    assert chosen_by_kernel(words[:3], 0, [], [7] * 3) == [0, 1, 2]


@pytest.mark.kernel
def test_no_tokens_no_content():
    assert chosen_by_kernel([], 0, [], []) == []
    assert chosen_by_kernel(["only", "title"], 2, [], [0, 0]) == []
    assert chosen_by_kernel(["two", "menus"], 0, [0, 1], [0, 1]) == []
