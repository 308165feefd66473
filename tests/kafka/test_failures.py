"""What goes wrong around the roles: each page has its one right verdict, or the line stops and says what to do."""

import json
import os
import random
import re
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from broker import PATIENCE_SECONDS, eventually, kafka
from line import Line, story
from roles import freeze, full_disk

from neardup.page import Page
from streams.kafka import Writer
from streams.ports import Range
from streams.records import Message, encode_message
from streams.roles import accept_gap, skip_record
from streams.topics import Names

Make = Callable[..., Line]


@pytest.fixture
def make(broker: str, names: Names, tmp_path: Path) -> Iterator[Make]:
    made: list[Line] = []

    def line(**settings: Any) -> Line:
        made.append(Line(settings.pop("bootstrap", broker), names, tmp_path, **settings))
        return made[-1]

    yield line
    for each in made:
        each.close()


# Two at once.


def test_a_second_matcher_fences_the_first(make: Make, tmp_path: Path) -> None:
    line = make()
    line.publish(story())
    line.start("sketch")
    first = line.start("match", step="3 offsets sent", how=freeze)
    first.frozen()
    second = line.start("match", settings={"state": str(tmp_path / "elsewhere")})
    line.settle()
    first.thaw()

    assert "Fenced: another process has taken over" in first.refused()
    # The first one's index did not get ahead of the log: it can go on where the second one stops.
    second.stop()
    line.start("match")
    line.publish(story(5))
    line.check()


def test_one_directory_is_for_one_matcher(make: Make) -> None:
    line = make()
    first = line.start("match")
    eventually(lambda: "resumes" in first.said(), "the first one's start")

    assert f"is in use by process {first.pid}" in line.start("match").refused()


def test_a_zombie_sketcher_s_messages_arrive_late(make: Make) -> None:
    line = make()
    line.publish(story())
    # Frozen with sketches in hand. Its place in the group goes to a namesake at once.
    # Were its session to end by time instead, it would come back as a new member and take the place again.
    patient = {"kafka_values": {"sketch.session.timeout.ms": "300000"}}
    zombie = line.start("sketch", step="4 sends late", call=3, how=freeze, member="only", settings=patient)
    zombie.frozen()
    line.start("sketch", member="only")
    line.start("match")
    line.settle()
    before = len(list(line.messages()))
    zombie.thaw()

    assert "BrokerError" in zombie.refused()
    assert len(list(line.messages())) > before, "the zombie sent nothing: the test tests nothing"
    line.publish(story(3))
    line.check()


def test_sketchers_come_and_go(make: Make) -> None:
    line = make(batch_pages=1)
    line.publish(story())
    first = line.start("sketch")
    line.start("match")
    eventually(lambda: line.messages() and sum(1 for _ in line.messages()) > 3, "some sketches")
    second = line.start("sketch")
    line.publish(story(10))
    eventually(lambda: '"reads"' in second.said() or line.members() == 2, "two members")
    line.publish(story(4))
    first.stop()
    line.publish(story(5))

    line.check()


# The broker.


LOOKS_MS = "transaction.abort.timed.out.transaction.cleanup.interval.ms"


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Any]:
    """A broker of this test's own; it does not look for timed-out transactions."""
    with kafka.Cluster(tmp_path / "kafka", settings={LOOKS_MS: 3_600_000}) as cluster:
        yield cluster


def test_the_broker_dies_in_a_transaction(own: Any, make: Make) -> None:
    line = make(bootstrap=own.bootstrap)
    line.publish(story(8))
    line.start("sketch")
    line.settle(judged=False)  # the one that is frozen may be so before the broker has any message of it
    line.stop()
    line.publish(story())
    sketcher = line.start("sketch", step="4 half sent", call=6, how=freeze)
    matcher = line.start("match", step="3 offsets sent", call=1, how=freeze)
    sketcher.frozen()
    matcher.frozen()
    own.kill()
    matcher.thaw()
    sketcher.thaw()
    own.restart()

    line.check()


