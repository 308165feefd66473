"""The bench measures what it says: filled stores are folded ones, planted duplicates are duplicates."""

from collections import Counter

from neardup.decider import Decider
from neardup.fold import fold
from neardup.index.base import Family
from neardup.index.memory import MemoryStore
from neardup.scheme import Scheme
from tests.measure.bench.generated import Log, fill, mixed, stream
from tests.measure.bench.table import Row, markdown

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
