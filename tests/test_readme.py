"""The README's example runs, and says what it says it says."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


@pytest.mark.slow
def test_the_library_example_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _ = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), {})
    first, second, score = capsys.readouterr().out.splitlines()
    assert first.startswith("unique https://a.example/")
    assert second.startswith("near_duplicate https://b.example/")
    assert score.startswith("0.99")
