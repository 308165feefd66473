"""What `make test` runs, and what `make test-all` runs besides.

The marker `whole` on a file, a test or a case decides: those with it are part of `make test-all` alone, which gives
pytest `--all`. Without that option a run is a function of the commit: seeds are constants and hypothesis draws the same
examples each time. With it seeds and examples are drawn anew. A seed that fails is written into tests/regressions.txt,
and a failing example of hypothesis into tests/regressions: later runs begin with them.
"""

import os
import random
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

#: Set by `--all`, also for the processes that tests start.
VARIABLE = "NEARDUP_TEST_ALL"
#: The number from which a run with `--all` draws its seeds. The process that starts the workers sets it.
DRAW = "NEARDUP_TEST_DRAW"
#: Lines of a test's name, without its parameters, and a seed.
REGRESSIONS = Path(__file__).parent / "regressions.txt"
#: What a whole test is called in the summary of a run without it.
REASON = "part of make test-all: pytest --all"

SEED_MAX = 1 << 32
_PARAM = type(pytest.param())


def chosen() -> bool:
    """Whether this run includes what has the marker `whole`."""
    return os.environ.get(VARIABLE, "") not in ("", "0")


def choose() -> None:
    """Includes it in this process and in those that it starts."""
    os.environ[VARIABLE] = "1"
    os.environ.setdefault(DRAW, str(random.SystemRandom().randrange(SEED_MAX)))


def count(few: int, many: int) -> int:
    """The number of examples: few in `make test`, many in `make test-all`."""
    return many if chosen() else few


def first(cases: Iterable[Any], number: int) -> list[Any]:
    """Cases for `parametrize`; those behind the first `number` are part of `make test-all` alone."""
    made = [each if isinstance(each, _PARAM) else pytest.param(*_values(each)) for each in cases]
    return [*made[:number], *(each._replace(marks=(*each.marks, pytest.mark.whole)) for each in made[number:])]


def only(cases: Iterable[Any], *kept: Any) -> list[Any]:
    """Cases for `parametrize`; those that are not kept, in an order of their own, come last and are whole."""
    found = list(cases)
    if lacking := [each for each in kept if each not in found]:
        raise ValueError(f"no such case: {lacking}")
    return first([*kept, *(each for each in found if each not in kept)], len(kept))


def _values(case: Any) -> tuple[Any, ...]:
    return case if isinstance(case, tuple) else (case,)


def seeds(test: str, few: int, many: int) -> list[int]:
    """Seeds of a test: those that failed earlier, the first `few` numbers, and with `--all` random ones up to `many`.

    test: its node id without parameters.
    """
    failed = list(_failed(test))
    if not chosen():
        return [*failed, *(each for each in range(few) if each not in failed)]
    chance = random.Random(int(os.environ.get(DRAW, "0")) ^ zlib.crc32(test.encode()))
    drawn = [*range(few), *(chance.randrange(SEED_MAX) for _ in range(many - few))]
    return list(dict.fromkeys([*failed, *drawn]))


def _failed(test: str) -> Iterator[int]:
    if REGRESSIONS.exists():
        for line in REGRESSIONS.read_text(encoding="utf-8").splitlines():
            name, _, seed = line.rpartition(" ")
            if name == test:  # never a comment
                yield int(seed)


def keep_failed(test: str, seed: int) -> None:
    """Adds a seed to the regression file, where it stays until a person removes it."""
    if seed not in _failed(test):
        with REGRESSIONS.open("a", encoding="utf-8") as file:
            file.write(f"{test} {seed}\n")
