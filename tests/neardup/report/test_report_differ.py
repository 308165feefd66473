"""Differences between two texts: right, readable, and bounded on hostile input."""

import difflib
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.report.differ import GAP_EDITS_MAX, Difference, TextChange, compare_texts, marks, text_words
from neardup.report.passages import CONTEXT_WORDS, passages, plain
from tests.oracle.lcs import lcs

LETTERS = st.lists(st.sampled_from("abcd"), max_size=40)


def of(left: str, right: str) -> Difference:
    return compare_texts(text_words(left), text_words(right))


def merged(difference: Difference) -> tuple[list[str], list[str]]:
    """Both texts with their changed words left out: equal if and only if what is unmarked is aligned."""
    kept = []
    for side, words in ((0, difference.left.words), (2, difference.right.words)):
        out, at = [], 0
        for change in difference.changes:
            out += words[at : change[side]]
            at = change[side + 1]
        kept.append(out + words[at:])
    return kept[0], kept[1]


@given(LETTERS, LETTERS)
def test_unmarked_text_is_equal_and_in_order(a: list[str], b: list[str]) -> None:
    difference = of(" ".join(a), " ".join(b))
    left, right = merged(difference)
    assert left == right
    assert not difference.coarse
    assert difference.removed == len(a) - len(left)
    assert difference.added == len(b) - len(right)
    assert all(c.a0 < c.a1 or c.b0 < c.b1 for c in difference.changes)


@given(LETTERS, LETTERS)
def test_without_anchors_the_edits_are_fewest(a: list[str], b: list[str]) -> None:
    # Two-word alphabets of one repeated run give no anchors; then Myers' result is a longest common subsequence.
    a, b = ["x" if w in "ab" else "y" for w in a], ["x" if w in "ab" else "y" for w in b]
    runs = [tuple(words[i : i + 3]) for words in (a, b) for i in range(len(words) - 2)]
    once = [run for run in set(runs) if runs.count(run) == 2]
    difference = of(" ".join(a), " ".join(b))
    kept = len(merged(difference)[0])
    longest = lcs(a, b)
    assert kept <= longest
    if not once:
        assert kept == longest


def test_a_changed_word_and_an_inserted_line() -> None:
    difference = of("The broker reads the log.\nEnd of it", "The broker writes the log.\nA new line.\nEnd of it")
    assert difference.changes == [TextChange(2, 3, 2, 3), TextChange(5, 5, 5, 8)]
    shown = passages(difference).shown
    assert plain(shown[0].left) == "The broker [-reads-] the log. ¶ End of it"
    assert plain(shown[0].inline) == "The broker [-reads-] [+writes+] the log. ¶ [+A new line+]. ¶ End of it"
    assert plain(shown[0].right) == "The broker [+writes+] the log. ¶ [+A new line+]. ¶ End of it"


def test_case_and_punctuation_are_no_differences() -> None:
    assert of("Hello, World!", "hello world").changes == []


def test_scripts_without_spaces_differ_by_character() -> None:
    difference = of("北京大学", "北京天学")
    assert (difference.removed, difference.added) == (1, 1)
    assert plain(passages(difference).shown[0].left) == "北京[-大-]学"


def test_marks_belong_to_their_letter() -> None:
    assert text_words("cafe\u0301 हिन्दी").words[0] == "cafe\u0301"


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("a " * 100_000, "b " * 100_000),
        ("a b " * 60_000, "b a " * 60_000),
        ("x" * 1_000_000, "x" * 1_000_000 + "y"),
        (" " * 1_000_000, "\n" * 1_000_000),
        ("字漢" * 100_000, "漢字" * 100_000),
        ("e" + "\u0301" * 1_000_000, "e"),
    ],
    ids=["nothing common", "shifted", "one word", "white space", "han", "marks"],
)
def test_hostile_texts_give_short_passages(left: str, right: str) -> None:
    first, second = text_words(left), text_words(right)
    difference = compare_texts(first, second)
    shown = passages(difference)
    written = sum(len(s.text) for p in shown.shown for s in (*p.left, *p.right))
    assert written < 40_000


