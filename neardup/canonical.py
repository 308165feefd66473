"""Chooses the page of a cluster that an index should show, by a policy.

A policy is an ordered list of criteria. Each criterion keeps the best of the members that the previous criterion left.
The first criterion that leaves a single member decides. A policy reads only fields of verdicts, so a consumer can apply
a new policy to its verdicts. Without a policy, the field `canonical` of a verdict holds: the member that the
representative names by rel=canonical, else the representative.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from neardup.errors import BadInput


@dataclass(frozen=True, slots=True)
class Member:
    """A live page of a cluster."""

    #: URL of the page.
    url: str
    #: Page id of the first fetch of the URL; a smaller page id is earlier.
    first_seen: int
    #: Registrable domain of the URL.
    site: str = ""
    #: URL that the page names by rel=canonical; None if the page names no URL or its own URL.
    rel_canonical: str | None = None
    #: The crawler's score of the page, 0 to 1.
    score: float | None = None
    #: Time of the last fetch, ms since 1970.
    fetched_at: int = 0


#: Ranks all members of a cluster; a member whose value compares as less is better.
Ranks = Callable[[Sequence[Member]], Sequence[Any]]


class Criterion(NamedTuple):
    """A criterion. words: property of a kept member, as the end of a sentence that begins with "it"."""

    words: str
    ranks: Ranks


class Left(NamedTuple):
    """A criterion and the number of members that it left."""

    criterion: str
    members: int


@dataclass(frozen=True, slots=True)
class Choice:
    """The member that a policy prefers."""

    #: URL of the member.
    url: str
    #: Criterion that decided; empty if the cluster has one member.
    by: str
    #: The reason, as the end of a sentence that begins with "it".
    words: str
    #: Criteria that left out a member.
    steps: Sequence[Left] = field(default=())


def _rel_canonical(members: Sequence[Member]) -> Sequence[tuple[bool, int]]:
    """Rank members by the URLs that members name. A member that names another member ranks last. Of the other members,
    those that most other sites name rank first.

    Pages of a member's own site do not count, so a site gains nothing by naming its own copies.
    """
    urls = {member.url for member in members}
    aside = {member.url for member in members if member.rel_canonical in urls and member.rel_canonical != member.url}
    voices: dict[str, set[str]] = {url: set() for url in urls}
    for member in members:
        if member.url in aside and member.rel_canonical is not None:
            voices[member.rel_canonical].add(member.site)
    return [(member.url in aside, -len(voices[member.url] - {member.site})) for member in members]


CRITERIA: Mapping[str, Criterion] = {
    "rel-canonical": Criterion(
        "it names no other member by rel=canonical, or more sites name it than the others", _rel_canonical
    ),
    "https": Criterion(
        "it is served over HTTPS", lambda members: [not member.url.startswith("https:") for member in members]
    ),
    "score": Criterion(
        "the crawler gave it the highest score", lambda members: [-(member.score or 0.0) for member in members]
    ),
    "shorter-url": Criterion("its URL is the shortest", lambda members: [len(member.url) for member in members]),
    "newest": Criterion("it was fetched last", lambda members: [-member.fetched_at for member in members]),
    "first-seen": Criterion("it was seen first", lambda members: [member.first_seen for member in members]),
}


def policy_of(text: str, criteria: Collection[str] = tuple(CRITERIA)) -> tuple[str, ...]:
    """Return the names of the criteria of a policy. An empty text gives no criteria.

    Args:
        text: names with commas between them, such as `rel-canonical,https,first-seen`.
        criteria: known names.

    Raises:
        BadInput: if a criterion is unknown or repeated.
    """
    names = tuple(name.strip() for name in text.split(",")) if text.strip() else ()
    for name in names:
        if name not in criteria:
            raise BadInput(f"canonical policy: no criterion {name[:40]!r}; there is {', '.join(criteria)}")
    if len(set(names)) != len(names):
        raise BadInput(f"canonical policy {text[:200]!r}: a criterion is repeated")
    return names


def policy_text(policy: Sequence[str]) -> str:
    """Return the text that `policy_of` reads."""
    return ",".join(policy)


def choose(
    members: Sequence[Member], policy: Sequence[str], criteria: Mapping[str, Criterion] = CRITERIA
) -> Choice | None:
    """Return the member that a policy prefers, with the reason; None if there are no members.

    Of equal members the policy prefers the member that was seen first. The order of `members` has no effect.

    Args:
        members: members of one cluster.
        policy: names of criteria in their order.
        criteria: known criteria by name. Pass criteria of your own beside those of CRITERIA.

    Raises:
        KeyError: if the policy names an unknown criterion.

    Example:
        >>> members = [Member("http://a.example/", first_seen=1), Member("https://a.example/b", first_seen=2)]
        >>> choice = choose(members, ["https", "first-seen"])
        >>> choice.url, choice.by
        ('https://a.example/b', 'https')
    """
    if not members:
        return None
    if len(members) == 1:
        return Choice(members[0].url, "", "it is the only member")
    left = sorted(members, key=lambda member: (member.first_seen, member.url))
    steps: list[Left] = []
    for name in policy:
        ranks = dict(zip((member.url for member in members), criteria[name].ranks(members), strict=True))
        best = min(ranks[member.url] for member in left)
        kept = [member for member in left if ranks[member.url] == best]
        if len(kept) < len(left):
            steps.append(Left(name, len(kept)))
        left = kept
        if len(left) == 1:
            return Choice(left[0].url, name, criteria[name].words, steps)
    return Choice(left[0].url, "first-seen", CRITERIA["first-seen"].words, steps)
