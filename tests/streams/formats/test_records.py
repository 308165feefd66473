"""Codecs: what is written is read, anything else is refused with its offset."""

from dataclasses import replace
from importlib.metadata import version

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.errors import BadPage, CorruptRecord, OtherVersion
from neardup.scheme import Scheme
from neardup.sketch.layout import RecordKind
from neardup.sketch.make_sketches import sketch_pages
from neardup.sketch.sketch_record import Sketch
from streams.formats import json
from streams.formats.json import decode_line
from streams.formats.message import (
    Message,
    as_first,
    decode_entry,
    decode_message,
    decode_verdicts,
    encode_message,
    encode_verdicts,
    page_id,
    verdicts_source,
)
from streams.ports import Range

ranges = st.builds(
    lambda source, partition, start, count: Range(source, partition, start, start + count),
    st.binary(min_size=16, max_size=16),
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**61),
    st.integers(0, 2**61),
)
messages = st.builds(
    Message,
    st.binary(min_size=16, max_size=16),
    st.lists(ranges, max_size=4, unique_by=lambda span: (span.source, span.partition)).map(tuple),
    st.lists(st.binary(max_size=50), max_size=8).map(tuple),
)

GOLDEN = Message(bytes(range(16)), (Range(b"s" * 16, 3, 5, 7),), (b"one", b"", b"three"))
GOLDEN_HEX = (
    "0100010003000000000102030405060708090a0b0c0d0e0f00000000"
    "000000000000000000000000ae6c6204b02856847373737373737373"
    "73737373737373730300000005000000000000000700000000000000"
    "0300000000000000050000006f6e657468726565"
)


def test_golden_message() -> None:
    assert encode_message(GOLDEN).hex() == GOLDEN_HEX
    assert decode_message(bytes.fromhex(GOLDEN_HEX), 0) == GOLDEN


@given(messages)
def test_a_message_is_read_as_written(message: Message) -> None:
    assert decode_message(encode_message(message), 9) == message


@given(messages, st.data())
def test_a_cut_or_longer_message_names_its_offset(message: Message, data: st.DataObject) -> None:
    whole = encode_message(message)
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    for bad in (cut, whole + b"\0"):
        with pytest.raises(CorruptRecord, match="offset 77 "):
            decode_message(bad, 77)


