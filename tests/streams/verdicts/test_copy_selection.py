"""The columns of a copy's selection against dicts of the verdicts."""

from random import Random

import pytest

from neardup.standing import InForce, NamedPage, VerdictFields
from neardup.verdict import Coordinates
from streams.verdicts.copy_selection import copy_selection, key_of

URLS, CLUSTERS, SOURCES, PAGES = 12, 4, 3, 5
KINDS = ("unique", "promoted", "same_content", "exact_duplicate", "near_duplicate", "gone", "rejected")


def a_verdict(random: Random, page_id: int) -> VerdictFields:
    def judged() -> dict[str, object]:
        kind, page = random.choice(KINDS), NamedPage(f"https://a.example/{random.randrange(URLS)}")
        return {
            "verdict": kind,
            "cluster": None if kind in ("gone", "rejected") else random.randrange(CLUSTERS),
            "representative": page if kind in ("exact_duplicate", "near_duplicate") else None,
        }

    own = judged()
    if random.random() < 0.3:
        own = {"verdict": "unchanged", "cluster": None, "representative": None}
        own["standing"] = InForce(**judged())  # type: ignore[arg-type]
    return VerdictFields(
        page_id=page_id,
        n=0,
        url=f"https://a.example/{random.randrange(URLS)}",
        fetched_at=0,
        coordinates=Coordinates(f"s{random.randrange(SOURCES)}", 0, random.randrange(PAGES), 0),
        canonical=random.choice([None, "https://a.example/canonical"]),
        **own,  # type: ignore[arg-type]
    )


@pytest.mark.seeds(40, 4000)
def test_a_selection_is_that_of_the_last_verdicts_of_urls_and_clusters(seed: int) -> None:
    random = Random(seed)
    verdicts = [a_verdict(random, page_id) for page_id in range(random.randint(0, 40))]
    last: dict[str, VerdictFields] = {}  # by URL, in the order of their first verdicts
    shows: dict[int | None, str] = {}
    for verdict in verdicts:
        last[verdict.url] = verdict
        held = verdict.in_force()
        url = verdict.url if held.shown else held.representative
        if verdict.canonical is not None and url is not None:
            shows[held.cluster] = url
    pages = {(one.coordinates.source, one.coordinates.offset): one for one in last.values()}
    copied = {
        place: shows.get(one.in_force().cluster) if one.in_force().kind == "exact_duplicate" else None
        for place, one in pages.items()
    }
    with copy_selection(lambda: verdicts, lambda read: None) as selection:
        for source in [f"s{number}" for number in range(SOURCES + 1)]:
            mine = sorted(offset for name, offset in pages if name == source)
            shown = {offset: pages[source, offset].in_force().shown for offset in mine}
            assert selection.kept(source).tolist() == [offset for offset in mine if shown[offset]]
            of = [(at, shown[at], copied[source, at]) for at in mine if shown[at] or copied[source, at]]
            assert list(selection.of(source)) == [(at, kept, url and key_of(url)) for at, kept, url in of]
