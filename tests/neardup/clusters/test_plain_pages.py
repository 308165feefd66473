"""Plain founders and members come to what `Lifecycle` makes of them one by one, to the byte."""

import random
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup.clusters import plain_pages
from neardup.fold import fold as compiled_fold
from neardup.index.memory import MemoryStore
from neardup.sharded.fold import fold
from neardup.sketch.layout import field_at
from neardup.verdict import Kind
from tests import whole
from tests.neardup.handmade import record, tombstone
from tests.neardup.story import endless, folded, slices_of
from tests.neardup.test_fold import DECIDERS, crawl, repeats
from tests.streams.sharded.lockstep import lockstep, messages_of, rows_in


def mixed(seed):
    """Pages that repeat, change and vanish, among pages of their own with all kinds of texts and flags."""
    rng = random.Random(seed)
    out = [*crawl(seed, 80), *repeats(seed)]
    for i in range(8):  # twice each, and too short or too opaque for keys: nothing but their digests tells it
        out.append(record(f"http://thin{i}.org/", f"thin{i // 2} page"))
        out.append(record(f"http://opaque{i}.org/", body=f"body {i // 2}".encode()))
    for i in range(60):
        url = f"http://{rng.choice('ab')}.s{rng.randrange(4)}.org/{rng.choice(['p', '%22', '~u/'])}{i}"
        words = " ".join(f"{rng.choice(['w', 'ü', '漢'])}{i}x{j}" for j in range(rng.choice([2, 6, 30])))
        page = record(
            url,
            words,
            body=rng.choice([None] * 9 + [f"opaque {i}".encode()]),
            at=rng.randrange(2000),
            log_time=1000,
            title=rng.choice(["", "one name", f'"quoted" \\ {i} \u2028 é']),
            canonical=rng.choice(["", url, f"{url}#c", "not a url é"]),
            lang=rng.choice(["", "de"]),
            truncated=rng.random() < 0.2,
        )
        at = field_at("score")
        out.insert(rng.randrange(len(out)), page[:at] + bytes([rng.choice([0, 1, 200])]) + page[at + 1 :])
    return out


def one_by_one(monkeypatch):
    monkeypatch.setattr(plain_pages, "_are_plain", lambda overlay: [False] * len(overlay.pages))
    monkeypatch.setattr(plain_pages, "_plans", lambda overlay: {})


def counting(monkeypatch, plain):
    """Counts the pages that take a shortcut, by kind of verdict."""
    founders, members = plain_pages.Founders.put, plain_pages.Members.put

    def put_founders(self, first, last):
        done = founders(self, first, last)
        plain[Kind.UNIQUE] += done * (last - first)
        return done

    def put_member(self, i):
        done = members(self, i)
        if done is not None:
            plain[done[1].verdict] += 1
        return done

    monkeypatch.setattr(plain_pages.Founders, "put", put_founders)
    monkeypatch.setattr(plain_pages.Members, "put", put_member)


def after(store, outcome):
    """The rows of a store under the changes of an outcome."""
    held = {family: dict(store.scan(family)) for family in outcome.writes}
    changed = {family: rows | outcome.writes[family] for family, rows in held.items()}
    return {(family, key): row for family, rows in changed.items() for key, row in rows.items() if row is not None}


def outcomes(records, decider, size):
    """Outcomes of batches, and the kinds of the plain pages in them."""
    store, out, plain = MemoryStore(), [], Counter()
    with pytest.MonkeyPatch.context() as monkeypatch:
        counting(monkeypatch, plain)
        for batch in slices_of(records, endless(size) if isinstance(size, int) else iter(size)):
            outcome = fold(batch, store, decider)
            compiled = compiled_fold(batch, store, decider)
            assert compiled.verdicts.lines() == outcome.verdicts.lines()
            assert after(store, compiled) == after(store, outcome)
            out.append((outcome.verdicts.lines(), outcome))
            store.write(outcome.writes)
    return out, plain


@pytest.mark.parametrize("name", whole.first(["plain", "hot", "sites", "simhash"], 2))
@settings(max_examples=3, deadline=None)
@given(seed=st.integers(0, 1 << 32), size=st.sampled_from([1, 7, 40, 300]))
def test_plain_pages_equal_pages_judged_singly(name, seed, size):
    records = mixed(seed)
    together, plain = outcomes(records, DECIDERS[name], size)
    with pytest.MonkeyPatch.context() as monkeypatch:
        one_by_one(monkeypatch)
        expected, none = outcomes(records, DECIDERS[name], size)
    assert together == expected
    assert not none
    # In a large batch, a page that retires early leaves no plain founder behind it.
    assert plain[Kind.UNIQUE] >= 20 or size > 40
    assert size > 1 or plain[Kind.EXACT_DUPLICATE] >= 20
    assert size > 1 or plain[Kind.NEAR_DUPLICATE] >= 8 or name == "simhash"


