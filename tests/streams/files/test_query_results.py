"""Results of queries as JSON lines: what is read is written again."""

import json

import pytest

from neardup.errors import BadPage
from streams.files.query_results import decode_result, encode_result


def line(**more: object) -> bytes:
    return json.dumps({"query": "wool", "url": "http://a.example/", "body": "<p>x", **more}).encode()


def test_times_of_a_page_are_kept() -> None:
    made = decode_result(line(fetch_ms=120, render_ms=2500.5, rendered="<p>y"))
    assert (made.fetch_ms, made.render_ms, made.rendered) == (120.0, 2500.5, b"<p>y")
    assert decode_result(encode_result(made)) == made
    plain = decode_result(line(fetch_ms=None))
    assert plain.fetch_ms is plain.render_ms is None
    assert b"_ms" not in encode_result(plain)


@pytest.mark.parametrize("value", ["12", True, -1, [1], {"ms": 1}, 10**12])
def test_a_time_that_is_no_number_of_milliseconds_rejects_the_line(value: object) -> None:
    with pytest.raises(BadPage, match="fetch_ms is no number of milliseconds"):
        decode_result(line(fetch_ms=value))


def test_a_result_with_nan_and_half_a_surrogate_pair_is_read() -> None:
    made = decode_result(line(fetch_ms=float("nan"), title="\ud800"))
    assert (made.page.body, made.fetch_ms) == (b"<p>x", None)
