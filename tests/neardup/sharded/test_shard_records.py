"""What shards and judge send each other survives its bytes, and other bytes are refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.errors import CorruptRecord
from neardup.sharded.epochs import Sharding
from neardup.sharded.messages import ANSWER, EFFECT, Candidates, Effects

SHARDING, DECIDER = Sharding(4, 16), "00ff" * 8


@given(st.binary(max_size=5 * ANSWER.itemsize), st.lists(st.integers(0, 4095), max_size=9))
def test_candidates_survive_their_bytes(raw, cut):
    pairs = np.frombuffer(raw[: len(raw) // ANSWER.itemsize * ANSWER.itemsize], dtype=ANSWER)
    there = Candidates(SHARDING, DECIDER, 3, 1 << 40, np.array(cut, dtype="<u2"), pairs)
    back = Candidates.decode(there.encode())
    assert (back.sharding, back.decider, back.shard, back.offset) == (SHARDING, DECIDER, 3, 1 << 40)
    assert back.cut.tolist() == cut
    assert back.pairs.tobytes() == pairs.tobytes()
    assert back.encode() == there.encode()


@given(st.binary(max_size=9 * EFFECT.itemsize))
def test_effects_survive_their_bytes(raw):
    items = np.frombuffer(raw[: len(raw) // EFFECT.itemsize * EFFECT.itemsize], dtype=EFFECT)
    back = Effects.decode(Effects(SHARDING, 7, items).encode())
    assert (back.sharding, back.offset, back.items.tobytes()) == (SHARDING, 7, items.tobytes())


@pytest.mark.parametrize("kind", [Candidates, Effects])
def test_other_bytes_are_refused(kind):
    empty = np.zeros(0, dtype="<u2")
    good = {
        Candidates: Candidates(SHARDING, DECIDER, 0, 9, empty, np.zeros(2, ANSWER)),
        Effects: Effects(SHARDING, 9, np.zeros(2, EFFECT)),
    }[kind].encode()
    kind.decode(good)
    for bad in (b"", b"\x01", b"\x02" + good[1:], good[:-1], good + b"\0"):
        with pytest.raises(CorruptRecord):
            kind.decode(bad)


def test_a_message_is_answered_from_the_effects_of_two_epochs_before():
    assert [Sharding(1, 4).stable_to(offset) for offset in (0, 3, 4, 7, 8, 11, 12)] == [0, 0, 0, 0, 4, 4, 8]
    assert [Sharding(1, 1).stable_to(offset) for offset in range(4)] == [0, 0, 1, 2]
