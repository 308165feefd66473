"""The library examples of README.md and of its how-to page run, and print what their comments say."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def run(page: str) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), flags=re.DOTALL)
    exec(compile(code, page, "exec"), {})


@pytest.mark.slow
@pytest.mark.parametrize(("page", "queried"), [("README.md", []), ("neardup/use-as-a-library.md", ["unchanged"])])
def test_a_library_example_runs(
    page: str, queried: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    run(page)
    first, second, *query, score = capsys.readouterr().out.splitlines()
    assert first.startswith("unique https://a.example/")
    assert second.startswith("near_duplicate https://b.example/")
    assert query == queried
    assert score.startswith("0.99")