def test_a_transaction_outlives_its_timeout(own: Any, make: Make) -> None:
    line = make(bootstrap=own.bootstrap)
    line.publish(story())
    line.start("sketch")
    short = {"transaction_timeout_ms": 3_000}
    matcher = line.start("match", step="3 offsets sent", call=1, how=freeze, settings=short)
    matcher.frozen()
    assert line.in_transaction()
    own.kill()
    own.set(**{LOOKS_MS: 200})
    own.restart()
    eventually(lambda: not line.in_transaction(), "the broker gives the transaction up")
    matcher.thaw()

    # Fenced for good, or only this transaction aborted and tried again: that is up to broker and client.
    eventually(lambda: "aborted" in matcher.said() or not matcher.running, "its transaction failed")
    if not matcher.running:
        assert "Fenced" in matcher.refused()
    matcher.kill()  # on a busy machine its next transaction, too, could take longer
    line.start("match")
    line.check()


# The state directory.


def test_a_full_disk(make: Make) -> None:
    line = make(flush_ms=1)
    line.publish(story())
    line.start("sketch")
    matcher = line.start("match", step="5 about to flush", call=3, how=full_disk)

    assert "StateError: cannot write the index" in matcher.refused()
    line.start("match")
    line.check()


def test_a_deleted_directory_is_folded_anew(make: Make) -> None:
    line = make()
    line.publish(story(8))
    line.start("sketch")
    matcher = line.start("match")
    line.settle()
    matcher.stop()
    shutil.rmtree(line.settings.state)
    line.start("match")
    line.publish(story(12))

    line.check()


def test_an_expired_offset_is_told_by_the_verdicts(make: Make) -> None:
    line = make()
    line.publish(story(8))
    line.start("sketch")
    matcher = line.start("match")
    line.settle()
    matcher.stop()
    line.forget("match")
    shutil.rmtree(line.settings.state)
    line.start("match")
    line.publish(story(12))

    line.check()


def test_an_index_ahead_of_what_is_committed_is_refused(make: Make) -> None:
    line = make()
    line.publish(story(8))
    line.start("sketch")
    line.start("match")
    line.settle()
    line.stop()
    line.reset("match", line.names.sketches, 1)

    said = line.start("match").refused()

    assert "StateError" in said
    assert "verdicts are committed up to 1 only" in said


def test_another_decider_is_refused(make: Make, tmp_path: Path) -> None:
    line = make()
    line.publish(story(8))
    line.start("sketch")
    line.start("match")
    line.settle()
    line.stop()
    strict = {"decider_values": {"tape_min": 0.9}}

    said = line.start("match", settings=strict).refused()
    assert "is decided by rule verified" in said
    assert "(tape_min 0.74 -> 0.9); set what it was, or add --new-decider" in said
    # Not even with a new directory: what it would fold is not what the verdicts were made of.
    elsewhere = {**strict, "state": str(tmp_path / "elsewhere")}
    assert "was made with decider" in line.start("match", settings=elsewhere, new_decider=True).refused()
    # Nor where the index could not go on.
    said = line.start("match", settings={"decider_values": {"rule": "simhash"}}, new_decider=True).refused()
    assert "keeps other keys in the index than verified does: begin another generation" in said


def test_a_new_decider_decides_from_its_word_on(make: Make, tmp_path: Path) -> None:
    line = make()
    line.publish(story(12))
    line.start("sketch")
    matcher = line.start("match")
    line.settle()
    matcher.stop()
    strict = {"decider_values": {"tape_min": 0.999}}
    # Its word is in the log when it dies, and is not written a second time.
    line.start("match", settings=strict, new_decider=True, step="1 polled", call=1).dead()
    line.publish(story(20))
    line.start("match", settings=strict, new_decider=True)
    line.settle()
    assert "add --new-decider" in line.start("match", settings={"state": str(tmp_path / "other")}).refused()

    verdicts = line.check()
    deciders = [verdict["decider"] for verdict in verdicts]
    assert len(set(deciders)) == 2
    change = deciders.index(deciders[-1])
    assert set(deciders[:change]) == {deciders[0]}
    for some in (verdicts[:change], verdicts[change:]):
        merged = {verdict["verdict"] for verdict in some}
        assert ("near_duplicate" in merged) == (some[0]["decider"] == deciders[0])

    # Whoever folds the log anew finds both.
    shutil.rmtree(line.settings.state)
    line.publish(story(3))
    line.start("sketch")
    line.start("match", settings=strict)
    line.check()


