"""The kernel of the rules decides as their slow twin does: every rule, many deciders, numbers of sites."""

from dataclasses import replace
from random import Random
from typing import get_type_hints

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.decider import ONLINE_RULES, Decider, SiteOverride
from neardup.kernels import kernel
from neardup.pairs.pair import Pair
from neardup.rules import rule_of
from neardup.rules.base import ruling_of
from neardup.rules.records import BY, RULING, pairs_view, siblings_array
from neardup.rules.rulings import decide, tables_of
from neardup.rules.siblings import Siblings
from neardup.rules.sites import find_site
from tests.neardup.pairs.some_pairs import some_pair
from tests.oracle import rulings
from tests.whole import count

pytestmark = pytest.mark.kernel
DECIDER = Decider(scheme="0" * 32)
#: Values of numbers of the decider, the usual one among them.
VALUES: dict[str, tuple[float, ...]] = {
    "rule_version": (1, 2),
    "b_min": (0, 2, 6),
    "c_min": (355, 372),
    "combined_c_min": (300, 355),
    "simhash64_min": (58, 59),
    "thin_tokens": (0, 20, 50),
    "short_tokens": (20, 50, 300),
    "tape_min": (0.5, 0.74),
    "two_sites_tape_min": (0.0, 0.45, 0.7),
    "short_tape_min": (0.4, 0.85),
    "strict_tape_min": (0.45, 0.95),
    "content_tape_min": (0.3, 0.74),
    "length_share_min": (0.0, 0.5, 0.9),
    "alike_min": (1, 4, 16),
    "noise_gaps_max": (0, 2, 3),
    "stamp_words_max": (0, 4, 5),
    "path_tape_max": (0.0, 0.6, 0.978),
    "renamed_tape_min": (0.0, 0.8, 0.93),
    "added_max": (0.16, 0.5, 1.0),
    "syndicated_tokens_min": (0, 100),
    "syndicated_share_min": (0.0, 0.5),
    "syndicated_words_min": (0, 3),
}
SITES: tuple[dict[str, SiteOverride], ...] = (
    {},
    {"a.org": SiteOverride(tape_min=0.9)},
    {"a.org": SiteOverride(never_merge=True, tape_min=0.5), "b.org": SiteOverride(tape_min=0.97)},
    {"b.org": SiteOverride(tape_min=0.6), "a.org": SiteOverride(tape_min=0.96), "ä.org": SiteOverride(tape_min=0.96)},
)
NAMES = ("a.org", "b.org", "c.org", "ä.org")


def some_decider(random: Random, rule: str) -> Decider:
    numbers = {name: random.choice(values) for name, values in VALUES.items()} if random.random() < 0.6 else {}
    return replace(DECIDER, rule=rule, sites=random.choice(SITES), **numbers)  # type: ignore[arg-type]


def some_siblings(random: Random) -> Siblings:
    counts = (0, 0, 1, 2, 3, 15), (0, 1, 3, 4, 16, 64), (0, 1, 9, 40), (0, 1, 9, 40)
    return Siblings(*map(random.choice, counts))


def check(
    pairs: list[Pair], decider: Decider, siblings: Siblings, sites: tuple[str, list[str]]
) -> set[tuple[bool, str]]:
    """Compares the rulings on pairs with those of the twin. Returns (whether accepted, by) of each."""
    found = set()
    rule = rule_of(decider)
    records = rule.rulings(np.array(pairs, np.float64), decider, siblings, sites)
    for pair, record, other in zip(pairs, records, sites[1], strict=True):
        ruling = ruling_of(record)
        wanted = rulings.decide_of_sites((sites[0], other), pair, decider, siblings)
        assert tuple(ruling[:5]) == wanted, (pair, decider, siblings)
        assert list(map(type, ruling[3:5])) == list(map(type, wanted[3:])), "counts are integers"
        assert ruling.kept_apart == rulings.kept_apart(pair, wanted, decider)
        assert ruling.plain_demand == rulings.plain_demand(pair, decider)
        assert record.nearness == rulings.nearness(pair, decider)
        assert ruling.added == (rulings.share_added(pair) if ruling.by in ("adds", "added") else 0.0)
        found.add((ruling.kind is not None, ruling.by))
    return found


@pytest.mark.parametrize("rule", ONLINE_RULES)
def test_rulings_of_random_pairs(rule: str) -> None:
    random = Random(rule)
    found = set()
    for _ in range(count(100, 400) if rule == "verified" else count(20, 80)):
        decider, siblings = some_decider(random, rule), some_siblings(random)
        pairs = [some_pair(random) for _ in range(100)]
        found |= check(pairs, decider, siblings, (random.choice(NAMES), random.choices(NAMES, k=len(pairs))))
    refusals = {*rule_of(replace(DECIDER, rule=rule)).refusals, "never_merge"}
    assert {by for accepted, by in found if not accepted} >= refusals
    assert any(accepted for accepted, _ in found)


@kernel
def decide_as_the_fold(text, ends, pairs, siblings, tables, out):
    """The rulings on pairs of one page. text: the site of the page, then those of the candidates; ends: of each."""
    one = find_site(tables, text, 0, ends[0])
    for i in range(len(pairs)):
        decide(pairs[i], one, find_site(tables, text, ends[i], ends[i + 1]), siblings[0], tables, out[i])


@pytest.mark.parametrize("sites", SITES)
def test_rulings_of_a_kernel_that_finds_the_sites(sites: dict[str, SiteOverride]) -> None:
    random = Random(8)
    names = random.choices((*NAMES, "", "a.or", "a.orgs", "z.org"), k=300)
    text = "".join(names).encode()
    ends = np.cumsum([len(name.encode()) for name in names])
    decider = replace(DECIDER, sites=sites)
    numbers = np.array([some_pair(random) for _ in names[1:]], np.float64)
    out = np.zeros(len(numbers), RULING)
    siblings = siblings_array(Siblings(2, 1))
    decide_as_the_fold(np.frombuffer(text, np.uint8), ends, pairs_view(numbers), siblings, tables_of(decider), out)
    wanted = rule_of(decider).rulings(numbers, decider, Siblings(2, 1), (names[0], names[1:]))
    assert out.tolist() == wanted.tolist()
    assert ("never_merge" in {BY[by] for by in out["by"].tolist()}) == any(one.never_merge for one in sites.values())


_NUMBERS = {bool: st.booleans(), float: st.floats(0, 1), int: st.sampled_from((0, 1, 2, 3, 20, 49, 50, 400))}
_PAIRS = st.builds(Pair, **{name: _NUMBERS[kind] for name, kind in get_type_hints(Pair).items()})


@given(_PAIRS, st.builds(Siblings, *[st.integers(0, 255)] * 4), st.sampled_from(ONLINE_RULES), st.sampled_from(SITES))
def test_ruling_of_any_pair(pair: Pair, siblings: Siblings, rule: str, sites: dict[str, SiteOverride]) -> None:
    pair = pair._replace(article_level=pair.article_level % 8)
    check([pair], replace(DECIDER, rule=rule, sites=sites), siblings, ("a.org", ["b.org"]))
