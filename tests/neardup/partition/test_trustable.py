"""The two texts of a pair: windows, scripts, regions, and what is decided, against plain Python."""

import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup.kernels import alignment, trusting
from neardup.partition import Parameters, compare
from neardup.partition.texts import points
from neardup.partition.trustable import filtered, least_common, script
from tests.neardup.hostile import EXAMPLES, needs_jit
from tests.oracle import partition as oracle
from tests.oracle.lcs import fewest_runs, lcs

pytestmark = pytest.mark.filterwarnings("ignore:overflow")

TEXTS = st.text(alphabet="ab 羊", max_size=40)
WORDS = [f"{a}{b}" for a in ("wo", "fe", "ya", "lo", "wa", "sp") for b in ("ol", "lt", "rn", "om", "rp", "in", "dle")]


def words(count: int, seed: int) -> list[str]:
    return random.Random(seed).choices(WORDS, k=count)


def edited(text: list[str], share: float, seed: int) -> list[str]:
    rng = random.Random(seed)
    return [f"new{rng.randint(0, 999)}" if rng.random() < share else word for word in text]


@pytest.mark.kernel
@settings(max_examples=EXAMPLES, deadline=None)
@given(TEXTS, TEXTS, st.integers(1, 12))
def test_common_windows_are_kept(a, b, window):
    keep_a, keep_b = filtered(points(a), points(b), window)
    assert np.flatnonzero(keep_a).tolist() == oracle.kept(a, b, window)
    assert np.flatnonzero(keep_b).tolist() == oracle.kept(b, a, window)


@pytest.mark.kernel
def test_the_papers_own_example():
    a, b = points("abcabba"), points("cbabac")
    partner = np.empty(6, np.int32)
    assert alignment.align(a, b, 100, partner) == 5
    assert int((partner >= 0).sum()) == 4 == lcs("abcabba", "cbabac")


def is_common(a: str, b: str, partner: np.ndarray) -> bool:
    """Whether a script is a common subsequence of both texts."""
    matched = [(int(i), j) for j, i in enumerate(partner) if i >= 0]
    rising = all(one[0] < other[0] for one, other in pairwise(matched))
    return rising and all(a[i] == b[j] for i, j in matched)


@pytest.mark.kernel
@settings(max_examples=EXAMPLES, deadline=None)
@given(st.text("abc", max_size=30), st.text("abc", max_size=30), st.integers(0, 40))
def test_scripts_are_as_short_as_the_dynamic_program_says(a, b, limit):
    partner = np.empty(len(b), np.int32)
    shortest = len(a) + len(b) - 2 * lcs(a, b)
    found = alignment.align(points(a), points(b), limit, partner)
    assert found == (shortest if shortest <= limit else -1)
    if found >= 0:
        assert is_common(a, b, partner)
        assert int((partner >= 0).sum()) == lcs(a, b)


@pytest.mark.kernel
@settings(max_examples=EXAMPLES, deadline=None)
@given(st.text("abc", max_size=30), st.text("abc", max_size=30))
def test_of_equally_long_lcs_the_one_in_the_fewest_runs_is_taken(a, b):
    """The oracle's table has lengths and runs as pairs, over the whole of both texts."""
    found = script(points(a), points(b))
    assert [None if i < 0 else i for i in found.tolist()] == fewest_runs(a, b)
    assert script(points(a), points(b), lcs(a, b) + 1) is None


@pytest.mark.kernel
def test_scattered_matches_do_not_take_the_place_of_a_run():
    """Of the LCS of length 4, one is a run; Myers' path of furthest reach matches the first characters it meets."""
    assert script(points("waxbycz abcd"), points("abcd")).tolist() == [8, 9, 10, 11]
    assert script(points("abcd waxbycz"), points("abcd")).tolist() == [0, 1, 2, 3]


@needs_jit
@pytest.mark.parametrize("share", [0, 0.01, 0.3, 1])
def test_an_lcs_of_long_texts_has_the_oracles_length(share):
    text = words(150, 1)
    a, b = " ".join(text), " ".join(edited(text, share, 2))
    length = lcs(a, b)
    for least in (0, length):
        found = script(points(a), points(b), least)
        assert is_common(a, b, found)
        assert int((found >= 0).sum()) == length
    assert script(points(a), points(b), length + 1) is None


SCRIPTS = st.lists(st.integers(0, 4), max_size=60)


@pytest.mark.kernel
@settings(max_examples=EXAMPLES, deadline=None)
@given(SCRIPTS, st.sampled_from((0.0, 0.1, 0.3, 1.0)), st.integers(1, 16), st.integers(1, 2))
def test_regions_are_the_oracles(steps, slope, blocks, most):
    """steps: 0: a character that is not matched, else how far its partner is from the one before."""
    place, partner = 0, []
    for step in steps or [0]:
        place += step
        partner.append(place if step else -1)
    given_ = np.array(partner, np.int32)
    chosen = np.zeros((most, 2), np.int32)
    many, trusted = trusting.regions(given_, slope, blocks, most, chosen)
    found, inside = oracle.regions(partner, slope, blocks, most)
    assert [tuple(one) for one in chosen[:many].tolist()] == found
    assert trusted == inside


