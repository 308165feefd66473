"""What a rule says to people is what it decided: of random pairs, for every rule."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from neardup import rules
from neardup.decider import RULE_NAMES, Decider
from neardup.report.prose import sentences
from neardup.rules import REFUSALS, Pair, Ruling, rule_of, why_refused
from neardup.rules.siblings import Siblings
from tests.neardup.pairs.some_pairs import some_pair

DECIDER = Decider(scheme="0" * 32)


def some_rulings(decider: Decider, many: int = 20_000) -> Iterator[tuple[Pair, Ruling, int]]:
    random = Random(decider.digest)
    for _ in range(many):
        pair, crowd = some_pair(random), random.choice((0, 0, 2, 3))
        siblings = Siblings(random.choice((0, 1, 2)), random.choice((0, 1, 15, 16, 64)))
        yield pair, rule_of(decider).decide(pair, decider, crowd, siblings), crowd


DECIDERS = [
    *(replace(DECIDER, rule=rule) for rule in RULE_NAMES),
    replace(DECIDER, crowd_min=3),
    replace(DECIDER, rule="tape", crowd_min=3, short_tokens=300),
]
_IDS = [f"{decider.rule}{' in crowds' if decider.crowd_min else ''}" for decider in DECIDERS]
#: Refused before a score was held against anything, or for something else.
_WHATEVER_THE_SCORE = {by for by, refusal in REFUSALS.items() if refusal.veto} | {
    *("thin", "length", "content: too short", "content: too small a part"),
}


@pytest.mark.parametrize("decider", DECIDERS, ids=_IDS)
def test_who_is_taken_has_the_score_that_is_demanded_and_who_is_not_has_not(decider: Decider) -> None:
    said = set()
    for pair, ruling, _ in some_rulings(decider):
        if ruling.kind is not None:
            assert ruling.score >= ruling.demand, (pair, ruling)
        elif ruling.by not in _WHATEVER_THE_SCORE:
            assert ruling.score < ruling.demand, (pair, ruling)
        if ruling.kind is None:
            assert ruling.by in rule_of(decider).refusals, ruling
        said.add((ruling.kind is None, ruling.by))
    for refuses, by in said:
        both = (not refuses, by) in said
        assert not both or REFUSALS[by].plain, by
    assert {by for refuses, by in said if refuses} >= rule_of(decider).refusals.keys() - {
        *(() if decider.crowd_min else ("crowd",)),
        *(("crowd", "short tape") if decider.rule == "verified" and decider.crowd_min else ()),
    }


@pytest.mark.parametrize("decider", DECIDERS, ids=_IDS)
def test_evidence_tells_the_score_and_the_demand_of_the_ruling(decider: Decider) -> None:
    rule, told = rule_of(decider), 0
    for pair, ruling, crowd in some_rulings(decider):
        evidence = rule.evidence(pair, ruling) | ({"crowd": crowd} if decider.crowd_min else {})
        margin = rule.margin(evidence, decider)
        if margin is None or ruling.by.startswith("content") or ruling.by == "combined: B":
            continue
        told += 1
        if pair.title_veto == 2 and pair.same_site and pair.same_heading:
            # Of another view of one page evidence has the title's veto, which did not count: not how much was demanded.
            assert ruling.by != "tape" or (margin >= 0) == (ruling.kind is not None), (pair, ruling)
            continue
        assert margin == pytest.approx(ruling.score - ruling.demand, abs=1e-4), (pair, ruling)
        if ruling.kind is None and not REFUSALS[ruling.by].plain:
            assert sentences(evidence, decider)[0] == f"Ruled out: {why_refused(ruling.by)}."
    assert told > 6_000


@pytest.mark.parametrize("decider", DECIDERS, ids=_IDS)
def test_in_short_the_numbers_are_those_of_the_ruling(decider: Decider) -> None:
    for pair, ruling, _ in some_rulings(decider, 2_000):
        numbers, needed = rule_of(decider).in_short(pair, decider, ruling)
        have, want = (float(re.findall(r"([\d.]+)(?: of \d+(?: bits)?|%)?$", text)[0]) for text in (numbers, needed))
        if ruling.by == "combined: B":
            continue
        assert (have >= want) == (ruling.score >= ruling.demand), (pair, ruling, numbers, needed)


def test_every_reason_in_the_source_has_its_words() -> None:
    source = "".join(path.read_text() for path in Path(rules.__file__).parent.glob("*.py"))
    said = set(re.findall(r'(?:refused|Ruling)\((?:None, )?"([^"]+)"', source))
    said |= set(re.findall(r'return "([a-z ]+)"', source))
    assert {"siblings", "record", "retitled", "never_merge"} <= said
    assert said <= REFUSALS.keys()
