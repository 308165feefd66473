"""The measurements of Huang 2008: rates and means on pairs and sets whose figures are known."""

import random
from dataclasses import replace

import pytest

from neardup.evaluation import huang
from neardup.evaluation.labels import Judgement, label_of
from neardup.evaluation.sections import shown
from tests.oracle.lcs import lcs

WORDS = ["wool", "felt", "yarn", "loom", "warp", "weft", "spindle", "dye", "carding", "fleece", "shears", "bobbin"]


def text(seed: int, count: int = 60) -> str:
    rng = random.Random(seed)
    return "\n".join(f"{' '.join(rng.choices(WORDS, k=7))} {seed} {number}." for number in range(count))


def rows(section: huang.Section, at: int = 0) -> dict:
    table = section.tables[at]
    return {row[0]: dict(zip(table.columns, row, strict=True)) for row in table.rows}


def edited(seed: int) -> str:
    lines = text(seed).split("\n")
    lines[30] = "a line that stands in the edited text alone."
    return "\n".join(lines)


NEAR = [huang.TextPair(text(i), edited(i), near=True, same_item=True) for i in range(4)]
APART = [huang.TextPair(text(i), text(100 + i), near=False, same_item=False) for i in range(4)]


def test_figure_6_has_sixteen_points_by_documents_and_by_pairs() -> None:
    texts = [one for pair in NEAR + APART for one in (pair.a, pair.b)]
    exhausted = huang.exhaust(list(dict.fromkeys(texts)), drawn=5, clock=float)
    found = rows(huang.signature_section(NEAR + APART, exhausted))
    assert list(found) == [7 * rotations for rotations in range(1, 17)]
    for rates in ("documents", "pairs"):
        coverage = [one[f"coverage rate, {rates}"] for one in found.values()]
        assert coverage == sorted(coverage)
        assert coverage[-1] == found[112][f"trustable rate, {rates}"] == 1.0


def test_coverage_is_of_the_near_duplicates_that_exhaustive_comparison_finds() -> None:
    """A near-duplicate without a signature in common counts: one document has 1 of 2, the other its only one."""
    exhausted = huang.Exhausted(5, [[(True, 3), (True, huang._NEVER), (False, 1)], [(True, 1)], [(False, 2)]])
    found = rows(huang.signature_section([], exhausted))
    assert found[7]["coverage rate, documents"] == pytest.approx((0 + 1) / 2)
    assert found[21]["coverage rate, documents"] == pytest.approx((1 / 2 + 1) / 2)
    assert found[7]["trustable rate, documents"] == pytest.approx((0 + 1) / 2)
    assert found[21]["trustable rate, documents"] == pytest.approx((1 / 2 + 1 + 0) / 3)
    assert found[112]["coverage rate, documents"] == found[21]["coverage rate, documents"]


def test_rates_by_documents_have_an_interval_over_the_drawn_documents() -> None:
    """Half of the documents have all of their near-duplicates covered, half none; four times as many tell more."""
    widths = []
    for times in (5, 20):
        documents = [[(True, 1)], [(True, huang._NEVER), (False, 1)]] * times
        row = rows(huang.signature_section([], huang.Exhausted(5, documents)))[112]
        for rate in ("coverage", "trustable"):
            low, high = map(float, row[f"{rate} rate, documents, 95%"].split("-"))
            assert low < row[f"{rate} rate, documents"] == 0.5 < high
        widths.append(high - low)
    assert widths[1] < 0.6 * widths[0]
    none = rows(huang.signature_section(NEAR, huang.Exhausted(5)))[7]
    assert none["coverage rate, documents"] is none["coverage rate, documents, 95%"] is None


def test_texts_are_compared_exhaustively() -> None:
    texts = [text(1), edited(1), text(2)]
    exhausted = huang.exhaust(texts, drawn=3, clock=float)
    assert exhausted.pairs == 6
    assert [[near for near, _ in found] for found in exhausted.documents] == [[True], [True], []]


def test_rates_by_pairs_are_of_the_collection_not_of_the_sample() -> None:
    """Half of the sample is near; of the collection, four in twelve."""
    shared = [huang.TextPair(text(i), edited(i), near=False, same_item=False, weight=2.0) for i in range(4)]
    found = rows(huang.signature_section(NEAR + shared, huang.Exhausted(2)))
    assert found[112]["trustable rate, pairs"] == pytest.approx(4 / 12)


def test_coverage_by_pairs_is_weighted() -> None:
    """Of four near pairs of the collection, one has a signature in common; the sample has two of these pairs."""
    apart = huang.TextPair(text(1), text(200), near=True, same_item=True, weight=3.0)
    found = rows(huang.signature_section([NEAR[0], apart], huang.Exhausted(2)))
    assert found[112]["coverage rate, pairs"] == pytest.approx(1 / 4)
    assert found[112]["trustable rate, pairs"] == 1.0


def test_the_papers_figures_are_shown_with_all_of_their_digits() -> None:
    """.975 and .948: two decimals would show others."""
    windows, slopes = huang.window_section(NEAR + APART), huang.slope_section([NEAR + APART])
    printed = [
        shown(cell, table.kinds[at])
        for table in (*windows.tables, *slopes.tables)
        for row in table.rows
        for at, cell in enumerate(row)
        if at in table.paper and cell is not None
    ]
    assert printed == ["0.87", "0.975", "0.948"]


