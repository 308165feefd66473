"""A page of another owner that is crawled first hides no page that it may be made of: what it adds is bounded."""

import random
from dataclasses import replace
from typing import NamedTuple

import pytest

from neardup import Page, Scheme, open_index
from neardup.decider import Decider
from neardup.urls import owner_of

SCHEME = Scheme(seed=12)
DEFAULT = Decider(SCHEME.digest)
#: Victim and copier, each pair of two owners.
OWNERS = {
    "two sites": ("https://a.example/wool", "https://b.test/wool"),
    "two hosts of a site": ("https://ann.tumblr.com/wool", "https://bob.tumblr.com/wool"),
    "two users of a host": ("https://medium.com/@ann/wool", "https://medium.com/@bob/wool"),
    "two homes": ("https://www.uni.example/~ann/wool.html", "https://www.uni.example/~bob/wool.html"),
    "two users' folders": ("https://forum.example/users/ann/wool", "https://forum.example/users/bob/wool"),
}


def words(count, name, seed=1, many=3000):
    rng = random.Random(f"{name} {seed}")
    return [f"{name}{rng.randrange(many)}" for _ in range(count)]


def article(count, seed):
    """A text of which a third are frequent words."""
    rng = random.Random(seed)
    return [f"the{rng.randrange(40)}" if rng.random() < 0.3 else f"word{rng.randrange(9000)}" for _ in range(count)]


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
    emitted = judged(spammed(share), ORIGINAL)
    assert (emitted.verdict, emitted.content_of.url) == ("same_content", "https://b.test/wool")
    assert emitted.evidence["by"] == "adds"
    assert emitted.evidence["adds"] == pytest.approx(share, abs=0.02)
    assert emitted.evidence["score"] > emitted.evidence["demand"] == 0.7


def test_version_1_of_the_rule_keeps_an_original_and_its_longer_copy_apart():
    emitted = judged(spammed(0.25), ORIGINAL, decider=replace(DEFAULT, rule_version=1))
    assert emitted.verdict == "unique"
    nearest = emitted.evidence["nearest"]
    assert (nearest["by"], nearest["url"]) == ("added", "https://b.test/wool")
    assert nearest["adds"] == pytest.approx(0.25, abs=0.02)


def test_copies_of_an_original_are_found_behind_it_though_a_longer_copy_came_first():
    """The original has the same content as the longer copy, and a cluster of its own."""
    emitted = judged(spammed(0.25), ORIGINAL, page("https://c.test/wool", TEXT[:390], words(10, "other", 3)))
    assert (emitted.verdict, emitted.representative.url) == ("near_duplicate", ORIGINAL.url)


class Attack(NamedTuple):
    """What a copier does with a text. drop: share of it that goes, in one block; add: as much as a share of it, of
    other words, at the end; keywords: so many words, each repeated so often, spread over the text; own: what is added
    are sentences and words of the text itself."""

    tokens: int
    drop: float = 0.0
    add: float = 0.0
    keywords: tuple[int, int] = (0, 0)
    own: bool = False

    def copy(self, text, seed):
        rng = random.Random(seed)
        dropped = int(self.drop * len(text))
        at = rng.randrange(len(text) // 4, len(text) // 2)
        added, (many, times) = int(self.add * len(text)), self.keywords
        more = text[:added] if self.own else words(added, "spam", seed)
        out = text[:at] + text[at + dropped :] + more
        for word in (rng.sample(sorted(set(text)), many) if self.own else words(many, "keyword", seed)) * times:
            out.insert(rng.randrange(len(out) // 4, len(out)), word)
        return out


ATTACKS = [
    *(Attack(tokens, *shares) for tokens in (400, 3000) for shares in [(0.055, 0.26), (0.08, 0.22), (0.1, 0.2)]),
    *(Attack(3000, 0.06, 0.1, (5, 60)), Attack(3000, 0.13, 0.0, (10, 60))),
    *(Attack(1500, keywords=(6, 60)), Attack(3000, keywords=(10, 60)), Attack(3000, keywords=(20, 140))),
    *(Attack(400, add=0.2, own=True), Attack(3000, 0.05, 0.25, own=True), Attack(1500, keywords=(1, 500), own=True)),
]


@pytest.mark.parametrize("attack", ATTACKS, ids=str)
def test_no_way_to_add_more_hides_a_page(attack):
    """Of several victims, whatever owners' pages are."""
    for seed, urls in enumerate(OWNERS.values()):
        text = article(attack.tokens, seed)
        original, copy = page(urls[0], text), page(urls[1], attack.copy(text, seed))
        assert judged(copy, original).verdict in ("unique", "same_content"), (urls, seed)
    assert judged(original, page("https://c.test/wool", text)).verdict == "exact_duplicate"


@pytest.mark.parametrize("urls", OWNERS.values(), ids=OWNERS)
def test_a_longer_copy_after_its_original_is_a_copy(urls):
    assert judged(ORIGINAL, spammed(0.25)).verdict == "near_duplicate"
    assert judged(page(urls[0], TEXT), spammed(0.25, "https://c.test/wool")).verdict == "near_duplicate"


@pytest.mark.parametrize("share", [0.05, 0.15])
def test_little_more_is_no_reason(share):
    """A date, lines at the foot: a page that adds no more than that is a copy, whichever came first."""
    assert judged(spammed(share), ORIGINAL).verdict == "near_duplicate"


@pytest.mark.parametrize("url", ["https://www.a.example/wool", "https://a.example/wool?print=1"])
def test_a_page_of_one_owner_may_have_been_longer(url):
    assert judged(spammed(0.25, url), ORIGINAL).verdict == "near_duplicate"


def test_how_much_may_be_added_is_a_number_of_the_decider():
    emitted = judged(spammed(0.25), ORIGINAL, decider=replace(DEFAULT, added_max=1.0))
    assert (emitted.verdict, emitted.evidence["by"]) == ("near_duplicate", "tape")


@pytest.mark.parametrize(
    ("url", "owner"),
    [
        ("https://ann.tumblr.com/post/17", "ann.tumblr.com/"),
        ("https://www.a.example:8080/@ann/wool?x=/~bob", "a.example/@ann"),
        ("http://user@a.example/~ann", "a.example/~ann"),
        ("http://[::1]:80/a/@ann", "[::1]/"),
        ("https://www.a.example/users/ann/wool?x=/y", "a.example/users/ann"),
        ("https://a.example/people/ann/", "a.example/people/ann"),
        ("https://a.example/users/ann", "a.example/"),
        ("https://a.example/user/install.html?x=/", "a.example/"),
        ("https://a.example/users//ann/", "a.example/"),
        ("https://a.example/users-of/ann/wool", "a.example/"),
        ("https://a.example/en/users/ann/wool", "a.example/"),
        ("http://www.a/", "a/"),
        ("file:///home/x", "/"),
    ],
)
def test_owners_of_urls(url, owner):
    assert owner_of(url) == owner
