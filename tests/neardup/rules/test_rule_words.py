"""What a rule says to people is what it decided: of random pairs, for every rule."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from neardup import rules
from neardup.decider import RULE_NAMES, Decider
from neardup.report.evidence_sentences import sentences
from neardup.rules import REFUSALS, Pair, Ruling, default_rule, rule_of, tape, why_refused
from neardup.rules.base import Step, evidence_of, margin
from neardup.rules.records import BY
from neardup.rules.siblings import Siblings
from tests.neardup.pairs.some_pairs import SAME, some_pair
from tests.whole import count

DECIDER = Decider(scheme="0" * 32)


def some_rulings(decider: Decider, many: int) -> Iterator[tuple[Pair, Ruling]]:
    random = Random(f"{decider.rule} {decider.short_tokens}")  # other numbers draw no other pairs
    for _ in range(many):
        pair = some_pair(random)
        siblings = Siblings(random.choice((0, 1, 2)), random.choice((0, 1, 2, 3, 4, 64)))
        yield pair, rule_of(decider).decide(pair, decider, siblings)


DECIDERS = [
    *(replace(DECIDER, rule=rule) for rule in RULE_NAMES),
    replace(DECIDER, rule="tape", short_tokens=300),
    replace(DECIDER, rule_version=1),
]
_IDS = [f"{decider.rule} {decider.rule_version} {decider.short_tokens}" for decider in DECIDERS]
#: Version 1 of the rule alone refuses by these.
_FORMER = {"added"}
#: Refused before a score was held against anything, or for something else.
_WHATEVER_THE_SCORE = {by for by, refusal in REFUSALS.items() if refusal.veto} | {
    *("thin", "length", "content: too short", "content: too small a part"),
}


@pytest.mark.parametrize("decider", DECIDERS, ids=_IDS)
def test_accepted_pairs_reach_the_required_score_and_rejected_do_not(decider: Decider) -> None:
    reported = set()
    for pair, ruling in some_rulings(decider, count(5_000, 20_000)):
        if ruling.kind is not None:
            assert ruling.score >= ruling.demand, (pair, ruling)
        elif ruling.by not in _WHATEVER_THE_SCORE:
            assert ruling.score < ruling.demand, (pair, ruling)
        if ruling.kind is None:
            assert ruling.by in rule_of(decider).refusals, ruling
        reported.add((ruling.kind is None, ruling.by))
    for refuses, by in reported:
        both = (not refuses, by) in reported
        assert not both or REFUSALS[by].plain, by
    refusals = rule_of(decider).refusals.keys()
    assert {by for refuses, by in reported if refuses} >= refusals - (_FORMER if decider.rule_version > 1 else set())


@pytest.mark.parametrize("decider", DECIDERS, ids=_IDS)
def test_evidence_has_the_score_and_the_demand_of_the_ruling(decider: Decider) -> None:
    rule, accepted = rule_of(decider), 0
    for pair, ruling in some_rulings(decider, count(2_000, 6_000)):
        evidence = rule.evidence(pair, ruling)
        assert evidence["score"] == pytest.approx(ruling.score, abs=1e-4)
        assert evidence["demand"] == ruling.demand
        assert (evidence["score"] >= evidence["demand"]) == (ruling.score >= ruling.demand), (pair, ruling)
        above = margin(evidence)
        assert above is not None
        accepted += ruling.kind is not None
        assert (above >= 0) or ruling.kind is None
        if ruling.kind is None and not REFUSALS[ruling.by].plain:
            assert sentences(evidence, decider)[0] == f"Ruled out: {why_refused(ruling.by)}."
    assert accepted or not rule.reads_tapes or decider.rule == "signals"


def test_a_score_is_rounded_to_its_own_side_of_the_demand() -> None:
    for score, shown in ((0.73997, 0.7399), (0.74, 0.74), (0.74004, 0.74), (0.69996, 0.7)):
        ruling = Ruling(None, "tape", (0, 0.0), score, 0.74)
        assert evidence_of(SAME, ruling)["score"] == shown


@pytest.mark.parametrize("decider", DECIDERS, ids=_IDS)
def test_in_short_the_numbers_are_those_of_the_ruling(decider: Decider) -> None:
    for pair, ruling in some_rulings(decider, count(1_000, 2_000)):
        numbers, needed = rule_of(decider).in_short(pair, decider, ruling)
        have, want = (float(re.findall(r"([\d.]+)(?: of \d+(?: bits)?|%)?$", text)[0]) for text in (numbers, needed))
        if ruling.by == "combined: B":
            continue
        assert (have >= want) == (ruling.score >= ruling.demand), (pair, ruling, numbers, needed)


def test_every_name_of_a_refusal_has_its_words() -> None:
    accepting = {"digest", "combined", "content", "content: syndicated", "adds", "renamed", "canonical", "own query"}
    assert len(set(BY)) == len(BY)
    assert set(BY) == REFUSALS.keys() | accepting
    assert not REFUSALS.keys() & accepting


def refusals(step: Step) -> str:
    """The names under which a step refuses, where its own name does not say it."""
    names = ", ".join(f"`{by}`" for by in step.refusals)
    return f" Refuses as {names}." if step.refusals and set(step.refusals) != {step.name} else ""


def test_the_page_of_the_default_rule_lists_its_steps() -> None:
    page = (Path(rules.__file__).parent / "default-rule.md").read_text()
    listed = re.findall(r"^\d+\. \*\*(.+?)\*\*: (.+)$", page.partition("<!-- end of steps -->")[0], re.M)
    assert listed == [(step.name, step.words + refusals(step)) for step in rules.RULES["verified"].steps]


def test_without_a_step_no_ruling_is_by_it() -> None:
    for step in default_rule.STEPS[:-1]:
        rule = rules.RULES["verified"].without(step.name)
        random = Random(step.name)
        names = {rule.decide(some_pair(random), DECIDER, Siblings(1, 1)).by for _ in range(count(1_500, 3_000))}
        assert not names & (step.refusals.keys() - tape.UNLIKE.refusals.keys())


def test_a_verdict_on_two_releases_says_why_their_titles_do_not_tell_them_apart() -> None:
    release = SAME._replace(titles_apart=1, same_naming=False, same_title=False, same_words=False)
    rule, said = rule_of(DECIDER), "The titles differ, but the headings are equal"
    for pair, expected in ((release, True), (release._replace(titles_apart=0), False)):
        evidence = rule.evidence(pair, rule.decide(pair, DECIDER))
        assert rule.sentences(evidence, DECIDER)[0].startswith(said) is expected