@pytest.mark.kernel
def test_slope_counts_strained_tokens():
    """README.md, step 7: characters that no window holds are edits where they stand."""
    same = "a common beginning of some length, "
    a, b = same + "0123456789" + same, same + "abcdefghij" + same
    found = compare(a, b, Parameters(slope_max=0.05, regions=1))
    assert found.by == "trustable"
    assert found.trusted == len(same)
    assert compare(a, b, Parameters(slope_max=0.5, regions=1)).trusted == 2 * len(same)
    assert compare(a, b, Parameters(slope_max=0.05)).trusted == 2 * len(same)


@needs_jit
@pytest.mark.parametrize(("share", "near"), [(0.0, True), (0.01, True), (0.5, False)])
def test_an_edited_text_is_a_near_duplicate_up_to_a_point(share, near):
    text = words(800, 3)
    found = compare(" ".join(text), " ".join(edited(text, share, 4)), Parameters())
    assert found.similar is near
    assert (found.resemblance > 0.28 or found.containment > 0.7) is near


@needs_jit
def test_a_text_that_is_quoted_whole_is_contained_wherever_it_stands():
    quoted, around = " ".join(words(120, 5)), " ".join(words(1500, 6))
    for text in (quoted + around, around + quoted, around[:3000] + quoted + around[3000:]):
        found = compare(text, quoted, Parameters())
        assert found.similar
        assert found.containment == 1.0
        assert found.resemblance < 0.28


@needs_jit
def test_common_sentences_all_over_two_texts_make_no_near_duplicate():
    """The paper's reason for trusting regions alone: an LCS of scattered pieces is long, too."""
    rng = random.Random(8)
    common = [" ".join(words(5, seed)) for seed in range(20)]
    a, b = (
        " ".join(f"{piece} {' '.join(words(rng.randint(4, 7), 1000 * side + i))}" for i, piece in enumerate(common))
        for side in (1, 2)
    )
    length = lcs(a, b)
    assert length / (len(a) + len(b) - length) > 0.28
    assert not compare(a, b, Parameters()).similar


@needs_jit
def test_parts_that_changed_places_need_position_independence():
    first, second = " ".join(words(250, 9)), " ".join(words(80, 10))
    a, b = first + " | " + second, second + " | " + first
    fixed, moved = (compare(a, b, Parameters(removals=removals)) for removals in (0, 4))
    assert moved.resemblance > 0.8 > 0.7 > fixed.resemblance
    assert fixed.regions == moved.regions


@needs_jit
def test_the_bound_on_lengths_decides_nothing_that_the_script_would_decide_otherwise():
    parameters = Parameters()
    for longer, shorter in ((1, 1), (10, 10), (100, 7), (10_000, 9999), (10_000, 1)):
        least = least_common(longer, shorter, parameters)
        for common in (least - 1, least):
            exceeds = common / (longer + shorter - common) > 0.28 or common / shorter > 0.7
            assert exceeds == (common == least)


@pytest.mark.kernel
@pytest.mark.parametrize(("a", "b"), [("", ""), ("", "a"), ("a", "b"), ("a", "ab"), ("羊", "毛毛")])
def test_texts_of_nothing_or_a_character(a, b):
    found = compare(a, b, Parameters())
    assert not found.similar
    assert (found.trusted, found.a, found.b) == (0, len(a), len(b))


@pytest.mark.kernel
@settings(max_examples=EXAMPLES, deadline=None)
@given(TEXTS, TEXTS, st.integers(0, 3))
def test_any_pair_is_decided_within_its_bounds(a, b, removals):
    parameters = Parameters(window_bytes=3, removals=removals)
    found = compare(a, b, parameters)
    assert 0 <= found.trusted <= min(len(a), len(b))
    assert 0 <= found.resemblance <= found.containment <= 1
    assert found.similar == (found.resemblance > 0.28 or found.containment > 0.7)
    assert compare(a, a, parameters).similar == (len(a) > 0)


@needs_jit
@pytest.mark.parametrize("text", ["a" * 10_000, "ab" * 5000, "羊" * 5000, "".join(map(chr, range(256, 9256)))])
def test_texts_made_to_be_slow_end(text):
    assert compare(text, text[1:] + "x", Parameters()).similar
    assert not compare(text, "y" * len(text), Parameters()).similar
    rng = random.Random(1)
    one, other = ("".join(rng.choices("ab", k=10_000)) for _ in range(2))  # every window is common
    assert compare(one, other, Parameters(window_bytes=2, removals=64)).kept_a == 10_000


def test_equal_sketches_are_matched_as_the_algorithm_would() -> None:
    """The short way for them, against a pair that differs in nothing but a character at the end."""
    for text in ("", "a", "abcabba" * 30):
        same = points(text)
        found = script(same, same.copy())
        assert found is not None
        assert found.tolist() == list(range(len(text)))
        longer = script(points(text + "!"), same)
        assert longer is not None
        assert longer.tolist() == found.tolist()
    assert script(points("ab"), points("ab"), 3) is None
