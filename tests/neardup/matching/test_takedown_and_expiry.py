"""Pages that are taken out by a word or for their age: nothing of them stays, and nothing else changes."""

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup.errors import BadInput
from neardup.fold import fold
from neardup.index.column_families import Family
from neardup.index.layered import Layered
from neardup.index.memory import MemoryStore
from neardup.index.rocks import RocksStore
from neardup.index.sketch_rows import records_of
from neardup.matching.takedown_and_expiry import expire, take_down
from neardup.sketch.header import Header
from neardup.sketch.takedown_hashes import Named, of_prefix, of_site, of_url
from neardup.urls import url_hash
from neardup.verdict import TAKEN_DOWN, Kind
from tests.neardup.handmade import record, tombstone
from tests.neardup.invariants import Checked
from tests.neardup.story import FAR, NEAR, NEARER, SMALL, A, B, C, D, endless, folded, text
from tests.neardup.test_fold import crawl
from tests.oracle.fold.removal import remove
from tests.whole import count

#: Verdicts of a URL that nothing is known of.
UNKNOWN = {"unique", "exact_duplicate", "near_duplicate", "same_content"}


def removed(store, takedown, *, cause=10**6, decider=SMALL):
    index = Layered(store)
    found = take_down(takedown, index, decider, cause=cause)
    store.write(index.changes)
    Checked(store, decider)
    return found


def fetched(store, page_id, page, decider=SMALL):
    outcome = fold([(page_id, page)], store, decider)
    store.write(outcome.writes)
    Checked(store, decider)
    return [str(verdict.verdict) for verdict in outcome.verdicts]


def everything(store):
    return b"\n".join(key + b" " + row for family in Family for key, row in store.scan(family))


def test_a_page_alone_leaves_nothing():
    _, store = folded([record(A, text(), title="Wool")], endless(1))
    assert A.encode() in everything(store)
    found = removed(store, of_url(A))
    assert (found.pages, found.promoted) == (1, 0)
    (emitted,) = found.verdicts
    assert (emitted.verdict, emitted.page_id, emitted.n, emitted.url, emitted.reason) == (
        Kind.GONE,
        10**6,
        1,
        A,
        TAKEN_DOWN,
    )
    assert "Wool" not in emitted.to_json().decode()
    assert everything(store) == b""
    assert fetched(store, 2, record(A, text(), title="Wool")) == ["unique"]


def test_takedown_of_an_unknown_url_changes_nothing():
    _, store = folded([record(A, text())], endless(1))
    before = everything(store)
    assert removed(store, of_url(B)).pages == 0
    assert everything(store) == before


def test_the_next_member_takes_over_with_one_verdict():
    _, store = folded([record(A, text(), at=10), record(B, NEAR), record(C, text())], endless(9))
    found = removed(store, of_url(A), cause=4 << 12)
    assert (found.pages, found.promoted) == (1, 1)
    emitted, gone = found.verdicts
    assert (emitted.verdict, emitted.page_id, emitted.n, emitted.url) == (Kind.PROMOTED, 4 << 12, 1, B)
    assert (gone.verdict, gone.page_id, gone.n, gone.url) == (Kind.GONE, 4 << 12, 2, A)
    assert (emitted.cluster, emitted.cluster_size) == (1, 2)
    assert A.encode() not in everything(store)
    assert fetched(store, 5, record(A, text(), at=5)) == ["exact_duplicate"]  # of C, whatever the time of the fetch


def test_a_member_that_goes_leaves_its_representative():
    _, store = folded([record(A, text()), record(B, NEAR)], endless(9))
    found = removed(store, of_url(B))
    assert (found.pages, found.promoted) == (1, 0)
    assert B.encode() not in everything(store)
    assert fetched(store, 3, record(A, text())) == ["unchanged"]


def test_shared_sketch_stays_when_its_first_page_goes():
    first = record(A, text(), title="Secret", canonical=f"{A}canonical")
    _, store = folded([first, record(B, text(), title="Secret"), record(C, text(), title="Secret")], endless(9))
    for url in (A, B):
        removed(store, of_url(url))
        assert url.encode() not in everything(store)
    assert fetched(store, 4, record(D, text(), title="Secret")) == ["exact_duplicate"]
    removed(store, of_url(C))
    removed(store, of_url(D))
    assert everything(store) == b""


