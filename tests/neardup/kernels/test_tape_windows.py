"""The table of a tape's windows, and the operations on 16 windows of another tape, against Python's sets."""

import numpy as np
import pytest

from neardup.kernels import tape_windows as module
from neardup.kernels.tape_windows import AT_ONCE, BEHIND
from tests.neardup.kernels.called import called

pytestmark = pytest.mark.kernel

U64 = np.uint64
windows = called(module)


def tape(data: bytes) -> np.ndarray:
    return np.frombuffer(data + bytes(BEHIND), np.uint8).copy()


def window(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 3], "little")


@pytest.mark.parametrize("slots", [AT_ONCE, 32, 64, 1 << 19])
def test_look_up_finds_the_windows_of_a_table_step_by_step(slots):
    chance = np.random.default_rng(slots)
    held, asked = (chance.integers(0, 3, 16, np.uint8).tobytes() for _ in range(2))
    table, mask = np.zeros(slots, np.uint32), U64(slots - 1)
    entries = sorted({window(held, at) for at in range(len(held) - 2)})[: slots - 1]
    for each in entries:
        place = int(windows.first_slot(U64(each), mask))
        while table[place]:
            place = (place + 1) % slots
        table[place] = each + 1
    found, left, steps = 0, (1 << AT_ONCE) - 1, 0
    padded = tape(asked)
    while left:
        own, other = (int(each) & left for each in windows.look_up(padded, 0, table, mask, steps))
        assert not own & other
        found, left, steps = found | own, other, steps + 1
    behind = asked + bytes(BEHIND)
    assert found == sum(1 << at for at in range(AT_ONCE) if window(behind, at) in entries)


def test_stamps_mark_the_slots_of_chosen_windows():
    data = tape(bytes(range(1, 19)))
    mask, stamps = U64(1023), np.zeros(1024, np.uint32)
    windows.stamp_those(data, 0, stamps, mask, 1, U64(0b101), U64(7))
    slots = [(int(windows.first_slot(windows.window_at(data, at), mask)) + 1) % 1024 for at in range(AT_ONCE)]
    assert np.flatnonzero(stamps).tolist() == sorted({slots[0], slots[2]})
    places = np.array(slots, np.uint32)
    assert int(windows.stamped(places, 0, stamps, U64(7))) == 0b101
    assert int(windows.stamped(places, 0, stamps, U64(8))) == 0


def test_without_names_the_bytes_that_have_none_of_some_bits():
    data = np.full(64, 0x80, np.uint8)
    data[[0, 5, 63]] = 0x3F, 0x01, 0x00
    assert int(windows.without(data, 0, np.uint8(0xC0))) == 1 | 1 << 5 | 1 << 63
