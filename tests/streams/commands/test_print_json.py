"""What commands print with --json: JSON wherever it goes, and on a terminal nothing that rules it."""

import io
import json

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
