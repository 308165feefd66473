"""Where a matcher goes on, and each reason for not starting, with what to do about it."""

import dataclasses
from typing import Any

import pytest

from neardup.errors import StateError
from streams.errors import PositionLost, TopicError
from streams.ports import Committed, TopicIds
from streams.roles.match_start_checks import LastVerdict, StartState, VerdictsEnd, resume_at

LOG, VERDICTS, OTHER = b"l" * 16, b"v" * 16, b"o" * 16
IDS = TopicIds(LOG, VERDICTS)
ANOTHER_LOG, ANOTHER_SINK = TopicIds(OTHER, VERDICTS), TopicIds(LOG, OTHER)
AGAIN = (
    r"to restore them, emit them again: neardup replay --from {} --to {} --to-topic verdicts; then, "
    "or to continue without them, start once with --accept-lost-verdicts"
)


def last_verdict(
    next_offset: int, *, log: bytes = LOG, scheme: str = "s", decider: str = "d", emptied: bool = False
) -> VerdictsEnd:
    return VerdictsEnd(LastVerdict(next_offset, log.hex(), scheme, decider), frozenset([log.hex()]), emptied)


#: No problem: folded up to 10, emitted up to 12, the log ends at 20.
WELL = StartState("sketches", "verdicts", "/state", IDS, 10, 10, IDS, Committed(12, IDS), 0, 20, VerdictsEnd())
NEW: dict[str, Any] = {"store": 0, "store_emitted": 0, "store_topic_ids": None}
EXPIRED: dict[str, Any] = {"committed": None}


def at(*, accept_lost: bool = False, **changes: Any) -> int:
    if isinstance(changes.get("committed"), int):
        changes["committed"] = Committed(changes["committed"], IDS)
    found = dataclasses.replace(WELL, **changes)
    return resume_at(found, scheme="s", first="f", decider="d", accept_lost=accept_lost)


def test_start_offset_is_the_committed_one() -> None:
    assert at() == 12
    assert at(store=12) == 12
    assert at(store=0) == 12
    assert at(**NEW) == 12
    assert at(newest=last_verdict(12)) == 12
    assert at(committed=20) == 20
    assert at(committed=Committed(12, IDS, "f")) == 12
    assert at(**NEW, committed=Committed(0, IDS, "g")) == 0


def test_a_first_start() -> None:
    assert at(**NEW, **EXPIRED) == 0
    assert at(**NEW, **EXPIRED, end=0) == 0


def test_an_expired_offset_is_taken_from_the_last_verdict_or_the_index() -> None:
    assert at(**EXPIRED, newest=last_verdict(12)) == 12
    assert at(**EXPIRED, **NEW, newest=last_verdict(12)) == 12
    assert at(**EXPIRED, store=0, store_emitted=0, store_topic_ids=ANOTHER_SINK, newest=last_verdict(12)) == 12
    # The last messages in the store had no verdicts.
    assert at(**EXPIRED, newest=last_verdict(12), store=14, store_emitted=12) == 14
    assert at(**EXPIRED, store=3, store_emitted=0) == 3


def test_trimmed_verdicts_are_not_missed() -> None:
    assert at(**EXPIRED, newest=VerdictsEnd(emptied=True), begin=10) == 10
    assert at(**EXPIRED, newest=VerdictsEnd(emptied=True), begin=20, store=20) == 20
    assert at(**EXPIRED, newest=last_verdict(7, emptied=True)) == 10


def test_an_offset_that_was_set_by_hand_is_meant() -> None:
    assert at(committed=Committed(11)) == 11
    assert at(committed=Committed(15), store_topic_ids=ANOTHER_SINK) == 15


def test_new_verdict_topic_without_missing_verdicts() -> None:
    gone = Committed(12, ANOTHER_SINK)
    # Nothing was emitted yet.
    assert at(committed=gone, store=12, store_emitted=0) == 12
    assert at(**EXPIRED, store_topic_ids=ANOTHER_SINK, store_emitted=0) == 10
    # All of it is emitted again.
    assert at(committed=gone, **NEW) == 0
    # An index from before that; the line has gone on since.
    assert at(store_topic_ids=ANOTHER_SINK) == 12
    # On the operator's word.
    assert at(committed=gone, accept_lost=True) == 12
    assert at(committed=gone, store=14, accept_lost=True) == 14
    assert at(**EXPIRED, store_topic_ids=ANOTHER_SINK, accept_lost=True) == 10
    assert at(**EXPIRED, store_topic_ids=ANOTHER_SINK, newest=last_verdict(13), accept_lost=True) == 13
    assert at(store=13, accept_lost=True) == 13
    assert at(**EXPIRED, store=14, store_emitted=13, newest=last_verdict(12), accept_lost=True) == 14


