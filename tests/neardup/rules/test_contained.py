"""A page that stands, with more around it, in an older one of another site may be what that one was made of."""

import random
from dataclasses import replace

import pytest

from neardup import Page, Scheme, open_index
from neardup.decider import Decider

SCHEME = Scheme(seed=12)
DEFAULT = Decider(SCHEME.digest)


def words(count, name, seed=1):
    rng = random.Random(seed)
    return [f"{name}{rng.randrange(3000)}" for _ in range(count)]


def page(url, *texts):
    body = "<title>Wool keeps warm</title><p>" + " ".join(word for text in texts for word in text)
    return Page(url, body.encode(), "text/html", 1000)


TEXT = words(400, "word")
ORIGINAL = page("https://a.example/wool", TEXT)


def spammed(share, url="https://b.test/wool"):
    """The text with spam in its middle, as much as a share of it."""
    return page(url, TEXT[:200], words(int(share * len(TEXT)), "spam", 2), TEXT[200:])


def judged(*pages, decider=DEFAULT):
    with open_index(scheme=SCHEME, decider=decider) as index:
        return index.add(pages)[-1]


@pytest.mark.parametrize("share", [0.2, 0.25, 0.3])
def test_an_older_page_with_spam_added_hides_no_original(share):
    told = judged(spammed(share), ORIGINAL)
    assert told.verdict == "unique"
    nearest = told.evidence["nearest"]
    assert (nearest["by"], nearest["url"]) == ("contained", "https://b.test/wool")
    assert nearest["contained"] > 0.98
    assert 0.74 < nearest["score"] < 0.9


def test_the_other_way_round_it_is_a_copy():
    assert judged(ORIGINAL, spammed(0.25)).verdict == "near_duplicate"


@pytest.mark.parametrize("share", [0.05, 0.15])
def test_little_more_is_no_reason(share):
    """A date, lines at the foot: whoever adds no more than that is taken for a copy, whoever came first."""
    assert judged(spammed(share), ORIGINAL).verdict == "near_duplicate"


def test_on_one_site_a_page_may_have_been_longer():
    assert judged(spammed(0.25, "https://www.a.example/wool"), ORIGINAL).verdict == "near_duplicate"


def test_both_may_have_something_of_their_own():
    """Then the new page is no part of the older one."""
    mine = page("https://a.example/wool", TEXT[:-24], words(24, "mine", 3))
    assert judged(page("https://b.test/wool", TEXT, words(75, "more", 4)), mine).verdict == "near_duplicate"


def test_how_much_must_agree_is_a_number_of_the_decider():
    told = judged(spammed(0.25), ORIGINAL, decider=replace(DEFAULT, contained_tape_min=0.0))
    assert (told.verdict, told.evidence["by"]) == ("near_duplicate", "tape")
