"""The table of options compares what it says: the same calls, other options, files that stay readable."""

from pathlib import Path

import pytest

from neardup.decider import Decider
from neardup.fold import fold
from neardup.index.column_families import Family
from neardup.index.memory import MemoryStore
from neardup.index.rocks import RocksStore
from neardup.scheme import Scheme
from tests.measure.bench.crawl import Crawl
from tests.measure.bench.options import Cost, Recorder, markdown, record, replay, tuned
from tests.measure.bench.variants import VARIANTS, Variant

pytestmark = pytest.mark.whole

SCHEME = Scheme(seed=1)
DECIDER = Decider(scheme=SCHEME.digest)


@pytest.mark.slow
def test_stores_of_all_variants_are_readable_by_each_other(tmp_path):
    def rows_of(name: str) -> dict[bytes, bytes]:
        return {f"{name} {i}".encode(): name.encode() * 20 for i in range(50)}

    for name, variant in VARIANTS.items():
        with tuned(variant):
            store = RocksStore(tmp_path / "index", **dict(variant.sizes))
        store.write({Family.KEYS: rows_of(name), Family.SKETCHES: rows_of(name)})
        store.close()
    store = RocksStore(tmp_path / "index")
    for name in VARIANTS:
        rows = rows_of(name)
        for family in (Family.KEYS, Family.SKETCHES):
            assert store.get_many(family, list(rows)) == list(rows.values()), name
    store.close()


@pytest.mark.slow
def test_the_same_calls_are_answered_under_other_options(tmp_path):
    calls = tmp_path / "calls"
    assert record(Crawl(1200).records(SCHEME), DECIDER, calls) == 1200
    asked = []
    small = Variant("", lambda family, options, tables: asked.append(family), (("write_bytes", 1 << 20),))
    plain, other = (
        replay(calls, variant, tmp_path / str(number), 1200)
        for number, variant in enumerate((VARIANTS["default"], small))
    )
    assert set(asked) == set(Family)
    for cost in (plain, other):
        assert min(cost.wall_us, cost.read_us, cost.write_us) > 0
        assert cost.disk_bytes > 1000
    stores = [RocksStore(tmp_path / str(number)) for number in range(2)]
    folded = MemoryStore()
    batch: list[tuple[int, bytes]] = []
    for page_id, sketch in enumerate(Crawl(1200).records(SCHEME), 1):
        batch.append((page_id, sketch))
        if len(batch) == 100:
            folded.write(fold(batch, folded, DECIDER).writes)
            batch.clear()
    for family in Family:
        expected = list(folded.scan(family))
        for store in stores:
            held = [pair for pair in store.scan(family) if family is not Family.META]
            assert held == expected, family
    for store in stores:
        store.close()


def test_calls_are_kept_in_their_order(tmp_path):
    path = Path(tmp_path / "calls")
    with path.open("wb") as file:
        store = Recorder(MemoryStore(), file)
        store.write({Family.KEYS: {b"a": b"1"}})
        assert store.get_many(Family.KEYS, [b"a"]) == [b"1"]
    cost = replay(path, VARIANTS["default"], tmp_path / "index", 1)
    assert cost.read_us > 0


def test_the_default_stands_in_figures_and_the_others_as_ratios():
    base = Cost(10.0, 8.0, 4.0, 3.0, 1.0, 1800.0, 25.0)
    table = markdown(base, {"lz4": Cost(1.0, 0.5, 1.0, 1.0, 1.0, 1.1, 1.0)}, ["about"])
    assert "| default | 10.0 | 8.0 |" in table
    assert "| lz4 (everywhere) | 1.00 | 0.50 |" in table
