"""The rows of the views against a plain model, whatever comes twice and wherever the process is killed."""

import copy
import random
from collections import Counter
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from neardup.report.evidence_sentences import reason_kind
from streams.views import counts, entries, lists, url_pages, view_rows
from streams.views.audited_pairs import Audits, NoAudits
from streams.views.entries import Entry, read
from streams.views.entries import joined as entries_joined
from streams.views.lists import Row
from streams.views.search import joined, search_rows
from streams.views.view_rows import EVERYTHING, HOUR_MS, apply
from tests.streams.views.random_verdicts import (
    CLOSENESS,
    DECIDER,
    MemoryRows,
    emitted_at,
    in_memory,
    random_verdicts,
    stored,
)

PARTITIONS = 3


class Killed(Exception):
    pass


class Mortal(MemoryRows):
    """Rows that outlive their process, which is killed before the put that `life` counts down to."""

    life = -1

    def get(self, table: str, key: str) -> Row | None:
        """A copy, as from a disk: a row that was not put is not kept."""
        return copy.deepcopy(super().get(table, key))

    def put(self, table: str, key: str, row: Row) -> None:
        self.life -= 1
        if self.life == 0:
            raise Killed
        super().put(table, key, row)


class Partitioned:
    """A source of pages over the rows of some partitions."""

    where, partitions = "a test", PARTITIONS
    audits: Audits = NoAudits()

    def __init__(self, parts: list[Mortal]) -> None:
        self._parts = parts

    def rows(self, table: str, key: str) -> list[Row]:
        return [row for part in self._parts if (row := part.get(table, key)) is not None]

    own_rows = rows

    def documents(self, given: str) -> dict[str, str]:
        return {}

    def entries(self, of: str, start: str, limit: int, back: bool) -> list[Entry]:
        held = [read(in_memory(part.tables["entries"].items()), of, start, limit, back) for part in self._parts]
        return entries_joined(held, limit, back)

    own_entries = entries

    def search(self, text: str, after: str = "") -> dict[str, Any]:
        return joined([search_rows(stored(part, "urls", after), text) for part in self._parts])

    own_search = search

    def policy(self) -> tuple[str, ...]:
        return ()

    def rate(self) -> float | None:
        return None

    async def own_lag(self) -> dict[int, int]:
        return {}

    async def lag(self) -> dict[int, int] | None:
        return None


def partition_of(verdict: dict[str, Any]) -> int:
    return int(verdict["url"].rpartition("/")[2]) % PARTITIONS


def delivered(verdicts: list[dict[str, Any]], seed: int, kills: int) -> Partitioned:
    """Each partition's verdicts, in order; after each kill from somewhere before it once more."""
    chance = random.Random(seed)
    parts = [Mortal() for _ in range(PARTITIONS)]
    for number, part in enumerate(parts):
        mine = [verdict for verdict in verdicts if partition_of(verdict) == number]
        at = 0
        for life in [*(chance.randint(1, 200) for _ in range(kills)), -1]:
            part.life = life
            try:
                while at < len(mine):
                    apply(mine[at], part, emitted_at(mine[at]), CLOSENESS)
                    at += 1
            except Killed:
                at = chance.randint(0, at)
    return Partitioned(parts)


