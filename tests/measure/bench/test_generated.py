"""The bench measures what it says: filled stores are folded ones, planted duplicates are duplicates."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from neardup.decider import Decider
from neardup.fold import fold
from neardup.index.column_families import Family
from neardup.index.memory import MemoryStore
from neardup.limits import PLACE_BITS
from neardup.scheme import Scheme
from tests.measure.bench import by_size
from tests.measure.bench.generated import Log, Rows, fill, judge_rows, mixed, shard_rows, stream
from tests.measure.bench.table import Row, markdown

pytestmark = pytest.mark.whole

DECIDER = Decider(scheme=Scheme(seed=1).digest)


def test_a_filled_store_is_a_folded_one():
    log, folded, filled = Log(), MemoryStore(), MemoryStore()
    folded.write(fold(list(enumerate(log.records(0, 300), 1)), folded, DECIDER).writes)
    fill(filled, log, 0, 300, DECIDER)
    for family in Family:
        assert list(folded.scan(family)) == list(filled.scan(family)), family


def test_planted_duplicates_are_found():
    log, store = Log(), MemoryStore()
    fill(store, log, 0, 5000, DECIDER)
    outcome = fold(list(enumerate(mixed(log, 5000, 100), 10**6)), store, DECIDER)
    kinds = [verdict.verdict for verdict in outcome.verdicts]
    assert kinds.count("unique") == 70
    assert kinds.count("near_duplicate") + kinds.count("exact_duplicate") == 30


def test_a_void_row_says_so():
    table = markdown([Row("x", "us", 2.0, 4.0, "peer", 2.0, void="peer found nothing")], {"machine": "m"})
    assert "void: peer found nothing" in table
    assert "2.00 x" not in table


def test_a_stream_repeats_itself_from_anywhere():
    records = list(stream(Log(), 300))
    outcome = fold(list(enumerate(records, 1)), MemoryStore(), DECIDER)
    kinds = Counter(verdict.verdict for verdict in outcome.verdicts)
    assert kinds == {"unique": 210, "near_duplicate": 60, "exact_duplicate": 30}
    assert list(stream(Log(), 200)) == records[:200]


def test_filled_stores_of_a_judge_and_shards_are_folded_ones():
    log, decider, count = Log(), replace(DECIDER, shards=2, epoch=1), 4
    judge, shards = MemoryStore(), [MemoryStore(), MemoryStore()]
    roles = by_size.Roles({"judge": judge, "shard": shards[0]}, decider)
    shards[1] = roles.others[1]
    clocks = by_size.new_clocks()
    records = by_size.named(log.records(0, count * by_size.MESSAGE_PAGES), 0)
    for offset, message in by_size.messages(records, decider.scheme, 0):
        roles.take(offset, message, clocks)

    def check(store: MemoryStore, make: Callable[..., Rows], own: Sequence[int]) -> None:
        filled = MemoryStore()
        filled.write(make([records[i] for i in own], [by_size.page_id(i) for i in own], decider))
        for family in set(Family) - {Family.META}:
            assert list(store.scan(family)) == list(filled.scan(family)), family

    check(judge, judge_rows, range(len(records)))
    # A shard lacks the effects of the last two epochs.
    in_rows = range((count - 2) * by_size.MESSAGE_PAGES)
    for number, store in enumerate(shards):
        check(store, shard_rows, [i for i in in_rows if (by_size.page_id(i) >> PLACE_BITS) % 2 == number])
