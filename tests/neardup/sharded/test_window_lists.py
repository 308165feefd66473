"""The lists of a window are those that effects make in an index, one by one."""

import random

import numpy as np
import pytest

from neardup.decider import Decider
from neardup.index.column_families import Family, Reader
from neardup.index.memory import MemoryStore
from neardup.index.rows import id_key
from neardup.index.sketch_rows import whole_row
from neardup.kernels import key_table
from neardup.rules.posted_keys import similarity_keys
from neardup.sharded.apply_effects import changes
from neardup.sharded.epochs import Sharding
from neardup.sharded.judge_rows import JudgeReader
from neardup.sharded.messages import EffectKind, Effects
from neardup.sharded.window_lists import WindowLists
from neardup.sketch.header import Header
from tests.neardup.handmade import record
from tests.neardup.story import SMALL

WORDS = [f"w{i}" for i in range(40)]
URL = bytes(16)
Items = list[tuple[int, int, bytes]]


def some_pages(rng: random.Random, offset: int) -> list[tuple[int, bytes]]:
    texts = [[rng.choice(WORDS) for _ in range(30)] for _ in range(2)]
    out = []
    for place in range(rng.randrange(5)):
        words = list(rng.choice(texts)) if rng.random() < 0.3 else [f"{offset}-{place}-{i}" for i in range(30)]
        if rng.random() < 0.5:
            kind = rng.randrange(2)
            words = [f"old{kind}-{i}" for i in range(30)]
        if rng.random() < 0.3:
            words[rng.randrange(30)] = rng.choice(WORDS)
        out.append((offset << 12 | place, record(f"http://a{offset}.org/{place}", " ".join(words))))
    return out


def some_effects(rng: random.Random, pages: list[int], posted: set[int], window: list[int]) -> Items:
    """Pages of the message are posted; pages of the window come and go."""
    out = [(int(EffectKind.POST), page_id, URL) for page_id in pages if rng.random() < 0.7]
    for page_id in window:
        if rng.random() < 0.15:
            out.append((int(EffectKind.UNPOST if page_id in posted else EffectKind.POST), page_id, URL))
    if out and rng.random() < 0.2 and out[0][1] in pages:
        out.append((int(EffectKind.UNPOST), out[0][1], URL))
    for kind, page_id, _ in out:
        posted.add(page_id) if kind == EffectKind.POST else posted.discard(page_id)
    return out


def rows_of(items: Items, records: dict[int, bytes], reader: Reader, decider: Decider) -> dict[bytes, bytes | None]:
    return dict(changes(items, records, reader, decider, lambda page_id: True)[Family.KEYS])


def with_sketches(records: dict[int, bytes]) -> MemoryStore:
    store = MemoryStore()
    store.write({Family.SKETCHES: {id_key(page_id): whole_row(one) for page_id, one in records.items()}})
    return store


@pytest.mark.parametrize("postings_max", [2, 64])
@pytest.mark.parametrize("seed", range(12))
def test_rows_are_those_of_an_index(seed: int, postings_max: int) -> None:
    rng, epoch = random.Random(seed), 4
    decider = Decider(SMALL.scheme, rule=SMALL.rule, epoch=epoch, shards=2, postings_max=postings_max, thin_tokens=1)
    lists, reference = WindowLists(decider), MemoryStore()
    parts: list[Effects] = []
    posted: set[int] = set()
    met = alone = 0
    for offset in range(24):
        if offset % epoch == 0:
            first = max(0, offset - epoch)
            parts = [part for part in parts if part.offset >= first]
            lists.start(first << 12, parts)
            posted = {page_id for page_id in posted if page_id >> 12 >= first}
            reference = with_sketches(lists.records)
            items = [item for part in parts for item in part.items.tolist() if item[1] >> 12 >= first]
            reference.write({Family.KEYS: rows_of(items, lists.records, reference, decider)})
        pages = some_pages(rng, offset)
        window = sorted(lists.records)
        lists.add(pages)
        effects = some_effects(rng, [page_id for page_id, _ in pages], posted, window)
        sketches = with_sketches(lists.records)
        reference.write({Family.SKETCHES: dict(sketches.scan(Family.SKETCHES))})
        for _ in range(rng.choice([1, 2])):  # judged once more
            lists.begin()
            listed = [item for item in effects if item[1] not in lists.alone]
            written = rows_of(listed, lists.records, JudgeReader(sketches, lists), decider)
            lists.note(effects)
        reference.write({Family.KEYS: rows_of(effects, lists.records, reference, decider)})
        lists.end(written)
        parts.append(Effects.of(Sharding.of(decider), offset, effects))
        names = sorted({key for one in lists.records.values() for key in similarity_keys(Header(one), decider)})
        assert lists.get_many(Family.KEYS, names) == reference.get_many(Family.KEYS, names)
        met += len(pages) - len(lists.alone)
        alone += len(lists.alone)
    assert met > 5
    assert alone > 5


@pytest.mark.kernel
def test_a_table_is_a_dictionary() -> None:
    rng = np.random.default_rng(3)
    columns = rng.integers(1, 60, size=(20, 3)).astype(np.uint64)
    table = np.zeros(256, dtype=np.uint64), np.zeros(256, dtype=np.int64)
    expected: dict[int, int] = {}
    for page_id, row in enumerate(columns.tolist(), 100):
        for key in row:
            expected.setdefault(key, page_id)
    assert key_table.insert(columns, np.arange(100, 120), table) == len(expected)
    numbers, found = np.arange(1, 80, dtype=np.uint64), np.empty(79, dtype=np.int64)
    key_table.find(numbers, table, found)
    assert found.tolist() == [expected.get(number, -1) for number in range(1, 80)]
    others = np.array([[1000, 1001], [1001, 1002], [1003, 1003], [columns[4, 1], 1004]], dtype=np.uint64)
    meeting = np.zeros(4, dtype=np.uint8)
    key_table.meet(others, table, (np.zeros(16, dtype=np.uint64), np.zeros(16, dtype=np.int64)), meeting)
    assert meeting.tolist() == [1, 1, 0, 1]
