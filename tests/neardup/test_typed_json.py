"""Typed JSON: what is read, and the sentence that names a wrong field."""

from enum import StrEnum
from typing import Annotated

import pytest
from msgspec import Meta, Struct

from neardup.typed_json import decode


class Color(StrEnum):
    RED = "red"


class Inner(Struct, forbid_unknown_fields=True):
    name: str
    sizes: list[int] = []


class Outer(Struct):
    lang: str | None = None
    share: Annotated[float, Meta(ge=0, le=1)] | None = None
    count: int = 0
    sure: bool = False
    body: str | Inner | None = None
    size: Annotated[int, Meta(le=65536)] = 0
    name: Annotated[str, Meta(min_length=1)] = "-"
    color: Color = Color.RED
    low: Annotated[float, Meta(le=0.1)] = 0
    more: dict[str, Inner] = {}


def test_decode_reads_fields_and_passes_over_others() -> None:
    text = b'{"lang": "de", "share": 1, "other": [1], "more": {"a": {"name": "x", "sizes": [1, 2]}}}'
    assert decode(text, Outer) == Outer("de", 1.0, more={"a": Inner("x", [1, 2])})


def test_decode_accepts_nan_and_lone_surrogates() -> None:
    assert decode(b'{"share": NaN, "lang": "a\\ud800"}', Outer) == Outer("a\ufffd")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (b"{", "not JSON: unexpected end of data, at character 1"),
        (b"[]", "the value is an array, and an object is required"),
        (b'{"lang": 3}', "lang is an integer, and text is required"),
        (b'{"lang": true}', "lang is true or false, and text is required"),
        (b'{"count": 1.5}', "count is a fraction, and an integer is required"),
        (b'{"count": null}', "count is null, and an integer is required"),
        (b'{"sure": "yes"}', "sure is text, and true or false is required"),
        (b'{"share": 1.5}', "share is out of range: a number of at most 1 is required"),
        (b'{"share": -1}', "share is out of range: a number of at least 0 is required"),
        (b'{"size": 100000}', "size is out of range: an integer of at most 65,536 is required"),
        (b'{"name": ""}', "name has a length out of range: text of a length of at least 1 is required"),
        (b'{"color": "blue"}', "color is 'blue', which is no known value"),
        (b'{"low": 0.25}', "low is out of range: a number of at most 0.1 is required"),
        (b'{"body": 3}', "body is an integer, and text or an object is required"),
        (b'{"body": {}}', "body.name is missing"),
        (b'{"body": {"name": "a", "size": 1}}', "body.size is no known field"),
        (b'{"body": {"name": "a", "sizes": [1, "2"]}}', "body.sizes[1] is text, and an integer is required"),
        (b'{"more": {"a": {"name": {}}}}', "more.name is an object, and text is required"),
    ],
)
def test_decode_names_the_wrong_field(text: bytes, sentence: str) -> None:
    with pytest.raises(ValueError) as caught:
        decode(text, Outer)
    assert str(caught.value) == sentence
