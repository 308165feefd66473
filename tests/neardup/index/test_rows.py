"""Keys and rows as they lie in a store: bytes pinned, nothing lost, unknown formats refused."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.decider import Decider
from neardup.errors import CorruptRecord, InvariantBroken
from neardup.index import posting_rows, rows, sketch_rows
from neardup.sketch.header import Header, log_length
from neardup.sketch.layout import HEADER
from neardup.sketch.sketch_record import Sketch
from neardup.verdict import Kind
from tests.neardup.handmade import record, rejected, tombstone
from tests.oracle.fold import digests, posting_lists

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
            "0205" + "0000000000000009" + "00" * 16 + "0000000000000003" + "0000000000000004"
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
    assert [rows.member_key(3, i) for i in ids] == [rows.id_key(3) + rows.id_key(i) for i in ids]


# ---- log-lengths ---------------------------------------------------------------------------------------------------


@given(st.integers(0, 1 << 33))
def test_log_length_is_eighths_of_a_binary_logarithm(tokens):
    exact = 8 * math.log2(tokens + 1)
    assert log_length(tokens) == min(255, math.floor(exact + 0.5)) or abs(exact % 1 - 0.5) < 1e-9


def test_log_length_has_its_pinned_values():
    tokens = [0, 1, 2, 3, 10, 499, 500, 1000, 10**6, 10**9, 10**12]
    assert [log_length(n) for n in tokens] == [0, 8, 13, 16, 28, 72, 72, 80, 159, 239, 255]


# ---- posting lists -------------------------------------------------------------------------------------------------


def some_sites(rng):
    return [rng.getrandbits(64) for _ in range(3_000)]


KEY = b"\x31" + bytes(6)


def entry_of(page, site="a"):
    return posting_rows.posting(page, Header(record(f"http://{site}.org/", LONG)), KEY)


def posted(row, page, site="a", kept=2):
    return posting_lists.with_posting(row, entry_of(page, site), 64, kept)


def pages_of(row):
    return [word >> 16 for word in posting_rows.postings(row)]


def test_a_posting_list_keeps_its_bytes():
    header = Header(record("http://a.org/", LONG))
    tape, content = header.tape_logs
    tag = header.site * posting_rows.salt_of(0x31) % 2**64 >> 56
    entry = entry_of(258)
    assert entry.hex() == f"000000000102{tape:02x}{content:02x}{tag:02x}"
    row = posted(posted(None, 258), 259)
    assert row.hex() == f"01{entry.hex()}000000000103{tape:02x}{content:02x}{tag:02x}"
    assert pages_of(row) == [258, 259]
    assert posting_lists.without_posting(row, entry).hex() == f"01000000000103{tape:02x}{content:02x}{tag:02x}"
    assert posting_rows.HOT == b"\x02"


def test_site_tags_that_collide_under_one_key_differ_under_others():
    rng = random.Random(1)
    tags = {
        tuple(site * posting_rows.salt_of(0x30 + place) % 2**64 >> 56 for place in range(8)) for site in some_sites(rng)
    }
    assert len(tags) == 3_000
    assert len({one[0] for one in tags}) == 256


def test_the_posting_after_the_last_turns_the_key_hot_for_ever():
    row = None
    for page in range(64):
        row = posted(row, page)
        assert pages_of(row) == list(range(page + 1))
    assert posted(row, 64, kept=0) == posting_rows.HOT == posted(posting_rows.HOT, 99, kept=0)
    assert pages_of(posting_rows.HOT) == []
    row = posted(row, 64)
    assert row == posting_rows.HOT + entry_of(0), "of one site the first"
    assert posting_lists.without_posting(row, entry_of(3)) == row
    assert posting_lists.without_posting(row, entry_of(0)) == posting_rows.HOT
    assert posted(posting_rows.HOT, 99) == posting_rows.HOT + entry_of(99)


def test_a_hot_key_keeps_one_page_of_each_of_its_first_sites():
    row = None
    for page in range(64):
        row = posted(row, page, "ab"[page == 40], kept=4)
    found = []
    for page, site in [(64, "a"), (65, "c"), (66, "b"), (67, "c"), (68, "d"), (69, "e")]:
        row = posted(row, page, site, kept=4)
        found.append(pages_of(row))
    assert found == [[0, 40], [0, 40, 65], [0, 40, 65], [0, 40, 65], [0, 40, 65, 68], [0, 40, 65, 68]]
    row = posted(posting_lists.without_posting(row, entry_of(40, "b")), 70, "e", kept=4)
    assert pages_of(row) == [0, 65, 68, 70], "a page that leaves makes room"


def test_removing_an_absent_row_is_a_broken_invariant():
    row = posted(None, 1)
    assert posting_lists.without_posting(row, entry_of(1)) is None
    # The bytes of posting 0x0100 occur in the row, but across two postings.
    for absent in (2, 1 << 8, 1 << 40):
        with pytest.raises(InvariantBroken):
            posting_lists.without_posting(row, entry_of(absent))
    with pytest.raises(InvariantBroken):
        posting_lists.without_posting(None, entry_of(1))


@pytest.mark.parametrize("row", [b"", b"\x05", b"\x01abc", b"\x02\0", b"\x03" + bytes(9)])
def test_unknown_posting_rows_are_refused(row):
    with pytest.raises(CorruptRecord):
        posting_rows.postings(row)


def test_digests_of_texts_and_of_bodies_never_meet():
    page = Header(record("http://a.org/", LONG))
    opaque = bytearray(record("http://a.org/", body=b"x"))
    at = HEADER.fields["digest"][1]
    opaque[at : at + 16] = page.digest
    assert rows.digest_key(page) == b"\x01" + page.digest
    assert rows.digest_key(Header(bytes(opaque))) == b"\x02" + page.digest
    assert rows.more_prefix(rows.digest_key(page)) == b"\x03" + page.digest
    assert rows.more_prefix(rows.digest_key(Header(bytes(opaque)))) == b"\x04" + page.digest
    for nothing in (record("http://a.org/"), record("http://a.org/", body=b""), tombstone("http://a.org/")):
        assert rows.digest_key(Header(nothing)) == b""


# ---- records -------------------------------------------------------------------------------------------------------


def test_head_equals_its_sketch():
    named = {"title": "The title", "canonical": "http://a.org/", "truncated": True, "offset": 9}
    page = record("http://www.a.org/é", LONG, at=5, log_time=4, **named)
    header, sketch = Header(page), Sketch(page)
    for name in ("url", "title", "canonical", "lang", "reason", "kind", "fetched_at", "log_time", "url_hash", "digest"):
        assert getattr(header, name) == getattr(sketch, name), name
    assert (header.site_name, header.site) == (sketch.site, sketch.site_fingerprint)
    assert (header.tokens, header.opaque, header.truncated) == (sketch.tokens, sketch.opaque, sketch.truncated)
    assert header.coordinates == sketch.coordinates
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
    assert sketch_rows.shared_part(first) == sketch_rows.shared_part(copy)
    row = digests.own_row(copy, 5)
    assert sketch_rows.rest_of_row(row) == 5
    assert sketch_rows.record_of_rows(row, digests.whole_row(first)) == copy
    assert sketch_rows.rest_of_row(digests.whole_row(copy)) is None
    assert sketch_rows.record_of_rows(digests.whole_row(copy), None) == copy
    assert len(row) <= len(copy) - len(sketch_rows.shared_part(copy)) + 9


def test_fields_that_differ_under_one_digest_are_not_shared():
    first, other = record("http://a.org/", LONG), bytearray(record("http://a.org/", LONG))
    other[HEADER.itemsize] ^= 1  # the tape
    assert digests.check_of(sketch_rows.shared_part(first)) != digests.check_of(sketch_rows.shared_part(bytes(other)))


@pytest.mark.parametrize("row", [b"", b"\x02short", b"\x07" + bytes(20)])
def test_unknown_sketch_rows_are_refused(row):
    with pytest.raises(CorruptRecord):
        sketch_rows.rest_of_row(row)
