"""Precision, recall, F1 and their intervals; the knee; t for equal correct pairs."""

from dataclasses import replace

import numpy as np
import pytest

from neardup.evaluation.graphs import c_graph_of_all
from neardup.evaluation.henzinger_choices import Cutoff, EqualCorrect, _equal, _knee, curve, equal_correct, find_knee
from neardup.evaluation.henzinger_variants import best_threshold
from neardup.evaluation.labels import Judgement, Label, label_of
from neardup.evaluation.measures import mean_share, measure
from neardup.evaluation.sampling import SAME_SITE, TWO_SITES, draw
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


def test_the_interval_of_a_mean_is_about_as_wide_as_its_standard_error() -> None:
    shares = np.random.default_rng(4).random(500)
    found = mean_share(shares.tolist(), seed=3, rounds=4000)
    half = 1.96 * shares.std() / np.sqrt(500)
    assert found.value == pytest.approx(shares.mean())
    assert found.low == pytest.approx(shares.mean() - half, abs=0.003)
    assert found.high == pytest.approx(shares.mean() + half, abs=0.003)
    assert found == mean_share(shares.tolist(), seed=3, rounds=4000)


def test_a_few_equal_shares_leave_room_for_others() -> None:
    low, high = mean_share([1.0] * 5, seed=1)[1:]
    assert (low < 0.95, high) == (True, 1.0)
    assert mean_share([1.0] * 500, seed=1).low > 0.99
    assert mean_share([], seed=1) == (None, None, None)


@pytest.mark.parametrize(
    ("counts", "defined"),
    [
        ((0, 0, 0, 0), (False, False, False)),
        ((5, 0, 5, 0), (False, True, False)),  # nothing incorrect: any rule is precise
        ((0, 5, 0, 5), (False, False, False)),
        ((0, 0, 5, 5), (False, True, True)),  # accepts nothing
    ],
)
def test_undefined_measures_are_not_reported(counts: tuple[int, int, int, int], defined: tuple[bool, ...]) -> None:
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


def test_few_errors_still_leave_doubt() -> None:
    found = measure(*masks(10, 0, 5, 30), seed=1)
    assert found.precision.value == found.precision.high == 1
    assert 0.65 < found.precision.low < 0.9  # an exact interval of 10 of 10 begins at .69
    assert measure(*masks(1000, 0, 5, 300), seed=1).precision.low > 0.995


def test_intervals_cover_the_truth_as_often_as_they_say() -> None:
    """Each line: a number of pairs, and how likely one is right, wrong, missed, rightly refused."""
    rng = np.random.default_rng(5)
    for n, shares in (
        (400, (0.35, 0.05, 0.1, 0.5)),
        (50, (0.48, 0.01, 0.01, 0.5)),
        (60, (0.05, 0.2, 0.1, 0.65)),
    ):
        right, wrong, missed, _ = shares
        truth = right / (right + wrong), right / (right + missed), 2 * right / (2 * right + wrong + missed)
        held, values = np.zeros(3), np.zeros(3)
        for seed in range(250):
            found = measure(*masks(*rng.multinomial(n, shares).tolist()), seed=seed, rounds=300)
            for i, (one, wanted) in enumerate(zip((found.precision, found.recall, found.f1), truth, strict=True)):
                if one.low is not None and one.high is not None:
                    values[i] += 1
                    held[i] += one.low <= wanted <= one.high
        assert (held / values >= 0.9).all(), (n, shares, held / values)


def test_pairs_that_hang_together_are_drawn_together() -> None:
    """Items of a rule's liking and others, with one pair or with 36 each."""
    rng = np.random.default_rng(8)
    truth, held = 0.5 * 0.98 + 0.5 * 0.6, np.zeros(2)
    for seed in range(150):
        groups = np.repeat(np.arange(60), np.tile([1, 36], 30))
        right = rng.random(len(groups)) < np.where(rng.random(60) < 0.5, 0.98, 0.6)[groups]
        correct = np.append(np.ones(len(groups), bool), np.zeros(200, bool))
        accepted, groups = np.append(right, np.zeros(200, bool)), np.append(groups, np.arange(100, 300))
        for i, values in enumerate((groups, None)):
            recall = measure(accepted, correct, seed=seed, rounds=300, groups=values).recall
            held[i] += recall.low <= truth <= recall.high
    assert held[0] / 150 >= 0.88
    assert held[1] / 150 < 0.6


