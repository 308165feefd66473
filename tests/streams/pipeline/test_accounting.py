"""Marks and ranges: what of a message counts, and how batches are cut into messages."""

import random

import pytest

from neardup.errors import CorruptRecord
from neardup.page import Page
from neardup.scheme import Scheme
from neardup.sketch.header import Header
from neardup.sketch.make_sketches import sketch_pages
from neardup.verdict import Coordinates
from streams.errors import SourceGap
from streams.formats.message import Control, Decision, Message, decode_entry, decode_message, encode_control
from streams.pipeline.accounting import Account, Key, Mark, account
from streams.pipeline.packing import pack
from streams.ports import Range

SCHEME = Scheme(seed=1)
SOURCE = b"s" * 16
OTHER = b"t" * 16


def record(partition: int, offset: int, source: bytes = SOURCE) -> bytes:
    page = Page(f"http://a.example/{partition}/{offset}", b"<p>some words")
    (made,) = sketch_pages([page], SCHEME, coordinates=[Coordinates(source.hex(), partition, offset)])
    return made


def message(start: int, stop: int, *offsets: int, partition: int = 0, source: bytes = SOURCE) -> Message:
    held = tuple(record(partition, offset, source) for offset in offsets or range(start, stop))
    return Message(bytes(16), (Range(source, partition, start, stop),), held)


def offsets(found: Account) -> list[int]:
    return [header.offset for _, header in found.new]


def test_the_first_range_of_a_source_sets_its_mark() -> None:
    found = account(message(5, 8), 0, {})

    assert offsets(found) == [5, 6, 7]
    assert found.marks == {(SOURCE, 0): Mark(8, 0)}


def test_ranges_follow_over_the_gaps_between_their_records() -> None:
    found = account(message(8, 20, 9, 15), 3, {(SOURCE, 0): Mark(8, 0)})

    assert offsets(found) == [9, 15]
    assert found.marks[SOURCE, 0].offset == 20


def test_known_ranges_are_dropped() -> None:
    found = account(message(2, 8), 3, {(SOURCE, 0): Mark(8, 7)})

    assert (offsets(found), found.dropped, found.duplicates) == ([], 1, 6)
    assert found.marks == {(SOURCE, 0): Mark(8, 7)}


def test_rest_of_a_partly_known_range_keeps_its_position() -> None:
    found = account(message(2, 8), 3, {(SOURCE, 0): Mark(5, 0)})

    assert [(place, header.offset) for place, header in found.new] == [(3, 5), (4, 6), (5, 7)]
    assert (found.dropped, found.duplicates) == (0, 3)
    assert found.marks[SOURCE, 0].offset == 8


def test_gap_stops_and_names_the_missing_range() -> None:
    with pytest.raises(SourceGap, match=rf"offset 3 .* partition 0 of source {SOURCE.hex()}.* 5 to 8 are missing"):
        account(message(9, 12), 3, {(SOURCE, 0): Mark(5, 0)})


def test_every_gap_is_named() -> None:
    both = Message(bytes(16), (Range(SOURCE, 0, 9, 12), Range(SOURCE, 1, 0, 3), Range(OTHER, 2, 7, 7)), ())
    known = {(SOURCE, 0): Mark(5, 0), (SOURCE, 1): Mark(0, 0), (OTHER, 2): Mark(1, 0)}
    with pytest.raises(SourceGap) as raised:
        account(both, 3, known)
    text = str(raised.value)
    assert f"partition 0 of source {SOURCE.hex()}" in text
    assert "records 5 to 8 are missing" in text
    assert f"partition 2 of source {OTHER.hex()}" in text
    assert "records 1 to 6 are missing" in text
    assert "partition 1" not in text

    found = account(both, 3, known, accept_gaps=lambda: True)
    assert found.accepted == 2
    assert {key: mark.offset for key, mark in found.marks.items()} == {(SOURCE, 0): 12, (SOURCE, 1): 3, (OTHER, 2): 7}


def test_a_gap_may_be_accepted() -> None:
    found = account(message(9, 12), 3, {(SOURCE, 0): Mark(5, 0)}, accept_gaps=lambda: True)

    assert (offsets(found), found.accepted) == ([9, 10, 11], 1)
    assert found.marks[SOURCE, 0].offset == 12


