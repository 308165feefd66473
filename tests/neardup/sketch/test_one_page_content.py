"""The main content, against the paper's tree on exact fractions."""

import random

import pytest

from neardup.sketch.one_page_content import main_content
from tests.neardup.sketch.sketch_inputs import blocks_of, chosen_by, layout_of, words_of
from tests.oracle import sketches as oracle


def chosen_by_kernel(words, title, links, blocks):
    return chosen_by(main_content, words, title, links, blocks)


@pytest.mark.kernel
@pytest.mark.parametrize("seed", range(30))
def test_any_layout_is_the_oracles(seed):
    rng = random.Random(seed)
    count = rng.choice((1, 30, 150))
    words = words_of(count, seed)
    if seed % 3 == 0:
        words = ["щука" + word for word in words]  # characters count, not bytes
    blocks, links = layout_of(count, seed)
    title = rng.choice((0, 4)) if count > 4 else 0
    assert chosen_by_kernel(words, title, links, blocks) == oracle.content(words, title, set(links), blocks)


@pytest.mark.kernel
@pytest.mark.parametrize("seed", range(60))
def test_densities_near_the_limits(seed):
    # blocks of 3 to 14 words of a length that puts them on both sides of a line of 80 characters
    rng = random.Random(seed)
    sizes = [rng.randint(3, 14) for _ in range(9)]
    words = ["x" * rng.randint(5, 8) for _ in range(sum(sizes))]
    links = [i for i in range(len(words)) if rng.random() < rng.choice((0, 0.33, 0.55))]
    blocks = blocks_of(*sizes)
    assert chosen_by_kernel(words, 0, links, blocks) == oracle.content(words, 0, set(links), blocks)


@pytest.mark.kernel
def test_article_between_navigation_and_footer():
    blocks = blocks_of(5, 4, 6, 60, 45, 80, 3, 7, 5)
    words = [f"word{i}" for i in range(len(blocks))]
    links = [i for i, block in enumerate(blocks) if block in (1, 2, 7, 8)]
    chosen = {blocks[i] for i in chosen_by_kernel(words, 5, links, blocks)}
    assert {4, 5} <= chosen  # the paper's tree wants denser text after the first block behind links
    assert not {0, 1, 2, 7, 8} & chosen


@pytest.mark.kernel
def test_a_density_of_exactly_nine_is_not_over_nine():
    words = ["x" * 8] * 17 + ["x" * 7]  # 18 words in 160 characters
    for last, chosen in ((7, []), (6, list(range(2, 20)))):
        page = ["ab", "cd", *words[:-1], "x" * last, "ef", "gh"]
        blocks = blocks_of(2, 18, 2)
        assert [i for i in chosen_by_kernel(page, 0, [], blocks) if 2 <= i < 20] == chosen
        assert chosen_by_kernel(page, 0, [], blocks) == oracle.content(page, 0, set(), blocks)


@pytest.mark.kernel
def test_a_page_of_one_block_is_its_own_content():
    words = [f"w{i}" for i in range(40)]
    assert chosen_by_kernel(words, 0, [], [7] * 40) == list(range(40))
    assert chosen_by_kernel(words, 4, [], [7] * 40) == list(range(4, 40))
    assert chosen_by_kernel(words, 0, range(14), [7] * 40) == []  # over a third lies in links


@pytest.mark.kernel
def test_no_tokens_no_content():
    assert chosen_by_kernel([], 0, [], []) == []
    assert chosen_by_kernel(["only", "title"], 2, [], [0, 0]) == []