# Topics.


def test_a_recreated_pages_topic_is_another_source(make: Make) -> None:
    line = make()
    line.publish(story(8))
    sketcher = line.start("sketch")
    line.start("match")
    line.settle()
    line.recreate(line.names.pages)
    line.publish(story(8))

    assert "made anew" in sketcher.refused()
    line.start("sketch")
    line.check()


def test_a_recreated_sketch_log_is_refused(make: Make) -> None:
    line = make()
    line.publish(story(8))
    line.start("sketch")
    line.start("match")
    line.settle()
    line.stop()
    line.recreate(line.names.sketches)

    said = line.start("match").refused()

    assert "StateError" in said
    assert "topic id" in said
    assert "another log" in said


def test_retention_overtakes_the_matcher(make: Make) -> None:
    line = make()
    line.publish(story(8))
    line.start("sketch")
    matcher = line.start("match")
    line.settle()
    matcher.stop()
    line.publish(story(8))
    eventually(lambda: line.committed("sketch", line.names.pages, 2) == line.ends(line.names.pages), "all read")
    end = line.ends(line.names.sketches)[0]
    line.delete_before(line.names.sketches, 0, end - 1)

    said = line.start("match").refused()

    assert f"begins at offset {end - 1}" in said
    assert "retention has overtaken it; restore a checkpoint" in said


def test_retention_overtakes_the_sketcher(make: Make) -> None:
    line = make(partitions=1)
    line.publish(story(6))
    sketcher = line.start("sketch")
    matcher = line.start("match")
    line.settle()
    sketcher.stop()
    lost = line.total()
    line.publish(story(6))
    line.delete_before(line.names.pages, 0, lost + 3)

    said = line.start("sketch").refused()
    assert f"offset {lost} is to be read" in said

    # The operator moves the group on; now it is the matcher that must be told.
    line.reset("sketch", line.names.pages, lost + 3)
    line.start("sketch")
    said = matcher.refused()
    assert f"records {lost} to {lost + 2} are missing" in said
    at = int(said.rpartition("accept it: neardup accept-gap ")[2])
    assert f"SourceGap: the message at offset {at} " in said
    assert "SourceGap" in line.start("match").refused()
    accept_gap(line.settings, at)
    line.start("match")
    line.lose(lost, lost + 3)
    line.check()

    # Whoever folds the log anew finds the word again.
    shutil.rmtree(line.settings.state)
    line.publish(story(2))
    line.start("sketch")
    line.start("match")
    line.check()


def test_a_message_larger_than_allowed(make: Make) -> None:
    line = make()
    sketcher = line.start("sketch")
    eventually(lambda: line.members() == 1, "its start")
    line.alter(line.names.sketches, "max.message.bytes", "600")
    line.publish(story())
    said = sketcher.refused()

    assert "BrokerError" in said
    assert "Message size too large" in said
    assert line.committed("sketch", line.names.pages, 2) == {0: 0, 1: 0}
    for role in ("sketch", "match"):
        said = line.start(role).refused()
        assert f"TopicError: topic {line.names.sketches}: max.message.bytes is 600, needed: 1000000 or more; " in said
    line.alter(line.names.sketches, "max.message.bytes", "1048588")
    line.start("sketch")
    line.start("match")
    line.check()


def test_a_role_asks_only_about_its_own_topics(make: Make) -> None:
    line = make()
    line.alter(line.names.verdicts, "cleanup.policy", "compact")
    sketcher = line.start("sketch")
    eventually(lambda: line.members() == 1, "its start")
    said = line.start("match").refused()
    assert f"TopicError: topic {line.names.verdicts}: cleanup.policy is compact, needed: delete; " in said
    line.alter(line.names.verdicts, "cleanup.policy", "delete")
    line.publish(story(8))
    line.settle(judged=False)
    sketcher.stop()
    line.alter(line.names.pages, "message.timestamp.type", "CreateTime")
    assert "message.timestamp.type is CreateTime, needed: LogAppendTime" in line.start("sketch").refused()
    line.start("match")

    line.check()


