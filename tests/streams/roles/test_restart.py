"""Where a matcher goes on, and each reason for not starting, with what to do about it."""

import dataclasses

import pytest

from neardup.errors import StateError
from streams.errors import PositionLost
from streams.roles.restart import Standing, Told, resume_at

#: All is well: folded up to 10, told up to 12, the log goes to 20.
WELL = Standing("sketches", "verdicts", "/state", 10, 10, 12, 0, 20, None)


def at(**changes: object) -> int:
    return resume_at(dataclasses.replace(WELL, **changes), scheme="s", decider="d")  # type: ignore[arg-type]


def test_it_goes_on_from_what_is_committed() -> None:
    assert at() == 12
    assert at(store=12) == 12
    assert at(store=0) == 12
    assert at(told=Told(12, "s", "d")) == 12
    assert at(committed=20) == 20


def test_a_first_start() -> None:
    assert at(store=0, store_told=0, committed=None) == 0
    assert at(store=0, store_told=0, committed=None, end=0) == 0


def test_an_expired_offset_is_taken_from_the_last_verdict() -> None:
    told = Told(12, "s", "d")
    assert at(committed=None, told=told) == 12
    assert at(committed=None, told=told, store=0, store_told=0) == 12
    # The last messages in the store had no verdicts.
    assert at(committed=None, told=told, store=14, store_told=12) == 14
    assert at(committed=None, told=None, store=3, store_told=0) == 3


@pytest.mark.parametrize(
    ("changes", "error", "said"),
    [
        ({"store": 13}, StateError, r"folded up to offset 13 .* committed up to 12 only.*delete /state"),
        ({"committed": 21}, PositionLost, r"ends at offset 20, .* up to 21: messages are lost"),
        ({"begin": 11}, PositionLost, r"begins at offset 11, .* needs 10: retention .* restore a checkpoint"),
        ({"begin": 13, "store": 12}, PositionLost, r"begins at offset 13, .* needs 12"),
        ({"store": 0, "store_told": 0, "committed": None, "begin": 1}, PositionLost, r"begins at offset 1"),
        ({"told": Told(12, "s", "e")}, StateError, r"with decider e, and d is set.*begin another generation"),
        ({"told": Told(12, "x", "d")}, StateError, r"with scheme x, and s is set"),
        (
            {"committed": None, "store": 14, "store_told": 13, "told": Told(12, "s", "d")},
            StateError,
            r"verdicts are lost",
        ),
        ({"committed": None, "store": 3, "store_told": 2, "told": None}, StateError, r"up to offset 0, .* up to 2"),
    ],
)
def test_what_does_not_fit_together_is_refused(changes: dict[str, object], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        at(**changes)
