"""The accuracy gate: what the default rule merges of pages whose truth is known, class by class.

`make test` measures all classes on few pages, and `make test-all` on twice as many of each large class. `make gate`
measures a second stream of each large class, and the rule `tape` beside the default rule.
`make gate GATE_PAGES=10000` measures longer streams: more siblings of each template.
"""

import os
from collections.abc import Callable
from typing import NamedTuple

import pytest

from tests import whole
from tests.measure.gate import boards, disguises, editions, items, names, same, views
from tests.measure.gate.measure import SEED, Tally, measure
from tests.measure.gate.sites import Sample

PAGES = int(os.environ.get("NEARDUP_TEST_GATE_PAGES", "1000"))
LONG = "NEARDUP_TEST_GATE_PAGES" in os.environ
SEEDS = (1, 2)


class Gate(NamedTuple):
    """One class and what is demanded of it.

    found_min: share of the repeats that must be found; None: the rule does not find them. wrong_max: items that may be
    merged with another, as duplicate or same content, per 1,000. why: the reason. Bounds leave a margin beyond what
    three other seeds gave. hashed: by which seeds tokens are hashed. share: of PAGES, for what shows on fewer.
    """

    generate: Callable[[int, int], list[Sample]]
    found_min: float | None
    wrong_max: float
    why: str
    hashed: tuple[int, ...] = (SEED,)  # seeds of the scheme, all of them together
    share: float = 1.0


GATES = (
    # Must merge.
    Gate(same.parked_domains, 0.98, 0, "a page's own host never vetoes"),
    Gate(same.session_ids, 0.98, 0, "a few tokens of hundreds differ, and no title"),
    Gate(same.time_stamps, 0.98, 0, "likewise"),
    Gate(disguises.disguised_mirrors, 0.98, 0, "what a browser does not show is in no token", share=0.4),
    Gate(same.clocks, 0.94, 0, "a clock is a stamp, unless a thinned tape has lost it", share=0.4),
    Gate(same.filed_twice, 0.98, 0, "words of paths tell, but hardly a word of the pages differs", share=0.4),
    Gate(same.printer_versions, 0.97, 0, "title, heading and the URL's path are one: that key finds them"),
    Gate(
        *(same.retitled_printer_versions, 0.75, 0),
        "the same address and heading; where the text between differs too much, another title is another name",
    ),
    # Must not merge; titles or headings tell the items apart.
    Gate(items.model_numbers, 0.97, 0, "each title has a token with letters that the others lack"),
    Gate(items.model_numbers_in_digits, 0.97, 0, "title and URL differ, and headings do, if only in digits"),
    Gate(items.records, 0.97, 0, "four words of the record are in the title; some repeats are lost to hot keys"),
    Gate(
        items.directory,
        0.97,
        2,
        "branches of one chain in one town share a title, but figures differ all over the page",
    ),
    Gate(items.reference, 0.97, 4, "one name in 50 stands in two packages, under one title"),
    Gate(views.pagination, 0.97, 0, "titles differ in digits only, but no entry is on two pages"),
    Gate(views.resorted_lists, 0.97, 0, "one title, and every token in common, but the tape keeps the order"),
    Gate(views.calendars, 0.96, 0, "titles and URLs differ, and headings do, if only in digits"),
    Gate(views.calendars_in_digits, 0.96, 0, "likewise"),
    Gate(views.soft_404s, 0.96, 2, "tapes leave out the own URL, and a stamp at the end is noise"),
    Gate(views.login_walls, 0.97, 0, "title and heading are the article's"),
    Gate(boards.news, 0.96, 0, "headlines are titles"),
    # Must not merge under one title: two pages of a name are on trial, the others may differ by noise alone.
    Gate(items.unnamed_reference, 0.96, 4, "headings are names too"),
    Gate(
        views.unnamed_login_walls,
        0.96,
        8,
        "the second pages of four sites, some as same content: the form is most text",
    ),
    Gate(items.unnamed_directory, 0.96, 3, "figures differ all over the page"),
    Gate(
        *(items.unnamed_records, 0.92, 10),
        "25 tokens of 800 to 1,150, half of them on the tape: now and then few enough to be noise; hot keys lose some",
    ),
    Gate(boards.shop, 0.96, 4, "a name, a price and some words differ, and so do the queries"),
    Gate(boards.forum_threads, 0.96, 6, "likewise; the shortest threads are mostly signatures"),
    Gate(
        *(boards.forum_profiles, 0.85, 12),
        "a name, dates and a count differ, as in a stamp: the second pages of a site pass for the first",
        (SEED, 1, 2, 3),  # few repeats and many hot keys: one seed gives .84 to .91
    ),
    Gate(boards.linked_profiles, 0.85, 12, "an own URL in the text does not make them one, as it does soft 404s"),
    Gate(boards.unnamed_news, 0.96, 2, "the words that change are many"),
    # What was read on real pages.
    Gate(editions.editions, 0.97, 0, "digits of titles and texts change, the URLs end alike", share=0.4),
    Gate(editions.padded, 0.97, 0, "stuffed pages are twice as long", share=0.4),
    Gate(editions.translations, 0.97, 0, "code and markup are hardly half of a page", share=0.4),
    Gate(
        *(editions.syndicated, 0.62, 0),
        "one headline, and one stretch of text in both articles; some share no key, or are half comments",
        share=0.4,
    ),
    Gate(names.untitled_texts, 0.97, 0, "named by their first line", share=0.4),
    Gate(names.operators, 0.97, 2, "case and signs of titles and URLs count", share=0.4),
    Gate(names.impl_trees, 0.85, 4, "words of paths stand each in its own page", share=0.4),
    Gate(names.second_pages, 0.9, 6, "likewise; now and then a stamp and few words differ", share=0.4),
    Gate(names.rest_records, 0.94, 10, "numbers of paths are names where nothing else in the URL is", share=0.4),
    Gate(names.titled_forms, 0.97, 0, "one heading and one end of the URLs: titles tell, as paths differ", share=0.4),
    Gate(views.vote_tables, 0.96, 8, "figures differ all over the page", share=0.4),
    Gate(views.price_lists, 0.96, 4, "likewise", share=0.4),
)