def joining(seed, first):
    """Pages of an index, `first` of them, and then copies of these at other URLs, among edits and losses of both."""
    rng = random.Random(seed)
    texts = [[f"{rng.choice(['w', 'ü'])}{i}x{j}" for j in range(40)] for i in range(first // 2)]
    out = [
        record(f"http://{site}.org/{i}", " ".join(texts[i]), title=f"t{i}", canonical=f"http://c.org/{i}/0")
        for site in "ab"
        for i in range(first // 2)
    ]
    for number in range(80):
        i, at = rng.randrange(first // 2), number + 1
        url = f"http://{rng.choice('abc')}.org/{i}" + ("" if number > 20 and rng.random() < 0.2 else f"/{number % 30}")
        words = list(texts[i])
        if rng.random() < 0.5:
            words[rng.randrange(len(words))] = f"edit{rng.randrange(20)}"
        if number > 20 and rng.random() < 0.1:
            out.append(tombstone(url, at=at, log_time=at))
            continue
        title = f"t{i}" if rng.random() < 0.8 else "another"
        out.append(record(url, " ".join(words), at=at, log_time=at, title=title, canonical=rng.choice(["", url])))
    return out


@pytest.mark.parametrize("name", whole.first(["plain", "hot", "sites"], 1))
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 1 << 32), first=st.sampled_from([6, 20]), size=st.sampled_from([20, 80]))
def test_plain_members_equal_members_judged_singly(name, seed, first, size):
    records, sizes = joining(seed, first), [1] * first + [size] * 4
    together, plain = outcomes(records, DECIDERS[name], sizes)
    with pytest.MonkeyPatch.context() as monkeypatch:
        one_by_one(monkeypatch)
        expected, none = outcomes(records, DECIDERS[name], sizes)
    assert together == expected
    assert not none
    assert plain[Kind.EXACT_DUPLICATE] + plain[Kind.NEAR_DUPLICATE] >= first // 2


def test_a_page_joins_as_the_page_that_it_repeats_was_verified_last(monkeypatch):
    words = [f"w{i}" for i in range(60)]
    member = " ".join([*words[:30], "member", *words[31:]])
    records = [
        record("http://first.org/", " ".join(words)),
        record("http://second.org/", " ".join([*words[:20], "second", *words[21:]])),
        record("http://member.org/", member),
        tombstone("http://first.org/", at=1, log_time=1),  # second.org is promoted
        record("http://member.org/", member, at=2, log_time=2),  # verified against second.org
        record("http://copy.org/", member, at=3, log_time=3),
    ]
    together, _ = outcomes(records, DECIDERS["plain"], [1, 1, 1, 1, 2])
    one_by_one(monkeypatch)
    assert together == outcomes(records, DECIDERS["plain"], [1, 1, 1, 1, 2])[0]
    assert [str(verdict.verdict) for _, outcome in together for verdict in outcome.verdicts][-3:] == [
        "promoted",
        "unchanged",
        "exact_duplicate",
    ]


def test_a_page_of_the_index_that_is_posted_again_is_found():
    head, rest = "a b c d e f g h", [f"w{i}" for i in range(60)]
    story = [
        record("http://first.org/", " ".join([*head.replace("c", "x").split(), *rest])),
        record("http://second.org/", " ".join([*head.split(), *rest])),
        record("http://first.org/", " ".join(f"other{i}" for i in range(60)), at=1),  # retires: second.org is posted
        record("http://third.org/", " ".join([*head.split(), *(f"third{i}" for i in range(60))])),
    ]
    singly, together = folded(story, endless(1))[0], folded(story, iter([2, 2]))[0]
    assert [str(verdict.verdict) for verdict in together] == [
        "unique",
        "near_duplicate",
        "unique",
        "promoted",
        "unique",
    ]
    assert together[-1].evidence["candidates"] == 1
    assert [verdict.to_json() for verdict in together] == [verdict.to_json() for verdict in singly]


@pytest.mark.parametrize("shards", [1, 4])
@settings(max_examples=2, deadline=None)
@given(seed=st.integers(0, 1 << 32))
def test_a_judge_makes_the_same_of_them(shards, seed):
    decider = replace(DECIDERS["plain"], shards=shards, epoch=2)
    messages = messages_of([*mixed(seed), *joining(seed, 20)], random.Random(seed), most=60)
    together = lockstep(messages, decider)
    with pytest.MonkeyPatch.context() as monkeypatch:
        one_by_one(monkeypatch)
        expected = lockstep(messages, decider)
    assert (together.verdicts, together.effects) == (expected.verdicts, expected.effects)
    assert rows_in(together.rows) == rows_in(expected.rows)