@given(messages, st.data())
def test_a_flipped_bit_names_its_offset(message: Message, data: st.DataObject) -> None:
    flipped = bytearray(encode_message(message))
    flipped[data.draw(st.integers(0, len(flipped) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    for read in (decode_message, decode_entry):
        with pytest.raises(CorruptRecord, match="offset 77 "):
            read(bytes(flipped), 77)


def test_a_partition_named_twice_is_refused() -> None:
    twice = Message(bytes(16), (Range(bytes(16), 0, 0, 1), Range(bytes(16), 0, 1, 2)), ())
    with pytest.raises(CorruptRecord, match=r"offset 3 .* names a partition twice"):
        decode_message(encode_message(twice), 3)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        message = decode_message(data, 1)
    except CorruptRecord:
        return
    assert encode_message(message) == data


def test_another_version_is_refused() -> None:
    with pytest.raises(CorruptRecord, match=r"offset 4 .* version 2"):
        decode_message(b"\2" + bytes.fromhex(GOLDEN_HEX)[1:], 4)


def test_the_first_message_of_a_log_names_the_program() -> None:
    """In one more record: page ids do not change."""
    data = as_first(bytes.fromhex(GOLDEN_HEX))
    first = decode_message(data, 0)
    assert first == decode_entry(data, 0) == replace(GOLDEN, program=version("neardup"))
    assert encode_message(first) == data
    assert decode_message(encode_message(GOLDEN), 0).program == ""
    major, minor = map(int, version("neardup").split(".")[:2])
    for same in (f"{major}.{minor}.999", f"{major}.{minor}.1rc2"):
        assert decode_message(encode_message(replace(GOLDEN, program=same)), 0).program == same
    for later in (f"{major}.{minor + 1}.0", f"{major + 1}.0.0"):
        with pytest.raises(OtherVersion, match=rf"offset 4.* neardup {later}, .*neardup backfill --generation NAME"):
            decode_entry(encode_message(replace(GOLDEN, program=later)), 4)
    for none in ("x", "1", "1.2\n", "1.2" + "9" * 60):
        with pytest.raises(CorruptRecord, match=r"offset 4 .* names no version"):
            decode_entry(encode_message(replace(GOLDEN, program=none)), 4)


def test_page_ids_hold_offset_and_place() -> None:
    assert page_id(0, 0) == 0
    assert page_id(5, 511) == (5 << 12) | 511
    assert page_id(1, 0) > page_id(0, 4095)


def test_verdict_frames() -> None:
    frame = encode_verdicts(b"s" * 16, b'{"a":1}\n{"b":2}\n')
    assert verdicts_source(frame) == b"s" * 16
    assert list(decode_verdicts(frame, 3)) == [{"a": 1}, {"b": 2}]
    with pytest.raises(CorruptRecord, match="offset 3"):
        list(decode_verdicts(frame[:-3], 3))


def test_a_json_page_with_everything() -> None:
    page = decode_line(b'{"url":"http://a/","body":"hi","content_type":"text/plain","fetched_at":12,"http_status":203}')
    assert (page.url, page.body, page.content_type, page.fetched_at, page.status, page.problem) == (
        *("http://a/", b"hi", "text/plain", 12, 203, ""),
    )


def test_json_text_outranks_the_charset_that_its_headers_name() -> None:
    page = decode_line('{"url":"http://a/","body":"é","content_type":"text/html; charset=latin-1"}'.encode())
    assert page.body == b"\xef\xbb\xbf" + "é".encode()


@pytest.mark.parametrize("body", [b'"body":{"base64":"aGk="}', b'"body_base64":"aGk="'])
def test_json_base64(body: bytes) -> None:
    assert decode_line(b'{"url":"http://a/",' + body + b"}").body == b"hi"


@pytest.mark.parametrize("rest", [b',"body":null', b',"http_status":404', b',"body":null,"http_status":200'])
def test_json_tombstones(rest: bytes) -> None:
    page = decode_line(b'{"url":"http://a/"' + rest + b"}")
    assert (page.body, page.problem) == (None, "")


@pytest.mark.parametrize("status", [0, 301, 503])
def test_a_failed_fetch_without_a_body_says_not_that_the_page_is_gone(status: int) -> None:
    page = decode_line(b'{"url":"http://a/","body":null,"http_status":%d}' % status)
    assert (page.body, page.status) == (None, status)
    (record,) = sketch_pages([page], Scheme(seed=7))
    assert (Sketch(record).kind, Sketch(record).reason) == (RecordKind.REJECTED, f"HTTP status {status}")


@pytest.mark.parametrize(
    "line", [b"", b"{", b"[1]", b"7", b"{}", b'{"url":7,"body":""}', b'{"url":"","body":""}', b"\xff"]
)
def test_json_that_is_no_page(line: bytes) -> None:
    with pytest.raises(BadPage):
        decode_line(line)


@pytest.mark.parametrize(
    "time",
    [b"1772366400500", b'"2026-03-01T12:00:00.500Z"', b'"2026-03-01 14:00:00.5+02:00"', b'"2026-03-01T12:00:00.5"'],
)
def test_a_fetch_time_of_json_may_be_a_date(time: bytes) -> None:
    line = b'{"url":"http://a/","body":"x","fetched_at":' + time + b"}"
    assert decode_line(line).fetched_at == json.fetched_at(line) == 1_772_366_400_500


@pytest.mark.parametrize(
    ("rest", "problem"),
    [
        (b"", "no body"),
        (b',"body":7', "body is an integer"),
        (b',"body":{"base64":7}', "base64 of the body"),
        (b',"body":{}', "base64 of the body"),
        (b',"body_base64":"a"', "not base64"),
        (b',"body":"x","fetched_at":"now"', "fetched_at is neither ms since 1970 nor a time as 2026-03-01T12:00:00Z"),
        (b',"body":"x","fetched_at":1.5', "fetched_at is neither ms since 1970"),
        (b',"body":"x","http_status":true', "http_status is true or false"),
        (b',"body":"x","content_type":[]', "content_type is an array, and text is required"),
    ],
)
def test_json_pages_with_a_bad_field_are_rejected_by_name(rest: bytes, problem: str) -> None:
    page = decode_line(b'{"url":"http://a/"' + rest + b"}")
    assert page.url == "http://a/"
    assert problem in page.problem
