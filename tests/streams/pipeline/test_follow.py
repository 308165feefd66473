"""The loop over the log: the order of its steps, what a failure after each leaves behind, and what is put together."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from streams.formats.message import Control, Decision, encode_control
from streams.pipeline import follow as module
from streams.pipeline.follow import Batch, batched, follow

CONTROL = encode_control(Control(bytes(16), Decision.ACCEPT_GAP, 0))


class _Crash(Exception):
    pass


class _Ports:
    """A matcher and its ports, which note what is called. dies: the step that raises, before it has an effect."""

    def __init__(self, dies: str = "") -> None:
        self.done: list[tuple[Any, ...]] = []
        self._dies = dies

    def _do(self, step: str, *what: Any) -> None:
        if step == self._dies:
            raise _Crash
        self.done.append((step, *what))

    def prepare(self, messages: Sequence[tuple[int, bytes]], *, emit: bool = True) -> Any:
        offsets = [offset for offset, _ in messages]
        self._do("fold", offsets, emit)
        return SimpleNamespace(offsets=offsets)

    def emit(self, prepared: Any) -> None:
        self._do("emit", prepared.offsets)

    def apply(self, prepared: Any) -> None:
        self._do("write", prepared.offsets)

    def flush(self, messages: int) -> None:
        self._do("flush", messages)

    def follow(self, *batches: Batch) -> list[Any]:
        return [prepared and prepared.offsets for prepared in follow(batches, self, self.emit, self.flush)]


def test_follow_emits_before_it_writes() -> None:
    ports = _Ports()
    assert ports.follow(Batch([(4, b"a"), (6, b"b")])) == [[4, 6]]
    assert ports.done == [("fold", [4, 6], True), ("emit", [4, 6]), ("write", [4, 6]), ("flush", 2)]


def test_follow_emits_nothing_for_a_silent_batch() -> None:
    ports = _Ports()
    ports.follow(Batch([(0, b"a")], emit=False), Batch([(1, b"b")]))
    assert [step[:2] for step in ports.done if step[0] in ("emit", "write")] == [
        ("write", [0]),
        ("emit", [1]),
        ("write", [1]),
    ]


def test_follow_flushes_in_a_round_without_messages() -> None:
    ports = _Ports()
    assert ports.follow(Batch(())) == [None]
    assert ports.done == [("flush", 0)]


def test_follow_ends_a_batch_behind_each_control_record() -> None:
    ports = _Ports()
    data = [b"a", CONTROL, CONTROL, b"b", b"c"]
    assert ports.follow(Batch(list(enumerate(data)))) == [[0, 1], [2], [3, 4]]
    assert ports.follow(Batch([(5, CONTROL)])) == [[5]]


@pytest.mark.parametrize("step", ["fold", "emit", "write", "flush"])
def test_follow_does_no_step_behind_one_that_failed_and_is_over(step: str) -> None:
    ports = _Ports(step)
    rounds = follow([Batch([(0, b"a")]), Batch([(1, b"b")])], ports, ports.emit, ports.flush)
    with pytest.raises(_Crash):
        next(rounds)
    order = ["fold", "emit", "write", "flush"]
    assert [name for name, *_ in ports.done] == order[: order.index(step)]
    assert next(rounds, "over") == "over"


def test_follow_polls_the_log_again_only_after_the_round_before_was_taken() -> None:
    ports, polled = _Ports(), []

    def log() -> Any:
        for offset in range(2):
            polled.append(offset)
            yield Batch([(offset, b"a")])

    rounds = follow(log(), ports)
    next(rounds)
    assert polled == [0]
    next(rounds)
    assert polled == [0, 1]


def test_batched_bounds_messages_and_bytes_and_parts_emitting_from_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH_MESSAGES_MAX", 3)
    monkeypatch.setattr(module, "FOLD_BYTES_MAX", 10)
    sizes = [1, 1, 1, 1, 9, 2, 11, 1, 1]
    found = batched((offset, b"x" * size, offset > 7) for offset, size in enumerate(sizes))
    assert [([offset for offset, _ in messages], emit) for messages, emit in found] == [
        ([0, 1, 2], False),
        ([3, 4], False),
        ([5], False),
        ([6], False),
        ([7], False),
        ([8], True),
    ]