def _name(gate: Gate) -> str:
    return gate.generate.__name__


@pytest.mark.parametrize("gate", [pytest.param(gate, id=_name(gate)) for gate in GATES])
def test_gate(gate: Gate, record_property: Callable[[str, object], None]) -> None:
    seeds = SEEDS if LONG or gate.share < 1 else SEEDS[:1]
    pages = int(PAGES * (gate.share if LONG or whole.chosen() else min(gate.share, 0.5)))
    streams = [gate.generate(pages, seed) for seed in seeds]
    usual = sum((measure(stream, hashed=hashed) for stream in streams for hashed in gate.hashed), Tally())
    former = measure(streams[0], rule="tape") if LONG else None  # for comparison: no bound
    cells = (
        streams[0][0].kind,
        str(usual.items),
        str(usual.repeats),
        f"{usual.found_share:.3f}",
        "-" if gate.found_min is None else str(gate.found_min),
        f"{usual.found_content / usual.repeats:.3f}",
        f"{usual.wrong_per_1000:.1f}",
        str(gate.wrong_max),
        f"{1000 * usual.wrong_content / usual.items:.1f}",
        *((f"{former.found_share:.3f}", f"{former.wrong_per_1000:.1f}") if former else ("-", "-")),
    )
    record_property("gate", (GATES.index(gate), cells))
    assert usual.found_share >= (gate.found_min or 0.0), gate.why
    assert usual.wrong_per_1000 <= gate.wrong_max, gate.why


def test_the_gate_sees_rules_that_merge_too_much_or_too_little() -> None:
    stream = items.records(400, 1)
    assert measure(stream, rule="shingling").wrong_per_1000 > 500
    assert measure(stream, tape_min=1.0, content_tape_min=1.0).found_share < 0.5
