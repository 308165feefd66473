"""Answers of all shards in step with the log, whatever shards write again, in whatever order."""

from collections.abc import Collection, Iterable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.errors import CorruptRecord, OtherVersion
from streams.formats.pieces import decode_piece, pieces_of
from streams.kafka.shard_answers import Beat
from streams.pipeline.answered_log import Lockstep
from tests.streams.scripted import ScriptedRecord

#: Bytes of a payload in one piece, so that answers have up to three.
PIECE = 4


def payload(shard: int, offset: int) -> bytes:
    """The answer of a shard: of 0 to 11 bytes."""
    return f"{shard}:{offset}:".encode() * (offset % 3)


class Partitions:
    """The topic in memory; `read` returns a few records at a time."""

    def __init__(self, count: int, most: int = 3) -> None:
        self.records: list[list[bytes]] = [[] for _ in range(count)]
        self.at = [0] * count
        self.seeks = 0
        self._most = most

    def write(self, shard: int, offsets: Iterable[int]) -> None:
        for offset in offsets:
            self.records[shard] += pieces_of(offset, payload(shard, offset), PIECE)

    def read(self, partitions: Collection[int], wait_s: float) -> list[ScriptedRecord]:
        found = []
        for partition in partitions:
            at = self.at[partition]
            held = self.records[partition][at : at + self._most]
            found += [ScriptedRecord((partition, at + i), None, value) for i, value in enumerate(held)]
            self.at[partition] += len(held)
        return found

    def seek(self, starts: Mapping[int, int]) -> None:
        self.seeks += 1
        for partition, start in starts.items():
            self.at[partition] = start

    def name(self, partition: int) -> str:
        return f"topic candidates, partition {partition}"

    def check(self) -> None:
        pass

    def ends(self) -> dict[int, int]:
        return dict(enumerate(map(len, self.records)))


def read_all(topic: Partitions, lockstep: Lockstep, offsets: Iterable[int]) -> None:
    """Each answer is there, and right."""
    for offset in offsets:
        found = None
        for _ in range(1 + sum(map(len, topic.records))):
            found = lockstep.take(offset)
            if found is not None:
                break
        assert found == [payload(shard, offset) for shard in range(len(topic.records))], lockstep.describe()


def test_the_first_answer_of_a_message_counts() -> None:
    topic = Partitions(2)
    topic.write(0, [0, 1, 2, 1, 2, 3])
    topic.write(1, [0, 1, 0, 1, 2, 3])
    read_all(topic, Lockstep(topic, {0: 0, 1: 0}, 0, 8), range(4))


def test_an_answer_that_comes_after_a_later_ones_is_found() -> None:
    """A shard that lost its folder answers from the log's start on, behind what it has answered."""
    topic = Partitions(1)
    topic.write(0, range(100, 200))
    topic.write(0, range(200))
    lockstep = Lockstep(topic, {0: 0}, 0, 8)
    read_all(topic, lockstep, range(200))


def test_memory_is_bounded_while_an_answer_is_missing() -> None:
    topic = Partitions(1)
    topic.write(0, range(1, 1000))
    lockstep = Lockstep(topic, {0: 0}, 0, 8)
    for _ in range(2000):
        assert lockstep.take(0) is None
    assert len(lockstep._shards[0].complete) < 8
    assert "shard 0" in lockstep.describe()
    assert "topic candidates, partition 0 has an answer to message 999" in lockstep.describe()
    topic.write(0, [0])
    read_all(topic, lockstep, range(1000))


def test_a_partition_is_read_little_ahead_while_its_answer_is_there() -> None:
    topic = Partitions(2)
    topic.write(0, range(100))
    lockstep = Lockstep(topic, {0: 0, 1: 0}, 0, 8)
    for _ in range(50):
        assert lockstep.take(0) is None
    assert topic.at[0] <= 12  # 8 answers ahead, in up to 3 pieces
    assert lockstep.awaited() == [1]
    assert lockstep.describe() == (
        "waits for the answer to message 0 of shard 1; see whether it runs. If it is ready, or waits for effects "
        "to answer a later message, the topic has lost its answer: start that shard once with --answer-from 0"
    )


def test_reading_in_step_never_goes_back() -> None:
    topic = Partitions(2)
    for shard in range(2):
        topic.write(shard, range(300))
    lockstep = Lockstep(topic, {0: 0, 1: 0}, 0, 8)
    read_all(topic, lockstep, range(300))
    assert topic.seeks == 1


def test_positions_lead_back_to_the_same_answers() -> None:
    topic = Partitions(2)
    topic.write(0, [*range(50), *range(30, 100)])
    topic.write(1, range(100))
    lockstep = Lockstep(topic, {0: 0, 1: 0}, 0, 8)
    read_all(topic, lockstep, range(60))
    assert lockstep.take(60) is not None
    again = Lockstep(topic, lockstep.positions(), 60, 8)
    read_all(topic, again, range(60, 100))


def test_messages_without_an_answer_are_left_out() -> None:
    """Offsets without a message, and control records."""
    topic = Partitions(1)
    topic.write(0, range(0, 100, 7))
    read_all(topic, Lockstep(topic, {0: 0}, 0, 16), range(0, 100, 7))


