"""Chooses the canonical member of a cluster by the present policy, with the reason, for the page of a cluster."""

from collections.abc import Sequence

from neardup.canonical import Choice, Member, choose
from neardup.standing import standing_of
from streams.views.lists import Facts, Row


def chosen(
    policy: Sequence[str], named: str | None, rows: Sequence[Row], problem: str = ""
) -> tuple[str | None, Facts | None]:
    """Return the canonical URL of a cluster and the reason.

    named: by the newest verdict. rows: of the present members. problem: why the policy is unknown.
    """
    members = [_member(row) for row in rows]
    choice = choose(members, policy) if policy else None
    if choice is not None:
        return choice.url, _why(choice)
    if named is None:
        return None, None
    row = next((row for row in rows if row["verdict"]["url"] == named), None)
    words = "the representative names it by rel=canonical"
    if row is None:
        words = "named by a verdict"
    elif standing_of(row["verdict"]).shown:
        words = "it is the representative, which names no other member by rel=canonical"
    return named, {"by": "verdict", "words": problem or words, "steps": []}


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
        fetched_at=verdict.get("fetched_at") or 0,
    )