def test_the_budget_is_kept_and_reported() -> None:
    chance = random.Random(5)
    a, b = ([chance.choice("abcdefgh") for _ in range(5000)] for _ in range(2))
    difference = of(" ".join(a), " ".join(b))
    assert difference.coarse
    coarse = next(c for c in difference.changes if c.coarse)
    assert coarse.a1 - coarse.a0 > GAP_EDITS_MAX // 2
    # In a coarse change words that both sides hold are not marked.
    assert marks(difference, coarse) == ([False] * (coarse.a1 - coarse.a0), [False] * (coarse.b1 - coarse.b0))


def test_many_scattered_changes_are_found_in_order() -> None:
    words = [f"w{i}" for i in range(20_000)]
    other = list(words)
    for i in range(0, 20_000, 50):
        other[i] = "changed"
    difference = of(" ".join(words), " ".join(other))
    assert (len(difference.changes), difference.removed, difference.added) == (400, 400, 400)
    shown = passages(difference)
    assert len(shown.shown) == 6
    assert shown.more == 394


def test_as_close_as_difflib_on_shuffled_sentences() -> None:
    chance = random.Random(3)
    lines = [" ".join(chance.choice(["one", "two", "six", "ten"]) for _ in range(8)) for _ in range(40)]
    other = [line for line in lines if chance.random() < 0.9]
    difference = of("\n".join(lines), "\n".join(other))
    matcher = difflib.SequenceMatcher(None, difference.left.words, difference.right.words, autojunk=False)
    assert len(merged(difference)[0]) >= sum(block.size for block in matcher.get_matching_blocks())


def test_a_cut_text_does_not_count_its_missing_end() -> None:
    words = " ".join(str(i) for i in range(2000))
    left, right = text_words("extra words here " + words, 4000), text_words(words, 4000)
    assert left.cut
    assert right.cut
    difference = compare_texts(left, right)
    assert (difference.removed, difference.added) == (3, 0)
    shown = passages(difference)
    assert plain(shown.shown[0].inline).startswith("[-extra words here-] 0 1 2")
    assert shown.same_after == len(left.words) - 3 - CONTEXT_WORDS


def test_passages_at_the_end_of_cut_texts() -> None:
    for extra in range(1, 40):
        words = [f"{i:03}" for i in range(400)]
        left = text_words(" ".join(["extra"] * extra + words[:-3] + ["left"]), 1000)
        right = text_words(" ".join(words[:200] + ["right"] * 3 + words[200:]), 1000)
        for first, second in ((left, right), (right, left)):
            shown = passages(compare_texts(first, second), count_max=100)
            assert shown.more == 0
            assert shown.same_after >= 0


@given(LETTERS, LETTERS, st.integers(0, 3))
def test_passages_hold_every_change_and_all_words_around_them(a: list[str], b: list[str], context: int) -> None:
    difference = of(" ".join(a), " ".join(b))
    shown = passages(difference, context=context, count_max=100)
    for words, side in ((a, "left"), (b, "right")):
        count = sum(len("".join(s.text for s in getattr(one, side)).split()) for one in shown.shown)
        left_out = sum(one.same_before for one in shown.shown)
        assert count + left_out + shown.same_after == len(words)
    assert sum(len(s.text.split()) for one in shown.shown for s in one.left if s.sign) == difference.removed
    assert sum(len(s.text.split()) for one in shown.shown for s in one.right if s.sign) == difference.added


def test_equal_texts_show_their_beginning() -> None:
    difference = of("one two three", "one two three")
    shown = passages(difference)
    assert plain(shown.shown[0].left) == "one two three"
    assert (shown.more, shown.same_after) == (0, 0)


def test_empty_texts() -> None:
    assert of("", "").changes == []
    assert of("", "a b").changes == [TextChange(0, 0, 0, 2)]
