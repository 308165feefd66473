"""The example notebook runs from top to bottom, and says what it claims to say."""

import ast
import json
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).parents[3] / "deploy" / "demo" / "nine_rules.ipynb"
NINE = {"shingling", "simhash", "combined", "site-split", "simhash64", "verified", "cosine", "signals", "tlcs"}


def cells() -> list[str]:
    output = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    return ["".join(cell["source"]) for cell in output["cells"] if cell["cell_type"] == "code"]


def test_the_notebook_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """As a kernel runs it: one cell after another, in one namespace."""
    names: dict[str, Any] = {}
    for number, source in enumerate(cells()):
        exec(compile(ast.parse(source), f"cell {number}", "exec"), names)
    table = names["table"]
    assert set(table) >= NINE
    assert not any(of_other for _, of_other in table.values())
    for rule in ("verified", "tlcs", "cosine", "signals"):
        assert table[rule][0], rule
    assert "tlcs         edited: True   other: False" in capsys.readouterr().out


def test_notebook_is_kept_without_outputs() -> None:
    output = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert all(not cell["outputs"] for cell in output["cells"] if cell["cell_type"] == "code")
