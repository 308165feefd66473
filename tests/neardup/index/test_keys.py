"""Keys and rows as they lie in a store: bytes pinned, nothing lost, unknown formats refused."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.decider import Decider
from neardup.errors import CorruptRecord, InvariantBroken
from neardup.index import keys, rows, sharing
from neardup.sketch.header import Header, log_length
from neardup.sketch.layout import HEADER
from neardup.sketch.view import Sketch
from neardup.verdict import Kind
from tests.neardup.handmade import record, rejected, tombstone

WORDS = "one two three four five six seven eight nine ten eleven twelve"
LONG = " ".join(f"{WORDS} {i}" for i in range(4))
NOTES = rows.Note(1, 2, 3, 4, b"d" * 16, 5, b"c" * 48), rows.Note(258, 0, -1, 0, bytes(16), 0, bytes(48))


def decider(rule="verified", **values):
    return Decider(scheme="0" * 32, rule=rule, **values)


# ---- rows ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "decode", "golden"),
    [
        (
            rows.UrlRow(7, 5, 6, Kind.NEAR_DUPLICATE, -2, 1_700_000_000_000),
            rows.decode_url,
            "0103" + "0000000000000007" + "0000000000000005" + "0000000000000006" + "ff" * 7 + "fe0000018bcfe56800",
        ),
        (
            rows.UrlRow(9, 0, 0, Kind.GONE, 3, 4),
            rows.decode_url,
            "0105" + "0000000000000009" + "00" * 16 + "0000000000000003" + "0000000000000004",
        ),
        (
            rows.UrlRow(9, 0, 0, Kind.GONE, 3, 4, NOTES),
            rows.decode_url,
            "0305" + "0000000000000009" + "00" * 16 + "0000000000000003" + "0000000000000004"
            + "0000000000000001" + "0000000000000002" + "0000000000000003" + "0000000000000004"
            + "64" * 16 + "0000000000000005" + "63" * 48
            + "0000000000000102" + "00" * 8 + "ff" * 8 + "00" * 8 + "00" * 16 + "00" * 8 + "00" * 48,
        ),
        (
            rows.ClusterRow(1, b"u" * 16, 2, 3, 4, rows.NO_PAGE, b"w" * 16, "http://é/"),
            rows.decode_cluster,
            "01" + "0000000000000001" + "75" * 16 + "0000000000000002" + "00000003" + "00000004"
            + "ff" * 8 + "77" * 16 + "http://é/".encode().hex(),
        ),
        (
            rows.ClusterRow(1, b"u" * 16, 2, 3, 4, rows.NO_PAGE, b"w" * 16, "http://é/", 258),
            rows.decode_cluster,
            "02" + "0000000000000001" + "75" * 16 + "0000000000000002" + "00000003" + "00000004"
            + "ff" * 8 + "77" * 16 + "0000000000000102" + "http://é/".encode().hex(),
        ),
        (rows.MemberRow(258, b"m" * 16), rows.decode_member, "01" + "0000000000000102" + "6d" * 16),
        (
            rows.DigestRow(3, 1, 2, 255, (1, 2, 1 << 40)),
            rows.decode_digest,
            "01" + "00000003" + "0000000000000001" + "00000002" + "00000000000000ff"
            + "000000000001" + "000000000002" + "010000000000",
        ),
    ],
)  # fmt: skip
def test_rows_keep_their_bytes(row, decode, golden):
    assert row.encode().hex() == golden
    assert decode(bytes.fromhex(golden)) == row
    for damaged in (b"\x63" + row.encode()[1:], row.encode()[:9], b""):
        with pytest.raises(CorruptRecord):
            decode(damaged)


def test_a_url_has_as_many_notes_as_it_may():
    row = rows.UrlRow(9, 0, 0, Kind.GONE, 3, 4, tuple(NOTES[0]._replace(cluster=i) for i in range(rows.NOTES_MAX)))
    assert rows.decode_url(row.encode()) == row
    too_many = row._replace(notes=(*row.notes, NOTES[0]))
    for damaged in (too_many.encode(), row.encode()[:-1], b"\1" + row.encode()[1:], b"\2" + row.encode()[1:42]):
        with pytest.raises(CorruptRecord):
            rows.decode_url(damaged)


def test_every_standing_has_a_code_of_its_own():
    kinds = [Kind.UNIQUE, Kind.EXACT_DUPLICATE, Kind.NEAR_DUPLICATE, Kind.SAME_CONTENT, Kind.GONE]
    codes = [rows.UrlRow(1, 1, 0, kind, 0, 0).encode()[1] for kind in kinds]
    assert codes == [1, 2, 3, 4, 5]


def test_ids_sort_as_bytes_like_numbers():
    ids = [0, 1, 255, 256, 1 << 40, (1 << 48) - 1]
    assert sorted(map(rows.id_key, ids)) == [rows.id_key(i) for i in ids]
    assert [rows.member_of_key(rows.member_key(3, i)) for i in ids] == ids


# ---- log-lengths ---------------------------------------------------------------------------------------------------


@given(st.integers(0, 1 << 33))
def test_log_length_is_eighths_of_a_binary_logarithm(tokens):
    exact = 8 * math.log2(tokens + 1)
    assert log_length(tokens) == min(255, math.floor(exact + 0.5)) or abs(exact % 1 - 0.5) < 1e-9


def test_log_length_has_its_pinned_values():
    tokens = [0, 1, 2, 3, 10, 499, 500, 1000, 10**6, 10**9, 10**12]
    assert [log_length(n) for n in tokens] == [0, 8, 13, 16, 28, 72, 72, 80, 159, 239, 255]


# ---- posting lists -------------------------------------------------------------------------------------------------


def test_a_posting_list_keeps_its_bytes():
    header = Header(record("http://a.org/", LONG))
    entry = keys.posting(258, header)
    tape, content = header.tape_logs
    assert entry.hex() == f"000000000102{tape:02x}{content:02x}"
    row = keys.with_posting(keys.with_posting(None, entry, 64, 2), keys.posting(259, header), 64, 2)
    assert row.hex() == f"01000000000102{tape:02x}{content:02x}000000000103{tape:02x}{content:02x}"
    assert [word >> 16 for word in keys.postings(row)] == [258, 259]
    assert keys.without_posting(row, entry).hex() == f"01000000000103{tape:02x}{content:02x}"
    assert keys.HOT == b"\x02"


def test_the_posting_after_the_last_turns_the_key_hot_for_ever():
    header = Header(record("http://a.org/", LONG))
    row = None
    for page in range(64):
        row = keys.with_posting(row, keys.posting(page, header), 64, 2)
        assert len(keys.postings(row)) == page + 1
    assert keys.with_posting(row, keys.posting(64, header), 64, 0) == keys.HOT
    assert keys.postings(keys.HOT) == ()
    row = keys.with_posting(row, keys.posting(64, header), 64, 2)
    assert row == keys.HOT + keys.posting(0, header) + keys.posting(1, header)
    assert [word >> 16 for word in keys.postings(row)] == [0, 1]
    assert keys.without_posting(row, keys.posting(3, header)) == row
    assert keys.with_posting(row, keys.posting(99, header), 64, 2) == row
    row = keys.without_posting(row, keys.posting(0, header))
    assert row == keys.HOT + keys.posting(1, header)
    assert keys.without_posting(row, keys.posting(1, header)) == keys.HOT
    assert keys.with_posting(keys.HOT, keys.posting(99, header), 64, 2) == keys.HOT


def test_taking_out_what_is_not_there_is_a_broken_invariant():
    header = Header(record("http://a.org/", LONG))
    row = keys.with_posting(None, keys.posting(1, header), 64, 2)
    assert keys.without_posting(row, keys.posting(1, header)) is None
    # The bytes of posting 0x0100 occur in the row, but across two postings.
    for absent in (2, 1 << 8, 1 << 40):
        with pytest.raises(InvariantBroken):
            keys.without_posting(row, keys.posting(absent, header))
    with pytest.raises(InvariantBroken):
        keys.without_posting(None, keys.posting(1, header))


@pytest.mark.parametrize("row", [b"", b"\x03", b"\x01abc", b"\x02\0"])
def test_unknown_posting_rows_are_refused(row):
    with pytest.raises(CorruptRecord):
        keys.postings(row)


def test_digests_of_texts_and_of_bodies_never_meet():
    page = Header(record("http://a.org/", LONG))
    opaque = bytearray(record("http://a.org/", body=b"x"))
    at = HEADER.fields["digest"][1]
    opaque[at : at + 16] = page.digest
    assert keys.digest_key(page) == b"\x01" + page.digest
    assert keys.digest_key(Header(bytes(opaque))) == b"\x02" + page.digest
    assert keys.more_prefix(keys.digest_key(page)) == b"\x03" + page.digest
    assert keys.more_prefix(keys.digest_key(Header(bytes(opaque)))) == b"\x04" + page.digest
    for nothing in (record("http://a.org/"), record("http://a.org/", body=b""), tombstone("http://a.org/")):
        assert keys.digest_key(Header(nothing)) == b""


# ---- records -------------------------------------------------------------------------------------------------------


def test_a_head_reads_what_a_sketch_reads():
    named = {"title": "The title", "canonical": "http://a.org/", "truncated": True, "offset": 9}
    page = record("http://www.a.org/é", LONG, at=5, log_time=4, **named)
    header, sketch = Header(page), Sketch(page)
    for name in ("url", "title", "canonical", "lang", "reason", "kind", "fetched_at", "log_time", "url_hash", "digest"):
        assert getattr(header, name) == getattr(sketch, name), name
    assert (header.site_name, header.site) == (sketch.site, sketch.site_fingerprint)
    assert (header.tokens, header.opaque, header.truncated) == (sketch.tokens, sketch.opaque, sketch.truncated)
    assert header.coordinates == sketch.coordinates
    assert header.clamped == 4
    assert Header(rejected("http://a.org/", reason="why")).reason == "why"


@pytest.mark.parametrize("damage", [lambda r: r[:-1], lambda r: r + b"x", lambda r: b"\x09" + r[1:], lambda r: b""])
def test_damaged_records_are_refused(damage):
    with pytest.raises(CorruptRecord):
        Header(damage(record("http://a.org/", LONG)))


# ---- shared sketches -----------------------------------------------------------------------------------------------

TEXTS = st.lists(st.sampled_from(WORDS.split()), max_size=80).map(" ".join)


@given(TEXTS, st.booleans(), st.sampled_from(["", "A title of it"]))
def test_a_copy_is_put_together_again_byte_for_byte(text, opaque, canonical):
    body = text.encode() if opaque else None
    first = record("http://a.org/", text, body=body)
    copy = record("http://sub.b.org/path", text, body=body, at=7, canonical=canonical, offset=3, lang="de")
    assert sharing.shared_part(first) == sharing.shared_part(copy)
    row = sharing.own_row(copy, 5)
    assert sharing.rest_of_row(row) == 5
    assert sharing.record_of_rows(row, sharing.whole_row(first)) == copy
    assert sharing.rest_of_row(sharing.whole_row(copy)) is None
    assert sharing.record_of_rows(sharing.whole_row(copy), None) == copy
    assert len(row) <= len(copy) - len(sharing.shared_part(copy)) + 9


def test_what_differs_in_pages_of_one_digest_is_not_shared():
    first, other = record("http://a.org/", LONG), bytearray(record("http://a.org/", LONG))
    other[HEADER.itemsize] ^= 1  # the tape
    assert sharing.check_of(sharing.shared_part(first)) != sharing.check_of(sharing.shared_part(bytes(other)))


@pytest.mark.parametrize("row", [b"", b"\x02short", b"\x07" + bytes(20)])
def test_unknown_sketch_rows_are_refused(row):
    with pytest.raises(CorruptRecord):
        sharing.rest_of_row(row)
