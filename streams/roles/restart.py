"""Where a matcher goes on, or why it must not: the store, the committed offset, the log and the verdicts compared.

Offsets are of the sketch log, always of the next message: `begin <= store <= committed <= end` when all is well. What
lies between store and committed is folded in silence, for its verdicts are out; what lies behind is judged live.

All of them are places in two topics, by their ids (`Hop`): places in another log are never taken for places in this
one, whatever directory or group holds them; and offsets of verdicts that went with their topic say nothing of the new
one. An offset without a hop was set by hand, and is meant.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from neardup.decider import Decider
from neardup.errors import StateError
from neardup.limits import PLACE_BITS
from streams.errors import LOG_LOST, NEW_GENERATION, PositionLost, TopicError
from streams.pipeline.deciders import DeciderChanges, decider_at
from streams.pipeline.matcher import Matcher
from streams.ports import Committed, Hop

#: The flag of `neardup match` that says so.
ACCEPT_LOST = "--accept-lost-verdicts"


@dataclass(frozen=True, slots=True)
class Told:
    """The last committed verdict: the offset after the message that caused it, that message's log, what judged it."""

    next_offset: int
    log: str
    scheme: str
    decider: str


@dataclass(frozen=True, slots=True)
class Newest:
    """What the verdicts' topic ends with. told: the newest one, None if there is none. logs: whose the newest ones of
    its partitions are. emptied: newer ones may be gone from a partition: retention has left nothing in it, or an
    operator's null record stands behind what is left, where compaction removes the verdict that it deletes.
    """

    told: Told | None = None
    logs: frozenset[str] = frozenset()
    emptied: bool = False


def newest_of(verdicts: Mapping[int, Mapping[str, Any]], begins: Mapping[int, int], deleted: bool = False) -> Newest:
    """verdicts: the newest one of each partition that has one. begins: the first offset of every partition. deleted:
    whether a partition ends with a null record."""
    emptied = deleted or any(begin and partition not in verdicts for partition, begin in begins.items())
    if not verdicts:
        return Newest(emptied=emptied)
    last = max(verdicts.values(), key=lambda verdict: int(verdict["page_id"]))
    log, offset = str(last.get("log", "")), int(last["page_id"]) >> PLACE_BITS
    logs = frozenset(str(verdict.get("log", "")) for verdict in verdicts.values())
    return Newest(Told(offset + 1, log, last["scheme"], last["decider"]), logs, emptied)


@dataclass(frozen=True, slots=True)
class Standing:
    """What is found at a start.

    log, verdicts, state: their names. hop: the topics as they are now. store: next offset of the index, 0 for a new
    one; store_told: the offset after the last message in it that had verdicts; store_hop: what it was folded from and
    for, None for a new one. committed: None if there is none, or it has expired. begin, end: of the log.
    """

    log: str
    verdicts: str
    state: str
    hop: Hop
    store: int
    store_told: int
    store_hop: Hop | None
    committed: Committed | None
    begin: int
    end: int
    newest: Newest


def resume_at(found: Standing, *, scheme: str, first: str, decider: str, accept_lost: bool = False) -> int:
    """The offset up to which verdicts are out. Raises StateError, TopicError or PositionLost, saying what to do.

    scheme: of this run. first, decider: what decides, by this run, from the log's begin on, and at the last verdict.
    accept_lost: the operator's word that verdicts which were told and are gone are not to be told again.
    """
    _same_log(found)
    if found.store < found.begin:  # first of all: words about the decider may be gone, too
        why = f"topic {found.log} begins at offset {found.begin}, and the index in {found.state} needs {found.store}"
        raise PositionLost(f"{why}: retention has overtaken it; {LOG_LOST}")
    known = found.committed
    if known is not None and known.first not in ("", first) and known.offset:
        what = f"verdicts on topic {found.log} were committed with decider {known.first} from the log's begin on, and "
        if found.store:
            raise StateError(
                f"{what}the index in {found.state} was folded with {first}: it is another one's; name the `state` "
                f"folder that belongs to them, or {NEW_GENERATION}"
            )
        raise StateError(
            f"{what}{first} is set: another index would come of it; set what they were made with, or {NEW_GENERATION}"
        )
    committed = _committed(found, accept_lost)
    if found.store > committed:
        if not accept_lost:
            raise StateError(
                f"the index in {found.state} was folded up to offset {found.store} of topic {found.log}, and verdicts "
                f"are committed up to {committed} only: offsets were reset, or lost with their broker; "
                + _again(found, committed, found.store)
            )
        committed = found.store
    if committed > found.end:
        raise PositionLost(
            f"topic {found.log} ends at offset {found.end}, and verdicts are committed up to {committed}: messages are "
            f"lost; {NEW_GENERATION}"
        )
    told = found.newest.told
    if told is not None and found.store < told.next_offset:
        for what, held, wanted in (("scheme", told.scheme, scheme), ("decider", told.decider, decider)):
            if held != wanted:
                raise StateError(
                    f"the last verdict in topic {found.verdicts} was made with {what} {held}, and {wanted} is set: "
                    f"offsets {found.store} to {told.next_offset - 1} anew would lead to another index than theirs; "
                    f"set what they were made with, or {NEW_GENERATION}"
                )
    return committed