def test_verdicts_that_were_replayed_before_the_start_are_not_emitted_again() -> None:
    """The operator follows the advice of an error, though another index was put in place of the refused one since."""
    assert at(**NEW, committed=0, newest=last_verdict(12), accept_lost=True) == 12
    assert at(committed=11, newest=last_verdict(12), accept_lost=True) == 12
    assert at(committed=13, newest=last_verdict(12), accept_lost=True) == 13
    assert at(committed=11, newest=last_verdict(12)) == 11
    assert at(committed=Committed(11), newest=last_verdict(12), accept_lost=True) == 11, "set by hand"


def test_a_place_that_is_no_place_yet_is_of_every_log() -> None:
    assert at(store=0, store_emitted=0, store_topic_ids=ANOTHER_LOG, committed=Committed(0, ANOTHER_LOG)) == 0


@pytest.mark.parametrize(
    ("changes", "error", "expected"),
    [
        ({"store": 13}, StateError, rf"folded up to offset 13 .* committed up to 12 only.*{AGAIN.format(12, 13)}"),
        ({"store": 13, "begin": 1}, StateError, r"committed up to 12 only.*to restore them, begin another generation"),
        ({"committed": 21}, PositionLost, r"ends at offset 20, .* up to 21: messages are lost; begin another generat"),
        (
            {"begin": 11},
            PositionLost,
            r"begins at offset 11, .* needs 10: retention .* restore a checkpoint",
        ),
        ({"begin": 13, "store": 12}, PositionLost, r"begins at offset 13, .* needs 12"),
        ({"begin": 9, "store": 8}, PositionLost, r"begins at offset 9, .* needs 8: retention .* restore a checkpoint"),
        ({**NEW, **EXPIRED, "begin": 1}, PositionLost, r"begins at offset 1"),
        (
            {"newest": last_verdict(12, decider="e")},
            StateError,
            r"with decider e, and d is set.*begin another generation",
        ),
        ({"newest": last_verdict(12, scheme="x")}, StateError, r"with scheme x, and s is set"),
        (
            {**EXPIRED, "store": 14, "store_emitted": 13, "newest": last_verdict(12)},
            StateError,
            rf"they are lost; {AGAIN.format(12, 13)}",
        ),
        ({**EXPIRED, "store": 3, "store_emitted": 2}, StateError, r"up to offset 0 .* up to 2"),
        (
            {**NEW, "committed": Committed(12, IDS, "g")},
            StateError,
            r"decider g from .*, and f is set: .*; set the former one",
        ),
        (
            {"committed": Committed(12, IDS, "g")},
            StateError,
            r"decider g from .* folded with f: .* name the `state` folder",
        ),
        (
            {**NEW, "committed": Committed(0), "newest": last_verdict(12, decider="e")},
            StateError,
            r"decider e, and d is set",
        ),
        # Another log, whichever position names it.
        (
            {"store_topic_ids": ANOTHER_LOG},
            StateError,
            r"was folded from the log of topic id 6f6f.*begin another generation",
        ),
        ({"committed": Committed(12, ANOTHER_LOG)}, StateError, r"committed for the log of topic id 6f6f"),
        (
            {**NEW, **EXPIRED, "newest": last_verdict(9, log=OTHER)},
            StateError,
            r"topic verdicts has verdicts on the log of top",
        ),
        (
            {**EXPIRED, "newest": dataclasses.replace(last_verdict(9), logs={"", LOG.hex()})},
            StateError,
            r"\(none named\)",
        ),
        # Another topic for the verdicts.
        (
            {"committed": Committed(12, ANOTHER_SINK)},
            TopicError,
            rf"up to offset 12 of .*are gone.*{AGAIN.format(0, 12)}",
        ),
        # An index from before; another one's are in the new topic.
        (
            {"committed": Committed(3, ANOTHER_SINK)},
            TopicError,
            rf"up to offset 10 of .*are gone.*{AGAIN.format(0, 10)}",
        ),
        # Some were emitted to the new one before the check; the index is lost.
        (
            {**NEW, "committed": Committed(12, ANOTHER_SINK), "newest": last_verdict(12)},
            TopicError,
            rf"up to offset 12 of .*are gone.*{AGAIN.format(0, 12)}",
        ),
        (
            {**EXPIRED, "store_topic_ids": ANOTHER_SINK},
            TopicError,
            rf"up to offset 10 of .*are gone.*{AGAIN.format(0, 10)}",
        ),
        (
            {"committed": Committed(12, ANOTHER_SINK), **NEW, "begin": 1},
            PositionLost,
            r"begins at offset 1, .* needs 0",
        ),
        (
            {"committed": Committed(12, ANOTHER_SINK), "begin": 1},
            TopicError,
            r"to restore them, begin another generation",
        ),
    ],
)
def test_contradictory_offsets_are_refused(changes: dict[str, Any], error: type[Exception], expected: str) -> None:
    with pytest.raises(error, match=expected) as raised:
        at(**changes)
    if changes.get("begin"):
        assert "neardup replay" not in str(raised.value), "it needs the log's start"
    assert "delete" not in str(raised.value).replace("deleted and recreated", "")
