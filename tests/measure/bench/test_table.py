"""What a bench that is stopped has measured is on disk, and the files say that it is not all."""

import json

import pytest

from tests.measure.bench import __main__ as bench
from tests.measure.bench.table import Row, Sheet, markdown, seconds_of

pytestmark = pytest.mark.whole


@pytest.fixture(autouse=True)
def nothing_to_compile(monkeypatch):
    monkeypatch.setattr(bench, "warm", lambda: None)


def rows_of(sheet):
    return [row["name"] for row in json.loads(sheet.path.with_suffix(".json").read_text())["rows"]]


def test_each_row_is_written_as_it_is_measured(tmp_path, capsys):
    sheet = Sheet({"machine": "any"}, tmp_path / "build", "bench")
    assert rows_of(sheet) == []
    for number in range(3):
        sheet.add(Row(f"row {number}", "s", 1.5))
        assert rows_of(sheet) == [f"row {each}" for each in range(number + 1)]
        assert capsys.readouterr().out.splitlines()[-1] == f"| row {number} | s | 1.5 |  |  |  |  |"
        assert f"| row {number} | s |" in sheet.path.read_text()
    sheet.seconds["first"] = 7
    assert "stopped: before its end; whole groups: none" in sheet.path.read_text()
    sheet.finish()
    assert "stopped" not in sheet.path.read_text()
    assert "* seconds: 7\n" in sheet.path.read_text()
    assert seconds_of(tmp_path / "build" / "bench") == {"first": 7}


def test_rows_before_a_failure_are_kept(tmp_path, capsys, monkeypatch):
    def group():
        yield Row("before", "s", 1.0)
        raise KeyboardInterrupt

    monkeypatch.setattr(bench, "_groups", lambda asked: {"good": lambda: [Row("whole", "s", 2.0)], "bad": group})
    monkeypatch.setattr("sys.argv", ["bench", "--out", str(tmp_path)])
    with pytest.raises(SystemExit, match="stopped"):
        bench.main()
    found = json.loads((tmp_path / "bench.json").read_text())
    assert [row["name"] for row in found["rows"]] == ["whole", "before"]
    assert found["about"]["stopped"].endswith("whole groups: good")


def test_groups_are_chosen_and_their_time_is_foretold(tmp_path, capsys, monkeypatch):
    made = {name: lambda name=name: [Row(name, "s", 1.0)] for name in ("html", "worst pages", "worst matching")}
    monkeypatch.setattr(bench, "_groups", lambda asked: made)
    monkeypatch.setattr(bench, "SECONDS", {"html": 10, "worst pages": 20, "worst matching": 100})
    monkeypatch.setattr("sys.argv", ["bench", "--out", str(tmp_path), "--only", "worst"])
    bench.main()
    output = capsys.readouterr().err.splitlines()
    assert output[0] == "about 2 minutes: worst pages 20 s, worst matching 100 s"
    assert output[1].endswith("2 minutes left")
    assert not (tmp_path / "bench.md").exists(), "a part does not replace the whole"
    assert "| worst matching | s |" in (tmp_path / "bench-worst.md").read_text()
    monkeypatch.setattr("sys.argv", ["bench", "--out", str(tmp_path), "--only", "speed"])
    with pytest.raises(
        SystemExit, match="no group has 'speed' in its name; there is html, worst pages, worst matching"
    ):
        bench.main()


def test_a_void_row_says_so():
    table = markdown([Row("x", "us", 2.0, 4.0, "peer", 2.0, void="peer found nothing")], {"machine": "m"})
    assert "void: peer found nothing" in table
    assert "2.00 x" not in table
