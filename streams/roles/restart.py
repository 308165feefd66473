"""Where a matcher goes on, or why it must not: the store, the committed offset, the log and the verdicts compared.

Offsets are of the sketch log, always of the next message: `begin <= store <= committed <= end` when all is well. What
lies between store and committed is folded in silence, for its verdicts are out; what lies behind is judged live.
"""

from dataclasses import dataclass

from neardup.errors import StateError
from streams.errors import PositionLost

_REBUILD = "restore a checkpoint of the index that the log still covers, or begin another generation"


@dataclass(frozen=True, slots=True)
class Told:
    """The last committed verdict: the offset after the message that caused it, and what judged it."""

    next_offset: int
    scheme: str
    decider: str


@dataclass(frozen=True, slots=True)
class Standing:
    """What is found at a start. store: next offset of the index, 0 for a new one; store_told: the offset after the last
    message in it that had verdicts. committed: None if there is none, or it has expired. begin, end: of the log. told:
    None if no verdict was ever committed, or all have expired.
    """

    log: str
    verdicts: str
    state: str
    store: int
    store_told: int
    committed: int | None
    begin: int
    end: int
    told: Told | None


def resume_at(found: Standing, *, scheme: str, decider: str) -> int:
    """The offset up to which verdicts are out. Raises StateError or PositionLost, saying what to do."""
    committed = found.committed
    if committed is None:
        committed = _recovered(found)
    if found.store > committed:
        raise StateError(
            f"the index in {found.state} was folded up to offset {found.store} of topic {found.log}, and verdicts are "
            f"committed up to {committed} only: it belongs to another group, or offsets were reset; name the index's "
            f"own group, or delete {found.state} to fold the log anew"
        )
    if committed > found.end:
        raise PositionLost(
            f"topic {found.log} ends at offset {found.end}, and verdicts are committed up to {committed}: messages are "
            "lost, or the topic was made anew; restore it, or begin another generation"
        )
    if found.store < found.begin:
        why = f"topic {found.log} begins at offset {found.begin}, and the index in {found.state} needs {found.store}"
        raise PositionLost(f"{why}: retention has overtaken it; {_REBUILD}")
    told = found.told
    if told is not None and found.store < min(committed, told.next_offset):
        for what, held, wanted in (("scheme", told.scheme, scheme), ("decider", told.decider, decider)):
            if held != wanted:
                raise StateError(
                    f"the last verdict in topic {found.verdicts} was made with {what} {held}, and {wanted} is set: "
                    f"folding offsets {found.store} to {committed - 1} anew would lead to another index than theirs; "
                    "set what they were made with, or begin another generation"
                )
    return committed


def _recovered(found: Standing) -> int:
    """The committed offset from the verdicts themselves: messages after the last one's may only be without any."""
    told = found.told.next_offset if found.told else 0
    if found.store > told and found.store_told != told:
        raise StateError(
            f"no offset is committed for topic {found.log}, topic {found.verdicts} holds verdicts up to offset {told}, "
            f"and the index in {found.state} made some up to {found.store_told}: verdicts are lost, or these are "
            f"another generation's; delete {found.state} to fold the log anew and publish what is missing"
        )
    return max(told, found.store)
