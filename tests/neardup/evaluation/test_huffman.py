"""The tables of Huffman 2007: every set is measured, figures of the paper stand beside ours, curves are curves."""

from itertools import pairwise

import numpy as np
import pytest

from neardup.evaluation.figures.sections import by_name
from neardup.evaluation.huffman import COSTS, PAPER, SignalStudy, contour, curve, signal_sections
from neardup.signals.learning import CrossValidation, Examples
from neardup.signals.table import SETS, SIGNALS


def study(rendered: bool = True, count: int = 240) -> SignalStudy:
    """Rendered MCD tells duplicates, fetched signals half of the time, titles and domains never."""
    rng = np.random.default_rng(5)
    truth = rng.random(count) < 0.4
    columns = {}
    for name in SIGNALS:
        told = rng.random(count) < (1.0 if name == "mcd_rendered" else 0.0 if name.startswith("same") else 0.5)
        columns[name] = np.where(told, np.where(truth, 0.1, 0.8), rng.random(count)).round(3) + 0.00005
    rules = {"verified": truth & (rng.random(count) < 0.5), "shingling": np.zeros(count, np.bool_)}
    return SignalStudy(Examples(columns, truth), ["xa", "xb"] * (count // 2), rendered, rules, seeds=1, folds=2)


@pytest.fixture(scope="module")
def made():
    return signal_sections(study())


@pytest.mark.slow
def test_every_signal_and_set_is_measured_beside_the_paper(made) -> None:
    tables = by_name(made)
    single = {row[0]: dict(zip(tables["signals"].columns, row, strict=True)) for row in tables["signals"].rows}
    assert list(single) == list(SIGNALS)
    assert single["mcd_rendered"]["F, average"] > 0.95
    assert single["same_domain"]["F, average"] < 0.7
    assert single["simhash_fetched"]["paper: R"] == 0.58
    sets = {row["set"]: row for row in tables["sets"].to_json()}
    assert set(sets) == {*SETS, "F+R+FS+RS, no body MCD"}
    assert sets["F+R"]["F"] > 0.95 > sets["F"]["F"]
    for name, (precision, recall) in PAPER.items():
        assert (sets[name]["paper: precision"], sets[name]["paper: recall"]) == (precision, recall)


@pytest.mark.slow
def test_cost_adds_signals_in_the_papers_order(made) -> None:
    section = next(one for one in made if one.key == "costs")
    rows = section.tables[0].to_json()
    assert [row["signals"] for row in rows] == [len(names) for _, names in COSTS]
    assert rows[0]["added"] == "domain, title"
    assert all(row["lower quartile"] <= row["median"] <= row["upper quartile"] for row in rows)
    assert rows[6]["median"] > 0.95 > rows[3]["median"]
    assert str(section.plots[0].svg).count('class="curve s0"') == 1 + len(rows)


@pytest.mark.slow
def test_languages_are_judged_by_what_others_taught(made) -> None:
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
def test_without_rendered_bodies_what_needs_them_is_left_out_and_said() -> None:
    sections = signal_sections(study(rendered=False, count=60))
    for section in sections[:4]:
        assert "No page has a rendered body" in section.missing
    assert not any("rendered" in str(row[0]) for row in by_name(sections)["signals"].rows)
    assert [row[0] for row in by_name(sections)["sets"].rows] == [
        *("simhash", "tf-idf", "F", "simhash+FS", "tf-idf+FS", "F+FS"),
    ]
    assert "two languages" in sections[4].missing


def test_a_curve_goes_down_the_scores_pairs_of_one_score_together() -> None:
    truth = np.array([1, 0, 1, 0, 1], bool)
    scores = np.array([0.9, 0.5, 0.5, 0.1, 0.7])
    assert curve(CrossValidation(0, 0, 0, scores), truth) == [(1 / 3, 1.0), (2 / 3, 1.0), (1.0, 0.75), (1.0, 0.6)]


def test_on_a_contour_the_harmonic_mean_is_one() -> None:
    for f in (0.5, 0.9):
        points = contour(f)
        assert all(2 * p * r / (p + r) == pytest.approx(f) for r, p in points)
        assert all(a[0] < b[0] and a[1] > b[1] for a, b in pairwise(points))
