"""Fetches that brought no page, on the topic: each is rejected with a reason, and the page before it stands."""

import json

import pytest

from neardup.page import Page
from neardup.sketch.header import Header
from neardup.sketch.make_sketches import sketch_pages
from streams.formats.bodies import Bodies
from streams.formats.codecs import Codec, encode_page
from streams.formats.no_page import no_page
from streams.process.metrics import reason_class
from tests.streams.archives import SCHEME, http, record
from tests.streams.scripted import ScriptedRecord

URL = "http://a.example/"
BOUND = 100_000


def decoded(codec: str, value: bytes | None, **headers: bytes) -> Page:
    named = tuple((name.replace("_", "-"), text) for name, text in headers.items())
    return Codec(codec, Bodies((), BOUND), BOUND).page(ScriptedRecord((0, 0), URL.encode(), value, named))


def of_json(**fields: object) -> Page:
    return decoded("json", json.dumps({"url": URL, "body": "<p>words", **fields}).encode())


@pytest.mark.parametrize("method", ["HEAD", "options", "POST", "PUT", "DELETE"])
def test_answers_to_other_methods_are_rejected_by_each_codec(method: str) -> None:
    expected = f"answer to {method.upper()}"
    answer = record(URL, http(b"<p>words"))
    assert decoded("raw", b"<p>words", http_method=method.encode()).problem == expected
    assert of_json(http_method=method).problem == expected
    found = decoded("warc", answer, http_method=method.encode()).problem
    assert found == f"a WARC record that holds no page: {expected}"
    for page in (decoded("raw", b"", http_method=b"GET"), of_json(http_method="get"), decoded("warc", answer)):
        assert page.problem == ""


@pytest.mark.parametrize("cause", ["disconnect", "time", "unspecified"])
def test_bodies_that_were_cut_off_are_rejected_by_each_codec(cause: str) -> None:
    expected = f"body cut off: {cause}"
    answer = record(URL, http(b"<p>words")).replace(b"WARC-Date", f"WARC-Truncated: {cause}\r\nWARC-Date".encode())
    assert decoded("raw", b"<p>words", truncated=cause.encode()).problem == expected
    assert of_json(truncated=cause).problem == expected
    assert decoded("warc", answer).problem == f"a WARC record that holds no page: {expected}"


@pytest.mark.parametrize("codec", ["raw", "json", "warc"])
def test_a_page_cut_at_a_limit_of_length_is_encoded_and_decoded(codec: str) -> None:
    page = Page(URL, b"<p>words", "text/html", 1_577_836_800_000, truncated=True)
    sent = encode_page(page, codec)
    assert decoded(codec, sent.value, **dict(sent.headers)) == page
    assert decoded("raw", b"", truncated=b"length").problem == "body cut off: length"


@pytest.mark.parametrize("value", [True, False, 3, "yes", None, ["disconnect"]])
def test_a_field_of_this_name_of_another_program_says_nothing(value: object) -> None:
    page = of_json(truncated=value)
    assert (page.problem, page.truncated) == ("", False)


@pytest.mark.parametrize("status", [204, 205, 206, 207, 208, 226, 304])
def test_statuses_without_a_page_are_rejected(status: int) -> None:
    pages = [decoded("raw", b"<p>words", http_status=b"%d" % status), of_json(http_status=status)]
    for sketch in sketch_pages(pages, SCHEME):
        assert Header(sketch).reason == f"HTTP status {status}"


def test_a_truncated_page_says_so_in_its_sketch() -> None:
    pages = [Page(URL, b"<p>some words", truncated=cut) for cut in (False, True)]
    assert [Header(sketch).truncated for sketch in sketch_pages(pages, SCHEME)] == [False, True]


@pytest.mark.parametrize("reason", ["answer to HEAD", "body cut off: time", "body missing"])
def test_no_page_is_a_class_of_reasons(reason: str) -> None:
    assert reason_class(reason) == reason_class(f"a WARC record that holds no page: {reason}") == "no_page"


def test_no_page_gives_one_of_few_kinds() -> None:
    assert no_page("get", "") == no_page("", "Length") == ""
    assert no_page("\x00" * 99) == "answer to another method"
    assert no_page("", "\x00" * 99) == "body cut off: unspecified"
