"""What commands print with --json: JSON wherever it goes, and on a terminal nothing that rules it."""

import io
import json
import os

import pytest

from streams.commands.output import print_json

#: Turned writing direction, and a C1 control sign.
FOUND = {"url": "https://a.example/\u202egpj.exe\x9b", 7: float("nan")}


class Output(io.TextIOWrapper):
    def __init__(self, *, terminal: bool) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8")
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


@pytest.mark.parametrize("terminal", [False, True])
def test_printed_result_is_json(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    out = Output(terminal=terminal)
    monkeypatch.setattr("sys.stdout", out)
    print_json(FOUND)
    values = out.buffer.getvalue()  # type: ignore[attr-defined]
    assert values.endswith(b"}\n")
    assert json.loads(values) == {"url": FOUND["url"], "7": None}
    assert values.isascii() == terminal


@pytest.mark.parametrize("terminal", [False, True])
def test_name_of_a_file_that_is_not_utf_8_is_escaped(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    name = os.fsdecode(b"caf\xe9.jsonl")
    out = Output(terminal=terminal)
    monkeypatch.setattr("sys.stdout", out)
    print_json({"problems": [f"{name}: not read"], name: (1, {7: name}), "share": float("nan")})
    escaped = "caf\\udce9.jsonl"
    assert json.loads(out.buffer.getvalue()) == {  # type: ignore[attr-defined]
        "problems": [f"{escaped}: not read"],
        escaped: [1, {"7": escaped}],
        "share": None,
    }
