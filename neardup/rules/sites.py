"""Applies the numbers that are set for single sites, with any rule."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from neardup.decider import SiteOverride
from neardup.rules.base import Refusal, refuse, rule_kernel
from neardup.rules.records import (
    BY,
    NO_KIND,
    SAME_CONTENT,
    SITE,
    PairRow,
    RuleTables,
    RulingRow,
    SiblingsRow,
)
from neardup.rules.tape import plain_demand

REFUSALS = {
    "site": Refusal("its site demands a closer match"),
    "never_merge": Refusal("its site wants nothing but exact copies merged"),
}
_SITE, _NEVER_MERGE = BY.index("site"), BY.index("never_merge")
#: Numbers that a site's tape_min raises.
_RAISED = ("tape_min", "two_sites_tape_min", "short_tape_min", "strict_tape_min")


def with_sites(decides: Any) -> Any:
    """The kernel that decides by a rule, with the numbers that are set for either site of a pair.

    It takes (pair, one, other, siblings, tables, out). one, other: rows of the pages' sites in `tables.sites`.
    """

    @rule_kernel
    def _decides(
        pair: PairRow, one: int, other: int, siblings: SiblingsRow, tables: RuleTables, out: RulingRow
    ) -> None:
        out.kept_apart = 0
        decider = tables.numbers[0]
        plain = plain_demand(pair, decider)
        mine, theirs = tables.sites[one], tables.sites[other]
        demand, row = mine.tape_min, mine.raised
        if theirs.tape_min > demand:
            demand, row = theirs.tape_min, theirs.raised
        if mine.never_merge + theirs.never_merge > 0:
            decides(pair, siblings, decider, tables, out)
            out.kind, out.by, out.rank, out.rank_score, out.added = NO_KIND, _NEVER_MERGE, 0, 0.0, 0.0
        elif demand <= plain:
            decides(pair, siblings, decider, tables, out)
        else:
            decides(pair, siblings, tables.numbers[row], tables, out)
            # As with the rule's own higher demands: the main contents of a pair that fails only the higher demand do
            # not count.
            if out.kind == SAME_CONTENT and plain <= pair.tape_score < demand:
                refuse(_SITE, pair.tape_score, demand, out)
        out.plain_demand = plain
        out.kept_apart = out.kept_apart != 0 and out.kind == NO_KIND and pair.tape_score >= plain

    return _decides


def site_tables(
    numbers: np.ndarray, sites: Mapping[str, SiteOverride]
) -> tuple[np.ndarray, np.ndarray, dict[str, int]]:
    """The numbers that are set for sites.

    Returns the rows that follow `numbers` of `RuleTables`, `RuleTables.sites`, and the rows in it by name. numbers:
    DECIDER[1], the decider's own.
    """
    raised = sorted({site.tape_min for site in sites.values() if site.tape_min})
    rows = numbers.repeat(len(raised))
    for name in _RAISED:
        rows[name] = np.maximum(rows[name], raised)
    names = sorted(sites, key=str.encode)
    ends = np.cumsum([0, 0, *(len(name.encode()) for name in names)])
    out = np.zeros(1 + len(names), SITE)
    out["start"], out["end"] = ends[:-1], ends[1:]
    for row, name in enumerate(names, 1):
        demand = sites[name].tape_min or 0.0
        out[row].tape_min, out[row].never_merge = demand, sites[name].never_merge
        out[row].raised = 1 + raised.index(demand) if demand else 0
    return rows, out, {name: row for row, name in enumerate(names, 1)}


@rule_kernel
def find_site(tables: RuleTables, text: np.ndarray, start: int, end: int) -> int:
    """The row of `tables.sites` for the site name text[start:end], in UTF-8; 0: nothing is set for the site."""
    sites, names = tables.sites, tables.names
    low, high = 1, len(sites)
    while low < high:
        row = (low + high) // 2
        order = _order(text, start, end, names, sites[row].start, sites[row].end)
        if order == 0:
            return row
        if order < 0:
            high = row
        else:
            low = row + 1
    return 0


@rule_kernel
def _order(text: np.ndarray, start: int, end: int, other: np.ndarray, other_start: int, other_end: int) -> int:
    """-1, 0 or 1: text[start:end] comes before, equals or follows other[other_start:other_end]."""
    common = min(end - start, other_end - other_start)
    for i in range(common):
        if text[start + i] != other[other_start + i]:
            return -1 if text[start + i] < other[other_start + i] else 1
    lengths = (end - start) - (other_end - other_start)
    return 0 if lengths == 0 else (-1 if lengths < 0 else 1)
