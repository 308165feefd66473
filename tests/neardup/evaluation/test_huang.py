"""The measurements of Huang 2008: rates and means on pairs and sets whose figures are known."""

import random

import pytest

from neardup.evaluation import huang

WORDS = ["wool", "felt", "yarn", "loom", "warp", "weft", "spindle", "dye", "carding", "fleece", "shears", "bobbin"]


def text(seed: int, count: int = 60) -> str:
    rng = random.Random(seed)
    return "\n".join(f"{' '.join(rng.choices(WORDS, k=7))} {seed} {number}." for number in range(count))


def rows(section: huang.Section) -> dict:
    (table,) = section.tables
    return {row[0]: dict(zip(table.columns, row, strict=True)) for row in table.rows}


def edited(seed: int) -> str:
    lines = text(seed).split("\n")
    lines[30] = "a line that stands in the edited text alone."
    return "\n".join(lines)


NEAR = [huang.TextPair(text(i), edited(i), near=True, same_item=True) for i in range(4)]
APART = [huang.TextPair(text(i), text(100 + i), near=False, same_item=False) for i in range(4)]


def test_more_signatures_cover_more_and_are_trusted_less_or_equally() -> None:
    found = rows(huang.signature_section(NEAR + APART))
    assert list(found) == [7, 14, 28, 56, 112]
    assert found[112]["coverage rate"] == 1.0
    assert found[112]["trustable rate"] == 1.0
    assert [one["coverage rate"] for one in found.values()] == sorted(one["coverage rate"] for one in found.values())


def test_wider_windows_strain_more_away_and_reserve_less() -> None:
    found = rows(huang.window_section(NEAR + APART))
    away = [one["strain-away rate"] for one in found.values()]
    reserved = [one["reserve rate"] for one in found.values()]
    assert away == sorted(away)
    assert reserved == sorted(reserved, reverse=True)
    assert away[0] < 0.2 < 0.5 < away[-1]
    assert reserved[0] > 0.99
    assert found[16]["paper: strain-away"] == 0.87


def test_precision_at_a_recall_needs_truth_and_holds_the_recall() -> None:
    assert huang.slope_section([huang.TextPair("a", "b", near=True)]).missing
    assert huang.slope_section(NEAR).missing
    found = rows(huang.slope_section(NEAR + APART))
    assert all(one["recall"] >= 0.9 for one in found.values())
    assert found[0.1]["precision at recall 0.90"] == 1.0
    wrong = [huang.TextPair(text(9), text(9), near=True, same_item=False)]
    assert rows(huang.slope_section(NEAR + APART + wrong))[0.1]["precision at recall 0.90"] == 0.8


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
    assert huang.system_section(systems, {}, {}).missing
