"""What a search has found once, and what it begins with, does no harm; nor does a little damage to that.

`make fuzz` searches on. A folder a target below `found/`; a file's name says what it was.
"""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fuzz.seeds import SEEDS
from tests.fuzz.targets import TARGETS

FOUND = Path(__file__).parent / "found"
MUTANTS = 60


def test_each_target_has_seeds() -> None:
    assert SEEDS.keys() == TARGETS.keys()
    assert {folder.name for folder in FOUND.iterdir()} <= TARGETS.keys()


@pytest.mark.parametrize("path", sorted(FOUND.glob("*/*")), ids=lambda path: f"{path.parent.name}-{path.name}")
def test_what_was_found(path: Path) -> None:
    TARGETS[path.parent.name](path.read_bytes())


@pytest.mark.parametrize("name", TARGETS)
def test_seeds_and_damaged_ones(name: str) -> None:
    chance = random.Random(name)
    for seed in SEEDS[name]():
        TARGETS[name](seed)
    for data in _mutants(SEEDS[name](), chance):
        TARGETS[name](data)


def _mutants(seeds: list[bytes], chance: random.Random) -> Iterator[bytes]:
    for _ in range(MUTANTS):
        data = bytearray(chance.choice(seeds))
        for _ in range(chance.randrange(1, 4)):
            at, end = sorted((chance.randrange(len(data) + 1), chance.randrange(len(data) + 1)))
            how = chance.randrange(4)
            if how == 0 and data:
                data[at % len(data)] ^= 1 << chance.randrange(8)
            elif how == 1:
                data[at:end] = b""
            elif how == 2:
                data[at:at] = chance.choice(seeds)[:64]
            else:
                data[at : at + 8] = chance.choice([b"\xff" * 8, bytes(8), b"\r\n\r\n", b"9" * 8])
        yield bytes(data)
