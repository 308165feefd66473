"""Hot keys: who turns a stranger's keys hot hides no older page, and no template meets itself for it."""

import random
from dataclasses import replace

import pytest

from neardup import Page, open_index
from neardup.decider import Decider
from neardup.index.base import Family
from neardup.index.keys import is_hot
from neardup.index.memory import MemoryStore
from neardup.rules.families import SIMILARITY_BYTES
from neardup.scheme import Scheme
from neardup.sketch.making import sketch_pages
from tests.neardup.handmade import record, tombstone
from tests.neardup.story import SMALL, Story, endless, folded

TITLE = "Wool and how to spin it"
SCHEME = Scheme(seed=7)


def made_up(rng: random.Random, count: int, letter: str) -> list[str]:
    return [f"{letter}{rng.randrange(10**9):x}" for _ in range(count)]


def page(url: str, words: list[str]) -> Page:
    return Page(url, f"<title>{TITLE}</title><p>{' '.join(words)}".encode(), "text/html")


def poisoned(poison: int, repeats: int, junk: int, *, many_sites: bool) -> tuple[list[Page], list[Page]]:
    """A page, then others that begin like it, repeat its text and add junk; and 20 later copies of it elsewhere."""
    rng = random.Random(5)
    text = made_up(rng, 300, "w")
    before = [page("http://victim.example/wool", text)]
    for i in range(poison):
        host = f"p{i}.example" if many_sites else "poison.example"
        before.append(page(f"http://{host}/{i}", text * repeats + made_up(rng, junk, "j")))
    copies = []
    for i in range(20):
        words = list(text)
        for place in rng.sample(range(20, 300), 8):
            words[place] = f"e{i}"
        copies.append(page(f"http://copy{i}.example/wool", words))
    return before, copies


@pytest.mark.slow
@pytest.mark.parametrize(
    ("repeats", "junk", "many_sites"), [(1, 220, False), (1, 220, True), (1, 130, True), (3, 10, False)]
)
def test_none_of_the_copies_of_a_page_is_missed_for_pages_that_poison_its_keys(
    repeats: int, junk: int, many_sites: bool
) -> None:
    before, copies = poisoned(800, repeats, junk, many_sites=many_sites)
    with open_index(scheme=SCHEME) as index:
        index.add(before)
        told = index.add(copies)
    found = [one.representative.url for one in told if one.verdict == "near_duplicate" and one.representative]
    assert found == ["http://victim.example/wool"] * 20


def test_without_what_hot_keys_keep_they_would_be() -> None:
    before, copies = poisoned(200, 1, 130, many_sites=True)
    decider = Decider(scheme=SCHEME.digest, hot_postings_kept=0, two_sites_tape_min=0.74)  # else the copies are found
    verdicts, store = folded(sketch_pages([*before, *copies], SCHEME), endless(100), decider=decider)
    assert b"\x02" in dict(store.scan(Family.KEYS)).values()
    assert not any(one.cluster == 1 for one in verdicts[-20:])


FEW = replace(SMALL, postings_max=2, hot_postings_kept=1)
HEAD = "one two three four five six seven eight "


def stranger(i: int, site: str = "", words: str = "p") -> bytes:
    """A page of a text of its own, that begins like the others."""
    return record(f"http://{site or f's{i}'}.org/{i}", HEAD + " ".join(f"{words}{i}w{j}" for j in range(60)))


def test_pages_of_one_site_and_pages_that_only_begin_alike_meet_nobody_through_hot_keys() -> None:
    story = Story(*(stranger(i, "one") for i in range(5)), stranger(5), decider=FEW)
    assert [len(trace.candidates) for trace in story.traces] == [0, 1, 2, 0, 0, 0]
    every = Story(*(stranger(i, "one") for i in range(5)), stranger(5), decider=replace(FEW, hot_c_min=0))
    assert [len(trace.candidates) for trace in every.traces] == [0, 1, 2, 0, 0, 1]
    (met,) = every.traces[5].candidates
    assert (met.page_id, met.shared, met.families) == (1, 0, {"head": 1})


def test_a_page_that_a_hot_key_keeps_leaves_it_when_it_goes() -> None:
    pages = [stranger(i) for i in range(4)]
    later = [tombstone("http://s0.org/0", at=1), stranger(9)]
    story = Story(*pages, *later, decider=replace(FEW, hot_c_min=0))
    assert [len(trace.candidates) for trace in story.traces if trace.page_id in (4, 6)] == [1, 0]
    assert [row for row in story.state.postings.values() if is_hot(row)] == [b"\x02"]


@pytest.mark.slow
def test_slices_change_nothing_where_keys_turn_hot() -> None:
    rng = random.Random(3)
    texts = [HEAD + " ".join(f"t{t}w{j}" for j in range(50)) for t in range(3)]
    records = []
    for i in range(60):
        words = rng.choice(texts).split()
        for place in rng.sample(range(8, len(words)), rng.choice([0, 2, 12])):
            words[place] = f"n{i}"
        url = f"http://s{rng.randrange(6)}.org/{rng.randrange(30)}"
        records.append(record(url, " ".join(words), at=i) if rng.random() < 0.85 else tombstone(url, at=i))
    decider = replace(FEW, hot_postings_kept=2, hot_c_min=200)
    told, store = folded(records, endless(1), decider=decider)
    assert any(len(key) == SIMILARITY_BYTES and is_hot(row) for key, row in store.scan(Family.KEYS))
    for size in (2, 7, 60):
        again, other = folded(records, endless(size), decider=decider, store=MemoryStore())
        assert [one.to_json() for one in again] == [one.to_json() for one in told]
        assert dict(other.scan(Family.KEYS)) == dict(store.scan(Family.KEYS))