def test_nothing_is_left_of_a_page_that_was_gone_or_edited_before():
    stream = [record(A, text()), record(B, text()), tombstone(A, at=1), record(C, FAR), record(D, FAR)]
    _, store = folded([*stream, record(C, NEARER, at=2, log_time=2)], endless(1))
    for url in (A, C):
        found = removed(store, of_url(url))
        assert [emitted.url for emitted in found.verdicts] == ([C] if url == C else []), (
            "the tombstone of A has its verdict already"
        )
        assert url.encode() not in everything(store)
        assert url_hash(url) not in everything(store)


def test_takedown_of_a_site_promotes_none_of_its_pages():
    urls = [f"http://{host}.org/{page}" for page in range(3) for host in ("a", "www.a", "b")]
    _, store = folded([record(url, text()) for url in urls], endless(99))
    found = removed(store, of_site("a.org"))
    assert (found.pages, found.promoted) == (6, 1)
    assert [emitted.url for emitted in found.verdicts if emitted.verdict == Kind.PROMOTED] == ["http://b.org/0"]
    own = {url for url in urls if "a.org" in url}
    assert {emitted.url for emitted in found.verdicts if emitted.verdict == Kind.GONE} == own
    assert {row.page_id for row in Checked(store, SMALL).urls.values()} == {3, 6, 9}


def test_a_prefix_goes_and_its_neighbours_stay():
    urls = [f"http://a.org/{path}" for path in ("p", "people", "people/", "people/1", "people/2?q", "person")]
    _, store = folded([record(url, f"{url} {FAR}{at} " * 9) for at, url in enumerate(urls)], endless(99))
    assert removed(store, of_prefix("http://A.org:80/people/")).pages == 3
    left = Checked(store, SMALL)
    assert {left.headers[row.page_id].url for row in left.urls.values()} == {urls[0], urls[1], urls[5]}


def test_bad_takedown_names_are_refused():
    for make, expected in ((of_url, "nowhere"), (of_prefix, "http://a.org"), (of_site, "www.a.org"), (of_site, "a b")):
        with pytest.raises(BadInput):
            make(expected)
    assert of_site("A.org") == of_site("a.org")
    for more in (
        "a.org/private",
        "a.org/",
        "https://a.org",
        "https://www.a.org/x",
        "a.org:8080",
        "me@a.org",
        "a.org?q",
        "a.org:80",
        "a.org#x",
    ):
        with pytest.raises(BadInput, match=r"--site .*: a site is a registrable domain, such as a\.org; "):
            of_site(more)
    assert of_prefix("http://a.org/x").length == len("http://a.org/x")
    assert {one.what for one in (of_url(A), of_site("a.org"), of_prefix(A))} == set(Named)


@pytest.mark.slow
@settings(max_examples=count(4, 12), deadline=None)
@given(seed=st.integers(0, 1 << 32))
def test_against_a_plain_dictionary(seed):
    """Fetches, tombstones, takedowns and ages by chance; the model knows which URLs are held, and when they were seen.

    Whatever the index says of relations, a URL that went is judged as unknown, and no other is.
    """
    rng = random.Random(seed)
    decider = replace(SMALL, postings_max=rng.choice([3, 64]))
    store, seen, gone = MemoryStore(), {}, set()
    pages = crawl(rng.randrange(1 << 30), 120)
    for page_id, page in enumerate(pages, 1):
        outcome = fold([(page_id, page)], store, decider)
        store.write(outcome.writes)
        found_verdicts = outcome.verdicts[0]
        kind, url = str(found_verdicts.verdict), found_verdicts.url
        if kind == "gone":
            gone.add(url)
            seen[url] = 10 * (page_id - 1)
        elif kind in UNKNOWN:
            assert url not in seen or url in gone or found_verdicts.replaces is not None
            seen[url] = 10 * (page_id - 1)
            gone.discard(url)
        elif kind in ("unchanged", "edited"):
            assert url in seen.keys() - gone
            seen[url] = 10 * (page_id - 1)
        chance = rng.random()
        if chance < 0.1:
            url = rng.choice([*seen, "http://nobody.org/"])
            assert _take_out(store, decider, of_url(url)) == (url in seen)
            seen.pop(url, None)
        elif chance < 0.13:
            site = f"s{rng.randrange(3)}.org"
            named = {url for url in seen.keys() - gone if url.split("/")[2].endswith(site)}
            assert _take_out(store, decider, of_site(site)) == len(named)
            seen = {url: when for url, when in seen.items() if url not in named}
        elif chance < 0.2:
            before = 10 * page_id - rng.choice([100, 400])
            index = Layered(store)
            found, after = expire(index, decider, after=b"", rows=10**4, before=before, cause=page_id, first=2)
            store.write(index.changes)
            old = {url for url, when in seen.items() if when < before}
            assert (found.pages, found.emitted, after) == (len(old), found.promoted, b"")
            seen = {url: when for url, when in seen.items() if url not in old}
        gone &= seen.keys()
        held = Checked(store, decider).urls
        assert set(held) == {url_hash(url) for url in seen}
        assert {key for key, row in held.items() if not row.live} == {url_hash(url) for url in gone}
        assert all(held[url_hash(url)].seen == when for url, when in seen.items())


