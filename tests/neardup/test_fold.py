"""Folding batches: slicing and stores change nothing, judging is pure, and no page repeats itself.

This is the level of records, with each rule. `tests/streams/pipeline/test_slicing.py` slices logs of messages, with
expiry, takedowns, new deciders and restarts.
"""

import functools
import itertools
import random
from collections import Counter
from dataclasses import replace

import pytest

from neardup.decider import ONLINE_RULES, SiteOverride
from neardup.errors import CorruptRecord, InvariantBroken
from neardup.fold import fold
from neardup.index.column_families import Family
from neardup.index.memory import MemoryStore
from neardup.index.posting_rows import is_hot
from neardup.index.rocks import RocksStore
from neardup.matching import arrays
from neardup.matching import batch as matching
from neardup.rules.key_families import SIMILARITY_BYTES
from tests import whole
from tests.neardup.handmade import record, rejected, tombstone
from tests.neardup.invariants import Checked, contents_of
from tests.neardup.story import SMALL, as_in_python, endless, folded, in_any_slices, slices_of
from tests.oracle.fold.judging import fold as fold_in_python

VOCABULARY = [f"w{i}" for i in range(40)]


def crawl(seed, length=250):
    """A stream in which everything collides: few URLs, few texts and their variations, times that run backwards."""
    rng = random.Random(seed)
    families = [[rng.choice(VOCABULARY) for _ in range(rng.choice([3, 12, 30, 30, 30]))] for _ in range(5)]
    urls = [f"http://{rng.choice('ab')}.s{rng.randrange(3)}.org/{i}" for i in range(rng.choice([6, 14, 40]))]
    out = []
    for now in range(0, 10 * length, 10):
        url, at = rng.choice(urls), now - rng.choice([0, 0, 0, 0, 15, 60])
        words = list(rng.choice(families))
        for _ in range(rng.choice([0, 0, 0, 1, 2, 3, 6, 12])):
            words[rng.randrange(len(words))] = rng.choice(VOCABULARY)
        canonical = rng.choice(["", "", rng.choice(urls)])
        what = rng.random()
        if what < 0.1:
            out.append(tombstone(url, at=at, log_time=now))
        elif what < 0.13:
            out.append(rejected(rng.choice([url, ""]), at=max(0, at)))
        elif what < 0.2:
            out.append(record(url, body=rng.choice([b"", b"a", b"b"]), at=at, log_time=now))
        elif what < 0.23:
            out.append(record(url, "", at=at, log_time=now))
        else:
            out.append(record(url, " ".join(words), at=at, log_time=now, canonical=canonical))
    return out


def repeats(seed):
    """Pages under URLs of their own: a text alone, and others that each come again, word for word and all but one."""
    rng = random.Random(seed)
    out = [record(f"http://new{i}.org/", f"alone{i} " * 30, title=f"t{i}") for i in range(9)]
    for i in range(12):
        words = [f"{rng.choice(VOCABULARY)}{i}" for _ in range(30)]
        for j in range(4):
            edited = [*words[:20], f"edit{j // 2}", *words[21:]]
            place = f"http://again{i}.s9.org/"
            canonical = f"{place}{rng.randrange(4)}"
            out.append(record(f"{place}{j}", " ".join(edited), canonical=canonical, at=10**5, log_time=10**5))
    return out


DECIDERS = {
    "plain": SMALL,
    "hot": replace(SMALL, postings_max=2, candidates_max=3),
    "sites": replace(SMALL, sites={"s1.org": SiteOverride(never_merge=True), "s2.org": SiteOverride(tape_min=0.9)}),
    "content": replace(SMALL, content_tape_min=0.3),
} | {rule: replace(SMALL, rule=rule) for rule in ONLINE_RULES if rule != "verified"}


