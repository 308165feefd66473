"""What effects make of shards: takedown, expiry, promotion and hot keys."""

import random
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from neardup.decider import Decider
from neardup.index import posting_rows, rows
from neardup.index.column_families import Family
from neardup.index.memory import MemoryStore
from neardup.limits import DAY_MS
from neardup.sharded.apply_effects import followed_of
from neardup.sharded.epochs import Sharding
from neardup.sketch.takedown_hashes import of_prefix, of_site, of_url
from neardup.urls import url_hash
from streams.formats.message import Forget, encode_control
from streams.pipeline import batch_fold
from tests import whole
from tests.neardup.handmade import record, tombstone
from tests.neardup.story import NEAR, NEARER, SMALL, text
from tests.streams.sharded.lockstep import Lockstep, Messages, lockstep, messages_of, rows_in, rows_of, some_records
from tests.streams.sharded.world import World

EXPIRING = replace(SMALL, expiry_days=3)


def shards_of(messages: Messages, words: Lockstep, decider: Decider) -> list[MemoryStore]:
    """Rows of all shards after all effects."""
    return [rows_of(messages, words.effects, number, decider) for number in range(decider.shards)]


def agree(shards: list[MemoryStore], judge: MemoryStore, decider: Decider) -> None:
    """Shards hold the sketches of live pages and founding ones, postings of founding ones, and what follows a URL."""
    held = rows_in(judge)
    urls = {key: rows.decode_url(row) for key, row in held[Family.URLS].items()}
    live = {key: row for key, row in urls.items() if row.live}
    founding = {key: rows.decode_cluster(row).founding for key, row in held[Family.CLUSTERS].items()}
    kept: set[int] = set()
    followed: dict[bytes, set[int]] = {}
    for number, shard in enumerate(shards):
        found = rows_in(shard)
        here = {int.from_bytes(key, "big") for key in found[Family.SKETCHES]}
        assert {Sharding.of(decider).shard_of(page_id) for page_id in here} <= {number}
        kept |= here
        for row in found[Family.KEYS].values():
            if not posting_rows.is_hot(row):
                assert {word >> 16 for word in posting_rows.postings(row)} <= here & set(founding.values())
        for key, row in found[Family.URLS].items():
            followed.setdefault(key, set()).update(followed_of(row))
    assert kept == {row.page_id for row in live.values()} | set(founding.values())
    assert set(followed) == set(live)
    for key, row in live.items():
        assert row.page_id in followed[key]
        if not row.member:
            assert followed[key] == {row.page_id, founding[rows.id_key(row.cluster)]}


def with_takedowns(messages: Messages, rng: random.Random) -> Messages:
    out = []
    named = [of_url(f"http://a.s0.org/{number}") for number in range(9)] + [of_site("s1.org")]
    named.append(of_prefix("http://b.s2.org/"))
    for message in messages:
        out.append(message)
        if rng.random() < 0.15:
            out.append(encode_control(Forget(bytes.fromhex(SMALL.scheme), rng.choice(named))))
    return out


@pytest.mark.parametrize(("shards", "epoch"), whole.first([(4, 4), (1, 1), (16, 1)], 2))
@settings(
    max_examples=whole.count(1, 10),
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(seed=st.integers(0, 1 << 32))
def test_takedowns_and_expiry_reach_the_shards(
    shards: int, epoch: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_fold, "PAGES_BETWEEN", 10)
    monkeypatch.setattr(batch_fold, "URLS_A_PAGE", 1)
    rng = random.Random(seed)
    decider = replace(rng.choice([SMALL, EXPIRING]), shards=shards, epoch=epoch)
    messages = with_takedowns(messages_of(some_records(seed, 100), rng), rng)
    expected = lockstep(messages, decider)
    agree(shards_of(messages, expected, decider), expected.rows, decider)
    world = World(messages, decider, rng)
    world.run()
    assert world.verdicts == expected.verdicts
    assert world.effects == expected.effects


def test_expired_pages_leave_their_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_fold, "PAGES_BETWEEN", 1)
    monkeypatch.setattr(batch_fold, "URLS_A_PAGE", 9)
    decider = replace(EXPIRING, shards=2, epoch=1)
    pages = [record(f"http://x{number}.org/", f"{number} " * 30, at=0) for number in range(4)]
    late = [record(f"http://y{number}.org/", f"y{number} " * 30, at=9 * DAY_MS) for number in range(4)]
    messages = singly([*pages, *late])
    verdicts = lockstep(messages, decider)
    shards = shards_of(messages, verdicts, decider)
    agree(shards, verdicts.rows, decider)
    left = {key for shard in shards for key in rows_in(shard)[Family.URLS]}
    assert left == {url_hash(f"http://y{number}.org/") for number in range(4)}


