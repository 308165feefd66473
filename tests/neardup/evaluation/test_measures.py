"""Precision, recall, F1 and their intervals; the knee; t for equal correct pairs."""

import numpy as np
import pytest

from neardup.evaluation.ablation_tables import best_threshold
from neardup.evaluation.choices import Cutoff, EqualCorrect, _equal, _knee, curve, find_knee
from neardup.evaluation.labels import Judgement, label_of
from neardup.evaluation.measures import measure
from tests.neardup.evaluation.crawl import crawl_of, manual


def masks(right: int, wrong: int, missed: int, refused: int) -> tuple[np.ndarray, np.ndarray]:
    accepted = [True] * (right + wrong) + [False] * (missed + refused)
    correct = [True] * right + [False] * wrong + [True] * missed + [False] * refused
    return np.array(accepted, bool), np.array(correct, bool)


def test_known_counts() -> None:
    found = measure(*masks(60, 20, 40, 80), seed=1)
    assert (found.pairs, found.correct, found.accepted) == (200, 100, 80)
    assert found.precision.value == 0.75
    assert found.recall.value == 0.6
    assert found.f1.value == pytest.approx(2 / 3)
    assert found == measure(*masks(60, 20, 40, 80), seed=1)


def test_intervals_are_about_as_wide_as_the_binomials() -> None:
    found = measure(*masks(600, 200, 400, 800), seed=3, rounds=4000)
    half = 1.96 * np.sqrt(0.75 * 0.25 / 800)
    assert found.precision.low == pytest.approx(0.75 - half, abs=0.006)
    assert found.precision.high == pytest.approx(0.75 + half, abs=0.006)
    wider = measure(*masks(6, 2, 4, 8), seed=3)
    assert wider.precision.high - wider.precision.low > 4 * half


@pytest.mark.parametrize(
    ("counts", "defined"),
    [
        ((0, 0, 0, 0), (False, False, False)),
        ((5, 0, 5, 0), (False, True, False)),  # nothing incorrect: any rule is precise
        ((0, 5, 0, 5), (False, False, False)),
        ((0, 0, 5, 5), (False, True, True)),  # accepts nothing
    ],
)
def test_what_is_not_defined_is_not_told(counts: tuple[int, int, int, int], defined: tuple[bool, ...]) -> None:
    found = measure(*masks(*counts), seed=1)
    assert tuple(one.value is not None for one in (found.precision, found.recall, found.f1)) == defined


def test_the_knee_is_where_more_precision_starts_to_cost() -> None:
    points = [Cutoff(300 + i, 100 - i, 0.4 + 0.01 * i, 1 - 0.001 * i) for i in range(50)]
    points += [Cutoff(350 + i, 50 - i, 0.9 + 0.001 * i, 0.95 - 0.02 * i) for i in range(40)]
    assert _knee(points) == 350
    assert _knee(points[:2]) is None
    assert _knee([Cutoff(300 + i, 10, 0.5, 1.0) for i in range(9)]) is None
    straight = [Cutoff(300 + i, 100, 0.5 + i / 64, 1 - i / 64) for i in range(17)]
    assert _knee(straight) is None


def test_halves_share_nothing_and_are_the_seeds() -> None:
    crawl = crawl_of(manual())
    pairs = crawl.study().b
    urls = crawl.corpus.urls
    labels = [label_of(urls[a], urls[b], Judgement.CORRECT) for a, b in zip(pairs.a, pairs.b, strict=True)]
    study = crawl.study(labels)
    knee = find_knee(study)
    assert not (knee.s1 & knee.s2).any()
    assert abs(int(knee.s1.sum()) - int(knee.s2.sum())) <= 1
    assert (knee.s1 | knee.s2).all()
    assert (find_knee(crawl.study(labels)).s1 == knee.s1).all()
    assert (find_knee(crawl.study(labels, seed=9)).s1 != knee.s1).any()
    assert knee.chosen is None  # all are correct: precision never moves
    kept = [point.kept for point in curve(study, knee.s1)]
    assert kept == sorted(kept, reverse=True)
    assert kept[0] == int(knee.s1.sum())


def test_t_is_where_c_has_as_many_correct_pairs() -> None:
    table = [(384, 10, 9.0), (383, 30, 25.0), (382, 70, 60.0), (381, 90, None)]
    assert _equal(26.0, table).t == 383
    assert _equal(58.0, table).t == 382
    assert _equal(9.0, table).t == 384
    assert _equal(100.0, table) == EqualCorrect(None, 100.0, table, _equal(100.0, table).why_not)
    assert "382" in _equal(100.0, table).why_not
    assert _equal(None, table).t is None
    assert _equal(0.0, table).t is None
    assert _equal(5.0, [(384, 3, None)]).t is None


def test_the_best_threshold_is_the_lowest_of_the_best() -> None:
    scores = np.array([0.1, 0.4, 0.6, 0.9])
    assert best_threshold(scores, np.array([False, False, True, True])) == 0.6
    assert best_threshold(scores, np.array([True, True, True, True])) is None
    assert best_threshold(np.zeros(2), np.array([True, False])) is None
    assert best_threshold(np.empty(0), np.empty(0, bool)) is None