def no_page_repeats_itself(verdicts):
    for verdict in verdicts:
        if verdict.verdict in ("exact_duplicate", "near_duplicate", "same_content"):
            other = verdict.representative or verdict.content_of
            assert other.url != verdict.url
            # A page that gives a cluster back gives it to the page that causes the verdict.
            assert other.page_id < verdict.page_id if not verdict.n else other.page_id == verdict.page_id
            holder = verdict.evidence.get("holder")
            assert holder is None or holder["url"] != verdict.url


#: Those of the rules of papers are whole.
CUT = [
    pytest.param(made, id=name, marks=() if name == "plain" else pytest.mark.slow) for name, made in DECIDERS.items()
]


@pytest.mark.parametrize("decider", whole.first(CUT, 4))
@pytest.mark.seeds(1, 5)
def test_slicing_changes_no_verdict_and_no_stored_byte(seed, decider):
    verdicts, _ = in_any_slices([*crawl(seed), *repeats(seed)], seed, decider=decider)
    no_page_repeats_itself(verdicts)
    kinds = Counter(str(verdict.verdict) for verdict in verdicts)
    assert min(kinds["unique"], kinds["exact_duplicate"]) >= 9


@pytest.mark.slow
def test_streams_of_the_slicing_test_meet_all_kinds_of_verdicts():
    seen = Counter()
    for seed in range(6):
        for decider in (SMALL, DECIDERS["content"], DECIDERS["hot"]):
            verdicts, store = folded(crawl(seed), endless(300), decider=decider, checked=False)
            seen.update(str(verdict.verdict) for verdict in verdicts)
            seen["hot"] += sum(is_hot(row) for key, row in store.scan(Family.KEYS) if len(key) == SIMILARITY_BYTES)
            seen["cut"] += sum(verdict.candidates_cut for verdict in verdicts)
            seen["proved again"] += sum(bool(v.evidence) for v in verdicts if v.verdict == "unchanged")
            seen["moved canonical"] += sum(v.canonical not in (None, v.url) for v in verdicts if not v.representative)
    kinds = ["unique", "exact_duplicate", "near_duplicate", "same_content", "unchanged", "edited", "stale", "gone"]
    for what in [*kinds, "promoted", "rejected", "hot", "cut", "proved again", "moved canonical"]:
        assert seen[what] >= 3, (what, seen)


@pytest.mark.slow
@pytest.mark.seeds(1, 5)
def test_rocksdb_and_memory_give_the_same_verdicts_and_bytes(seed, tmp_path):
    records = crawl(seed, 400)
    rng = random.Random(seed)
    verdicts, memory = folded(records, endless(37), checked=False)
    rocks = RocksStore(tmp_path / "index")
    reported = []
    for batch in slices_of(records, (rng.randrange(1, 80) for _ in itertools.count())):
        outcome = fold(batch, rocks, SMALL)
        rocks.write(outcome.writes)
        reported += outcome.verdicts
        if rng.random() < 0.2:
            rocks.close()
            rocks = RocksStore(tmp_path / "index")
    assert [verdict.to_json() for verdict in reported] == [verdict.to_json() for verdict in verdicts]
    assert contents_of(rocks) == contents_of(memory)
    Checked(rocks, SMALL)
    rocks.close()


# ---- purity --------------------------------------------------------------------------------------------------------


@functools.cache
def half_way(seed=1):
    records = crawl(seed, 300)
    _, store = folded(records[:200], endless(50), checked=False)
    return list(enumerate(records, 1))[200:], store


@pytest.mark.slow
def test_folding_twice_gives_the_same_and_touches_nothing():
    batch, store = half_way()
    before = contents_of(store)
    assert fold(batch, store, SMALL) == fold(batch, store, SMALL)
    assert contents_of(store) == before


@pytest.mark.slow
@pytest.mark.parametrize("name", DECIDERS)
@pytest.mark.seeds(1, 6)
def test_the_compiled_fold_equals_the_one_in_python(name, seed):
    for _ in as_in_python([*crawl(seed), *repeats(seed)], endless(90), DECIDERS[name]):
        pass


