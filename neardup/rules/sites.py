"""Applies the numbers that are set for single sites, with any rule."""

from dataclasses import replace
from functools import lru_cache

from neardup.decider import Decider
from neardup.pairs.pair import Pair
from neardup.rules import tape
from neardup.rules.base import Refusal, Rule, Ruling, refused
from neardup.rules.siblings import NO_SIBLINGS, Siblings
from neardup.verdict import Kind

REFUSALS = {
    "site": Refusal("its site demands a closer match"),
    "never_merge": Refusal("its site wants nothing but exact copies merged"),
}


def decide(
    rule: Rule,
    decider: Decider,
    sites: tuple[str, str],
    pair: Pair,
    siblings: Siblings = NO_SIBLINGS,
) -> Ruling:
    """The rule's ruling on a pair of pages, with the numbers that are set for either of their sites."""
    wishes = [decider.sites[site] for site in sites if site in decider.sites]
    raised = max((wish.tape_min or 0.0 for wish in wishes), default=0.0)
    if any(wish.never_merge for wish in wishes):
        ruling = rule.decide(pair, decider, siblings)
        return refused("never_merge", ruling.score, ruling.demand)
    plain = tape.plain_demand(pair, decider)
    if raised <= plain:
        return rule.decide(pair, decider, siblings)
    ruling = rule.decide(pair, _raised(decider.to_json(), raised), siblings)
    # As with the rule's own higher demands: a pair that fails only the higher demand is not judged by main content.
    if ruling.kind is Kind.SAME_CONTENT and pair.tape_score >= plain:
        return refused("site", pair.tape_score, raised)
    return ruling


@lru_cache(maxsize=256)
def _raised(decider: str, tape_min: float) -> Decider:
    plain = Decider.from_json(decider)
    names = ("tape_min", "two_sites_tape_min", "short_tape_min", "strict_tape_min")
    return replace(plain, **{name: max(getattr(plain, name), tape_min) for name in names})