@pytest.mark.parametrize("seed", range(5))
def test_rows_equal_the_model_under_repeated_verdicts(seed: int) -> None:
    verdicts = random_verdicts(400, seed)
    source = delivered(verdicts, seed, kills=8)
    last = {verdict["url"]: verdict for verdict in verdicts}
    for url, verdict in last.items():
        lives = [v for v in verdicts if v["url"] == url]
        shown = url_pages.url(source, url, DECIDER)
        assert shown is not None
        assert shown["verdict"] == verdict
        assert [(one["page_id"], one["n"], one["verdict"]) for one in shown["history"]] == [
            (v["page_id"], v["n"], v["verdict"]) for v in reversed(lives)
        ][: view_rows.HISTORY_KEPT]
    overview = counts.overview(source, None)
    assert not isinstance(overview, str)
    assert_over_time(overview, verdicts)
    last_day = overview["time"]["last"]
    week_before = str(date.fromisoformat(last_day) - timedelta(days=7))
    by_days = counts.overview(source, None, start=week_before, end=last_day)
    assert not isinstance(by_days, str)
    assert (overview["time"]["span_hours"], by_days["time"]["span_hours"]) == (1, 24)
    assert_over_time(by_days, verdicts)
    assert overview["kinds"] == Counter(v["verdict"] for v in verdicts)
    assert overview["rejected"] == Counter(reason_kind(v["reason"]) for v in verdicts if "reason" in v)
    for site in {v["site"] for v in verdicts}:
        found = counts.site(source, site)
        assert not isinstance(found, str)
        assert found["kinds"] == Counter(v["verdict"] for v in verdicts if v["site"] == site)
        assert_over_time(found, [v for v in verdicts if v["site"] == site])
        repeats = [v for v in verdicts if v["site"] == site and v["verdict"] == "near_duplicate"]
        newest = [one["page_id"] for one in found["suppressed"]["newest"]]
        assert newest == [v["page_id"] for v in reversed(repeats)][: lists.SUPPRESSED_KEPT]
        assert found["suppressed"]["originals"] == Counter(v["representative"]["url"] for v in repeats)
    sites = Counter(v["site"] for v in verdicts)
    listed = counts.sites(source, 1)["sites"]
    assert {one["site"]: one["verdicts"] for one in listed} == sites
    assert [one["verdicts"] for one in listed] == sorted(sites.values(), reverse=True)
    for reason in overview["rejected"]:
        newest = [v["page_id"] for v in reversed(verdicts) if reason_kind(v.get("reason")) == reason]
        assert every(lambda *at, reason=reason: counts.rejects(source, reason, *at)) == newest
    for kind, count in overview["kinds"].items():
        newest = [v["page_id"] for v in reversed(verdicts) if v["verdict"] == kind]
        assert len(newest) == count
        assert every(lambda *at, kind=kind: counts.kind(source, kind, "", *at)) == newest
        of_site = [v["page_id"] for v in reversed(verdicts) if v["verdict"] == kind and v["site"] == "site0.example"]
        if of_site:
            assert every(lambda *at, kind=kind: counts.kind(source, kind, "site0.example", *at)) == of_site
    hot = sum(len((v.get("evidence") or {}).get("turned_hot", ())) for v in verdicts)
    assert len(every(lambda *at: counts.hot(source, "", *at))) == hot == overview["hot"]["total"]
    assert_closest(source, verdicts)
    for number in range(9):
        found = url_pages.cluster(source, number)
        assert found is not None
        held = {url for url, v in last.items() if view_rows.cluster_id(v) == number}
        assert {member["url"] for member in found["members"]} == held
        assert found["complete"]
        emitted = [v for v in verdicts if v.get("cluster") == number][-1]
        assert (found["canonical"], found["size"], found["revision"]) == (
            emitted["canonical"],
            emitted["cluster_size"],
            emitted["revision"],
        )


def every(page_of: Callable[..., Any]) -> list[int]:
    """Page ids of all pages of a list: forward by `next`, and the same back by `previous`."""
    pages, at = [], ("", "")
    while True:
        found = page_of(*at)
        assert not isinstance(found, str)
        pages.append(found)
        if found["next"] is None:
            break
        at = found["next"], ""
    back = [pages[-1]]
    while back[-1]["previous"] is not None:
        back.append(page_of("", back[-1]["previous"]))
    assert [one["items"] for one in reversed(back)] == [one["items"] for one in pages]
    assert pages[0]["previous"] is None
    return [item["page_id"] for found in pages for item in found["items"]]


