"""The rules, selected by their names."""

from neardup.decider import Decider
from neardup.pairs.pair import Pair
from neardup.rules import learned, papers, sites, tape, verified
from neardup.rules.base import Refusal, Rule, Ruling

#: By name, in the order of `neardup.decider.RULE_NAMES`.
RULES: dict[str, Rule] = {
    rule.name: rule
    for rule in (
        papers.SHINGLING,
        papers.SIMHASH,
        papers.COMBINED,
        papers.SITE_SPLIT,
        papers.SIMHASH64,
        tape.RULE,
        verified.RULE,
        learned.RULE,
    )
}

#: By the `by` of a ruling without a kind: the refusals of all rules, and of numbers that are set for sites.
REFUSALS: dict[str, Refusal] = dict(sites.REFUSALS)
for _rule in RULES.values():
    REFUSALS.update(_rule.refusals)


def rule_of(decider: Decider) -> Rule:
    return RULES[decider.rule]


def rules_for(decider: Decider) -> dict[str, Rule]:
    """The rules that a decider can apply: all, without `signals` if the decider has no model."""
    return {name: rule for name, rule in RULES.items() if decider.model or name != learned.RULE.name}


def why_refused(by: str) -> str:
    """The refusal of a step as text; if this program does not know the step, its name."""
    return REFUSALS[by].words if by in REFUSALS else by


__all__ = ["REFUSALS", "RULES", "Pair", "Refusal", "Rule", "Ruling", "rule_of", "rules_for", "why_refused"]
