"""What a search has found once, and what it begins with, does no harm; nor does a little damage to that.

`make fuzz` searches on. A folder a target below `found/`; a file's name says what it was.
"""

import importlib
import random
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from numba.core.dispatcher import Dispatcher

from tests.fuzz.__main__ import modules_of_kernels
from tests.fuzz.mutating import changed, search
from tests.fuzz.seeds import SEEDS
from tests.fuzz.targets import TARGETS
from tests.whole import count

FOUND = Path(__file__).parent / "found"
MUTANTS = count(20, 60)


def test_each_target_has_seeds() -> None:
    assert SEEDS.keys() == TARGETS.keys()
    assert {folder.name for folder in FOUND.iterdir()} <= TARGETS.keys()


@pytest.mark.parametrize("path", sorted(FOUND.glob("*/*")), ids=lambda path: f"{path.parent.name}-{path.name}")
def test_kept_findings_pass(path: Path) -> None:
    TARGETS[path.parent.name](path.read_bytes())


@pytest.mark.parametrize("name", TARGETS)
def test_seeds_and_damaged_ones(name: str) -> None:
    chance, seeds = random.Random(name), SEEDS[name]()
    for data in (*seeds, *(changed(seeds, chance) for _ in range(MUTANTS))):
        TARGETS[name](data)


def test_modules_of_kernels_are_those_with_compiled_functions() -> None:
    found = modules_of_kernels()
    assert {"neardup.kernels.html", "neardup.matching.kernels.walk", "neardup.rules.default_rule"} <= set(found)
    compiled = [
        name
        for name in found
        if any(isinstance(each, Dispatcher) for each in vars(importlib.import_module(name)).values())
    ]
    assert compiled == found
    others = {name for name, module in sys.modules.items() if name.startswith("neardup.") and _defines_kernels(module)}
    assert others <= set(found)


def _defines_kernels(module: ModuleType) -> bool:
    functions = (each.py_func for each in vars(module).values() if isinstance(each, Dispatcher))
    return any(function.__module__ == module.__name__ for function in functions)


def breaking(depth: int) -> Callable[[bytes], None]:
    """A reader that breaks at `depth` signs of one kind: no four changes of one input lead there, only steps."""
    lines = ["def read(data):", " many = data.count(b'<')"]
    lines += [f" if many > {at}: many += 0" for at in range(depth)]  # a line each that is reached
    source = "\n".join(lines).replace(": many", ":\n  many") + f"\n if many >= {depth}: raise KeyError(many)"
    made: dict[str, Any] = {"__name__": "neardup.made_up"}
    exec(compile(source, "made up", "exec"), made)
    reader: Callable[[bytes], None] = made["read"]
    return reader


def test_search_without_atheris_follows_coverage(tmp_path: Path) -> None:
    corpus, found = tmp_path / "corpus", tmp_path / "found"
    corpus.mkdir()
    found.mkdir()
    (corpus / "seed").write_bytes(b"wool")
    bounds = {"seconds": 60.0, "bytes_max": 4096, "input_seconds_max": 5.0, "chance": random.Random(1)}
    with pytest.raises(SystemExit, match=r"crash-.*KeyError"):
        search(breaking(40), corpus, found, **bounds)
    (path,) = found.iterdir()
    assert path.read_bytes().count(b"<") >= 40
    assert len(list(corpus.iterdir())) > 5


def test_an_input_that_takes_long_once_is_none(tmp_path: Path) -> None:
    """Its call has compiled kernels."""
    (tmp_path / "seed").write_bytes(b"wool")
    now, calls = [0.0], []

    def compiling(data: bytes) -> None:
        calls.append(data)
        now[0] += 1 if len(calls) > 1 else 9

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("tests.fuzz.mutating.time.monotonic", lambda: now[0])
        bounds = {"seconds": 20, "bytes_max": 9, "input_seconds_max": 5, "chance": random.Random(1)}
        assert search(compiling, tmp_path, tmp_path, **bounds) > 5


def test_an_input_that_takes_long_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "seed").write_bytes(b"wool")
    found = tmp_path / "found"
    found.mkdir()
    now = iter(range(100))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("tests.fuzz.mutating.time.monotonic", lambda: next(now))
        with pytest.raises(SystemExit, match="slow-"):
            search(
                lambda data: None,
                tmp_path,
                found,
                seconds=50,
                bytes_max=9,
                input_seconds_max=0.5,
                chance=random.Random(1),
            )