# What is in the records.


def test_a_poison_page_is_rejected_and_kept(make: Make) -> None:
    line = make()
    line.publish(story(4))
    writer = Writer(line.connection, line.names.pages)
    source = line.admin.topic(line.names.pages).id.hex()
    poison: list[tuple[bytes, bytes, list[tuple[str, bytes]], Page]] = [
        (b"\xff\xfe", b"\0" * 99, [], Page("\ufffd\ufffd", b"\0" * 99)),
        (b"http://a.example/", b"x", [("http-status", b"many")], Page("http://a.example/", b"", problem=STATUS)),
        (
            b"http://a.example/",
            b"x",
            [("body-ref", b"file:///etc/passwd")],
            Page("http://a.example/", b"", problem=REF),
        ),
    ]
    for key, value, headers, page in poison:
        writer.send(value, key=key, headers=headers, partition=0)
        line.published.setdefault((source, 0), []).append(page)
    writer.flush()
    line.publish(story(6)[4:])
    line.start("sketch")
    line.start("match")

    verdicts = line.check()

    rejected = [verdict for verdict in verdicts if verdict["verdict"] == "rejected"]
    assert sum("body-ref" in verdict["reason"] for verdict in rejected) == 1
    kept = line.rejected()
    assert len(kept) == len(rejected)
    for key, value, headers, _ in poison:
        (copy,) = [record for record in kept if record.value() == value and headers == record.headers()[: len(headers)]]
        told = dict(copy.headers())
        assert copy.key() == key
        assert told["neardup-topic-id"].decode() == source
        assert told["neardup-reason"]


A = b"http://a.example/"
STATUS = "header http-status is b'many', not a number"
REF = "body-ref 'file:///etc/passwd' is not under an allowed prefix"


def test_a_poison_message_is_refused_by_its_offset_and_skipped_on_demand(make: Make) -> None:
    line = make()
    line.publish(story(4))
    sketcher = line.start("sketch")
    matcher = line.start("match")
    line.settle()
    poison = line.append(b"\1garbage")
    said = matcher.refused()

    assert f"CorruptRecord: the message at offset {poison} of the sketch log" in said
    assert f"leave it out: neardup skip-record {poison}" in said
    line.publish(story(6))
    assert "CorruptRecord" in line.start("match").refused()
    skip_record(line.settings, poison)
    line.start("match")
    line.leave_out(poison)
    line.check()
    assert not sketcher.running


def test_a_poison_record_is_refused_and_its_neighbours_are_kept(make: Make) -> None:
    line = make(partitions=1)
    line.publish(story(4))
    sketcher = line.start("sketch")
    matcher = line.start("match")
    line.settle()
    sketcher.stop()
    (_, message) = next(iter(line.messages()))
    span = Range(message.ranges[0].source, 7, 0, len(message.records))
    records = [record[:60] + (7).to_bytes(4, "little") + record[64:] for record in message.records]
    moved = [moved_to(record, 7, number) for number, record in enumerate(message.records)]
    assert records
    broken = [moved[0], b"\1" + moved[1][1:-9], *moved[2:]]
    at = line.append(encode_message(Message(message.scheme, (span,), tuple(broken))))
    said = matcher.refused()

    assert f"CorruptRecord: record 1 of the message at offset {at} of the sketch log" in said
    skip_record(line.settings, at)
    matcher = line.start("match")
    eventually(lambda: line.committed("match", line.names.sketches, 1) == line.ends(line.names.sketches), "judged")
    matcher.stop()
    places = [v["page_id"] & 4095 for v in line.verdicts() if v["page_id"] >> 12 == at and v["n"] == 0]
    assert places == [0, *range(2, len(broken))]


