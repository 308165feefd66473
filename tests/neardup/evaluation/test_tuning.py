"""Numbers proposed from labelled pairs: chosen on one half, measured on the other; none without evidence."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from neardup.decider import Decider
from neardup.errors import BadInput
from neardup.evaluation.labels import Judgement, Label, LabelledPairs
from neardup.evaluation.study import groups_of
from neardup.evaluation.tuning import Tuning, _first_half, tried_values, tune, tuned_names
from neardup.pairs.pair import Pair
from tests.neardup.pairs.some_pairs import SAME

DECIDER = Decider("0" * 32)
#: Pairs of two sites, known by their scores only.
PAIR = SAME._replace(same_site=False, content_score=0.1, c_similarity=0, gaps=40, gap_words=80, loose_words=80)


def tuned(
    scores: Callable[[np.random.Generator, bool], float], count: int = 200, decider: Decider = DECIDER, seed: int = 0
) -> Tuning:
    """Labelled pairs, each of two pages of its own, every second one correct, with the tape scores that are drawn."""
    random = np.random.default_rng(5)
    labels, pairs = LabelledPairs(), list[Pair]()
    for at in range(count):
        correct = at % 2 == 0
        labels.a.append(2 * at)
        labels.b.append(2 * at + 1)
        judgement = Judgement.CORRECT if correct else Judgement.INCORRECT
        labels.labels.append(Label(f"http://a.example/{at}", f"http://b.example/{at}", judgement))
        pairs.append(PAIR._replace(tape_score=scores(random, correct)))
    return tune(labels, pairs, decider, seed=seed)


def apart(random: np.random.Generator, correct: bool) -> float:
    """Duplicates from .6 on, others up to .5."""
    return float(random.uniform(0.6, 0.95) if correct else random.uniform(0.2, 0.5))


def test_a_threshold_is_proposed_where_the_labels_want_it() -> None:
    found = tuned(apart)
    (change,) = found.changes
    assert change.name == "two_sites_tape_min"
    assert change.now == DECIDER.two_sites_tape_min
    assert 0.5 < change.then <= 0.6 + 1e-9
    assert 0.5 <= change.low <= change.then <= change.high < DECIDER.two_sites_tape_min
    assert found.proposed == replace(DECIDER, two_sites_tape_min=change.then)
    assert found.holds
    assert found.sure
    assert found.flags == ["--set", f"two_sites_tape_min={change.then:g}"]
    assert found.then.f1.value == 1.0
    assert found.now.f1.value is not None
    assert found.gain.value == pytest.approx(1.0 - found.now.f1.value)
    assert found.chosen_on + found.now.pairs == 200


def test_of_equally_good_values_the_nearest_to_the_one_in_force_is_taken() -> None:
    assert tuned(apart).changes[0].then == 0.6
    # As far from the other side, values just above .5 are as good.
    (change,) = tuned(apart, decider=replace(DECIDER, two_sites_tape_min=0.3)).changes
    assert change.then == 0.5


def test_labels_that_say_nothing_change_nothing() -> None:
    # Where nothing tells duplicates from others, to take all of them has the greatest F1: that is in force here.
    everything = replace(DECIDER, two_sites_tape_min=0.5)
    found = tuned(lambda random, correct: float(random.uniform(0.6, 0.9)), decider=everything)
    assert found.changes == []
    assert found.flags == []
    assert found.proposed == everything
    assert "two_sites_tape_min" in found.effective
    assert not found.holds
    fitting = tuned(lambda random, correct: 0.9 if correct else 0.1)
    assert fitting.changes == []


def test_numbers_that_were_set_before_are_among_the_flags() -> None:
    found = tuned(apart, decider=replace(DECIDER, noise_gaps_max=3, alike_min=255))
    assert found.flags[:2] == ["--set", "two_sites_tape_min=0.6"]
    assert {"noise_gaps_max=3", "alike_min=255"} < set(found.flags)


def test_a_proposal_that_the_other_half_contradicts_is_withdrawn() -> None:
    found = tuned(apart)
    # The halves are of groups by the seed: pairs of the second one say the opposite.
    first = _first_half(np.arange(0, 400, 2), 0)
    half = iter(first.tolist())
    scores = lambda random, correct: apart(random, correct) if next(half) else (0.8 if correct else 0.65)  # noqa: E731
    opposite = tuned(scores)
    assert found.holds
    assert [change.name for change in opposite.changes] == ["two_sites_tape_min"]
    assert opposite.gain.value is not None
    assert opposite.gain.value < 0
    assert not opposite.holds
    assert opposite.flags == []


def test_pages_that_hang_together_are_in_one_half() -> None:
    labels = LabelledPairs()
    for article in range(40):
        for a in range(3):
            for b in range(a + 1, 3):
                labels.a.append(3 * article + a)
                labels.b.append(3 * article + b)
                labels.labels.append(Label(f"http://{article}.example/{a}", f"http://x.example/{b}", Judgement.CORRECT))
    first = _first_half(groups_of(labels), 3)
    by_article = first.reshape(40, 3)
    assert (by_article.all(axis=1) | ~by_article.any(axis=1)).all()
    assert by_article[:, 0].sum() == 20


def test_too_few_labels_and_rules_without_numbers_are_refused() -> None:
    with pytest.raises(BadInput, match="at least 20 of each"):
        tuned(apart, count=30)
    with pytest.raises(BadInput, match="train"):
        tuned(apart, decider=replace(DECIDER, rule="signals"))


def test_other_rules_are_asked_for_their_own_numbers() -> None:
    random = np.random.default_rng(2)
    labels, pairs = LabelledPairs(), list[Pair]()
    for at in range(200):
        correct = at % 2 == 0
        labels.a.append(2 * at)
        labels.b.append(2 * at + 1)
        judgement = Judgement.CORRECT if correct else Judgement.UNDECIDED
        labels.labels.append(Label(f"http://a.example/{at}", f"http://b.example/{at}", judgement))
        pairs.append(
            PAIR._replace(c_similarity=int(random.integers(350, 384) if correct else random.integers(250, 345)))
        )
    found = tune(labels, pairs, replace(DECIDER, rule="simhash"))
    (change,) = found.changes
    assert change.name == "c_min"
    assert found.effective == ["c_min"]
    assert 344 <= change.then <= 352
    assert found.flags == ["--set", f"c_min={change.then}"]


def test_tried_values_are_allowed_decider_fields() -> None:
    from streams.config.settings import OPTIONS

    assert "tape_min" in tuned_names()
    assert not {"hot_postings_kept", "sites", "reclaim_days"} & set(tuned_names())
    for name in tuned_names():
        values = tried_values(DECIDER, name)
        assert getattr(DECIDER, name) in values
        assert len(values) > 3
        kind = OPTIONS["decider." + name].kind
        for value in values:
            assert kind.parse(f"{value:g}") == value


def test_the_proposal_as_json() -> None:
    answer = tuned(apart).to_json()
    assert answer["rule"] == "verified"
    assert answer["holds"] is True
    (change,) = answer["changes"]
    assert (change["name"], change["now"]) == ("two_sites_tape_min", 0.7)
    assert set(change["gain"]) == {"value", "low", "high"}
