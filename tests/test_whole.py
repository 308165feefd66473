"""The marker `whole`: part of `make test-all` alone. Seeds are constants in `make test`, and drawn anew there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import whole

ROOT = Path(__file__).parents[1]
TEST = "tests/test_it.py::test_it"


@pytest.fixture(autouse=True)
def regressions(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A regression file of this test's own, in a run without `--all`."""
    monkeypatch.delenv(whole.VARIABLE, raising=False)
    monkeypatch.delenv(whole.DRAW, raising=False)
    monkeypatch.setattr(whole, "REGRESSIONS", tmp_path / "regressions.txt")
    return tmp_path / "regressions.txt"


def marks_of(cases: list[object]) -> list[list[str]]:
    return [[mark.name for mark in case.marks] for case in cases]  # type: ignore[attr-defined]


def test_first_marks_cases_behind_it_as_whole() -> None:
    cases = whole.first([("match", "polled"), pytest.param(1, marks=pytest.mark.slow, id="one"), "b"], 1)
    assert [case.values for case in cases] == [("match", "polled"), (1,), ("b",)]
    assert marks_of(cases) == [[], ["slow", "whole"], ["whole"]]


def test_only_keeps_the_named_cases_and_refuses_unknown_ones() -> None:
    cases = whole.only("abc", "c", "a")
    assert [case.values for case in cases] == [("c",), ("a",), ("b",)]
    assert marks_of(cases) == [[], [], ["whole"]]
    with pytest.raises(ValueError, match="no such case"):
        whole.only("abc", "d")


def test_count_is_larger_in_test_all() -> None:
    assert whole.count(3, 9) == 3
    whole.choose()
    assert whole.count(3, 9) == 9


def test_seeds_are_constants_in_make_test_and_drawn_in_test_all(monkeypatch: pytest.MonkeyPatch) -> None:
    assert whole.seeds(TEST, 3, 9) == [0, 1, 2]
    monkeypatch.setenv(whole.DRAW, "7")
    whole.choose()
    drawn = whole.seeds(TEST, 3, 9)
    assert drawn[:3] == [0, 1, 2]
    assert len(set(drawn)) == 9
    assert whole.seeds(TEST, 3, 9) == drawn, "all workers collect the same tests"
    assert whole.seeds(f"{TEST}_too", 3, 9) != drawn
    monkeypatch.setenv(whole.DRAW, "8")
    assert whole.seeds(TEST, 3, 9) != drawn


def test_seeds_begin_with_those_of_the_regression_file(regressions: Path) -> None:
    for seed in (77, 1, 77):
        whole.keep_failed(TEST, seed)
    whole.keep_failed(f"{TEST}_too", 5)
    assert regressions.read_text() == f"{TEST} 77\n{TEST} 1\n{TEST}_too 5\n"
    assert whole.seeds(TEST, 3, 9) == [77, 1, 0, 2]
    whole.choose()
    assert whole.seeds(TEST, 3, 9)[:4] == [77, 1, 0, 2]


SUITE = """
import pytest
from hypothesis import given, strategies as st

@pytest.mark.seeds(2, 4)
def test_seed(seed):
    assert seed < 2

@pytest.mark.whole
def test_whole(): ...

@given(st.integers())
def test_hypothesis(number):
    print("drew", number)
"""
CONFTEST = """
from pathlib import Path
from tests import whole

whole.REGRESSIONS = Path(__file__).parent / "regressions.txt"
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "test_suite.py").write_text(SUITE)
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  seeds\n  whole\n  xdist_group\n")
    return tmp_path


def run(suite: Path, *options: str) -> list[str]:
    """The lines of a run of the suite."""
    command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-rP", *options, str(suite)]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT), "CI": "1"}, timeout=120
    )
    return done.stdout.splitlines()


def drawn(lines: list[str]) -> list[str]:
    found = [line for line in lines if line.startswith("drew")]
    assert len(found) > 50
    return found


@pytest.mark.slow
def test_make_test_is_a_function_of_its_files_and_test_all_is_not(suite: Path, regressions: Path) -> None:
    first, again = run(suite), run(suite)
    assert "3 passed, 1 skipped" in first[-1]
    assert f"not run: 1 test: {whole.REASON}" in first
    assert drawn(first) == drawn(again)

    everything = run(suite, "--all")
    assert "2 failed, 4 passed" in everything[-1]
    assert drawn(everything) != drawn(first)
    kept = [int(line.rpartition(" ")[2]) for line in regressions.read_text().splitlines()]
    assert len(kept) == 2
    assert min(kept) > 2
    assert "2 failed, 3 passed, 1 skipped" in run(suite)[-1]
