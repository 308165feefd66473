"""Decides pairs by the rule of a decider: one kernel for all rules that compare sketches.

    from neardup.rules.rulings import decide, one_page, tables_of
    from neardup.rules.sites import find_site

A kernel calls `decide` for each pair, and `find_site` once for each page; `tables_of` gives it the decider as arrays.
`OnlineRule` is the same for Python.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

import numpy as np

from neardup.decider import RULE_NAMES, Decider
from neardup.kernels.same_page import same_page
from neardup.pairs.pair import Pair
from neardup.pairs.scoring import numbers_of_pairs
from neardup.rules import default_rule, learned, papers, sites, tape
from neardup.rules.base import Decides, Refusal, Rule, Ruling, rule_kernel, ruling_of
from neardup.rules.records import (
    RULING,
    DeciderRow,
    PairRow,
    RuleTables,
    RulingRow,
    SiblingsRow,
    alnum_bits,
    decider_numbers,
    pairs_view,
    siblings_array,
)
from neardup.rules.siblings import NO_SIBLINGS, Siblings
from neardup.signals.of_sketches import online_model

_RULES: tuple[Rule, ...] = (
    papers.SHINGLING,
    papers.SIMHASH,
    papers.COMBINED,
    papers.SITE_SPLIT,
    papers.SIMHASH64,
    tape.RULE,
    default_rule.RULE,
    learned.RULE,
)
#: Deciders whose tables are kept.
_KEPT_MAX = 256


def _by_position(rules: Sequence[Rule]) -> Any:
    """The kernel that decides by the rule at the position `decider.rule`. The last one is that of a learned model."""
    decides: Any = _by_model
    for position, rule in enumerate(rules[:-1]):
        decides = _or_else(position, rule.decides, decides)
    return decides


@rule_kernel
def _by_model(pair: PairRow, siblings: SiblingsRow, decider: DeciderRow, tables: RuleTables, out: RulingRow) -> bool:
    return learned.decide_by_model(pair, tables.model, decider, out)


def _or_else(position: int, rule: Decides, others: Any) -> Any:
    @rule_kernel
    def _decides(pair: PairRow, siblings: SiblingsRow, decider: DeciderRow, tables: RuleTables, out: RulingRow) -> bool:
        if decider.rule == position:
            return rule(pair, siblings, decider, out)
        decided: bool = others(pair, siblings, decider, tables, out)
        return decided

    return _decides


_decide: Any = sites.with_sites(_by_position(_RULES))


@rule_kernel
def decide(pair: PairRow, one: int, other: int, siblings: SiblingsRow, tables: RuleTables, out: RulingRow) -> None:
    """Write the ruling on a pair.

    Args:
        pair: element of PAIR[pairs].
        one: row of `find_site` for the site of the new page; 0 if the decider has no numbers of sites.
        other: the same for the candidate.
        siblings: element of SIBLINGS; zeros if the rule counts none.
        tables: the decider, from `tables_of`.
        out: element of RULING[pairs], all of which is written.
    """
    _decide(pair, one, other, siblings, tables, out)


@rule_kernel
def decide_many(
    pairs: np.ndarray, one: int, others: np.ndarray, siblings: np.ndarray, tables: RuleTables, out: np.ndarray
) -> None:
    """Write the rulings on the pairs of one page: `decide` for each of PAIR[pairs], int64[pairs] -> RULING[pairs].

    siblings: SIBLINGS[1].
    """
    for i in range(len(pairs)):
        decide(pairs[i], one, others[i], siblings[0], tables, out[i])


@rule_kernel
def one_page(tables: RuleTables, buf: np.ndarray, a: int, b: int, at: np.ndarray, header: int) -> bool:
    """Whether the rule takes two pages with equal digests for one page.

    Args:
        tables: the decider, from `tables_of`.
        buf: uint8, records.
        a: position of the record of the new page in buf.
        b: position of the record of the other page.
        at: `neardup.pairs.scoring.RECORD_AT`.
        header: bytes of a record's header.
    """
    if not tables.numbers[0].tells_equal_pages:
        return True
    same: bool = same_page(buf, a, b, at, header, tables.alnum)
    return same


@dataclass(frozen=True)
class OnlineRule(Rule):
    """A rule that applies to the numbers of pairs."""

    def decide(self, pair: Pair, decider: Decider, siblings: Siblings = NO_SIBLINGS) -> Ruling:
        """The ruling on a pair, without the numbers of sites; for many pairs, `rulings` is faster.

        siblings: counts of the pages of the new page's owner with the same name, if the rule counts them.
        """
        return ruling_of(self.rulings(numbers_of_pairs([pair]), decider, siblings)[0])

    def rulings(
        self,
        numbers: np.ndarray,
        decider: Decider,
        siblings: Siblings = NO_SIBLINGS,
        names: tuple[str, Sequence[str]] | None = None,
    ) -> np.ndarray:
        """The rulings on the pairs of one page, RULING[pairs].

        Args:
            numbers: float64[pairs, fields of a Pair].
            decider: the numbers that pairs are compared with.
            siblings: counts of the pages of the new page's owner with the same name, if the rule counts them.
            names: the site of the page, and the sites of the candidates. None: without the numbers of sites.
        """
        tables, rows = _tables(decider, self)
        one, others = 0, np.zeros(len(numbers), np.int64)
        if names is not None and rows:
            one, others[:] = rows.get(names[0], 0), [rows.get(name, 0) for name in names[1]]
        if not numbers.flags.writeable:  # for numba it is another type
            numbers = numbers.copy()
        out = np.zeros(len(numbers), RULING)
        decide_many(pairs_view(numbers), one, others, _siblings(siblings), tables, out)
        return out


#: By name, in the order of `neardup.decider.RULE_NAMES`.
RULES: dict[str, OnlineRule] = {
    rule.name: OnlineRule(**{field.name: getattr(rule, field.name) for field in fields(rule)}) for rule in _RULES
}

#: By the `by` of a ruling without a kind: the refusals of all rules, and of numbers that are set for sites.
REFUSALS: dict[str, Refusal] = dict(sites.REFUSALS)
for _rule in RULES.values():
    REFUSALS.update(_rule.refusals)

_TABLES: dict[tuple[str, str, int], tuple[RuleTables, dict[str, int]]] = {}


def rule_of(decider: Decider) -> OnlineRule:
    return RULES[decider.rule]


def tables_of(decider: Decider) -> RuleTables:
    """The decider as arrays, for kernels."""
    return _tables(decider, rule_of(decider))[0]


def _tables(decider: Decider, rule: Rule) -> tuple[RuleTables, dict[str, int]]:
    """The decider as arrays, and the rows of `RuleTables.sites` by name."""
    key = decider.digest, rule.name, rule.left_out
    known = _TABLES.get(key)
    if known is None:
        if len(_TABLES) >= _KEPT_MAX:
            _TABLES.clear()
        numbers = decider_numbers(decider, RULE_NAMES.index(rule.name), rule.left_out, rule.tells_equal_pages)
        raised, overrides, rows = sites.site_tables(numbers, decider.sites)
        names = np.frombuffer("".join(sorted(decider.sites, key=str.encode)).encode() or b"\0", np.uint8)
        model = learned.nodes_of(online_model(decider.model))
        tables = RuleTables(np.concatenate([numbers, raised]), overrides, names, model, alnum_bits())
        known = _TABLES[key] = tables, rows
    return known


@lru_cache(maxsize=4096)
def _siblings(siblings: Siblings) -> np.ndarray:
    return siblings_array(siblings)
