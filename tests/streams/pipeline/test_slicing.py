"""A log is folded in any batches, with and without verdicts, over restarts: each verdict and each stored byte is equal.

The log has all that the fold of a log has beyond that of records (`tests/neardup/test_fold.py`, with each rule):
expiry, takedowns, new deciders.
"""

import random
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from neardup.index.column_families import Family
from neardup.index.memory import MemoryStore
from neardup.limits import DAY_MS
from neardup.sketch.layout import field_at
from neardup.sketch.takedown_hashes import Takedown, of_prefix, of_site, of_url
from streams.formats.message import Forget, Message, NewDecider, Word, encode_control, encode_message
from streams.pipeline import batch_fold
from streams.pipeline.matcher import Matcher, Prepared
from streams.ports import Range
from tests.neardup.handmade import record, rejected, tombstone
from tests.neardup.invariants import Checked
from tests.neardup.story import SMALL
from tests.whole import count

FIRST = replace(SMALL, expiry_days=3)
SCHEME = bytes.fromhex(FIRST.scheme)
SITES = [f"s{number}.org" for number in range(3)]
URLS = [f"http://x{number}.{SITES[number % 3]}/{number % 4}" for number in range(9)]
TEXTS = [[f"t{text}w{number}" for number in range(30)] for text in range(3)]
TAKEDOWNS = [
    of_url(URLS[0]),
    of_url(URLS[5]),
    of_site(SITES[1]),
    of_prefix("http://x2.s2.org/"),
    of_url("http://none/"),
]
_OFFSET = field_at("offset")

KINDS = ("unique", "exact_duplicate", "near_duplicate", "same_content", "unchanged", "edited", "gone", "rejected")
#: What happened in all logs.
happened: Counter[str] = Counter()


class Slicing(RuleBasedStateMachine):
    """One matcher folds each message at once; another one folds them in batches, a third one without verdicts."""

    @initialize()
    def begin(self) -> None:
        self.log: list[tuple[int, bytes]] = []
        self.pages, self.now, self.decider = 0, 0, FIRST
        self.singly = Matcher(MemoryStore(), FIRST)
        self.sliced, self.silent = Matcher(MemoryStore(), FIRST), Matcher(MemoryStore(), FIRST)
        self.emitted: list[bytes] = []
        self.changes: set[int] = set()
        self.last = (0, -1)

    @rule(seed=st.integers(0, 1 << 32), hours=st.integers(0, 12), days=st.sampled_from([0, 0, 0, 1, 2]))
    def publish(self, seed: int, hours: int, days: int) -> None:
        """Few texts on few URLs, some edited, some pages gone or unreadable."""
        chance = random.Random(seed)
        self.now += hours * DAY_MS // 24 + days * DAY_MS
        records = []
        for offset in range(self.pages, self.pages + chance.randrange(1, 7)):
            url, kind = chance.choice(URLS), chance.random()
            words = list(chance.choice(TEXTS))
            for _ in range(chance.choice([0, 0, 0, 1, 6])):
                words[chance.randrange(len(words))] = f"edit{chance.randrange(2)}"
            if kind < 0.1:
                made = bytearray(tombstone(url, at=self.now))
            elif kind < 0.15:
                made = bytearray(rejected(url, at=self.now))
            else:
                made = bytearray(record(url, " ".join(words), at=self.now, log_time=self.now))
            made[_OFFSET : _OFFSET + 8] = offset.to_bytes(8, "little")
            records.append(bytes(made))
        span = Range(bytes(16), 0, self.pages, self.pages + len(records))
        self.pages = span.stop
        self._append(encode_message(Message(SCHEME, (span,), tuple(records))))

    @precondition(lambda self: self.pages > 10)
    @rule(takedown=st.sampled_from(TAKEDOWNS))
    def take_down(self, takedown: Takedown) -> None:
        self._control(Forget(SCHEME, takedown))

    @rule(tape_min=st.sampled_from([0.74, 0.99]))
    def change_decider(self, tape_min: float) -> None:
        """A matcher takes the record of it as the last one of a batch."""
        after = replace(self.decider, tape_min=tape_min)
        happened["new deciders"] += after != self.decider
        self.changes.add(len(self.log))
        self._control(NewDecider(self.decider, after))
        self.decider = after
        self.fold()

    @rule()
    def fold(self) -> None:
        batch = self.log[self.sliced.next_offset :]
        if batch:
            folded = _folded(self.sliced, batch)
            assert [verdict.to_json() for verdict in folded.verdicts] == self.emitted
            assert _folded(self.silent, batch, emit=False).verdicts == []
            self.emitted = []
            happened["batches of several"] += len(batch) > 1
        self._equal(self.sliced, self.silent)

    @rule()
    def restart(self) -> None:
        """From the rows that are written alone."""
        self.sliced = Matcher(self.sliced._store, FIRST)
        self.silent = Matcher(self.silent._store, FIRST)

    def teardown(self) -> None:
        if not self.log:
            return
        self.fold()
        Checked(self.singly._store, self.decider)
        whole, batch = Matcher(MemoryStore(), FIRST), list[tuple[int, bytes]]()
        for offset, data in self.log:
            batch.append((offset, data))
            if offset in self.changes or offset == len(self.log) - 1:
                _folded(whole, batch)
                batch = []
        self._equal(whole)

    def _control(self, word: Word) -> None:
        self._append(encode_control(word))

    def _append(self, data: bytes) -> None:
        self.log.append((len(self.log), data))
        folded = _folded(self.singly, self.log[-1:])
        self.emitted += [verdict.to_json() for verdict in folded.verdicts]
        for verdict in folded.verdicts:
            assert (verdict.page_id, verdict.n) > self.last, "the key by which consumers know a verdict again"
            self.last = (verdict.page_id, verdict.n)
        happened.update(str(verdict.verdict) for verdict in folded.verdicts)
        happened["expired"] += folded.expired
        happened["promoted for an expired page"] += folded.expired and any(
            verdict.n >= batch_fold.FIRST_VERDICT for verdict in folded.verdicts
        )
        happened["taken down"] += sum(done.pages for done in folded.takedowns)
        happened["promoted for one taken down"] += sum(done.promoted for done in folded.takedowns)

    def _equal(self, *others: Matcher) -> None:
        expected = _contents(self.singly)
        for other in others:
            assert _contents(other) == expected
            assert (other.takedowns_to, other.log_time, other.emitted_to, other.decider) == (
                *(self.singly.takedowns_to, self.singly.log_time, self.singly.emitted_to, self.singly.decider),
            )


def _folded(matcher: Matcher, batch: list[tuple[int, bytes]], *, emit: bool = True) -> Prepared:
    prepared = matcher.prepare(batch, emit=emit)
    matcher.apply(prepared)
    return prepared


def _contents(matcher: Matcher) -> dict[Family, dict[bytes, bytes]]:
    return {family: dict(matcher._store.scan(family)) for family in Family}


@pytest.mark.slow
def test_slicing_changes_no_verdict_and_no_stored_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_fold, "PAGES_BETWEEN", 10)
    monkeypatch.setattr(batch_fold, "URLS_A_PAGE", 1)
    happened.clear()
    run_state_machine_as_test(
        Slicing,
        settings=settings(
            max_examples=count(16, 300), stateful_step_count=50, suppress_health_check=list(HealthCheck), deadline=None
        ),
    )
    met = ("batches of several", "expired", "promoted for an expired page", "taken down", "promoted for one taken down")
    for what in (*met, "new deciders", *KINDS):
        assert happened[what], f"{what}: else the logs prove nothing"
