"""The accuracy gate: what the default rule merges of pages whose truth is known, class by class.

`NEARDUP_GATE_PAGES=10000` measures longer streams: more siblings of each template.
"""

import os
from collections.abc import Callable
from typing import NamedTuple

import pytest

from tests.gate import items, same, views
from tests.gate.measure import Tally, measure
from tests.gate.sites import Sample

PAGES = int(os.environ.get("NEARDUP_GATE_PAGES", "1000"))
SEEDS = (1, 2)


class Gate(NamedTuple):
    """One class and what is demanded of it.

    found_min: share of the repeats that must be found; None: the rule does not find them. wrong_max: items that may be
    merged with another, as duplicate or same content, per 1,000; None: the rule cannot tell them apart.
    crowd_wrong_max: the same with crowd_min = 3, for the classes that this option exists for. why: the reason.
    """

    generate: Callable[[int, int], list[Sample]]
    found_min: float | None
    wrong_max: float | None
    why: str
    crowd_wrong_max: float | None = None


GATES = (
    # Must merge.
    Gate(same.parked_domains, 0.95, 0, "a page's own host never vetoes"),
    Gate(same.session_ids, 0.95, 1, "a few tokens of hundreds differ, and no title"),
    Gate(same.time_stamps, 0.95, 1, "likewise"),
    Gate(
        *(same.printer_versions, 0.92, 1),
        "aimed at .95. Where boilerplate is longer than the article, half of the pages' text differs and some pairs "
        "share no key: all that are missed would be accepted as same content, had they met",
    ),
    Gate(
        *(same.retitled_printer_versions, None, 1),
        "not found: 'printer friendly' for the site's name is a rename to the title veto; that it costs no item stands",
    ),
    # Must not merge; titles tell the items apart.
    Gate(items.model_numbers, 0.95, 1, "each title has a token with letters that the others lack"),
    Gate(items.records, 0.95, 1, "four words of the record are in the title; some repeats are lost to hot keys"),
    Gate(
        items.directory, 0.95, 10, "branches of one chain in one town share a title: ever more, the longer the stream"
    ),
    Gate(items.reference, 0.95, 5, "one name in 50 stands in two packages, under one title"),
    Gate(views.pagination, 0.95, 1, "titles differ in digits only, but no entry is on two pages"),
    Gate(views.resorted_lists, 0.95, 1, "one title, and every token in common, but the tape keeps the order"),
    Gate(views.soft_404s, 0.95, 20, "stubs of 20 to 80 words in longer boilerplate, where all titles are the site's"),
    Gate(views.login_walls, 0.95, 1, "title and heading are the article's"),
    # Must not merge, but titles are constant or differ in digits only: what the rule costs there, and what the crowd
    # saves of it.
    Gate(
        *(views.calendars, 0.5, 600),
        "months of one name in 12 years differ in digits and events: 11 of 12 at worst",
        150,
    ),
    Gate(views.calendars_in_digits, 0.2, 850, "all months of a site differ in digits and events only", 400),
    Gate(
        *(items.model_numbers_in_digits, 0.45, 700),
        "a series of 3 to 8 with one description becomes one cluster: .75 to .88 at worst; repeats join a sibling",
        300,
    ),
    Gate(
        *(items.unnamed_reference, 0.65, 400),
        "without names, descriptions of one mould and inherited methods are most of a page",
        20,
    ),
    Gate(
        *(views.unnamed_login_walls, 0.4, 850),
        "the form is most of the page, and its text looks like main content (a third come out as same content)",
        850,
    ),
    Gate(
        *(items.unnamed_directory, None, None),
        "nothing but scattered numbers differs: every page merges, unless the crowd is counted",
        100,
    ),
    Gate(
        *(items.unnamed_records, None, None),
        "25 tokens of 800 to 1,150: every page merges; a crowd demands .95, which the longer pages still reach",
        400,
    ),
)


def _name(gate: Gate) -> str:
    return gate.generate.__name__


def _measured(gate: Gate, **decider: float) -> Tally:
    return sum((measure(gate.generate(PAGES, seed), **decider) for seed in SEEDS), Tally())


def _bound(value: float | None) -> str:
    return "-" if value is None else str(value)


@pytest.mark.parametrize("gate", GATES, ids=_name)
def test_gate(gate: Gate, record_property: Callable[[str, object], None]) -> None:
    usual = _measured(gate)
    crowd = _measured(gate, crowd_min=3)
    cells = (
        gate.generate(1, SEEDS[0])[0].kind,
        str(usual.items),
        str(usual.repeats),
        f"{usual.found_share:.3f}",
        _bound(gate.found_min),
        f"{usual.found_content / usual.repeats:.3f}",
        f"{usual.wrong_per_1000:.1f}",
        _bound(gate.wrong_max),
        f"{1000 * usual.wrong_content / usual.items:.1f}",
        f"{crowd.found_share:.3f}",
        f"{crowd.wrong_per_1000:.1f}",
        _bound(gate.crowd_wrong_max),
    )
    record_property("gate", (GATES.index(gate), cells))
    if gate.found_min is not None:
        assert usual.found_share >= gate.found_min, gate.why
    if gate.wrong_max is not None:
        assert usual.wrong_per_1000 <= gate.wrong_max, gate.why
    if gate.crowd_wrong_max is not None:
        assert crowd.wrong_per_1000 <= gate.crowd_wrong_max, gate.why


def test_the_gate_sees_rules_that_merge_too_much_or_too_little() -> None:
    stream = items.records(400, 1)
    assert measure(stream, rule="shingling").wrong_per_1000 > 500
    assert measure(stream, tape_min=1.01, noise_tape_min=1.01, content_tape_min=1.01).found_share < 0.5