def test_single_pairs_may_be_marked_and_many_groups_share_blocks() -> None:
    given = masks(60, 20, 40, 80)
    assert measure(*given, seed=1, groups=np.arange(200)) == measure(*given, seed=1)
    many = masks(6000, 2000, 4000, 8000)
    apart, pairs = (measure(*many, seed=1, groups=np.arange(20_000) // size).recall for size in (1, 2))
    assert pairs.high - pairs.low > 1.2 * (apart.high - apart.low)
    assert pairs.low < 0.6 < pairs.high


def test_the_groups_of_labelled_pairs() -> None:
    crawl = crawl_of(manual(items=6, sites=("manual.example",)))
    urls = crawl.corpus.urls
    values = [(0, 1, "correct"), (1, 2, "correct"), (3, 4, "incorrect"), (2, 5, "incorrect"), (4, 6, "correct")]
    study = crawl.study([label_of(urls[a], urls[b], Judgement(what)) for a, b, what in values])
    found = dict(zip(zip(study.labels.a, study.labels.b, strict=True), study.groups.tolist(), strict=True))
    assert found == {(0, 1): 0, (1, 2): 0, (3, 4): 3, (2, 5): 0, (4, 6): 4}


def test_t_and_the_cutoff_of_a_crawl_small_enough_to_count() -> None:
    """All pairs of both graphs are labelled, so the estimates are counts, and the choices can be made by hand."""
    crawl = crawl_of(manual(items=30))
    graphs, urls = crawl.study(), crawl.corpus.urls
    assert graphs.wide is not None
    wide = c_graph_of_all(crawl.corpus, c_min=340)
    levels = {(a, b): (0, c) for a, b, c in zip(wide.a.tolist(), wide.b.tolist(), wide.c_similarity, strict=True)}
    b = graphs.b
    for one, other, level, c in zip(b.a.tolist(), b.b.tolist(), b.b_similarity, b.c_similarity, strict=True):
        levels[one, other] = level, c
    correct = {pair: (7 * pair[0] + pair[1]) % 5 > 0 for pair in levels}

    def label(pair: tuple[int, int], by_site: bool = False) -> Label:
        level, c = levels[pair]
        samples = [name for name, drawn in (("B", level >= 2), ("C", c >= 372), ("wide", c >= 340)) if drawn]
        site = TWO_SITES if crawl.corpus.site[pair[0]] != crawl.corpus.site[pair[1]] else SAME_SITE
        values = Judgement.CORRECT if correct[pair] else Judgement.INCORRECT
        sample = " + ".join(f"{name}: {site}" if by_site else name for name in samples)
        return label_of(urls[pair[0]], urls[pair[1]], values, sample=sample)

    by_b = sum(correct[pair] for pair, (level, _) in levels.items() if level >= 2)
    by_c = {t: sum(correct[pair] for pair, (_, c) in levels.items() if c >= t) for t in range(340, 385)}
    found = equal_correct(crawl.study([label(pair) for pair in levels]))
    assert found.b_correct == pytest.approx(by_b)
    assert {t: right for t, _, right in found.table} == by_c
    assert found.t is not None
    assert abs(by_c[found.t] - by_b) == min(abs(right - by_b) for right in by_c.values())

    # All pairs on one site, of the others half of each level: taken together, the former would count too much.
    drawn, by_hand = [pair for pair in sorted(levels) if SAME_SITE in label(pair, True).sample], 0.0
    assert drawn
    by_hand += sum(correct[pair] for pair in drawn if levels[pair][0] >= 2)
    for level in range(2, 7):
        cell = [pair for pair in sorted(levels) if levels[pair][0] == level and pair not in drawn]
        some = cell[: max(5, len(cell) // 2)]
        by_hand += len(cell) * sum(correct[pair] for pair in some) / max(1, len(some))
        drawn += some
    assert equal_correct(crawl.study([label(pair, True) for pair in drawn])).b_correct == pytest.approx(by_hand)

    knee = find_knee(crawl.study([label(pair) for pair in levels]))
    held = [levels[pair] for pair, s1 in zip(sorted(levels), knee.s1, strict=True) if s1]
    right = [levels[pair] for pair, s1 in zip(sorted(levels), knee.s1, strict=True) if s1 and correct[pair]]
    for cutoff, kept, precision, r in knee.curve:
        assert kept == sum(c >= cutoff for _, c in held)
        assert precision == (sum(c >= cutoff for _, c in right) / kept if kept else None)
        assert r == sum(c >= cutoff for _, c in right) / len(right)


def test_pairs_below_the_c_graph_do_not_count_against_it() -> None:
    crawl = crawl_of(manual(items=30))
    urls = crawl.corpus.urls
    wide = c_graph_of_all(crawl.corpus, c_min=340)
    pairs = list(zip(wide.a.tolist(), wide.b.tolist(), wide.c_similarity.tolist(), strict=True))
    assert {370, 371} & {c for _, _, c in pairs}
    assert 372 in {c for _, _, c in pairs}
    labels = [
        label_of(
            *(urls[a], urls[b], Judgement.CORRECT if c >= 372 else Judgement.INCORRECT),
            sample="B + C" if c >= 372 else "wide",
        )
        for a, b, c in pairs
    ]
    found = {level: right for level, _, right in equal_correct(crawl.study(labels)).table}
    assert found[372] == pytest.approx(sum(c >= 372 for _, _, c in pairs))
    assert found[360] == pytest.approx(found[372])


def test_no_t_where_labels_stand_for_neither_graph() -> None:
    crawl = crawl_of(manual())
    b, urls = crawl.study().b, crawl.corpus.urls

    def found(sample: str) -> EqualCorrect:
        pairs = zip(b.a.tolist(), b.b.tolist(), strict=True)
        return equal_correct(
            crawl.study([label_of(urls[x], urls[y], Judgement.CORRECT, sample=sample) for x, y in pairs])
        )

    assert found("").b_correct == pytest.approx(b.edges)
    for sample, graph in (("B", "C"), ("C", "B"), ("audit: rejected", "B"), ("combined", "B")):
        assert found(sample).t is None
        assert f"drawn from the {graph} graph" in found(sample).why_not


def test_a_rare_level_does_not_hide_t() -> None:
    crawl = crawl_of(manual(items=30))
    graphs, urls = crawl.study(), crawl.corpus.urls
    pairs = {rule: draw(crawl.corpus, graphs.b, graphs.c, rule=rule, count=40) for rule in "BC"}
    labels = [
        label_of(urls[a], urls[b], Judgement.CORRECT, sample=sample)
        for drawn in pairs.values()
        for a, b, sample, _ in drawn
    ]
    joint = graphs.b.joint.sum(axis=(0, 2))
    study = crawl.study(labels)
    few = [level for level in range(2, 7) if (study.drawn("B") & (study.b_similarity == level)).sum() < 5]
    assert any(joint[level] >= 5 for level in few), "a level that has pairs, and too few labels"
    found = equal_correct(study)
    assert found.b_correct == pytest.approx(graphs.b.edges), "all labels say correct"
    c = {level: right for level, _, right in found.table}
    assert c[372] == pytest.approx(graphs.c.edges)
    # Drawn evenly over levels, a level's labels stand for no other.
    by_level = [replace(one, sample=f"{one.sample}: {one.sample}-similarity 2") for one in labels]
    assert equal_correct(crawl.study(by_level)).b_correct is None


@pytest.mark.parametrize(("count", "expected"), [(5, True), (4, False)])
def test_a_level_is_estimated_by_five_labels_that_are_drawn_for_it(count: int, expected: bool) -> None:
    crawl = crawl_of(manual(items=30))
    graphs, urls = crawl.study(), crawl.corpus.urls
    labels = [
        label_of(urls[a], urls[b], Judgement.CORRECT, sample=sample)
        for rule in "BC"
        for a, b, sample, _ in draw(crawl.corpus, graphs.b, graphs.c, rule=rule, by="level", count=count)
    ]
    found = equal_correct(crawl.study(labels)).b_correct
    assert found == (pytest.approx(graphs.b.edges) if expected else None)
