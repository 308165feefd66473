"""The tables of Huffman 2007: every set is measured, figures of the paper stand beside ours, curves are curves."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from neardup.evaluation.huffman import PAPER, contour, curve, grouped_section, signal_sections, transfer_section
from neardup.evaluation.huffman_costs import cost_section
from neardup.evaluation.huffman_further import learning_section, rendering_section, selection_section
from neardup.evaluation.huffman_study import SignalCost, SignalStudy, StepTimes, in_order
from neardup.evaluation.sections import by_name
from neardup.signals import learning
from neardup.signals.learning import CrossValidation, CrossValidationTask, Examples
from neardup.signals.table import FINAL, MEASURED, SIGNALS, VARIANT


def study(rendered: bool = True, count: int = 240) -> SignalStudy:
    """Rendered MCD tells duplicates, fetched signals half of the time, titles and domains never."""
    rng = np.random.default_rng(5)
    truth = rng.random(count) < 0.4
    columns = {}
    for name in SIGNALS:
        text = rng.random(count) < (1.0 if name == "mcd_rendered" else 0.0 if name.startswith("same") else 0.5)
        columns[name] = np.where(text, np.where(truth, 0.1, 0.8), rng.random(count)).round(3) + 0.00005
    rules = {"verified": truth & (rng.random(count) < 0.5), "shingling": np.zeros(count, np.bool_)}
    costs = {name: SignalCost(page, 0.1) for page, name in enumerate(reversed(SIGNALS))}
    both = np.arange(count) % 4 > 0 if rendered else np.zeros(count, np.bool_)
    languages = ["xa", "xb"] * (count // 2)
    steps = StepTimes(2.0, 240, fetch=[200.0, 150.0, 400.0])
    return SignalStudy(Examples(columns, truth), languages, both, rendered, costs, steps, rules, seeds=1, folds=2)


@pytest.fixture(scope="module")
def made():
    return signal_sections(study())


@pytest.mark.whole
@pytest.mark.slow
def test_every_signal_and_set_is_measured_beside_the_paper(made) -> None:
    tables = by_name(made)
    single = {row[0]: dict(zip(tables["signals"].columns, row, strict=True)) for row in tables["signals"].rows}
    assert set(single) == set(SIGNALS)
    assert single["mcd_rendered"]["F"] > 0.95
    assert single["same_domain"]["F"] < 0.7
    assert {name: row["pairs"] for name, row in single.items()} == {
        name: 180 if name.endswith("_rendered") else 240 for name in SIGNALS
    }
    assert single["simhash_fetched"]["paper: R"] == 0.58
    sets = {row["set"]: row for row in tables["sets"].to_json()}
    assert set(sets) == set(MEASURED)
    for found in (single, sets):
        f = [row["F"] for row in found.values()]
        assert f == sorted(f, reverse=True)
    assert sets["F+R"]["F"] > 0.95 > sets["F"]["F"]
    for name, (precision, recall) in PAPER.items():
        assert (sets[name]["paper: precision"], sets[name]["paper: recall"]) == (precision, recall)


def test_the_papers_best_figures_stand_beside_its_final_model() -> None:
    """All signals of fetched and rendered bodies, their MCD too, and the MCD of rendered snippets."""
    assert PAPER[FINAL] == (0.91, 0.77)
    assert [name for name, figures in PAPER.items() if figures == (0.91, 0.77)] == [FINAL]
    assert set(MEASURED[FINAL]) == {
        *("same_domain", "same_title_fetched", "simhash_fetched", "tfidf_fetched", "mcd_fetched"),
        *("same_title_rendered", "simhash_rendered", "tfidf_rendered", "mcd_rendered", "snippet_mcd_rendered"),
    }


def test_the_variant_of_section_5_3_has_no_mcd_of_bodies_and_no_length() -> None:
    assert set(MEASURED[FINAL]) - set(MEASURED[VARIANT]) == {"mcd_fetched", "mcd_rendered"}
    assert set(MEASURED[VARIANT]) < set(MEASURED[FINAL])


@pytest.mark.slow
def test_the_curve_is_of_the_final_model(made) -> None:
    section = next(one for one in made if one.key == "curve")
    assert {row[0] for row in section.plots[0].rows} == {"simhash", "F", FINAL}


@pytest.mark.slow
def test_cost_adds_single_signals_as_measured_and_rendered_ones_last(made) -> None:
    section = next(one for one in made if one.key == "costs")
    rows = by_name([section])["costs"].to_json()
    order = in_order(study().costs)
    assert [row["added"].removeprefix("+ ") for row in rows] == order
    fetched = [name for name in SIGNALS if not name.endswith("_rendered") and name not in ("same_domain", "url")]
    assert order[: 2 + len(fetched)] == ["url", "same_domain", *fetched[::-1]]
    assert rows[0]["ms a page"] == 0.0
    steps = {row["added"].removeprefix("+ "): (row["ms to fetch"], row["ms to render"]) for row in rows}
    assert steps["url"] == steps["same_domain"] == (0, 0)
    assert steps["main_content"] == steps["mcd_fetched"] == (250.0, 0)
    assert steps["mcd_rendered"] == (250.0, None)
    assert all(row["lower quartile"] <= row["median"] <= row["upper quartile"] for row in rows)
    at = order.index("mcd_rendered")
    assert rows[at]["median"] > 0.95 > rows[at - 1]["median"]
    assert str(section.plots[1].svg).count('class="curve s0"') == 1 + len(rows)


Run = Callable[[CrossValidationTask], CrossValidation]


def told(f: Callable[[CrossValidationTask], float], count: int = 240) -> SignalStudy:
    """A study whose runs have the F that a function gives for a task, with three seeds."""

    def each(work: Run, tasks: Iterable[CrossValidationTask]) -> Iterator[CrossValidation]:
        return (CrossValidation(0.0, 0.0, f(task), np.zeros(len(task.examples.truth))) for task in tasks)

    return replace(study(count=count), seeds=3, each=each)


def by_size(task: CrossValidationTask) -> float:
    """Signals count .01 each; the rules have .005 more; seeds 0, 1 and 2 are .004, .001 and 0 above that."""
    return len(task.examples.columns) / 100 + 0.005 * (task.learner == "rules") + (0.004, 0.001, 0.0)[task.seed]


def test_cost_adds_the_papers_steps_in_the_papers_order() -> None:
    """The medians of both learners are n / 100 + .001 and n / 100 + .006 for n signals; their mean is reported."""
    plain = told(by_size)
    section = cost_section(plain, plain.outcomes(plain.sets()))
    rows = section.tables[0].to_json()
    steps = {
        "same domain, same title": 2,
        "+ body length": 3,
        "+ simhash": 4,
        "+ tf-idf": 5,
        "+ MCD": 6,
        "+ rendered title": 7,
        "+ rendered body length": 8,
        "+ rendered simhash": 9,
        "+ rendered tf-idf": 10,
        "+ rendered MCD": 11,
    }
    assert {row["added"]: row["F, average"] for row in rows} == {
        name: pytest.approx(n / 100 + 0.0035) for name, n in steps.items()
    }
    assert rows[0]["median"] == pytest.approx(0.02 + (0.004 + 0.005) / 2)  # of 0, .001, .004, .005, .006, .009
    assert "measured" in section.tables[1].caption
    assert [table.name for table in section.tables] == ["cost-steps", "costs", "steps"]


def test_the_papers_steps_without_rendered_bodies_end_with_the_fetched_mcd() -> None:
    plain = replace(told(by_size), any_rendered=False)
    rows = cost_section(plain, plain.outcomes(plain.sets())).tables[0].to_json()
    assert [row["added"] for row in rows][-1] == "+ MCD"
    assert len(rows) == 5


def test_feature_selection_leaves_each_signal_out_of_the_final_model() -> None:
    """The tree needs the title, the rules a simhash; no run needs anything else."""
    f = {"tree": "same_title_fetched", "rules": "simhash_rendered"}
    plain = told(lambda task: 0.75 if f[task.learner] in task.examples.columns else 0.25)
    (table,) = selection_section(plain).tables
    rows = {row["left out"]: (row["F"], row["difference"]) for row in table.to_json()}
    assert rows.pop("none") == (0.75, None)
    assert {name: row for name, row in rows.items() if row[1]} == dict.fromkeys(f.values(), (0.5, -0.25))
    assert rows.keys() == set(MEASURED[FINAL])


def test_the_learning_curve_learns_parts_of_the_other_folds() -> None:
    plain = told(lambda task: task.share / 2)
    (table,) = learning_section(plain).tables
    assert [(row["share learned"], row["F"]) for row in table.to_json()] == [
        (share, share / 2) for share in (0.125, 0.25, 0.5, 0.75, 1.0)
    ]
    assert [row["pairs learned"] for row in table.to_json()] == [15, 30, 60, 90, 120]  # one of two folds


def test_a_part_of_the_other_folds_has_both_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def judged(learned: Examples, others: Examples, learner: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
        seen.append((int(learned.truth.sum()), int((~learned.truth).sum()), len(others.truth)))
        return others.truth, others.truth * 1.0

    monkeypatch.setattr(learning, "judge", judged)
    examples = Examples({"simhash_fetched": np.zeros(40)}, np.arange(40) < 8)
    learning.cross_validate(CrossValidationTask(examples, "tree", 0, 2, 0.25))
    assert seen == [(1, 4, 20), (1, 4, 20)]
    seen.clear()
    learning.cross_validate(CrossValidationTask(examples, "tree", 0, 2))
    assert seen == [(4, 16, 20), (4, 16, 20)]


def test_rendering_pays_for_the_pairs_whose_fetched_score_is_unsure() -> None:
    """Ten pairs: fetched signals are unsure of four and sure of a wrong one; rendered signals are right but for one."""
    truth = np.array([1, 1, 1, 1, 0, 0, 0, 0, 0, 0], bool)
    fetched = np.array([1.0, 0.75, 0.45, 0.0, 0.0, 0.0, 0.0, 0.55, 0.3, 0.0])
    seen = np.array([0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])

    def each(work: Run, tasks: Iterable[CrossValidationTask]) -> Iterator[CrossValidation]:
        for task in tasks:
            scores = seen if any(name.endswith("_rendered") for name in task.examples.columns) else fetched
            yield CrossValidation(0.0, 0.0, 0.5, scores)

    plain = replace(study(count=10), seeds=1, each=each, steps=StepTimes(render=[100.0, 300.0]))
    plain = replace(plain, examples=replace(plain.examples, truth=truth))
    (table,) = rendering_section(plain, plain.outcomes(MEASURED)).tables
    rows = {row["rendered if the score is"]: list(row.values())[1:] for row in table.to_json()}
    # render share, ms a pair, precision, recall, F
    assert rows["never"] == [0.0, 0.0, 2 / 3, 2 / 4, pytest.approx(4 / 7)]
    assert rows["0.40 to 0.60"] == [0.2, 80.0, 1.0, 3 / 4, pytest.approx(6 / 7)]
    assert rows["0.20 to 0.80"] == [0.4, 160.0, 1.0, 3 / 4, pytest.approx(6 / 7)]
    assert rows["always"] == [1.0, 400.0, 1.0, 3 / 4, pytest.approx(6 / 7)]
    assert rendering_section(replace(plain, any_rendered=False), {}).missing


@pytest.mark.slow
def test_the_final_model_has_a_contour(made) -> None:
    f = {row["set"]: row["F"] for row in by_name(made)["sets"].to_json()}[FINAL]
    section = next(one for one in made if one.key == "curve")
    assert f"{FINAL}: F {f:.2f}" in str(section.plots[0].svg)


@pytest.mark.slow
def test_the_time_of_each_step_stands_in_the_table_of_costs(made) -> None:
    """Of some pages the crawler measured the fetch; of none a browser measured the rendering."""
    section = next(one for one in made if one.key == "costs")
    assert by_name([section])["steps"].to_json() == [
        {"step": "fetch", "pages": 3, "ms, mean": 250.0, "ms, median": 200.0},
        {"step": "render", "pages": 0, "ms, mean": None, "ms, median": None},
        {"step": "decode", "pages": 240, "ms, mean": 2.0, "ms, median": None},
    ]


def few(rendered: bool = False) -> SignalStudy:
    return study(rendered, count=60)


@pytest.mark.slow
def test_pairs_of_one_group_stay_in_one_fold() -> None:
    """Each group has a value of its own, which tells its truth, and of other groups nothing."""
    plain = few()
    groups = np.arange(60) // 6
    plain.examples.truth[:] = groups % 2 == 0
    for column in plain.examples.columns.values():
        column[:] = groups / 10 + 0.05
    row = {one["set"]: one for one in by_name([grouped_section(plain, groups, "page")])["grouped"].to_json()}["F"]
    assert row["F, folds of pairs"] > row["F, grouped"] + 0.1
    assert row["difference"] == pytest.approx(row["F, grouped"] - row["F, folds of pairs"])


def test_a_fold_has_no_pair_of_a_group_that_was_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    examples, groups = few().examples, np.arange(60) // 5
    seen = []

    def judged(learned: Examples, others: Examples, learner: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
        seen.append((set(learned.groups.tolist()), set(others.groups.tolist())))  # type: ignore[union-attr]
        return others.truth, others.truth * 1.0

    monkeypatch.setattr(learning, "judge", judged)
    learning.cross_validate(learning.CrossValidationTask(replace(examples, groups=groups), "tree", 0, 3))
    assert len(seen) == 3
    assert all(not learned & others for learned, others in seen)
    assert set.union(*(others for _, others in seen)) == set(range(12))


@pytest.mark.slow
def test_model_of_other_results_is_measured_here() -> None:
    """There the signals say the opposite."""
    here = few()
    there = Examples({name: 0.9 - column for name, column in here.examples.columns.items()}, here.examples.truth)
    rows = {row["set"]: row for row in by_name([transfer_section(there, here, here.examples)])["transfer"].to_json()}
    assert rows["F"]["F, learned here"] > 0.6 > rows["F"]["F"]
    same = {
        row["set"]: row for row in by_name([transfer_section(here.examples, here, here.examples)])["transfer"].to_json()
    }
    assert same["F"]["F"] > 0.7


@pytest.mark.slow
def test_language_is_judged_by_models_of_other_languages(made) -> None:
    rows = by_name(made)["languages"].to_json()
    assert [(row["language"], row["pairs"]) for row in rows] == [("xa", 120), ("xb", 120)]
    assert all(row["F"] > 0.9 for row in rows)


@pytest.mark.slow
def test_online_rules_stand_beside(made) -> None:
    rows = {row["rule"]: row for row in by_name(made)["online"].to_json()}
    assert rows["verified"]["precision"] == 1.0
    assert 0.3 < rows["verified"]["recall"] < 0.7
    assert rows["shingling"]["F"] == 0.0
    assert any(name.startswith("learned: ") and row["F"] > 0.95 for name, row in rows.items())


@pytest.mark.slow
def test_sets_without_rendered_bodies_are_left_out_and_reported() -> None:
    sections = signal_sections(study(rendered=False, count=60))
    for section in sections[:4]:
        assert "No page has a rendered body" in section.missing
    assert not any("rendered" in str(row[0]) for row in by_name(sections)["signals"].rows)
    assert {row[0] for row in by_name(sections)["sets"].rows} == {
        *("simhash", "tf-idf", "F", "simhash+FS", "tf-idf+FS", "F+FS", "F + main content", "F + URL"),
    }
    assert "two languages" in {section.key: section for section in sections}["languages"].missing


def test_a_curve_goes_down_the_scores_pairs_of_one_score_together() -> None:
    truth = np.array([1, 0, 1, 0, 1], bool)
    scores = np.array([0.9, 0.5, 0.5, 0.1, 0.7])
    assert curve(CrossValidation(0, 0, 0, scores), truth) == [(1 / 3, 1.0), (2 / 3, 1.0), (1.0, 0.75), (1.0, 0.6)]


def test_on_a_contour_the_harmonic_mean_is_one() -> None:
    for f in (0.5, 0.9):
        points = contour(f)
        assert all(2 * p * r / (p + r) == pytest.approx(f) for r, p in points)
        assert all(a[0] < b[0] and a[1] > b[1] for a, b in pairwise(points))
