"""Short forms: a few days run every case, and what is left out is reported."""

import pytest

from tests import short


def drawn(day: int, monkeypatch: pytest.MonkeyPatch, cases: list[object], share: int) -> list[object]:
    monkeypatch.setattr(short, "DAY", day)
    found = short.some(cases, share)
    assert [param.values for param in found] == [each if isinstance(each, tuple) else (each,) for each in cases]
    left_out = [param for param in found if param.marks]
    assert all(f"NEARDUP_TEST_DAY={day}" in param.marks[0].kwargs["reason"] for param in left_out)
    return [param.values for param in found if not param.marks]


def test_as_many_days_as_the_share_run_each_case_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(short, "WHOLE", False)
    cases: list[object] = [("match", "polled"), *"abcdefg"]
    days = [drawn(day, monkeypatch, cases, 3) for day in range(20_000, 20_003)]
    assert sorted(map(len, days)) == [2, 3, 3]
    assert {values for day in days for values in day} == {("match", "polled"), *((each,) for each in "abcdefg")}


def test_the_whole_form_has_all_cases_and_more_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(short, "WHOLE", False)
    assert len(short.seeds(1, 3)) == 1
    monkeypatch.setattr(short, "WHOLE", True)
    assert len(short.seeds(1, 3)) == 3
    assert drawn(7, monkeypatch, list("abc"), 3) == [("a",), ("b",), ("c",)]


def test_marks_of_a_case_stay() -> None:
    (found,) = short.some([pytest.param(1, marks=pytest.mark.slow, id="one")], 1)
    assert (found.id, [mark.name for mark in found.marks][:1]) == ("one", ["slow"])


def test_as_many_days_as_the_share_hold_each_file_once(monkeypatch: pytest.MonkeyPatch) -> None:
    files = [f"tests/test_{name}.py" for name in "abcdefgh"]
    monkeypatch.setattr(short, "WHOLE", False)
    monkeypatch.setattr(short, "FILES", 1)
    assert all(map(short.holds_today, files))
    monkeypatch.setattr(short, "FILES", 3)
    days = []
    for day in range(20_000, 20_003):
        monkeypatch.setattr(short, "DAY", day)
        days.append([file for file in files if short.holds_today(file)])
    assert sorted(file for day in days for file in day) == files
    assert all(len(day) < len(files) for day in days)


def test_a_test_runs_on_the_days_of_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(short, "WHOLE", False)
    monkeypatch.setattr(short, "DAY", 20_003)
    assert [short.turn(number, 3).mark.args for number in range(3)] == [(True,), (True,), (False,)]
    monkeypatch.setattr(short, "WHOLE", True)
    assert not any(short.turn(number, 3).mark.args[0] for number in range(3))
