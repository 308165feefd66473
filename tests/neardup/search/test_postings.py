"""Posting lists as arrays do what rows under keys do, one by one."""

import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from neardup.errors import CorruptRecord, InvariantBroken
from neardup.index import posting_rows
from neardup.index.rows import digest_key
from neardup.rules import RULES
from neardup.rules.key_families import KeyFamily, family_of
from neardup.rules.posted_keys import similarity_keys
from neardup.search.batch_records import Pages
from neardup.search.posting_lists import Posted
from neardup.sketch.header import Header
from tests.neardup.handmade import record
from tests.neardup.story import SMALL

pytestmark = pytest.mark.kernel

WORDS = [f"w{i}" for i in range(30)]


def pages_of(rng, count):
    """Records of few texts and their variations, thin and opaque ones among them."""
    texts = [[rng.choice(WORDS) for _ in range(rng.choice([4, 12, 20]))] for _ in range(3)]
    out = []
    for i in range(count):
        words = list(rng.choice(texts))
        words[rng.randrange(len(words))] = rng.choice(WORDS)
        body = b"image" if rng.random() < 0.1 else None
        out.append(record(f"http://a{i}.org/", " ".join(words), body=body))
    return out


class Rows:
    """The same with a dictionary of rows."""

    def __init__(self, rows, decider):
        self.rows, self.decider, self.turned = dict(rows), decider, 0

    def gather(self, header):
        counts = {}
        for key in similarity_keys(header, self.decider):
            row = self.rows.get(key)
            for word in posting_rows.postings(row):
                counts[word] = counts.get(word, 0) + (1e-3 if posting_rows.is_hot(row) else weight_of(key))
        tape, content = header.tape_logs
        gap = self.decider.length_gap_max if self.decider.rule in ("tape", "verified") else 999
        near = [w for w in counts if abs((w >> 8 & 255) - tape) <= gap or abs((w & 255) - content) <= gap]
        ordered = sorted(near, key=lambda word: (-counts[word], word))
        kept = ordered[: self.decider.candidates_max]
        return [word >> 16 for word in kept], [int(counts[word]) for word in kept], len(ordered) > len(kept)

    def post(self, page_id, header):
        for key in similarity_keys(header, self.decider):
            row = self.rows.get(key)
            self.rows[key] = posting_rows.with_posting(
                row,
                posting_rows.posting(page_id, header, key),
                self.decider.postings_max,
                self.decider.hot_postings_kept,
            )
            self.turned += posting_rows.is_hot(self.rows[key]) and not posting_rows.is_hot(row)

    def unpost(self, page_id, header):
        for key in similarity_keys(header, self.decider):
            after = posting_rows.without_posting(self.rows[key], posting_rows.posting(page_id, header, key))
            self.rows[key] = after
            if after is None:
                del self.rows[key]


def weight_of(key):
    return 16 if family_of(key) is KeyFamily.PLACE else 1


def holds(row, page_id):
    return any(word >> 16 == page_id for word in posting_rows.postings(row))


def slots_of(posted, header, decider):
    found = [posted.slot_of(key) for key in similarity_keys(header, decider)]
    return np.array([slot for slot in found if slot is not None], dtype=np.int64)


@pytest.mark.parametrize("rule", RULES)
def test_keys_in_columns_are_the_keys_of_each_page(rule):
    rng = random.Random(rule)
    batch = Pages(list(enumerate(pages_of(rng, 40), 7)))
    decider = replace(SMALL, rule=rule)
    posted = Posted(batch, decider)
    for page_id, header in batch.items():
        assert posted.of_page(page_id) == similarity_keys(header, decider)
        assert (page_id in posted.number_of) == bool(posted.of_page(page_id))
    assert posted.keys == sorted(set(posted.keys))
    seen = set()
    for page_id, place in posted.number_of.items():
        assert posted.first[place] == seen.isdisjoint(posted.of_page(page_id))
        assert int(posted.entries[place]) == posting_rows.word_of(page_id, batch[page_id])
        seen.update(posted.of_page(page_id))
    assert [bytes(key) for key in batch.digest_keys] == [digest_key(header) for header in batch.values()]


