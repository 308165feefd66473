"""What is learned of labelled pairs, and how it is measured; the learners are the oracle of our own few lines."""

import json
from itertools import pairwise

import numpy as np
import pytest

from neardup.errors import BadInput
from neardup.signals.learning import (
    LEAF_PAIRS,
    LEARNERS,
    PRUNING,
    CrossValidation,
    Examples,
    LearningOutcome,
    cross_validate,
    judge,
    learn_rules,
    learn_tree,
    measured,
    outcomes,
    versions,
)
from neardup.signals.model import STEPS, Leaf, Model, along, any_rule, model_of


def examples(count: int = 300, noise: float = 0.0, seed: int = 0) -> Examples:
    """Duplicates are near in `mcd` and `length`, or of one title and nearer than .6 in `mcd`."""
    rng = np.random.default_rng(seed)
    columns = {name: np.floor(rng.random(count) * STEPS + 0.5) / STEPS for name in ("mcd", "length")}
    columns["title"] = (rng.random(count) < 0.4) * 1.0
    truth = (columns["mcd"] < 0.3) & (columns["length"] < 0.5) | (columns["title"] == 1) & (columns["mcd"] < 0.6)
    return Examples(columns, truth ^ (rng.random(count) < noise))


def test_our_lines_decide_as_the_learner_does() -> None:
    """Also for values that the tree has not seen, and after JSON."""
    from sklearn.tree import DecisionTreeClassifier  # a third of the time that it takes to collect all tests

    for seed in range(5):
        known, unseen = examples(300, 0.1, seed), examples(4000, 0.0, 100 + seed)
        tree = learn_tree(known, seed)
        theirs = DecisionTreeClassifier(
            criterion="entropy", min_samples_leaf=LEAF_PAIRS, ccp_alpha=PRUNING, random_state=seed
        )
        theirs.fit(np.column_stack(list(known.columns.values())), known.truth)
        model = model_of(json.dumps(Model(tuple(known.columns), tree).to_json()), "m")
        found = along(model.tree, unseen.columns)[0]
        expected = theirs.predict(np.column_stack(list(unseen.columns.values())))
        # a threshold is between two values that were seen; new values may lie between it and the middle of its step
        assert (found == expected).mean() > 0.999
        assert np.array_equal(
            along(model.tree, known.columns)[0], theirs.predict(np.column_stack([*known.columns.values()]))
        )


def test_rules_are_found_that_made_the_pairs() -> None:
    known = examples()
    rules = learn_rules(known, 0)
    assert rules == learn_rules(known, 0)
    found = any_rule(rules, known.columns)
    assert (found == known.truth).mean() > 0.93
    assert {condition.signal for rule in rules for condition in rule} <= set(known.columns)


def test_pairs_of_one_kind_need_no_learning() -> None:
    columns = {"mcd": np.linspace(0, 1, 20)}
    for kind in (True, False):
        only = Examples(columns, np.full(20, kind))
        assert learn_tree(only, 0) == Leaf(kind, 20, 20 * kind)
        assert any_rule(learn_rules(only, 0), columns).tolist() == [kind] * 20
    constant = Examples({"mcd": np.zeros(20)}, np.arange(20) < 15)
    assert isinstance(learn_tree(constant, 0), Leaf)
    learn_rules(constant, 0)


def test_precision_recall_and_f_by_hand() -> None:
    values, truth = np.array([1, 1, 1, 0, 0], bool), np.array([1, 1, 0, 1, 1], bool)
    run = measured(values, values * 1.0, truth)
    assert (run.precision, run.recall) == (2 / 3, 0.5)
    assert run.f == pytest.approx(4 / 7)
    nothing = measured(~values & False, values * 0.0, truth)
    assert nothing[:3] == (0.0, 0.0, 0.0)


def run(f: float) -> CrossValidation:
    return CrossValidation(f + 0.1, f - 0.1, f, np.zeros(1))


def test_the_median_run_counts_and_both_learners_are_averaged() -> None:
    outcome = LearningOutcome({"tree": [run(f) for f in (0.2, 0.5, 0.9)], "rules": [run(f) for f in (0.3, 0.7, 0.8)]})
    assert outcome.median("tree").f == 0.5
    assert outcome.average == pytest.approx((0.7, 0.5, 0.6))
    assert outcome.quartiles() == pytest.approx((0.35, 0.6, 0.775))


def test_fold_is_not_judged_by_a_model_of_itself() -> None:
    """Pure noise: a learner that saw the judged pairs would find more than chance."""
    rng = np.random.default_rng(3)
    noise = Examples({"mcd": np.arange(400) / STEPS}, rng.random(400) < 0.5)
    seen = along(learn_tree(noise, 0), noise.columns)[0]
    assert (seen == noise.truth).mean() > 0.6
    one, _ = judge(noise.subset(np.arange(200)), noise.subset(np.arange(200, 400)), "tree", 0)
    assert len(one) == 200
    made = outcomes(noise, [["mcd"]], seeds=2, folds=5)[0]
    values = made.median("tree").scores > 0.5
    assert 0.35 < (values == noise.truth).mean() < 0.65


def test_the_protocol_runs_each_learner_by_each_seed() -> None:
    tasks = []

    def each(work, given):
        for task in given:
            tasks.append((tuple(task.examples.columns), task.learner, task.seed, task.folds))
            yield work(task) if task.learner == "tree" else run(0.5)

    known = examples(80, 0.1)
    made = outcomes(known, [["mcd"], ["mcd", "title"]], seeds=3, folds=4, each=each)
    assert tasks == [
        (names, learner, seed, 4) for names in (("mcd",), ("mcd", "title")) for learner in LEARNERS for seed in range(3)
    ]
    for outcome in made:
        assert all(a.f <= b.f for a, b in pairwise(outcome.runs["tree"]))
    assert made[1].average[2] > made[0].average[2]


def test_too_few_pairs_of_a_kind_are_reported() -> None:
    known = Examples({"mcd": np.linspace(0, 1, 30)}, np.arange(30) < 4)
    with pytest.raises(BadInput, match="5 folds need 5 of each"):
        outcomes(known, [["mcd"]], seeds=1, folds=5)


@pytest.mark.slow
def test_another_seed_cuts_other_folds() -> None:
    from neardup.signals.learning import CrossValidationTask

    known = examples(120, 0.2)
    runs = [cross_validate(CrossValidationTask(known, "tree", seed, 4)) for seed in (0, 0, 1)]
    assert np.array_equal(runs[0].scores, runs[1].scores)
    assert not np.array_equal(runs[0].scores, runs[2].scores)


def test_versions_name_the_libraries_of_a_model() -> None:
    assert {"scikit-learn", "wittgenstein", "zlib", "neardup"} <= set(versions())
