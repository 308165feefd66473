"""Batches of founders, members, edits and losses come to what the slow twin makes of them one by one, to the byte."""

import random
from collections import Counter
from operator import eq

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup.index.naming_rows import owner
from neardup.matching.batch_records import Pages
from neardup.sketch.layout import RecordKind, field_at
from neardup.verdict import Kind
from tests import whole
from tests.neardup.handmade import record, shell_of, tombstone
from tests.neardup.story import as_in_python, endless, folded
from tests.neardup.test_fold import DECIDERS, crawl, repeats


def mixed(seed):
    """Pages that repeat, change and vanish, among pages of their own with all kinds of texts and flags."""
    rng = random.Random(seed)
    out = [*crawl(seed, 80), *repeats(seed)]
    for i in range(8):  # twice each, and too short, opaque or shells, without keys: nothing but their digests tells it
        out.append(record(f"http://thin{i}.org/", f"thin{i // 2} page"))
        out.append(record(f"http://opaque{i}.org/", body=f"body {i // 2}".encode()))
        words = [*(f"shell{j}" for j in range(30)), f"state{i // 2}"]
        out.append(shell_of(record(f"http://shell{i}.org/", " ".join(words))))
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


def kinds_of_equal_verdicts(records, decider, sizes):
    """Kinds of the verdicts of batches, which are equal to those of the twin, as the rows are."""
    kinds = Counter()
    for store, found in as_in_python(records, sizes, decider):
        kinds += found.verdicts.kinds()
        for family, changes in found.writes.items():
            rows = {key: row for key, row in changes.items() if row is not None}
            assert not any(map(eq, rows.values(), store.get_many(family, [*rows]))), "a row as it was read"
    return kinds


@pytest.mark.parametrize("name", whole.first(["plain", "hot", "sites", "simhash"], 2))
@settings(max_examples=2, deadline=None)
@given(seed=st.integers(0, 1 << 32), size=st.sampled_from([1, 7, 40, 300]))
def test_mixed_pages_equal_those_in_python(name, seed, size):
    kinds = kinds_of_equal_verdicts(mixed(seed), DECIDERS[name], endless(size))
    assert kinds[Kind.UNIQUE] >= 20
    assert kinds[Kind.EXACT_DUPLICATE] >= 20
    assert kinds[Kind.NEAR_DUPLICATE] >= 8 or name == "simhash"


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
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 1 << 32), first=st.sampled_from([6, 20]), size=st.sampled_from([20, 80]))
def test_joining_pages_equal_those_in_python(name, seed, first, size):
    kinds = kinds_of_equal_verdicts(joining(seed, first), DECIDERS[name], iter([1] * first + [size] * 4))
    assert kinds[Kind.EXACT_DUPLICATE] + kinds[Kind.NEAR_DUPLICATE] >= first // 2


def test_a_page_joins_as_the_page_that_it_repeats_was_verified_last():
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
    singly, together = folded(records, endless(1))[0], folded(records, iter([1, 1, 1, 1, 2]))[0]
    assert [verdict.to_json() for verdict in together] == [verdict.to_json() for verdict in singly]
    assert [str(verdict.verdict) for verdict in together][-3:] == ["promoted", "unchanged", "exact_duplicate"]


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


def test_records_of_a_batch_have_the_keys_of_each_alone():
    """Columns of a batch, which both folds read, against the readers of one header."""
    pages = Pages(list(enumerate(mixed(3))))
    for i, page_id in enumerate(pages.page_ids):
        header = pages[page_id]
        if header.kind is RecordKind.PAGE:
            assert pages.owners[i] == owner(header.site, header.url.encode())
        assert pages.url_hashes[i] == header.url_hash
        assert pages.named[i] == header.named
        assert pages.newest[i] == min(header.fetched_at, header.log_time)