@pytest.mark.parametrize("other", [{"partition": 1}, {"source": OTHER}])
def test_other_partitions_and_topic_ids_are_other_sources(other: dict[str, int]) -> None:
    found = account(message(0, 2, **other), 3, {(SOURCE, 0): Mark(5, 0)})  # type: ignore[arg-type]

    assert offsets(found) == [0, 1]


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda held: [held[0], held[1][:-1]], "record 1 of the message at offset 3 .* says it has"),
        (lambda held: [held[0], held[1][:1] + b"\x63" + held[1][2:]], "record 1 .* not a sketch record"),
        (lambda held: [held[0], record(0, 9)], "record 1 .* offset 9, partition 0"),
        (lambda held: [held[0], record(1, 1)], "record 1 .* offset 1, partition 1"),
        (lambda held: [held[0], held[0]], "record 1 .* offset 0"),
    ],
)
def test_a_record_that_cannot_be_is_refused_or_left_out(spoil: object, why: str) -> None:
    whole = message(0, 2)
    spoilt = Message(whole.scheme, whole.ranges, tuple(spoil(list(whole.records))))  # type: ignore[operator]

    with pytest.raises(CorruptRecord, match=why):
        account(spoilt, 3, {})
    found = account(spoilt, 3, {}, skip_records=lambda: True)
    assert (offsets(found), len(found.skipped)) == ([0], 1)
    assert found.marks[SOURCE, 0].offset == 2


def test_accounting_counts_repeated_ranges_once() -> None:
    chance = random.Random(1)
    everything = {p: [record(p, o) for o in range(30) if chance.random() < 0.7] for p in range(3)}
    places = [(Header(r).partition, Header(r).offset) for held in everything.values() for r in held]
    for _ in range(50):
        marks: dict[Key, Mark] = {}
        seen = []
        for start in [*sorted(chance.randrange(0, 24, 3) for _ in range(12)), 0, 6, 12, 18, 24]:
            # As after a crash: from some earlier position on, never from behind what was sent.
            start = min([start, *(mark.offset for mark in marks.values())]) if marks else 0
            stop = min(30, start + chance.randrange(1, 15))
            ranges = [Range(SOURCE, p, start, stop) for p in everything]
            batch = [r for held in everything.values() for r in held if start <= Header(r).offset < stop]
            chance.shuffle(batch)
            batch.sort(key=lambda r: Header(r).offset)
            at = [(Header(r).partition, Header(r).offset) for r in batch]
            for data in pack(bytes(16), ranges, at, batch, pages_max=chance.randrange(1, 9)):
                found = account(decode_message(data, 0), 0, marks)
                marks.update(found.marks)
                seen += [(header.partition, header.offset) for _, header in found.new]
        wanted = [place for place in places if place[1] < marks[SOURCE, place[0]].offset]
        assert sorted(seen) == sorted(wanted)


def test_messages_end_by_pages_and_by_bytes_and_account_for_all() -> None:
    held = [bytes(400) for _ in range(10)]
    places = [(n % 2, 10 + n) for n in range(10)]
    ranges = [Range(SOURCE, 0, 5, 30), Range(SOURCE, 1, 6, 40)]

    by_pages = [decode_message(data, 0) for data in pack(bytes(16), ranges, places, held, pages_max=4)]
    by_bytes = [decode_message(data, 0) for data in pack(bytes(16), ranges, places, held, bytes_max=1000)]
    none = [decode_message(data, 0) for data in pack(bytes(16), ranges, [], [])]

    assert [len(each.records) for each in by_pages] == [4, 4, 2]
    assert [len(each.records) for each in by_bytes] == [2] * 5
    full = pack(bytes(16), ranges, places, held, bytes_max=1200)
    assert [len(decode_message(data, 0).records) for data in full] == [3, 3, 3, 1], "a message may have all its bytes"
    assert [each.ranges for each in none] == [tuple(ranges)]
    for cut in (by_pages, by_bytes):
        for partition, (start, stop) in enumerate([(5, 30), (6, 40)]):
            spans = [(r.start, r.stop) for each in cut for r in each.ranges if r.partition == partition]
            assert [spans[0][0], *(b for _, b in spans)] == [*(a for a, _ in spans), stop]
            assert spans[0][0] == start


def test_a_record_larger_than_a_message_goes_alone() -> None:
    held = [bytes(10), bytes(5000), bytes(10)]
    cut = pack(bytes(16), [Range(SOURCE, 0, 0, 3)], [(0, 0), (0, 1), (0, 2)], held, bytes_max=1000)
    assert [len(decode_message(data, 0).records) for data in cut] == [1, 1, 1]


def test_control_record_is_read_as_written() -> None:
    for decision in Decision:
        word = Control(b"c" * 16, decision, 77)
        data = encode_control(word)
        assert decode_entry(data, 99) == word
        with pytest.raises(CorruptRecord, match=r"offset 99 .* kind 1"):
            decode_message(data, 99)
    for spoilt in (data[:-1], data.replace(b"skip", b"quip"), data.replace(b"77", b"{}")):
        with pytest.raises(CorruptRecord, match="offset 99"):
            decode_entry(spoilt, 99)
