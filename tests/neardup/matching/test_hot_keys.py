"""Hot keys: an attacker that makes a page's keys hot hides no copies of it, and a template's pages meet none."""

import random
from dataclasses import replace

import pytest

from neardup import Page, open_index
from neardup.decider import Decider
from neardup.index import posting_rows
from neardup.index.column_families import Family
from neardup.rules.key_families import SIMILARITY_BYTES
from neardup.scheme import Scheme
from neardup.sketch.make_sketches import sketch_pages
from tests import whole
from tests.neardup.handmade import record, tombstone
from tests.neardup.story import SMALL, Story, endless, folded, in_any_slices

TITLE = "Wool and how to spin it"
SCHEME = Scheme(seed=7)
#: Pages to index, and later pages.
Crawl = tuple[list[Page], list[Page]]


def made_up(rng: random.Random, count: int, letter: str) -> list[str]:
    return [f"{letter}{rng.randrange(10**9):x}" for _ in range(count)]


def page(url: str, words: list[str]) -> Page:
    return Page(url, f"<title>{TITLE}</title><p>{' '.join(words)}".encode(), "text/html")


VICTIM = "http://victim.example/wool"


def poisoned(poison: int, sites: int, before: int, *, repeats: int = 1, junk: int = 220, seed: int = 5) -> Crawl:
    """Pages of an attacker that repeat a page's text and add junk, the page among them, and 20 later copies of it.

    Args:
        sites: number of sites of the attacker.
        before: number of the attacker's pages that are crawled before the page.
    """
    rng = random.Random(seed)
    text = made_up(rng, 300, "w")
    pages = [page(f"http://p{i % sites}.example/{i}", text * repeats + made_up(rng, junk, "j")) for i in range(poison)]
    pages.insert(before, page(VICTIM, text))
    copies = []
    for i in range(20):
        words = list(text)
        for place in rng.sample(range(20, 300), 8):
            words[place] = f"e{i}"
        copies.append(page(f"http://copy{i}.example/wool", words))
    return pages, copies


def found(pages: list[Page], copies: list[Page]) -> int:
    """Number of copies whose representative is the page."""
    with open_index(scheme=SCHEME) as index:
        index.add(pages)
        verdicts = index.add(copies)
    kinds = [one for one in verdicts if one.verdict == "near_duplicate" and one.representative]
    return sum(one.representative is not None and one.representative.url == VICTIM for one in kinds)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("repeats", "junk", "sites"), whole.first([(1, 220, 800), (3, 10, 1), (1, 220, 1), (1, 130, 800)], 2)
)
def test_poison_that_is_crawled_after_a_page_hides_no_copies(repeats: int, junk: int, sites: int) -> None:
    assert found(*poisoned(800, sites, 0, repeats=repeats, junk=junk)) == 20


@pytest.mark.slow
@pytest.mark.parametrize(("sites", "before"), whole.first([(7, 800), (7, 3), (1, 800), (7, 400)], 2))
def test_poison_of_seven_sites_that_is_crawled_before_a_page_hides_no_copies(sites: int, before: int) -> None:
    assert found(*poisoned(800, sites, before)) == 20


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sites", "seed", "copies"),
    whole.first([(20, 8, 0), (8, 11, 4), (8, 6, 19), (20, 6, 15), (100, 8, 0), (100, 6, 15)], 2),
)
def test_poison_of_eight_sites_that_is_crawled_before_a_page_hides_copies(sites: int, seed: int, copies: int) -> None:
    """The limit that `neardup/limits.md` states: the least and the most of seeds 1 to 12, with `junk` 130 and 220."""
    assert found(*poisoned(800, sites, 800, seed=seed)) == copies


def test_without_kept_postings_of_hot_keys_copies_are_hidden() -> None:
    before, copies = poisoned(200, 200, 0, junk=130)
    # With kept postings, a lower score, or blocks of simhashes the copies are found.
    decider = Decider(scheme=SCHEME.digest, hot_postings_kept=0, two_sites_tape_min=0.74, blocks_posted=0)
    verdicts, store = folded(sketch_pages([*before, *copies], SCHEME), endless(100), decider=decider)
    assert posting_rows.HOT in dict(store.scan(Family.KEYS)).values()
    assert not any(one.cluster == 1 for one in verdicts[-20:])


FEW = replace(SMALL, postings_max=2, hot_postings_kept=1)
HEAD = "one two three four five six seven eight "


def stranger(i: int, site: str = "", words: str = "p") -> bytes:
    """A page of a text of its own, that begins like the others."""
    return record(f"http://{site or f's{i}'}.org/{i}", HEAD + " ".join(f"{words}{i}w{j}" for j in range(60)))


def test_hot_keys_bring_no_candidates_of_one_site_or_equal_beginnings() -> None:
    story = Story(*(stranger(i, "one") for i in range(5)), stranger(5), decider=FEW)
    assert [len(trace.candidates) for trace in story.traces] == [0, 1, 2, 0, 0, 0]
    every = Story(*(stranger(i, "one") for i in range(5)), stranger(5), decider=replace(FEW, hot_c_min=0))
    assert [len(trace.candidates) for trace in every.traces] == [0, 1, 2, 0, 0, 1]
    (met,) = every.traces[5].candidates
    assert (met.page_id, met.families) == (1, {"head": 1})


def test_a_page_that_a_hot_key_keeps_leaves_it_when_it_goes() -> None:
    pages = [stranger(i) for i in range(4)]
    later = [tombstone("http://s0.org/0", at=1), stranger(9), tombstone("http://s9.org/9", at=1)]
    story = Story(*pages, *later, decider=replace(FEW, hot_c_min=0))
    assert [len(trace.candidates) for trace in story.traces if trace.page_id in (4, 6)] == [1, 0]
    assert [row for row in story.state.postings.values() if posting_rows.is_hot(row)] == [posting_rows.HOT]


@pytest.mark.slow
def test_slicing_changes_nothing_where_keys_turn_hot() -> None:
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
    _, store = in_any_slices(records, 3, decider=decider)
    assert any(len(key) == SIMILARITY_BYTES and posting_rows.is_hot(row) for key, row in store.scan(Family.KEYS))
