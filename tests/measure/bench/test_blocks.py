"""The comparison of blocks: wider ones are read from the same bits, and all is as it was afterwards."""

import pytest

from neardup.rules import posted_keys
from neardup.rules.key_families import PLACES, KeyFamily
from neardup.sketch.header import Header
from tests.measure.bench.blocks import CHOICES, Blocks, edited, judge, posting
from tests.measure.gate.measure import sketched
from tests.measure.gate.sites import Sample

pytestmark = pytest.mark.whole

TEXT = " ".join(f"word{i % 97}" for i in range(400))


def test_wider_blocks_are_the_same_bits_in_other_cuts() -> None:
    header = Header(sketched([Sample("http://a.example/", TEXT.encode(), "a", "text")])[0])
    usual = PLACES[KeyFamily.LOGTF]
    bits = {}
    for blocks in CHOICES:
        with posting(blocks) as decider:
            keys = [key for key in posted_keys.similarity_keys(header, decider) if KeyFamily.LOGTF <= key[0] < 0x50]
            assert len(keys) == blocks.many
            assert len(posted_keys.families_of(decider)) == len(posted_keys.similarity_keys(header, decider))
            bits[blocks] = b"".join(key[1 : 1 + blocks.bits // 8] for key in keys)
    assert bits[Blocks(6, 32)] == bits[Blocks(4, 48)]
    assert len(bits[Blocks(4, 48)]) == 24
    assert PLACES[KeyFamily.LOGTF] == usual


def test_candidates_of_blocks_alone_are_counted() -> None:
    samples = edited("a word in ten", 60)
    records = sketched(samples)
    without, narrow, wide = (judge(samples, records, blocks) for blocks in CHOICES)
    assert without.repeats == narrow.repeats == 60
    assert without.met <= wide.met
    assert narrow.met > without.met
    assert without.bytes_of_keys < wide.bytes_of_keys < narrow.bytes_of_keys


@pytest.mark.parametrize("kind", ["padded", "re-sorted", "other boilerplate"])
def test_texts_are_edited_and_stay_of_one_item(kind: str) -> None:
    one, other = edited(kind, 1)
    assert one.item == other.item
    assert one.html != other.html
    assert edited(kind, 1) == [one, other]