@pytest.mark.kernel
@pytest.mark.parametrize("name", ["plain", "hot"])
def test_the_walk_equals_python_on_a_few_pages(name):
    for _ in as_in_python(crawl(2, 60), endless(20), DECIDERS[name]):
        pass


@pytest.mark.slow
@pytest.mark.seeds(1, 3)
def test_compared_pages_and_traces_equal_those_in_python(seed):
    batch, store = half_way(seed)
    kept = [each(batch, store, SMALL, keep_compared=True).compared for each in (fold, fold_in_python)]
    assert [plain(one) for one in kept[0]] == [plain(one) for one in kept[1]]
    traces = [], []
    for each, to in zip((fold, fold_in_python), traces, strict=True):
        each(batch, store, SMALL, trace=to.append)
    assert traces[0] == traces[1]


def plain(one):
    """A compared page as values, with the counts of siblings that rulings read."""
    choice = one.choice._replace(siblings=one.choice.siblings[:4])
    return one.page_id, one.header.record, choice, [header.record for header in one.headers]


@pytest.mark.parametrize("room", ["_ENTRIES", "_UNDO", "_PAIRS", "_VERDICTS", "_TURNED", "_HEAP", "_CHECKS"])
def test_arrays_that_are_too_short_change_nothing(room, monkeypatch):
    batch, store = half_way()
    usual = fold(batch, store, SMALL)
    monkeypatch.setattr(arrays, room, 1)
    for name in ("_ENTRIES_A_PAGE", "_PAIRS_A_PAGE", "_VERDICTS_A_PAGE"):
        monkeypatch.setattr(arrays, name, 0)
    assert fold(batch, store, SMALL) == usual


def test_a_mirror_that_goes_page_by_page_is_read_ahead():
    words = " ".join(VOCABULARY)
    urls = [f"http://mirror{i}.org/" for i in range(60)]
    records = [record(url, words + (f" and{i}" if i % 3 else ""), at=1) for i, url in enumerate(urls)]
    verdicts, store = folded(records, endless(60))
    assert {verdict.cluster for verdict in verdicts} == {1}
    goes = [tombstone(url, at=2) for url in urls[:30]]
    fresh = [record(url, " ".join(f"x{i}y{j}" for j in range(40)), at=2) for i, url in enumerate(urls[30:])]
    outcome = fold(list(enumerate(goes + fresh, 61)), store, SMALL)
    assert sum(verdict.verdict == "promoted" for verdict in outcome.verdicts) == 59
    assert outcome.effort[0] <= 12, "each heir that has to go next would cost a round of its own"


def test_writes_hold_changed_rows_alone():
    records = [record("http://a.org/", " ".join(VOCABULARY), at=1)]
    _, store = folded(records, endless(1))
    again = fold([(2, record("http://a.org/", " ".join(VOCABULARY), at=0))], store, SMALL)
    assert again.verdicts[0].verdict == "stale"
    assert again.writes == {}
    unchanged = fold([(2, record("http://a.org/", " ".join(VOCABULARY), at=5))], store, SMALL)
    assert set(unchanged.writes) == {Family.URLS}


def test_hot_keys_are_not_written_again():
    few = replace(SMALL, postings_max=1, hot_postings_kept=2)
    head = "one two three four five six seven eight "
    pages = [record(f"http://s{i}.org/", head + " ".join(f"p{i}w{j}" for j in range(30))) for i in range(3)]
    _, store = folded(pages[:2], endless(1), decider=few)
    outcome = fold([(3, pages[2])], store, few)
    (hot,) = [key for key, row in store.scan(Family.KEYS) if len(key) == SIMILARITY_BYTES and is_hot(row)]
    assert hot not in outcome.writes[Family.KEYS]
    assert outcome.hot_turned == 0


