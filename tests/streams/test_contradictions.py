"""The search for contradictions that other tests end with: it finds every kind of them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from neardup.index.column_families import Family, Store
from neardup.index.memory import MemoryStore
from neardup.index.rows import decode_cluster, decode_member, decode_url, id_key
from neardup.scheme import Scheme
from streams.scan.scan import scan
from streams.state.scan_directory import ScanDirectory
from tests.streams.archives import crawl, write_warc
from tests.streams.contradictions import Inspection, inspect


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inspect")
    with ScanDirectory.open(folder / "state", scheme=Scheme(seed=7)) as state:
        scan([write_warc(folder / "a.warc", crawl(40))], state)
    return folder / "state"


@pytest.fixture(scope="module")
def rows(path: Path) -> dict[Family, dict[bytes, bytes]]:
    with ScanDirectory.open(path) as state:
        return {family: dict(state.store.scan(family)) for family in Family}


@pytest.fixture
def store(rows: dict[Family, dict[bytes, bytes]]) -> Store:
    made = MemoryStore()
    made.write(rows)
    return made


def looked(store: Store) -> Inspection:
    return inspect(store)


def test_a_sound_index(store: Store, rows: dict[Family, dict[bytes, bytes]]) -> None:
    found = looked(store)
    assert (found.wrong, found.wrong_total) == ([], 0)
    assert found.rows["urls"] == len(rows[Family.URLS]) == sum(found.standing.values())
    assert found.rows["keys"] == sum(found.keys.values()) == len(rows[Family.KEYS])
    assert found.bytes["sketches"] == sum(len(k) + len(v) for k, v in rows[Family.SKETCHES].items())
    assert found.largest[0][0] == max(decode_cluster(row).size for row in rows[Family.CLUSTERS].values()) > 1


def _member(store: Store) -> tuple[bytes, bytes]:
    return next(iter(store.scan(Family.MEMBERS)))


def drop_a_members_sketch(store: Store) -> None:
    hashed = decode_member(_member(store)[1]).url_hash
    (row,) = store.get_many(Family.URLS, [hashed])
    store.write({Family.SKETCHES: {id_key(decode_url(row or b"").page_id): None}})


def drop_a_member(store: Store) -> None:
    store.write({Family.MEMBERS: {_member(store)[0]: None}})


def drop_a_cluster(store: Store) -> None:
    store.write({Family.CLUSTERS: {_member(store)[0][:8]: None}})


def drop_a_members_url(store: Store) -> None:
    store.write({Family.URLS: {decode_member(_member(store)[1]).url_hash: None}})


def miscount_a_cluster(store: Store) -> None:
    key, row = next(iter(store.scan(Family.CLUSTERS)))
    cluster = decode_cluster(row)
    store.write({Family.CLUSTERS: {key: cluster._replace(size=cluster.size + 1).encode()}})


def spoil_a_row(store: Store) -> None:
    key, row = next(iter(store.scan(Family.URLS)))
    store.write({Family.URLS: {key: row[:-1]}})


def spoil_a_sketch(store: Store) -> None:
    key, row = next(iter(store.scan(Family.SKETCHES)))
    store.write({Family.SKETCHES: {key: row[:-3]}})


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (drop_a_members_sketch, ["its sketch, page"]),
        (drop_a_member, ["it is no member", "and has"]),
        (drop_a_cluster, ["its cluster, ", "its cluster is missing"]),
        (drop_a_members_url, ["its URL is missing"]),
        (miscount_a_cluster, ["pages, and has"]),
        (spoil_a_row, ["not a URL row"]),
        (spoil_a_sketch, ["sketch record"]),
    ],
)
def test_contradictions_are_reported(store: Store, spoil: Callable[[Store], None], words: list[str]) -> None:
    spoil(store)
    found = looked(store)
    assert found.wrong_total == len(found.wrong) > 0
    text = " / ".join(one.what for one in found.wrong)
    for word in words:
        assert word in text


def test_a_posting_of_a_lost_sketch_is_reported(store: Store, rows: dict[Family, dict[bytes, bytes]]) -> None:
    founding = decode_cluster(next(iter(rows[Family.CLUSTERS].values()))).founding
    store.write({Family.SKETCHES: {id_key(founding): None}})
    what = {(one.family, one.what) for one in looked(store).wrong}
    assert ("keys", f"it names page {founding}, whose sketch is missing") in what
    assert ("clusters", f"its founding sketch, page {founding}, is missing") in what
