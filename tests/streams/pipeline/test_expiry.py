"""Pages that were not fetched for long are dropped: a function of the log only."""

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from neardup.decider import Decider
from neardup.errors import CorruptRecord
from neardup.index.column_families import Family
from neardup.index.memory import MemoryStore
from neardup.limits import DAY_MS
from neardup.sketch.layout import field_at
from neardup.urls import url_hash
from streams.formats.message import Message, encode_message
from streams.pipeline import batch_fold
from streams.pipeline.batch_fold import Sweep, decode_sweep
from streams.pipeline.matcher import Matcher
from streams.ports import Range
from tests.neardup.handmade import record, rejected, tombstone
from tests.neardup.invariants import Checked
from tests.neardup.matching.test_takedown_and_expiry import UNKNOWN
from tests.neardup.story import SMALL
from tests.whole import count

HORIZON = 3
EXPIRING = replace(SMALL, expiry_days=HORIZON)
Messages = list[tuple[int, bytes]]


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_fold, "PAGES_BETWEEN", 10)
    monkeypatch.setattr(batch_fold, "URLS_A_PAGE", 1)


def messages_of(pages: list[tuple[str, str, int]], rng: random.Random) -> Messages:
    """(URL, text, log time) as messages of some pages each; text "": a tombstone, "!": unreadable."""
    out: Messages = []
    start = 0
    while start < len(pages):
        stop = min(len(pages), start + rng.randrange(1, 7))
        records = []
        for offset in range(start, stop):
            url, text, when = pages[offset]
            if text == "!":
                made = bytearray(rejected(url, at=when))
            elif text:
                made = bytearray(record(url, text, at=when))
            else:
                made = bytearray(tombstone(url, at=when))
            made[_OFFSET : _OFFSET + 8] = offset.to_bytes(8, "little")
            records.append(bytes(made))
        span = Range(bytes(16), 0, start, stop)
        out.append((len(out), encode_message(Message(bytes.fromhex(SMALL.scheme), (span,), tuple(records)))))
        start = stop
    return out


_OFFSET = field_at("offset")


def drawn(seed: int, length: int = 200) -> list[tuple[str, str, int]]:
    """Few texts over some URLs; time goes on by hours, and now and then by days."""
    rng = random.Random(seed)
    words = [f"w{number}" for number in range(30)]
    urls = [f"http://x{number}.s{number % 4}.org/" for number in range(rng.choice([8, 30]))]
    now, out = 0, []
    for _ in range(length):
        now += rng.choice([0, DAY_MS // 24, DAY_MS // 8]) + DAY_MS * (rng.random() < 0.05)
        text = " ".join(rng.choice(words[:3]) if rng.random() < 0.1 else word for word in words)
        text = rng.choice([text, " ".join(words), "", "!"] if rng.random() < 0.2 else [text, " ".join(words)])
        out.append((rng.choice(urls), text, now))
    return out


def contents(store: Any) -> list[list[tuple[bytes, bytes]]]:
    return [list(store.scan(family)) for family in Family]


def verdicts_of(matcher: Matcher, some: Messages) -> list[Any]:
    prepared = matcher.prepare(some)
    matcher.apply(prepared)
    return prepared.verdicts


@pytest.mark.slow
@settings(max_examples=count(4, 10), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 1 << 32))
def test_against_a_plain_dictionary(seed: int) -> None:
    """The model knows when a URL was seen last, and looks at the next ones behind the last that it has looked at."""
    pages = drawn(seed)
    messages = messages_of(pages, random.Random(seed))
    store = MemoryStore()
    matcher = Matcher(store, EXPIRING)
    seen: dict[bytes, int] = {}
    gone: set[bytes] = set()
    at, count, after, log_time = 0, 0, b"", 0
    for message in messages:
        for verdict in verdicts_of(matcher, [message]):
            if verdict.n:
                continue
            url, text, when = pages[at]
            at, count, log_time = at + 1, count + 1, max(log_time, when)
            key, kind = url_hash(url), str(verdict.verdict)
            if text == "!":
                continue
            if text:
                known = key in seen and key not in gone
                assert known == (kind not in UNKNOWN or verdict.replaces is not None)
            seen[key] = when
            gone = gone - {key} if text else gone | {key}
        if count >= 10:
            looked = sorted(key for key in seen if key > after)[:count]
            old = {key for key in looked if seen[key] < log_time - HORIZON * DAY_MS}
            after = looked[-1] if len(looked) == count else b""
            seen = {key: when for key, when in seen.items() if key not in old}
            count = 0
        gone &= seen.keys()
        held = Checked(store, EXPIRING).urls
        assert {key: row.seen for key, row in held.items()} == seen
        assert {key for key, row in held.items() if not row.live} == gone


def test_sweep_of_the_first_batch_is_stored_as_if_its_messages_came_singly() -> None:
    """It has seen all rows, so the next one begins at the first, with no page counted, as where none was."""
    pages = [(f"http://x{number % 9}.org/", f"{number} " * 30, 0) for number in range(10)]
    messages = messages_of(pages, random.Random(1))
    singly, batch = MemoryStore(), MemoryStore()
    matcher = Matcher(singly, EXPIRING)
    for message in messages:
        verdicts_of(matcher, [message])
    verdicts_of(Matcher(batch, EXPIRING), messages)
    assert contents(batch) == contents(singly)
    assert (dict(batch.scan(Family.META))[b"sweep"], len(messages) > 1) == (Sweep().encode(), True)


def test_without_pages_beyond_the_horizon_nothing_is_otherwise() -> None:
    """But the decider's name, and where sweeping stands."""
    messages = messages_of(drawn(5), random.Random(5))
    plain, long = MemoryStore(), MemoryStore()
    one = [verdict.to_json() for verdict in verdicts_of(Matcher(plain, SMALL), messages)]
    decider = replace(SMALL, expiry_days=10_000)
    other = [verdict.to_json() for verdict in verdicts_of(Matcher(long, decider), messages)]
    assert [line.replace(decider.digest.encode(), SMALL.digest.encode()) for line in other] == one
    assert contents(plain)[1:] == contents(long)[1:]
    assert set(dict(long.scan(Family.META))) - set(dict(plain.scan(Family.META))) == {b"sweep"}


def test_log_time_alone_expires_pages() -> None:
    """A page that says it is of 2099 empties nothing."""
    pages = [(f"http://x{number}.org/", f"{number} " * 30, 0) for number in range(12)]
    messages = messages_of(pages, random.Random(1))
    later = record("http://late.org/", "late " * 30, at=4_070_908_800_000, log_time=DAY_MS, offset=12)
    span = Range(bytes(16), 0, 12, 13)
    messages.append((len(messages), encode_message(Message(bytes.fromhex(SMALL.scheme), (span,), (later,)))))
    store = MemoryStore()
    verdicts_of(Matcher(store, EXPIRING), messages)
    assert len(Checked(store, EXPIRING).urls) == 13


def test_the_horizon_is_a_number_of_the_decider() -> None:
    assert Decider("5" * 32).digest == replace(Decider("5" * 32), expiry_days=0).digest
    assert Decider("5" * 32).digest != replace(Decider("5" * 32), expiry_days=1).digest


def test_sweep_position_is_read_as_written() -> None:
    for sweep in (Sweep(), Sweep(7, b""), Sweep(3, bytes(range(16)))):
        assert decode_sweep(sweep.encode()) == sweep
    assert decode_sweep(None) == Sweep()
    with pytest.raises(CorruptRecord):
        decode_sweep(b"\0\0\0\1a")
