"""The rules, selected by their names."""

from neardup.decider import Decider
from neardup.pairs.pair import Pair
from neardup.rules import learned
from neardup.rules.base import Refusal, Rule, Ruling
from neardup.rules.rulings import REFUSALS, RULES, OnlineRule, rule_of


def rules_for(decider: Decider) -> dict[str, OnlineRule]:
    """The rules that a decider can apply: all, without `signals` if the decider has no model."""
    return {name: rule for name, rule in RULES.items() if decider.model or name != learned.RULE.name}


def why_refused(by: str) -> str:
    """The refusal of a step as text; if this program does not know the step, its name."""
    return REFUSALS[by].words if by in REFUSALS else by


__all__ = [
    "REFUSALS",
    "RULES",
    "OnlineRule",
    "Pair",
    "Refusal",
    "Rule",
    "Ruling",
    "rule_of",
    "rules_for",
    "why_refused",
]
