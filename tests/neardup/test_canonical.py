"""Which member of a cluster an index should show: each criterion, their order, and what a policy's text may be."""

import random
from dataclasses import replace

import pytest

from neardup.canonical import CRITERIA, Criterion, Left, Member, choose, policy_of, policy_text
from neardup.errors import BadInput

ALL = tuple(CRITERIA)
OLD = Member("http://old.example/page", 1, "old.example")
SAFE = Member("https://safe.example/a/longer/page", 2, "safe.example")
SHORT = Member("http://s.example/", 3, "s.example")
STAR = Member("http://star.example/some/page", 4, "star.example", score=0.7)
SPAM = Member("http://spam.example/copy", 5, "spam.example")
FIVE = (OLD, SAFE, SHORT, STAR, SPAM)


@pytest.mark.parametrize(
    ("criterion", "winner"),
    [("https", SAFE), ("score", STAR), ("shorter-url", SHORT), ("first-seen", OLD)],
)
def test_each_criterion_alone(criterion: str, winner: Member) -> None:
    choice = choose(FIVE, (criterion,))
    assert choice is not None
    assert (choice.url, choice.by, choice.words) == (winner.url, criterion, CRITERIA[criterion].words)
    assert list(choice.steps) == [Left(criterion, 1)]


def names(member: Member, other: Member) -> Member:
    return replace(member, rel_canonical=other.url)


def test_rel_canonical_counts_both_ways() -> None:
    policy = ("rel-canonical", "first-seen")

    def shown(*members: Member) -> str:
        choice = choose(members, policy)
        assert choice is not None
        return choice.url

    assert shown(names(OLD, SHORT), SHORT) == SHORT.url, "the older one gives way to the page that it names"
    assert shown(OLD, names(SHORT, OLD), STAR) == OLD.url, "and is named itself"
    assert shown(OLD, SHORT, names(STAR, SHORT)) == SHORT.url, "another site's word"
    assert shown(names(OLD, SHORT), names(SHORT, STAR), STAR) == STAR.url, "the end of a chain"
    assert shown(names(OLD, SHORT), names(SHORT, OLD)) == OLD.url, "two that name each other: the next criterion"
    assert shown(replace(OLD, rel_canonical="http://elsewhere.example/"), SHORT) == OLD.url, "no member is named"
    assert shown(replace(OLD, rel_canonical=OLD.url), SHORT) == OLD.url, "a page that names itself says nothing"


def test_a_site_gains_nothing_by_naming_itself_over_and_over() -> None:
    chorus = [Member(f"{SPAM.url}/{i}", 10 + i, SPAM.site, rel_canonical=SPAM.url) for i in range(50)]
    choice = choose([OLD, SPAM, *chorus], ("rel-canonical", "first-seen"))
    assert choice is not None
    assert (choice.url, choice.by) == (OLD.url, "first-seen")
    assert list(choice.steps) == [Left("rel-canonical", 2), Left("first-seen", 1)]


def test_the_order_decides_and_not_that_of_the_members() -> None:
    more = [*FIVE, Member("https://safe.example/b", 6, "safe.example"), Member("https://x.example/bb", 7, "x.example")]
    wanted = {
        ALL: "https://x.example/bb",
        ("https", "first-seen"): SAFE.url,
        ("shorter-url", "https"): SHORT.url,
        ("score", "https"): STAR.url,
        (): OLD.url,
    }
    for policy, url in wanted.items():
        for seed in range(5):
            mixed = random.Random(seed).sample(more, len(more))
            choice = choose(mixed, policy)
            assert choice is not None
            assert choice.url == url, policy


def test_of_equals_the_first_one_is_shown() -> None:
    pair = [Member("https://b.example/1", 2), Member("https://a.example/1", 1)]
    choice = choose(pair, ("https", "shorter-url"))
    assert choice is not None
    assert (choice.url, choice.by, list(choice.steps)) == ("https://a.example/1", "first-seen", [])


def test_one_member_and_none() -> None:
    assert choose([], ALL) is None
    choice = choose([SPAM], ALL)
    assert choice is not None
    assert (choice.url, choice.by, list(choice.steps)) == (SPAM.url, "", [])


def test_a_criterion_of_ones_own() -> None:
    mine = {**CRITERIA, "mine": Criterion("it is mine", lambda members: [m.site != "spam.example" for m in members])}
    policy = policy_of("mine, https", mine)
    choice = choose(FIVE, policy, mine)
    assert choice is not None
    assert (choice.url, choice.words) == (SPAM.url, "it is mine")


def test_a_policys_text() -> None:
    assert policy_of(policy_text(ALL)) == ALL
    assert policy_of(" ") == ()
    with pytest.raises(BadInput, match=r"no criterion 'larger'; there is rel-canonical, https, score"):
        policy_of("https,larger")
    with pytest.raises(BadInput, match="repeated"):
        policy_of("https,score,https")