@pytest.mark.parametrize("seed", range(12))
def test_lists_equal_rows(seed):
    rng = random.Random(seed)
    most, cut = rng.choice([1, 2, 3, 64]), rng.choice([2, 64])
    decider = replace(SMALL, postings_max=most, candidates_max=cut, length_gap_max=rng.choice([0, 3, 9]))
    decider = replace(decider, hot_postings_kept=rng.choice([0, 1, 2, 8]))
    records = pages_of(rng, 36)
    old = {page_id: Header(one) for page_id, one in enumerate(records[:18], 1)}
    before = Rows({}, decider)
    for page_id in rng.sample(sorted(old), 12):
        before.post(page_id, old[page_id])
    stored, placed = (
        dict(before.rows),
        {p for p in old if any(p == w >> 16 for r in before.rows.values() for w in posting_rows.postings(r))},
    )
    batch = Pages(list(enumerate(records[18:], 100)))
    posted = Posted(batch, decider)
    posted.put(range(len(posted.keys)), [stored.get(key) for key in posted.keys])
    lists, rows = posted.lists(decider), Rows(stored, decider)
    live = {page_id: old[page_id] for page_id in placed}
    untouched = posted.lists(decider)
    for page_id, header in batch.items():
        many = lists.gather_many([page_id], [True])
        expected = rows.gather(header)
        assert lists.gather(page_id) == expected
        assert many == ({page_id: expected} if expected[0] else {})
        place = posted.number_of.get(page_id)
        if place is not None and lists.is_lonely(place):
            assert expected[0] == []
        for other in expected[0]:
            shared = [key for key in posted.of_page(page_id) if holds(rows.rows.get(key), other)]
            weight = sum(weight_of(key) for key in shared if not posting_rows.is_hot(rows.rows[key]))
            assert weight == expected[1][expected[0].index(other)]
            families = Counter(family_of(key).name.lower() for key in shared)
            assert lists.families_many([(page_id, other)]) == {(page_id, other): families}
        what = rng.random()
        if what < 0.6 and place is not None:
            rows.post(page_id, header)
            if lists.is_lonely(place) and rng.random() < 0.5:
                lists.post_lonely([place])
            else:
                assert lists.post(posted.slots[place], posting_rows.word_of(page_id, header), header.site)
            live[page_id] = header
        elif what < 0.8:
            fresh = rng.choice([p for p in old if p not in live] or [0])
            if fresh:
                slots = slots_of(posted, old[fresh], decider)
                assert lists.post(slots, posting_rows.word_of(fresh, old[fresh]), old[fresh].site, foreign=True)
                rows.post(fresh, old[fresh])
                live[fresh] = old[fresh]
        elif live:
            gone = rng.choice(sorted(live))
            lists.unpost(slots_of(posted, live[gone], decider), posting_rows.word_of(gone, live[gone]))
            rows.unpost(gone, live.pop(gone))
    ours = set(posted.keys)
    changed = {k: rows.rows.get(k) for k in ours if rows.rows.get(k) != stored.get(k)}
    assert lists.writes() == changed
    assert untouched.writes() == {}


def test_hot_keys_are_counted_once():
    decider = replace(SMALL, postings_max=1)
    batch = Pages([(i, record(f"http://a{i}.org/", " ".join(WORDS))) for i in range(1, 4)])
    posted = Posted(batch, decider)
    posted.put(range(len(posted.keys)), [None] * len(posted.keys))
    lists = posted.lists(decider)
    for page_id in batch:
        header = batch[page_id]
        lists.post(posted.slots[posted.number_of[page_id]], posting_rows.word_of(page_id, header), header.site)
    shared = sum(uses == 3 for uses in posted.uses.tolist())
    assert len(lists.turned) == shared > 0
    rows = list(lists.writes().values())
    assert sum(map(posting_rows.is_hot, rows)) == shared
    assert {len(posting_rows.postings(row)) for row in rows} == {1, 3}, "hot ones keep one of each site"


def test_unread_lists_are_reported_and_damaged_ones_refused():
    batch = Pages([(1, record("http://a.org/", " ".join(WORDS)))])
    posted = Posted(batch, SMALL)
    lists = posted.lists(SMALL)
    word = posting_rows.word_of(1, batch[1])
    assert lists.gather(1) is None
    assert lists.gather_many([1], [True]) == {}
    assert not lists.post(posted.slots[0], word, 1)
    assert not lists.unpost(posted.slots[0], word)
    assert lists.writes() == {}
    assert posted.unread_of([1]) == list(range(len(posted.keys)))
    posted.learn(posted.keys[:-1], dict.fromkeys(posted.keys))
    assert posted.unread_of([1]) == [len(posted.keys) - 1]
    posted.put([len(posted.keys) - 1], [b"\x01" + bytes(7)])
    with pytest.raises(CorruptRecord, match="8 bytes"):
        posted.lists(SMALL)
    posted.put([len(posted.keys) - 1], [None])
    with pytest.raises(InvariantBroken, match="not where it was put"):
        posted.lists(SMALL).unpost(posted.slots[0], word)
