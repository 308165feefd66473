"""Records that are not what they should be: rejected, refused, or left out on demand, and never their neighbours."""

from contextlib import closing
from dataclasses import dataclass

import pytest
from broker import eventually
from line import Line, Make, story

from neardup.decider import Decider
from neardup.digested_json import later
from neardup.errors import CorruptRecord
from neardup.page import Page
from streams.formats.message import Decision, Message, NewDecider, encode_control, encode_message
from streams.kafka import Writer
from streams.operate.operator_decisions import decide
from streams.ports import Range
from streams.roles.match_start_checks import newest_verdicts
from streams.verdicts.diff_command import compare
from streams.verdicts.print_verdicts import verdicts_of


def test_a_poison_page_is_rejected_and_kept(make: Make) -> None:
    line = make()
    line.publish(story(4))
    writer = Writer(line.connection, line.names.pages)
    source = line.admin.topic(line.names.pages).id.hex()
    poison: list[tuple[bytes, bytes, list[tuple[str, bytes]], Page]] = [
        (b"\xff\xfe", b"\0" * 99, [], Page("%FF%FE", b"\0" * 99)),
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
    line.judge(story(6)[4:])

    verdicts = line.check()

    rejected = [verdict for verdict in verdicts if verdict["verdict"] == "rejected"]
    assert sum("body-ref" in verdict["reason"] for verdict in rejected) == 1
    kept = line.rejected()
    assert len(kept) == len(rejected)
    for key, value, headers, _ in poison:
        (copy,) = [record for record in kept if record.value() == value and headers == record.headers()[: len(headers)]]
        fields = dict(copy.headers())
        assert copy.key() == key
        assert fields["neardup-topic-id"].decode() == source
        assert fields["neardup-reason"]


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
    error = matcher.refused()

    assert f"CorruptRecord: the message at offset {poison} of the sketch log" in error
    assert f"leave it out: neardup accept record {poison}" in error
    line.publish(story(6))
    assert "CorruptRecord" in line.start("match").refused()
    decide(line.settings, Decision.SKIP_RECORD, poison)
    line.start("match")
    line.leave_out(poison)
    line.check()
    assert not sketcher.running


@dataclass(frozen=True)
class LaterDecider(Decider):
    """Of a version of neardup to come."""

    echo_min: int = later(3, neutral=0)


@pytest.mark.whole
def test_a_newer_programs_decider_in_the_log_is_not_advised_to_be_left_out(make: Make) -> None:
    line = make()
    line.publish(story(4))
    line.start("sketch")
    matcher = line.start("match")
    line.settle()
    scheme = line.settings.scheme()
    before = line.settings.decider(scheme)
    word = line.append(encode_control(NewDecider(before, LaterDecider(scheme.digest))))
    error = matcher.refused()

    text = f"OtherVersion: the message at offset {word} of the sketch log: written by a newer version of neardup"
    assert text in error
    assert "echo_min" in error
    assert "accept record" not in error


@pytest.mark.whole
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
    error = matcher.refused()

    assert f"CorruptRecord: record 1 of the message at offset {at} of the sketch log" in error
    decide(line.settings, Decision.SKIP_RECORD, at)
    matcher = line.start("match")
    eventually(lambda: line.committed("match", line.names.sketches, 1) == line.ends(line.names.sketches), "judged")
    matcher.stop()
    places = [v["page_id"] & 4095 for v in line.verdicts() if v["page_id"] >> 12 == at and v["n"] == 0]
    assert places == [0, *range(2, len(broken))]


def moved_to(record: bytes, partition: int, offset: int) -> bytes:
    """The record as if it came from elsewhere."""
    from neardup.sketch.layout import field_at

    out = bytearray(record)
    out[field_at("partition") : field_at("partition") + 4] = partition.to_bytes(4, "little")
    out[field_at("offset") : field_at("offset") + 8] = offset.to_bytes(8, "little")
    return bytes(out)


@pytest.mark.whole
def test_another_scheme_is_kept_out_and_refused(make: Make) -> None:
    line = make()
    line.publish(story(4))
    sketcher = line.start("sketch")
    matcher = line.start("match")
    line.settle()
    sketcher.stop()

    error = line.start("sketch", settings={"seed": 8}).refused()
    assert "WrongScheme" in error
    assert "begin another generation" in error

    foreign = line.append(encode_message(Message(b"\7" * 16, (), ())))
    error = matcher.refused()
    assert f"WrongScheme: the message at offset {foreign} " in error
    assert "holds sketches of scheme" in line.start("match", settings={"seed": 8}).refused()
    decide(line.settings, Decision.SKIP_RECORD, foreign)
    line.leave_out(foreign)
    line.start("sketch")
    line.start("match")
    line.publish(story(3))
    line.check()


@pytest.mark.whole
def test_foreign_record_among_verdicts_is_named_by_position(make: Make) -> None:
    """A matcher that finds no committed place reads the last ones, `neardup diff` and `export` all of them."""
    line: Line = make()
    line.judge(story(4))
    line.check()
    topic = line.names.verdicts
    with closing(Writer(line.connection, topic)) as writer:
        writer.send(b"garbage", key=b"http://a.example/", partition=1)
        writer.flush()
        offset = writer.last_offset

    wanted = rf"topic {topic}, partition 1, offset {offset}: no verdict of neardup \(no JSON"
    with pytest.raises(CorruptRecord, match=wanted + ".* begin another generation"):
        newest_verdicts(line.settings)
    with pytest.raises(CorruptRecord, match=wanted):
        compare(f"topic:{topic}", f"topic:{topic}", verdicts_of(line.settings))