def _take_out(store, decider, takedown):
    index = Layered(store)
    found = take_down(takedown, index, decider, cause=1)
    store.write(index.changes)
    assert len(found.verdicts) == found.emitted
    assert [verdict.n for verdict in found.verdicts] == list(range(1, found.emitted + 1))
    assert [verdict.verdict for verdict in found.verdicts].count(Kind.PROMOTED) == found.promoted
    return found.pages


@pytest.mark.slow
@pytest.mark.seeds(1, 5)
def test_removals_equal_those_in_python(seed):
    """Every byte of verdicts and rows, of takedowns of sites and of expired pages."""
    rng = random.Random(seed)
    decider = replace(SMALL, postings_max=rng.choice([3, 64]))
    _, store = folded(crawl(seed, 200), endless(50), decider=decider, checked=False)
    index = Layered(store)
    if rng.random() < 0.5:
        looked = Checked(store, decider).urls
        live = [key for key, row in looked.items() if row.live]
        headers = [Header(record) for record in records_of(store, [looked[key].page_id for key in live])]
        site = rng.choice(headers).site_name
        hashes = [key for key, header in zip(live, headers, strict=True) if header.site_name == site]
        found = take_down(of_site(site), index, decider, cause=999)
        verdicts, writes = remove(hashes, store, decider, cause=999, first=1, says_gone=True)
    else:
        looked = Checked(store, decider).urls
        before = rng.choice([row.seen for row in looked.values()]) + 1
        hashes = [key for key, row in looked.items() if row.seen < before]
        found, _ = expire(index, decider, after=b"", rows=10**4, before=before, cause=999, first=2)
        verdicts, writes = remove(hashes, store, decider, cause=999, first=2, says_gone=False)
    assert hashes
    assert [verdict.to_json() for verdict in found.verdicts] == [verdict.to_json() for verdict in verdicts]
    slow = Layered(store)
    slow.add(writes)
    for family in Family:
        assert list(index.scan(family)) == list(slow.scan(family))


def test_ages_are_looked_at_a_few_at_a_time_and_round():
    urls = [f"http://x{number}.org/" for number in range(10)]
    _, store = folded([record(url, f"{url} {FAR}" * 3, at=at) for at, url in enumerate(urls)], endless(99))
    order = sorted(urls, key=url_hash)
    after, went = b"", []
    for _ in range(4):
        index = Layered(store)
        found, after = expire(index, SMALL, after=after, rows=3, before=5, cause=1, first=2)
        store.write(index.changes)
        went.append(found.pages)
    assert after == b""
    assert went == [sum(url in urls[:5] for url in order[at : at + 3]) for at in (0, 3, 6, 9)]
    assert set(Checked(store, SMALL).urls) == {url_hash(url) for url in urls[5:]}


@pytest.fixture
def stores(tmp_path):
    rocks = RocksStore(tmp_path / "index")
    yield MemoryStore(), rocks
    rocks.close()


def test_a_layered_store_reads_as_if_it_was_written(stores):
    rng = random.Random(5)

    def some(count=5):
        return {rng.randbytes(2): rng.choice([None, rng.randbytes(3)]) for _ in range(count)}

    for store in stores:
        store.write({Family.URLS: {key: row for key, row in some(200).items() if row is not None}})
        index, written = Layered(store), MemoryStore()
        written.write({Family.URLS: dict(store.scan(Family.URLS))})
        for _ in range(3):
            changes = {Family.URLS: some() | {key: None for key, _ in store.first(Family.URLS, b"", 20)}}
            index.add(changes)
            written.write(changes)
            assert list(index.scan(Family.URLS)) == list(written.scan(Family.URLS))
            for _ in range(40):
                prefix, after = rng.randbytes(rng.randrange(2)), rng.randbytes(rng.randrange(3))
                asked = (Family.URLS, prefix, rng.randrange(1, 30), after)
                assert index.first(*asked) == written.first(*asked)
                keys = [rng.randbytes(2) for _ in range(9)] + [key for key, _ in written.first(Family.URLS, prefix, 5)]
                assert index.get_many(Family.URLS, keys) == written.get_many(Family.URLS, keys)
            assert index.get_many(Family.META, [b"x"]) == [None]
