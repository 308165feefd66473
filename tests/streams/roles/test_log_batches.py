"""Batches of the sketch log that a matcher and a standby poll, around the offset up to which verdicts are committed."""

from types import SimpleNamespace
from typing import Any

import pytest

from streams.config.settings import Settings
from streams.pipeline.follow import Batch
from streams.process.metrics import Metrics
from streams.roles.match_ports import MatcherLog
from streams.roles.standby import batches_before

END = 10


class _Log:
    """A log that holds messages at some offsets, as one that was compacted, or has transactions' markers."""

    def __init__(self, *offsets: int) -> None:
        self._offsets, self._at = offsets, 0

    def poll(self, count: int, **_: Any) -> list[tuple[int, bytes]]:
        found = [(offset, b"") for offset in self._offsets if offset >= self._at][:count]
        self._at = found[-1][0] + 1 if found else END
        return found

    def position(self) -> int:
        return self._at

    def lag(self) -> int:
        return 0

    def follow(self, start: int) -> None:
        self._at = start


def polled(log: _Log, committed: int, rounds: int, messages: int = 3) -> list[tuple[list[int], bool, bool]]:
    """Offsets of each batch, whether it emits, and whether the matcher is silent while it folds it."""
    matcher = SimpleNamespace(next_offset=0)
    runtime = SimpleNamespace(settings=Settings(match_messages=messages), metrics=Metrics())
    batches = MatcherLog(log, matcher, committed, runtime)  # type: ignore[arg-type]
    found = []
    for _, batch in zip(range(rounds), batches, strict=False):
        found.append(([offset for offset, _ in batch.messages], batch.emit, batches.silent))
        if batch.messages:
            matcher.next_offset = batch.messages[-1][0] + 1
    return found


def test_matcher_log_cuts_a_poll_at_the_committed_offset() -> None:
    assert polled(_Log(*range(5)), 2, 4) == [
        ([0, 1], False, True),
        ([2], True, False),
        ([3, 4], True, False),
        ([], True, False),
    ]


@pytest.mark.parametrize("held", [(0, 1, 5, 6), (0, 1, 4)])
def test_matcher_log_emits_behind_offsets_without_messages(held: tuple[int, ...]) -> None:
    """The last offsets before the committed one hold no message."""
    first, second, third = polled(_Log(*held), 4, 3, messages=2)
    assert (first, second) == (([0, 1], False, True), ([*held[2:]], True, False))
    assert third == ([], True, False)


def test_matcher_log_is_silent_until_all_committed_offsets_are_polled() -> None:
    assert polled(_Log(0), 4, 2)[1] == ([], True, False), "no message is left before the committed offset"

    class Slow(_Log):
        def poll(self, count: int, **_: Any) -> list[tuple[int, bytes]]:
            return []  # nothing within the wait

    assert polled(Slow(0), 4, 1)[0][2]


def offsets(batches: list[Batch]) -> list[int]:
    assert not any(batch.emit for batch in batches)
    return [offset for batch in batches for offset, _ in batch.messages]


def test_standby_polls_up_to_the_committed_offset_and_goes_on_there() -> None:
    log = _Log(0, 1, 3, 5, 6)
    assert offsets(list(batches_before(log, 4, lambda: False))) == [0, 1, 3]  # type: ignore[arg-type]
    assert offsets(list(batches_before(log, 4, lambda: False))) == []  # type: ignore[arg-type]
    assert offsets(list(batches_before(log, 6, lambda: False))) == [5]  # type: ignore[arg-type]
    assert offsets(list(batches_before(log, 7, lambda: True))) == []  # type: ignore[arg-type]
    assert offsets(list(batches_before(log, 7, lambda: False))) == [6]  # type: ignore[arg-type]
