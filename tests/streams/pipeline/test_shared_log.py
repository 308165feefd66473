"""Shards of one process read the log together: each message once, whatever their positions."""

import random

import pytest

from neardup.sharded.shard import Question
from streams.pipeline.shared_log import LogMessage, LogView, SharedLog
from tests.streams.scripted import Broker, ScriptedLog

MESSAGES = 40


def made(kept: int) -> tuple[SharedLog, list[int], list[ScriptedLog]]:
    """With the offsets that were decoded, and the readers that were made."""
    broker = Broker()
    broker.create("log", 1)
    for number in range(MESSAGES):
        broker.topics["log"].partitions[0].append(b"%d" % number)
    decoded: list[int] = []
    readers: list[ScriptedLog] = []

    def decode(offset: int, data: bytes) -> LogMessage:
        assert data == b"%d" % offset
        decoded.append(offset)
        return LogMessage(offset, len(data), 0, Question(offset, ()))

    def reader() -> ScriptedLog:
        readers.append(ScriptedLog(broker, "log"))
        return readers[-1]

    return SharedLog(reader, decode, kept), decoded, readers


def offsets(view: LogView, count: int) -> list[int]:
    return [message.offset for message in view.poll(count, bytes_max=1 << 20, wait_s=0)]


def test_shards_on_one_level_decode_each_message_once() -> None:
    shared, decoded, readers = made(8)
    views = [shared.view(0) for _ in range(4)]
    while views[0].position < MESSAGES:
        found = [offsets(view, 3) for view in views]
        assert found[1:] == found[:-1]
    assert decoded == list(range(MESSAGES))
    assert len(readers) == 1
    assert [view.lag() for view in views] == [0] * 4


@pytest.mark.parametrize("seed", range(20))
def test_each_shard_gets_all_messages_from_its_position_on(seed: int) -> None:
    chance = random.Random(seed)
    shared, _, _ = made(chance.choice([1, 2, 8]))
    starts = [chance.randrange(MESSAGES) for _ in range(4)]
    views = [shared.view(start) for start in starts]
    found: list[list[int]] = [[] for _ in views]
    while any(view.position < MESSAGES for view in views):
        number = chance.randrange(4)
        if views[number].position < MESSAGES or chance.random() < 0.5:
            found[number] += offsets(views[number], chance.randrange(1, 5))
        elif chance.random() < 0.2:  # it moves away, and comes back
            views[number].close()
            views[number] = shared.view(starts[number])
            found[number] = []
    assert found == [list(range(start, MESSAGES)) for start in starts]


def test_a_shard_that_is_behind_joins_the_others_once_it_has_caught_up() -> None:
    shared, decoded, readers = made(8)
    ahead, behind = shared.view(20), shared.view(0)
    assert offsets(ahead, 4) == [20, 21, 22, 23]
    while behind.position < 24:
        offsets(behind, 4)
    assert len(readers) == 2
    offsets(ahead, 4)
    offsets(behind, 4)
    assert decoded.count(24) == 1
