"""Parsing JSON as other writers mean it: constants, surrogates and numbers that JSON does not have."""

import json
import random
from typing import Any

import orjson
import pytest

from neardup.tolerant_json import loads


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b'{"a": NaN, "b": [Infinity, -Infinity, 1]}', {"a": None, "b": [None, None, 1]}),
        (b'{"NaN": "NaN", "b": "-Infinity, NaN", "c": NaN}', {"NaN": "NaN", "b": "-Infinity, NaN", "c": None}),
        (rb'["a\ud800b"]', ["a�b"]),
        (rb'["\udc00\ud800"]', ["��"]),
        (rb'["\ud800\ud83d\ude00"]', ["�😀"]),
        (rb'["\\ud800", "\\\ud800"]', [r"\ud800", "\\�"]),
        (b'["a\xed\xa0\x80b"]', ["a�b"]),
        (b'["\xed\xa0\xbd\xed\xb8\x80"]', ["😀"]),
        (b"[1e999, -1e999, 1e3, 0.5]", [None, None, 1000.0, 0.5]),
        (b"[" + b"7" * 4999 + b"]", [None]),
    ],
)
def test_loads_accepts_values_beyond_json(text: bytes, value: Any) -> None:
    assert loads(text) == value


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b'{"a": nan}', b"[-NaN]", b"[xNaN]", b'["a', b'["a\\', b'["\xff"]', b"[01]", b"[1.e1.2]", rb'["\uD8"]'],
)
def test_loads_refuses_text_that_is_no_json(text: bytes) -> None:
    with pytest.raises(orjson.JSONDecodeError):
        loads(text)


def test_loads_refuses_deep_nesting_without_a_deep_stack() -> None:
    for text in (b"[" * 1_000_000, b"[NaN," * 200_000 + b"1" + b"]" * 200_000):
        with pytest.raises(orjson.JSONDecodeError):
            loads(text)


def test_loads_takes_time_that_grows_with_the_length() -> None:
    for piece in (rb"\"", rb"\\", rb"\ud800", b'"', b"NaN", b"1e9", b"-", b"\xed\xa0\x80", b"[NaN,"):
        text = b'[NaN, "' + piece * 400_000
        with pytest.raises(orjson.JSONDecodeError):  # a quadratic search would take hours
            loads(text)


def test_loads_agrees_with_python_on_its_own_texts() -> None:
    random_ = random.Random(11)
    letters = ["a", "\ud800", "\udfff", "😀", '"', "\\", "u", "d8", "NaN", "\n", "é"]

    def value(depth: int) -> Any:
        kind = random_.randrange(6 if depth else 4)
        if kind == 0:
            return "".join(random_.choices(letters, k=random_.randrange(6)))
        if kind == 1:
            return random_.choice([float("nan"), float("inf"), -float("inf"), None, True])
        if kind in (2, 3):
            return random_.randrange(-(10**9), 10**9)
        if kind == 4:
            return [value(depth - 1) for _ in range(random_.randrange(4))]
        return {value(0) if random_.random() < 0.1 else f"k{n}": value(depth - 1) for n in range(random_.randrange(4))}

    def meant(found: Any) -> Any:
        if isinstance(found, str):
            return found.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        if isinstance(found, float):
            return None
        if isinstance(found, list):
            return [meant(one) for one in found]
        return {meant(name): meant(one) for name, one in found.items()} if isinstance(found, dict) else found

    for _ in range(2_000):
        made = value(3)
        text = json.dumps(made, ensure_ascii=random_.random() < 0.5).encode("utf-8", "surrogatepass")
        assert loads(text) == meant(json.loads(text)), text