def check_said_by(
    log: str, first: Decider, matcher: Matcher, words: DeciderChanges, newest: Newest, known: Committed | None
) -> None:
    """Raises StateError unless this log, `first`, and the control records made the committed verdicts: for a replay.

    log: its topic id. matcher: before it folds on; a checkpoint has told it the decider at its offset. words: control
    records from that offset on; retention may have removed those before it.
    """
    logs = set(newest.logs)
    held = []
    if known is not None and known.hop is not None and known.offset:
        logs.add(known.hop.source.hex())
        held.append(("decider", known.first, first.digest))
    if logs - {log}:
        raise StateError(
            f"what was said was said of the log of topic id {min(logs - {log})}, and it has {log}: it was deleted and "
            f"made anew, and says nothing of that; {NEW_GENERATION}"
        )
    if newest.told is not None and newest.told.next_offset >= matcher.next_offset:
        then = decider_at(matcher.decider, words, newest.told.next_offset)
        held += [("scheme", newest.told.scheme, then.scheme), ("decider", newest.told.decider, then.digest)]
    for what, was, now in held:
        if was != now:
            raise StateError(
                f"what was said was made with {what} {was}, and {now} is set; set what it was: a replay repeats what "
                "was said",
            )


def _same_log(found: Standing) -> None:
    """Raises StateError where anything names places in another log."""
    now = found.hop.source.hex()
    where: list[tuple[str, str]] = []
    if found.store_hop is not None and found.store:
        where.append((f"the index in {found.state} was folded from", found.store_hop.source.hex()))
    if found.committed is not None and found.committed.hop is not None and found.committed.offset:
        where.append(("verdicts were committed for", found.committed.hop.source.hex()))
    where += [(f"topic {found.verdicts} has verdicts on", log or "(none named)") for log in sorted(found.newest.logs)]
    for what, held in where:
        if held != now:
            raise StateError(
                f"{what} the log of topic id {held}, and topic {found.log} has {now}: it was deleted and made anew, or "
                f"a name is set that is another's; set what belongs together, or {NEW_GENERATION}"
            )


def _committed(found: Standing, accept_lost: bool) -> int:
    """The offset up to which the verdicts' topic, as it is now, was told."""
    known = found.committed
    if known is None:
        return _recovered(found, accept_lost)
    if known.hop is None or known.hop.sink == found.hop.sink:
        return known.offset
    return _of_another(found, known.hop, known.offset, accept_lost)


def _recovered(found: Standing, accept_lost: bool) -> int:
    """The committed offset where it has expired. What the index has judged was told: it is never ahead of that.

    Verdicts of newer messages are folded in silence. Where retention took the newest ones, the index still knows; where
    nothing was taken, and yet the topic lacks what the index has judged, that was lost.
    """
    if found.store and found.store_hop is not None and found.store_hop.sink != found.hop.sink:
        return _of_another(found, found.store_hop, found.store, accept_lost)
    newest = found.newest
    told = newest.told.next_offset if newest.told else 0
    if found.store_told > told and not newest.emptied and not accept_lost:
        raise StateError(
            f"topic {found.verdicts} holds verdicts up to offset {told} of topic {found.log}, and the index in "
            f"{found.state} has made some up to {found.store_told}: they are lost; "
            + _again(found, told, found.store_told)
        )
    return max(told, found.store)


def _of_another(found: Standing, hop: Hop, offset: int, accept_lost: bool) -> int:
    """The same where verdicts up to `offset` were told to a topic that is no more."""
    told = found.newest.told
    # A matcher that was at work when it went may have told the new topic some.
    end = max(offset, told.next_offset if told else 0)
    if accept_lost:
        return max(end, found.store)
    if not found.store and told is None:
        return 0  # all that the log holds is judged and told to the new topic
    if found.store >= end and not found.store_told:
        return found.store  # nothing was told yet
    end = max(end, found.store_told)  # a copy of the index may know of more
    raise TopicError(
        f"topic {found.verdicts} was deleted and made anew (id {hop.sink.hex()}, now {found.hop.sink.hex()}): what was "
        f"told up to offset {end} of topic {found.log} is gone with the old one; {_again(found, 0, end)}"
    )


def _again(found: Standing, start: int, stop: int) -> str:
    """How verdicts of these messages, which are gone, are told again, and how to go on without them."""
    again = (
        f"say them again: neardup replay --from {start} --to {stop} --to-topic {found.verdicts}"
        if not found.begin
        else NEW_GENERATION
    )
    return f"to have them told again, {again}; to go on then, or without them, start once with {ACCEPT_LOST}"