# ---- promotion -------------------------------------------------------------------------------------------------------

ORIGINAL, COPY = "http://original.org/", "http://copy.org/"


def singly(records: list[bytes]) -> Messages:
    """One record a message."""
    return messages_of(records, random.Random(0), most=1)


def filler(number: int) -> bytes:
    return record(f"http://filler{number}.org/", " ".join(f"f{number}x{word}" for word in range(40)))


def kind_of_a_later_copy(decider: Decider, gone_at: int, distance: int) -> tuple[str, int | None]:
    """Verdict and cluster of a page like a cluster whose representative went `distance` messages before."""
    records = [record(ORIGINAL, text()), record(COPY, NEAR)]
    records += [filler(number) for number in range(len(records), gone_at)]
    records += [tombstone(ORIGINAL)]
    records += [filler(number) for number in range(len(records), gone_at + distance)]
    records += [record("http://late.org/", NEARER)]
    matcher_rows = lockstep(singly(records), decider).rows
    row = rows.decode_url(rows_in(matcher_rows)[Family.URLS][url_hash("http://late.org/")])
    return str(row.standing), row.cluster


@pytest.mark.parametrize("shards", [1, 2])
@pytest.mark.parametrize("epoch", whole.first([2, 1, 3], 1))
def test_a_promoted_member_is_found_exactly_two_epochs_later(shards: int, epoch: int) -> None:
    decider = replace(SMALL, shards=shards, epoch=epoch)
    gone_at = 5 * epoch  # the first of its epoch; the member is older than the window
    for distance in range(1, 3 * epoch + 1):
        kind, cluster = kind_of_a_later_copy(decider, gone_at, distance)
        found = (gone_at + distance) // epoch >= gone_at // epoch + 2
        assert (kind, cluster == 0) == (("near_duplicate", True) if found else ("unique", False)), distance


def test_a_promoted_member_of_the_window_is_found_at_once() -> None:
    decider = replace(SMALL, shards=2, epoch=8)
    assert kind_of_a_later_copy(decider, gone_at=2, distance=1) == ("near_duplicate", 0)


# ---- hot keys --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("shards", "hot"), [(1, True), (2, False), (4, False)])
def test_a_key_turns_hot_in_each_shard_by_itself(shards: int, hot: bool) -> None:
    """Six pages begin with the same words: more than a list holds, and fewer than two lists hold."""
    decider = replace(SMALL, postings_max=4, shards=shards, epoch=1)
    begin = " ".join(f"same{number}" for number in range(8))
    records = [
        record(f"http://x{number}.org/", " ".join([begin, *(f"p{number}x{word}" for word in range(30))]))
        for number in range(6)
    ]
    messages = singly(records)
    verdicts = lockstep(messages, decider)
    lists = [row for shard in shards_of(messages, verdicts, decider) for row in rows_in(shard)[Family.KEYS].values()]
    assert any(map(posting_rows.is_hot, lists)) is hot
    longest = max(len(posting_rows.postings(row)) for row in lists if not posting_rows.is_hot(row))
    assert longest == {1: 2, 2: 3, 4: 2}[shards]


def test_records_of_one_message_follow_each_other() -> None:
    """Found, edited, gone and found again in one message: the shards hold what the judge holds."""
    decider = replace(SMALL, shards=2, epoch=1)
    url = ORIGINAL
    some = [record(url, text(), at=1), record(url, NEARER, at=2), tombstone(url, at=3), record(url, NEAR, at=4)]
    (data,) = messages_of([*some, record(COPY, text(), at=5)], random.Random(0), most=None)
    verdicts = lockstep([data], decider)
    agree(shards_of([data], verdicts, decider), verdicts.rows, decider)
