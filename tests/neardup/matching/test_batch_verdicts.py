"""The verdicts of a batch, read as a sequence and by what they have in common."""

import numpy as np
import pytest

from neardup.index.memory import MemoryStore
from neardup.limits import PLACE_BITS
from neardup.matching.batch import Walk
from neardup.matching.batch_records import Pages
from neardup.matching.batch_verdicts import BatchVerdicts
from neardup.verdict import Verdict
from tests.neardup.handmade import record
from tests.neardup.story import SMALL


def columns_of(*ids):
    batch = [(page_id, record(f"http://a.org/{page_id}", f"a b c d e f g h {page_id}")) for page_id in ids]
    walk = Walk(Pages(batch), MemoryStore(), SMALL)
    walk.judge()
    return walk.columns(np.array(ids))


def of_batch():
    verdicts = BatchVerdicts(columns_of(7, 8), SMALL)
    verdicts += BatchVerdicts(columns_of(9), SMALL)
    return verdicts


def test_batch_verdicts_join_in_order():
    verdicts = of_batch()
    assert [one.page_id for one in verdicts] == verdicts.page_ids() == [7, 8, 9]
    assert [verdicts[at].page_id for at in (0, 2, -1, -3)] == [7, 9, 9, 7]
    assert verdicts[-2:] == list(verdicts)[1:]
    assert verdicts == list(verdicts)
    with pytest.raises(IndexError):
        verdicts[3]


def test_batch_verdicts_name_the_origin_of_each():
    verdicts = of_batch()
    verdicts.name_origin("log", 'a "generation"')
    assert {(one.log, one.generation) for one in verdicts} == {("log", 'a "generation"')}
    assert verdicts.lines() == [one.to_json() for one in verdicts]
    assert verdicts.lines() == verdicts.text().splitlines()


def test_batch_verdicts_by_message():
    second = 1 << PLACE_BITS
    verdicts = BatchVerdicts(columns_of(7, 8, second, second + 1, 5 * second), SMALL)
    verdicts.name_origin("log", None)
    found = verdicts.by_message()
    assert {offset: part.page_ids() for offset, part in found.items()} == {
        0: [7, 8],
        1: [second, second + 1],
        5: [5 * second],
    }
    assert [line for part in found.values() for line in part.lines()] == verdicts.lines()
    assert b"".join(part.text() for part in found.values()) == verdicts.text()
    assert [one for part in found.values() for one in part] == verdicts


def test_verdicts_are_decoded_from_their_lines():
    for line in of_batch().lines():
        assert Verdict.from_json(line).to_json() == line
