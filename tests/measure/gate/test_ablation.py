"""The table of what each step of the default rule is worth: that each step can be taken away, and that it shows."""

import pytest

from neardup.decider import Decider
from neardup.rules import RULES, default_rule
from neardup.scheme import Scheme
from tests.measure.gate import boards, items, names, views
from tests.measure.gate.ablation import (
    STEPS,
    Labelled,
    Step,
    ablated,
    most,
    pairs,
    stream,
    table,
    texts_of_one_site,
    without,
)
from tests.measure.gate.measure import SEED, Tally, judged, measure, sketched

pytestmark = pytest.mark.whole

STEP = {step.name: step for step in STEPS}


def test_records_at_hand_are_judged_as_pages_are() -> None:
    samples = items.unnamed_reference(300, 5)
    decider = Decider(Scheme(seed=SEED).digest)
    assert judged(samples, sketched(samples), decider) == measure(samples)


def test_numbers_are_not_the_usual_ones() -> None:
    usual = Decider("0" * 32)
    for one in STEPS[1:]:
        assert one.left_out or any(getattr(usual, name) != value for name, value in one.numbers.items()), one.name


def test_every_step_but_the_last_is_taken_away() -> None:
    assert {step.name for step in default_rule.STEPS[:-1]} <= {one.name for one in STEPS}
    assert {one.left_out for one in STEPS if one.left_out} < {step.name for step in default_rule.STEPS[:-1]}


@pytest.mark.parametrize(
    ("step", "generate"),
    [
        ("names", items.records),
        ("siblings", boards.shop),
        ("path", names.second_pages),
        ("path", names.rest_records),
    ],
)
def test_without_a_step_more_is_wrong(step: str, generate: object) -> None:
    source = stream("a class", generate(400, 31))  # type: ignore[operator]
    assert without(STEP[step], source).wrong > without(STEP["nothing"], source).wrong
    assert not RULES["verified"].left_out


def test_ablated_rule_is_restored_after_a_failure() -> None:
    def fails(decider: Decider) -> Tally:
        assert RULES["verified"] is not default_rule.RULE
        raise ValueError

    source = stream("none", [])
    source.measure = fails
    with pytest.raises(ValueError):
        without(STEP["names"], source)
    assert not RULES["verified"].left_out


def test_labelled_pairs_are_judged_alone_and_as_a_stream() -> None:
    first = " ".join(f"one{i}" for i in range(200))
    other = " ".join(f"two{i}" for i in range(200))
    rows = [Labelled(first, first + " more", True), Labelled(first, other, False), Labelled(other, other + " x", False)]
    values = without(STEP["nothing"], pairs(rows))
    assert (values.items, values.repeats, values.found, values.wrong) == (2, 1, 1, 1)
    assert values.f1 == pytest.approx(2 / 3)
    values = without(STEP["nothing"], texts_of_one_site(rows))
    assert (values.items, values.repeats, values.found, values.wrong) == (3, 1, 1, 1)


def test_tables_are_empty_where_nothing_changes() -> None:
    steps = (Step("nothing"), Step("one"), Step("two"))
    usual, worse = Tally(items=10, repeats=10, found=9), Tally(items=10, repeats=10, found=9, wrong=2)
    lines = table(["a", "b"], [[usual, usual], [usual, worse], [usual, usual]], steps).splitlines()
    assert lines[2:] == [
        "| nothing | 0.900 / 0.0 / 0.9474 | 0.900 / 0.0 / 0.9474 |",
        "| one |  | 0.900 / 200.0 / 0.8571 |",
        "| two |  |  |",
    ]
    classes = [stream("a", []), stream("b", [])]
    values = most(classes, [[usual, usual], [usual, worse], [usual, usual]], steps).splitlines()
    assert values[2:] == [
        "| one | b | 0.900 / 0.0 / 0.9474 | 0.900 / 200.0 / 0.8571 |  |  |  |",
        "| two |  |  |  |  |  |  |",
    ]


def test_a_run_of_few_pages_goes_through_all_steps() -> None:
    tallies = ablated([stream("calendars", views.calendars(150, 31))])
    assert len(tallies) == len(STEPS)
    assert all(row[0].items + row[0].repeats == 150 for row in tallies)