def assert_over_time(facts: dict[str, Any], verdicts: list[dict[str, Any]]) -> None:
    """The spans are those of the verdicts alone, and have their counts."""
    spans, length = facts["time"]["spans"], facts["time"]["span_hours"] * HOUR_MS
    expected = Counter((emitted_at(v) // length * length, v["verdict"]) for v in verdicts)
    assert Counter({(one["from"], kind): count for one in spans for kind, count in one["kinds"].items()}) == expected
    if length == HOUR_MS:
        assert [spans[0]["from"], spans[-1]["from"]] == [min(expected)[0], max(expected)[0]]


def assert_closest(source: Partitioned, verdicts: list[dict[str, Any]]) -> None:
    """The day's closest calls, over all partitions."""
    by_day: dict[int, list[tuple[float, int]]] = {}
    for verdict in verdicts:
        if (close := CLOSENESS(verdict)) is not None:
            day = emitted_at(verdict) // (24 * HOUR_MS)
            by_day.setdefault(day, []).append((abs(round(close[0], 6)), verdict["page_id"]))
    assert by_day, "the story has close calls"
    for day, calls in by_day.items():
        found = counts.close(source, datetime.fromtimestamp(day * 86_400, UTC).strftime("%Y-%m-%d"))
        assert not isinstance(found, str)
        values = [(abs(one["margin"]), one["page_id"]) for one in found["items"]]
        assert values == sorted(calls)[: len(values)]
        assert len(values) == min(len(calls), lists.CLOSE_KEPT)


def test_a_replay_writes_rows_again_that_the_changelog_may_lack() -> None:
    verdict, written = random_verdicts(1)[0], []

    class Recorded(MemoryRows):
        def put(self, table: str, key: str, row: Row) -> None:
            written.append((table, key, row))
            super().put(table, key, row)

    kept = Recorded()
    apply(verdict, kept)
    first = list(written)
    apply(verdict, kept)
    assert written == first * 2


def test_an_older_verdict_changes_nothing() -> None:
    old, new = (dict(random_verdicts(1)[0], page_id=page_id) for page_id in (7, 8))
    kept = MemoryRows()
    apply(new, kept)
    before = {table: dict(held) for table, held in kept.tables.items()}
    apply(old, kept)
    listed = {key for key in kept.tables["entries"] if key not in before["entries"]}
    assert all(key.endswith(entries.newest(7)) for key in listed), "lists are in the order of ids"
    for key in listed:
        del kept.tables["entries"][key]
    assert kept.tables == before


def test_a_judgement_is_shown_after_the_page_came_again_unchanged() -> None:
    first = next(v for v in random_verdicts(50) if v["verdict"] == "near_duplicate")
    again = {**first, "page_id": first["page_id"] + 100, "verdict": "unchanged", "evidence": {}}
    again["standing"] = {"verdict": "near_duplicate", "cluster": first["cluster"]}
    kept = Mortal()
    for verdict in (first, again):
        apply(verdict, kept)
    shown = url_pages.url(Partitioned([kept]), first["url"], DECIDER)
    assert shown is not None
    assert shown["verdict"] == again
    assert shown["judged"] == first
    assert any("91%" in sentence for sentence in shown["words"])


def test_rows_are_bounded() -> None:
    kept = MemoryRows()
    for number in range(500):
        apply({**random_verdicts(1)[0], "verdict": "rejected", "reason": f"reason {number}", "page_id": number,
               "cluster": 1, "url": f"https://a.example/{number}" + "x" * number * 10}, kept)  # fmt: skip
    counts = kept.tables["counts"][EVERYTHING]
    assert len(counts["reasons"]) == view_rows.REASONS_KEPT + 1
    assert sum(counts["reasons"].values()) == 500
    cluster = kept.tables["clusters"]["1"]
    assert sum(map(len, cluster["members"])) <= view_rows.MEMBER_CHARS_KEPT
    assert len(cluster["members"]) + cluster["more"] == 500
    found = url_pages.cluster(Partitioned([_as_mortal(kept)]), 1)
    assert found is not None
    assert not found["complete"]


def test_originals_are_bounded_and_those_with_most_stay() -> None:
    kept, first = MemoryRows(), next(v for v in random_verdicts(50) if v["verdict"] == "near_duplicate")
    for number in range(200):
        original = "https://a.example/template" if number % 2 else f"https://a.example/{number}" + "x" * 10_000
        verdict = {**first, "page_id": number, "site": "a.example", "representative": {"url": original}}
        apply(verdict, kept)
    row = kept.tables["lists"][lists.key("suppressed", "a.example")]
    assert len(row["originals"]) <= 2 * lists.ORIGINALS_KEPT
    assert lists.suppressed_of([row])["originals"]["https://a.example/template"] == 100
    assert len(str(row)) < 3 * lists.ORIGINALS_KEPT * (lists.CHARS_KEPT + 200)


def _as_mortal(kept: MemoryRows) -> Mortal:
    out = Mortal()
    out.tables = kept.tables
    return out


@pytest.mark.parametrize(
    "broken", [{}, {"page_id": 1, "n": 0}, [], None, {"page_id": "x", "n": 0, "verdict": "", "url": ""}]
)
def test_foreign_record_is_refused_whole(broken: Any) -> None:
    kept = MemoryRows()
    with pytest.raises((KeyError, TypeError, ValueError)):
        apply(broken, kept)
    assert not any(kept.tables.values())


@pytest.mark.parametrize("seed", range(5))
def test_a_url_that_added_partitions_moved_has_one_row(seed: int) -> None:
    chance, verdicts = random.Random(seed), random_verdicts(300, seed)
    parts, whole = [MemoryRows() for _ in range(PARTITIONS)], MemoryRows()
    for verdict in verdicts:
        for held in (chance.choice(parts), whole):
            apply(verdict, held, emitted_at(verdict), CLOSENESS)
    for url in {verdict["url"] for verdict in verdicts}:
        held = [row for part in parts if (row := part.get("urls", url)) is not None]
        assert view_rows.url_of(held) == view_rows.url_of([whole.tables["urls"][url]])


def test_a_page_that_was_taken_down_leaves_its_url_alone() -> None:
    secret = {
        **random_verdicts(1)[0],
        "url": "http://site1.example/1",
        "verdict": "unique",
        "title": "Secret",
        "cluster": 3,
    }
    gone = {"version": 1, "verdict": "gone", "page_id": 9 << 12, "n": 1, "url": secret["url"], "reason": "taken down"}
    gone |= {name: secret[name] for name in ("fetched_at", "scheme", "decider")}
    again = {**secret, "page_id": 10 << 12, "title": "Wool"}
    one, other = MemoryRows(), MemoryRows()
    for held, verdict in ((one, secret), (one, again), (other, gone)):  # `again` came by a partition that had `secret`
        apply(verdict, held)
    plain = MemoryRows()
    for verdict in (secret, gone):
        apply(verdict, plain)
    row = view_rows.url_of([plain.tables["urls"][secret["url"]]])
    assert row is not None
    assert (row["judged"], row["history"]) == (None, [[9 << 12, 1, "gone", secret["fetched_at"]]])
    assert "Secret" not in str(plain.tables["urls"])
    apply(again, plain)
    assert view_rows.url_of([plain.tables["urls"][secret["url"]]]) == view_rows.url_of(
        [held.tables["urls"][secret["url"]] for held in (one, other)]
    )