def moved_to(record: bytes, partition: int, offset: int) -> bytes:
    """The record as if it came from elsewhere."""
    from neardup.record import field_at

    out = bytearray(record)
    out[field_at("partition") : field_at("partition") + 4] = partition.to_bytes(4, "little")
    out[field_at("offset") : field_at("offset") + 8] = offset.to_bytes(8, "little")
    return bytes(out)


def test_another_scheme_is_kept_out_and_refused(make: Make) -> None:
    line = make()
    line.publish(story(4))
    sketcher = line.start("sketch")
    matcher = line.start("match")
    line.settle()
    sketcher.stop()

    said = line.start("sketch", settings={"seed": 8}).refused()
    assert "WrongScheme" in said
    assert "begin another generation" in said

    foreign = line.append(encode_message(Message(b"\7" * 16, (), ())))
    said = matcher.refused()
    assert f"WrongScheme: the message at offset {foreign} " in said
    assert "was made with scheme" in line.start("match", settings={"seed": 8}).refused()
    skip_record(line.settings, foreign)
    line.leave_out(foreign)
    line.start("sketch")
    line.start("match")
    line.publish(story(3))
    line.check()


# Stopping.


def test_a_stop_finishes_the_batch(make: Make) -> None:
    line = make()
    line.publish(story())
    line.start("sketch")
    matcher = line.start("match", step="3 offsets sent", how=freeze)
    matcher.frozen()
    matcher.signal(signal.SIGTERM)
    matcher.thaw()
    assert matcher.wait() == 0, matcher.said()

    line.start("match")
    line.check()


def test_a_second_signal_does_not_wait(own: Any, make: Make) -> None:
    line = make(bootstrap=own.bootstrap)
    line.publish(story())
    sketcher = line.start("sketch")
    matcher = line.start("match", step="3 offsets sent", how=freeze)
    matcher.frozen()
    own.pause()
    matcher.signal(signal.SIGTERM)
    matcher.thaw()
    eventually(lambda: not matcher.catches(signal.SIGTERM), "the first signal is heard")
    assert matcher.running, "it waits for the broker"
    matcher.signal(signal.SIGTERM)
    assert matcher.wait() == -signal.SIGTERM
    own.resume()
    assert sketcher.running

    line.start("match")
    line.check()


def test_both_roles_in_one_process(make: Make) -> None:
    line = make()
    line.publish(story())
    role = line.start("run")
    line.settle()
    host = re.findall(r"http://[0-9.:]+", role.said())[0]
    metrics = urlopen(f"{host}/metrics", timeout=PATIENCE_SECONDS).read().decode()
    ready = json.load(urlopen(f"{host}/ready", timeout=PATIENCE_SECONDS))

    found = line.check()

    for name, count in Counter(verdict["verdict"] for verdict in found).items():
        assert f'neardup_verdicts_total{{verdict="{name}"}} {count}.0\n' in metrics
    pages = len(story())
    for wanted in ('pages_total{role="sketch"}', 'pages_total{role="match"}', "verdict_latency_seconds_count"):
        assert f"neardup_{wanted} {pages}.0\n" in metrics
    assert f"neardup_candidates_count {pages}.0\n" in metrics
    assert ready["ok"]
    assert set(ready["roles"]) == {"sketch", "match"}


def test_killed_at_random(make: Make) -> None:
    seed = int(os.environ.get("SCHEDULE_SEED") or random.SystemRandom().randrange(1 << 32))
    print(f"SCHEDULE_SEED={seed}")
    chance = random.Random(seed)
    line = make(batch_pages=3)
    pages = story(60)
    roles = {"sketch": line.start("sketch", member="only"), "match": line.start("match")}
    for kill in range(6):
        share = len(pages) // 6
        line.publish(pages[kill * share : (kill + 1) * share])
        wanted = sum(line.ends(line.names.verdicts).values()) + chance.randrange(share)
        eventually(lambda wanted=wanted: sum(line.ends(line.names.verdicts).values()) >= wanted, "progress")
        role = chance.choice(list(roles))
        roles[role].kill()
        roles[role] = line.start(role, member="only")
    line.check()
