"""Results of queries as JSON lines: what is read is written again."""

import json

import pytest

from neardup.errors import BadPage
from streams.results.query_results import decode_result, encode_result


def line(**more: object) -> bytes:
    return json.dumps({"query": "wool", "url": "http://a.example/", "body": "<p>x", **more}).encode()


def test_times_of_a_page_are_kept() -> None:
    made = decode_result(line(fetch_ms=120, render_ms=2500.5, rendered="<p>y"))
    assert (made.fetch_ms, made.render_ms, made.rendered) == (120.0, 2500.5, b"<p>y")
    assert decode_result(encode_result(made)) == made
    plain = decode_result(line(fetch_ms=None))
    assert plain.fetch_ms is plain.render_ms is None
    assert b"_ms" not in encode_result(plain)


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"fetch_ms": "12"}, "fetch_ms is text, and a number is required"),
        ({"fetch_ms": True}, "fetch_ms is true or false, and a number is required"),
        ({"render_ms": [1]}, "render_ms is an array, and a number is required"),
        ({"render_ms": {"ms": 1}}, "render_ms is an object, and a number is required"),
        ({"fetch_ms": -1}, "fetch_ms is out of range: a number of at least 0 is required"),
        ({"fetch_ms": 10**12}, "fetch_ms is out of range: a number of at most 86,400,000 is required"),
        ({"query": 7}, "query is an integer, and text is required"),
        ({"lang": ["de"]}, "lang is an array, and text is required"),
        ({"rendered": 7}, "rendered is an integer, and text or an object is required"),
        ({"rendered": {}}, "rendered.base64 is missing"),
        ({"rendered": {"base64": 7}}, "rendered.base64 is an integer, and text is required"),
        ({"rendered": {"base64": "?"}}, "rendered is not base64"),
    ],
)
def test_decode_result_names_the_field_that_rejects_the_line(more: dict[str, object], problem: str) -> None:
    with pytest.raises(BadPage) as caught:
        decode_result(line(**more))
    assert str(caught.value).startswith(problem)


def test_a_result_with_nan_and_half_a_surrogate_pair_is_read() -> None:
    made = decode_result(line(fetch_ms=float("nan"), title="\ud800"))
    assert (made.page.body, made.fetch_ms) == (b"<p>x", None)
