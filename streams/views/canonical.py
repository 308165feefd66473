"""Which member of a cluster an index should show, by the policy that holds, and why: for the page of a cluster."""

from collections.abc import Sequence
from typing import Any

from neardup.canonical import Choice, Member, choose
from neardup.standing import standing_of
from streams.views.lists import Row

Facts = dict[str, Any]


def chosen(
    policy: Sequence[str], told: str | None, rows: Sequence[Row], problem: str = ""
) -> tuple[str | None, Facts | None]:
    """The canonical URL of a cluster, and why it is.

    told: what a verdict said last; rows: of the URLs that are in the cluster now. problem: why the policy is not known.
    """
    members = [_member(row) for row in rows]
    choice = choose(members, policy) if policy else None
    if choice is not None:
        return choice.url, _why(choice)
    if told is None:
        return None, None
    row = next((row for row in rows if row["verdict"]["url"] == told), None)
    words = "the representative names it by rel=canonical"
    if row is None:
        words = "a verdict said so"
    elif standing_of(row["verdict"]).shown:
        words = "it is the representative, which names no other member by rel=canonical"
    return told, {"by": "verdict", "words": problem or words, "steps": []}


def _why(choice: Choice) -> Facts:
    steps = [{"criterion": step.criterion, "members": step.members} for step in choice.steps]
    return {"by": choice.by, "words": choice.words, "steps": steps}


def _member(row: Row) -> Member:
    own, verdict = row["own"], row["verdict"]
    return Member(
        url=verdict["url"],
        first_seen=row["first"],
        site=verdict.get("site") or "",
        rel_canonical=own.get("rel_canonical"),
        score=own.get("score"),
    )