def test_promotions_go_beyond_the_members_that_were_read_ahead():
    words = " ".join(VOCABULARY)
    urls = [f"http://s{i}.org/" for i in range(16)]
    pages = [record(url, words) for url in urls]
    going = [tombstone(url) for url in urls[:12]]
    batch = list(enumerate([record("http://late.org/", words), *going], len(pages) + 1))
    _, store = folded(pages, endless(5))
    promoted = [verdict.url for verdict in fold(batch, store, SMALL).verdicts if verdict.verdict == "promoted"]
    assert promoted == urls[1 : 12 + 1]


# ---- bad batches ---------------------------------------------------------------------------------------------------


def test_page_ids_must_ascend_and_fit():
    page = record("http://a.org/", "some words")
    for ids in ([2, 1], [1, 1], [-1], [1 << 48]):
        with pytest.raises(InvariantBroken, match="page id"):
            fold([(i, page) for i in ids], MemoryStore(), SMALL)
    assert fold([(0, page), ((1 << 48) - 1, page)], MemoryStore(), SMALL).verdicts[1].verdict == "unchanged"


def test_damaged_records_are_refused():
    with pytest.raises(CorruptRecord):
        fold([(1, b"\x01rubbish")], MemoryStore(), SMALL)


def test_an_empty_batch_is_nothing():
    outcome = fold([], MemoryStore(), SMALL)
    assert (outcome.verdicts, outcome.writes) == ([], {})


@pytest.mark.parametrize("family", [Family.SKETCHES, Family.CLUSTERS, Family.URLS])
def test_a_store_that_lost_rows_is_noticed(family):
    words = " ".join(VOCABULARY)
    _, store = folded([record("http://a.org/", words), record("http://b.org/", words)], endless(2))
    store.write({family: dict.fromkeys((key for key, _ in store.scan(family)), None)})
    with pytest.raises(InvariantBroken):
        fold([(3, record("http://c.org/", words + " more"))], store, SMALL)


# ---- traces --------------------------------------------------------------------------------------------------------


def test_trace_has_the_weighed_candidates_of_each_page():
    words = VOCABULARY
    near = [*words[:38], "x", "y"]
    pages = [
        record("http://a.org/", " ".join(words)),
        record("http://b.org/", " ".join(near)),
        record("http://c.org/", " ".join(near)),
        record("http://b.org/", " ".join([*near[:39], "z"]), at=1),
        tombstone("http://a.org/", at=1),
    ]
    traces = []
    outcome = fold(list(enumerate(pages, 1)), MemoryStore(), SMALL, trace=traces.append)
    assert [trace.page_id for trace in traces] == [1, 2, 3, 4, 5]
    (one,) = traces[1].candidates
    assert (one.page_id, one.url, one.cluster, one.ruling.by) == (1, "http://a.org/", 1, "tape")
    assert sum(one.families.values()) > 0
    assert one.pair.tape_score == 38 / 42
    assert (traces[2].holder, traces[2].candidates) == (2, [])
    assert [(check.of, check.page_id, check.held) for check in traces[3].checks] == [
        ("previous", 2, True),
        ("founding", 1, True),
    ]
    assert outcome == fold(list(enumerate(pages, 1)), MemoryStore(), SMALL), "looking changes nothing"
    assert outcome.scored == 1


@pytest.mark.slow
def test_traces_come_once_however_often_rows_are_read():
    rounds = []
    for seed in (1, 5):
        batch, store = half_way(seed)
        traces = []
        rounds.append(fold(batch, store, SMALL, trace=traces.append).effort[0])
        assert [trace.page_id for trace in traces] == [page_id for page_id, _ in batch]
    assert max(rounds) > 1


# ---- ways of doing the same ----------------------------------------------------------------------------------------


def test_threads_change_nothing(monkeypatch):
    monkeypatch.setattr(matching, "_PART_KEYS", 3)
    batch, store = half_way()
    assert fold(batch, store, SMALL, threads=3) == fold(batch, store, SMALL)