@given(st.data())
def test_any_repetition(data: st.DataObject) -> None:
    """Shards die and start again at any earlier message; writers of one shard overlap; the reader starts again."""
    count, shards = 40, data.draw(st.integers(1, 3))
    topic = Partitions(shards, data.draw(st.integers(1, 9)))
    for shard in range(shards):
        starts = [*data.draw(st.lists(st.integers(0, count - 1), max_size=3)), 0]
        writers = [
            [piece for offset in range(start, count) for piece in pieces_of(offset, payload(shard, offset), PIECE)]
            for start in starts
        ]
        while any(writers):
            chosen = data.draw(st.sampled_from([writer for writer in writers if writer]))
            taken = data.draw(st.integers(1, len(chosen)))
            topic.records[shard] += chosen[:taken]
            del chosen[:taken]
    ahead = data.draw(st.integers(1, 12))
    lockstep = Lockstep(topic, dict.fromkeys(range(shards), 0), 0, ahead)
    at = 0
    while at < count:
        stop = data.draw(st.integers(at + 1, count))
        read_all(topic, lockstep, range(at, stop))
        at = stop
        if data.draw(st.booleans()) and at < count:
            lockstep.take(at)
            lockstep = Lockstep(topic, lockstep.positions(), at, ahead)


def test_payloads_of_two_programs_are_not_mixed() -> None:
    """A rolling restart: the old program's pieces and the new one's lie between each other."""
    old, new = (list(pieces_of(0, name * 6, PIECE)) for name in (b"oo", b"nn"))
    topic = Partitions(1)
    topic.records[0] = [old[0], new[0], old[1], new[1], new[2]]
    lockstep = Lockstep(topic, {0: 0}, 0, 8)
    found = [lockstep.take(0) for _ in range(3)]
    assert [b"nn" * 6] in found


def test_damaged_pieces_name_where_they_are() -> None:
    (sound,) = pieces_of(7, b"abc")
    assert decode_piece(sound, "here").data == b"abc"
    for damaged, kind in ((b"", CorruptRecord), (sound[:9], CorruptRecord), (b"\xff" + sound[1:], OtherVersion)):
        with pytest.raises(kind, match="here"):
            decode_piece(damaged, "here")
    topic = Partitions(1)
    topic.records[0] = [sound[:-1] + b"x"]
    with pytest.raises(CorruptRecord, match=r"topic candidates, partition 0, offset 0.*message 7"):
        Lockstep(topic, {0: 0}, 7, 8).take(7)


def test_an_answer_by_other_settings_is_not_used_and_is_named() -> None:
    topic = Partitions(2)
    topic.write(1, range(3))
    for offset in range(2):
        topic.records[0] += pieces_of(offset, b"foreign", PIECE)
    lockstep = Lockstep(topic, {0: 0, 1: 0}, 0, 8, lambda answer: answer != b"foreign")
    for _ in range(9):
        assert lockstep.take(0) is None
    assert lockstep.describe() == (
        "waits for the answer to message 0 of shard 0; shard 0 answers by other settings than the judge's: set the "
        "same for all (neardup config), and start that shard again"
    )
    topic.write(0, range(3))
    read_all(topic, lockstep, range(3))


@pytest.mark.parametrize(
    ("before", "now", "told"),
    [
        (None, None, "shard 1 has not run since the topic was created: start it"),
        (None, Beat(9, "b"), "shard 1 was at message 9"),
        (Beat(9, "a"), Beat(9, "a"), "shard 1 does not run: start it again"),
        (Beat(5, "a"), Beat(5, "b"), "shard 1 runs and is at message 5: leave it running"),
        (
            Beat(5, "a"),
            Beat(9, "b"),
            "shard 1 runs and is at message 9: leave it running",
        ),  # its answer may be under way
        (Beat(9, "a"), Beat(9, "b"), "has lost the answer: start that shard once with --answer-from 5"),
    ],
)
def test_heartbeats_distinguish_a_slow_shard_from_a_lost_answer(
    before: Beat | None, now: Beat | None, told: str
) -> None:
    topic = Partitions(2)
    topic.write(0, range(9))
    topic.write(1, [0, 1, 2, 3, 4, 6, 7])
    lockstep = Lockstep(topic, {0: 0, 1: 0}, 0, 8)
    read_all(topic, lockstep, range(5))

    def known() -> dict[int, str]:
        beats = {1: now} if now is not None else {}
        return lockstep.tell({1: before} if before is not None else {}, beats)

    if told.startswith("has lost"):
        assert lockstep.take(5) is None
        topic.write(1, [8])
        assert "leave it running" in known()[1], "the judge has not read the partition to its end"
    while topic.at[1] < topic.ends()[1]:
        assert lockstep.take(5) is None
    assert told in known()[1]
    text = lockstep.describe(known())
    assert text.startswith("waits for the answer to message 5 of shard 1; ")
    assert ("--answer-from 5" in text) == ("has lost" in told)
    assert "--answer-from 5" in lockstep.describe()
