"""Similarity keys as each rule posts them: bytes pinned, the same one by one and in columns."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup.decider import Decider
from neardup.rules import RULES
from neardup.rules.key_families import family_of
from neardup.rules.posted_keys import keeps_the_same, similarity_columns, similarity_keys
from neardup.sketch.header import Header
from neardup.sketch.layout import HEADER
from neardup.sketch.sketch_record import Sketch
from tests.neardup.handmade import record, shell_of, tombstone

LONG = " ".join(f"one two three four five six seven eight nine ten eleven twelve {i}" for i in range(4))


def decider(rule="verified", **values):
    return Decider(scheme="0" * 32, rule=rule, **values)


def test_each_rule_posts_its_own_families():
    header = Header(record("http://a.org/", LONG))
    counts = {rule: len(similarity_keys(header, decider(rule))) for rule in RULES}
    papers = {"shingling": 6, "simhash": 12, "combined": 6, "site-split": 18, "simhash64": 56}
    assert counts.items() >= (papers | {"tape": 11, "verified": 12}).items()
    for rule in RULES:
        posted = similarity_keys(header, decider(rule))
        assert {len(key) for key in posted} == {7}
        assert len({key[0] for key in posted}) == len(posted), "one place, one byte"
        every = similarity_keys(header, replace(decider(rule), blocks_posted=6))
        assert {family_of(key) for key in every} == {family for family, _ in RULES[rule].posts(decider(rule))}


def test_a_decider_may_post_some_of_the_small_keys():
    header = Header(record("http://a.org/", LONG))
    for rule in ("tape", "verified"):
        every = similarity_keys(header, replace(decider(rule), blocks_posted=6))
        some = replace(decider(rule), supershingles_posted=5, blocks_posted=1)
        posted = similarity_keys(header, some)
        assert posted == [*every[:-8], every[-6]]
        _, columns = similarity_columns(np.frombuffer(header.record, HEADER, 1), some)
        assert columns.tolist() == [[int.from_bytes(key) for key in posted]]
        assert not keeps_the_same(some, decider(rule))
        assert keeps_the_same(some, replace(some, tape_min=0.8))
    assert not keeps_the_same(decider("shingling"), replace(decider("shingling"), thin_tokens=3))


def test_deciders_of_earlier_schemes_post_the_eighth_supershingle_where_the_content_start_is():
    header = Header(record("http://a.org/", LONG))
    for rule in ("tape", "verified"):
        own = similarity_keys(header, decider(rule))
        former = similarity_keys(header, decider(rule, supershingles_posted=8, content_starts_posted=0))
        (start,) = (key for key in own if key[0] == 0x70)
        assert former == [*(key for key in own if key[0] < 0x40 or key[0] == 0x60), b"\x37" + start[1:], *own[-2:]]
    with pytest.raises(ValueError, match="supershingles_posted of the decider is 8, at most 7 beside"):
        decider(supershingles_posted=8)


def test_keys_are_the_low_bytes_of_the_sketch():
    page = record("http://a.org/", LONG)
    sketch, header = Sketch(page), Header(page)
    low = [word.to_bytes(8, "little")[:6] for word in (sketch.place, sketch.head, sketch.content_start, *sketch.wide)]
    blocks = [word.to_bytes(4, "little") + b"\0\0" for word in sketch.logtf]
    places = [0x60, 0x10, 0x70, *range(0x30, 0x37), *range(0x40, 0x46)]
    expected = [bytes([place]) + key for place, key in zip(places, low + blocks, strict=True)]
    assert similarity_keys(header, replace(decider(), blocks_posted=6)) == expected
    assert similarity_keys(header, decider()) == expected[:-4]
    word = sketch.simhash[5].to_bytes(8, "little")
    assert similarity_keys(header, decider("simhash"))[-1] == b"\x5b" + word[4:] + b"\0\0"


def test_only_the_default_rule_leaves_thin_pages_unposted():
    thin = Header(record("http://a.org/", "only three words"))
    assert similarity_keys(thin, decider()) == []
    assert len(similarity_keys(thin, decider("combined"))) == 6
    for nothing in (record("http://a.org/"), record("http://a.org/", body=b"%PDF"), tombstone("http://a.org/")):
        for rule in RULES:
            assert similarity_keys(Header(nothing), decider(rule)) == []


def test_shells_post_no_keys():
    page = record("http://a.org/", LONG)
    shell = shell_of(page)
    headers = np.concatenate([np.frombuffer(one, HEADER, 1) for one in (page, shell)])
    for rule in RULES:
        assert similarity_keys(Header(shell), decider(rule)) == []
        assert similarity_columns(headers, decider(rule))[0].tolist() == [True, False]


@pytest.mark.parametrize(("rule", "bits", "apart"), [("simhash64", 64, 5), ("simhash", 384, 11)])
@settings(max_examples=30)
@given(data=st.data())
def test_two_simhashes_that_the_rule_may_accept_share_a_key(rule, bits, apart, data):
    page = record("http://a.org/", LONG)
    other = bytearray(page)
    at = HEADER.fields["simhash"][1]
    for bit in data.draw(st.sets(st.integers(0, bits - 1), max_size=apart)):
        other[at + bit // 8] ^= 1 << bit % 8
    mine, theirs = (similarity_keys(Header(bytes(r)), decider(rule)) for r in (page, other))
    assert set(mine) & set(theirs)