def test_wider_windows_strain_more_away_and_reserve_less() -> None:
    found = rows(huang.window_section(NEAR + APART))
    away = [one["strain-away rate"] for one in found.values()]
    assert away == sorted(away)
    assert away[0] < 0.2 < 0.5 < away[-1]
    assert found[16]["paper: strain-away"] == 0.87


def test_the_reserve_rate_is_of_the_tlcs() -> None:
    """The second half shares scattered words alone, which belong to the LCS and to no trustable region."""
    half, second, other = (text(seed, count=20) for seed in (1, 2, 3))
    pair = huang.TextPair(f"{half}\n{second}", f"{half}\n{other}", near=True)
    whole, sketch = (
        huang.compare(pair.a, pair.b, huang.Parameters(window_bytes=window, resemblance_min=0)) for window in (1, 100)
    )
    rate = rows(huang.window_section([pair]))[100]["reserve rate"]
    assert rate == sketch.trusted / whole.trusted != sketch.kept_b / lcs(pair.a, pair.b)


def test_precision_at_a_recall_needs_truth_and_holds_the_recall() -> None:
    assert huang.slope_section([[huang.TextPair("a", "b", near=True)]]).missing
    assert huang.slope_section([NEAR]).missing
    found = rows(huang.slope_section([NEAR + APART]))
    assert all(one["recall"] >= 0.9 for one in found.values())
    assert found[0.1]["precision at recall 0.90"] == 1.0


def test_figure_8_counts_documents_not_pairs() -> None:
    """A document with one wrong pair and one with three right ones: precision 1/2, though three of four are right."""
    wrong = [huang.TextPair(text(9), text(9), near=True, same_item=False)]
    found = rows(huang.slope_section([wrong, NEAR[:3]]))
    assert found[0.1]["precision at recall 0.90"] == 0.5


def test_a_recall_is_reached_by_the_highest_threshold_and_equal_scores_go_together() -> None:
    found = [(0.9, 1, True), (0.8, 1, False), (0.8, 2, True), (0.8, 3, False), (0.5, 2, False)]
    assert huang.at_recall(found) == (pytest.approx((1 / 2 + 1 + 0) / 3), 1.0, 0.8)


def test_steps_are_of_the_collection_and_stand_beside_the_paper() -> None:
    pairs = [
        *(huang.TextPair(text(i), text(50 + i), False, False, weight=3.0, step="length") for i in range(2)),
        huang.TextPair(text(3), text(60), False, True, weight=3.0, step="edits"),
        *NEAR,
        huang.TextPair(text(4), text(5), True, False),
    ]
    section = huang.step_section(
        pairs, huang.Exhausted(20, [[], []], seconds=1.9, signing=0.001), documents=20, clock=float
    )
    found = rows(section)
    left = [(one["pairs left"], one["of one item"]) for one in found.values()]
    assert left == [(14, 0.5), (8, pytest.approx(7 / 8)), (5, 0.8), (5, 0.8)]
    assert [one["paper: similar"] for one in found.values()] == [0.67, None, None, 0.95]
    costs = list(rows(section, 1).values())
    assert [one["pairs"] for one in costs] == [14, 190, 14]
    assert costs[1]["processor seconds"] == pytest.approx(190 * 1.9 / 38)
    assert [one["ratio"] for one in costs] == [1.0, pytest.approx(190 * 0.05 / 0.02), 1.0]


def test_false_positives_are_counted_by_kind() -> None:
    kinds = [("series",), ("series",), ("boilerplate", "transitivity"), ("main_item",)]
    made = [
        label_of(f"https://a.example/{at}", "https://b.example/", Judgement.INCORRECT, reasons=reasons, sample="sets")
        for at, reasons in enumerate(kinds)
    ]
    made.append(replace(made[0], sample="B"))
    found = rows(huang.mistake_section(made))
    assert {kind: (one["pairs"], one["paper: share"]) for kind, one in found.items()} == {
        "series": (2, 0.60),
        "boilerplate": (1, 0.20),
        "small replies": (0, 0.15),
        "transitivity": (1, 0.05),
        "another or none": (1, None),
    }
    assert huang.mistake_section(made[-1:]).missing


def test_precision_and_recall_are_means_over_documents() -> None:
    items = {"a": "x", "b": "x", "c": "x", "d": "y"}
    assert huang.measure({"a": 1, "b": 1, "c": 2, "d": 1}, items) == (
        pytest.approx((1 / 2 + 1 / 2 + 0) / 3),
        pytest.approx((1 / 2 + 1 / 2 + 0) / 3),
    )
    assert huang.measure({"a": 1, "b": 2}, {"a": "x", "b": "y"}) == (None, None)


def test_recall_is_relative_to_simhash64() -> None:
    items = {"a": "x", "b": "x", "c": "y", "d": "y"}
    systems = {
        "tlcs": huang.SystemSets({"a": 1, "b": 1, "c": 2, "d": 2}, 3.0),
        "simhash64": huang.SystemSets({"a": 1, "b": 1, "c": 2, "d": 3}, 1.0),
    }
    found = rows(huang.system_section(systems, items, {"a": "s", "b": "t", "c": "s", "d": "s"}))
    assert found["tlcs"]["relative recall"] == 2.0
    assert found["simhash64"]["relative recall"] == 1.0
    assert found["tlcs"]["same site: precision"] == 1.0
    assert found["tlcs"]["relative time"] == 3.0
    assert huang.system_section(systems, {}, {}).missing
