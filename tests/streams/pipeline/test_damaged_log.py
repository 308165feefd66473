"""A sketch log with damage or foreign messages: refused with the offset, and continued as advised."""

import json
import random
import re
from collections.abc import Callable

import pytest

from neardup.errors import CorruptRecord
from neardup.page import Page
from neardup.sketch.layout import HEADER, RecordFlag, field_at
from neardup.sketch.make_sketches import sketch_pages
from neardup.verdict import Coordinates
from streams.config.settings import Settings
from streams.errors import SourceGap
from streams.formats.message import Control, Decision, Message, encode_control, encode_message
from streams.ports import Range
from streams.roles.match_role import MatchRole
from tests.quiet import quiet_runtime
from tests.streams.scripted import Broker, ForgetfulStore, ScriptedLog, Transactions
from tests.streams.simulation.ground import DECIDER, SAMPLES
from tests.streams.simulation.ledger import SCHEME

SOURCE = b"s" * 16
EACH = 2


def records(partition: int = 0) -> list[bytes]:
    pages = [Page(f"http://a.example/{n}", each.body, fetched_at=n) for n, each in enumerate(SAMPLES[:8])]
    at = [Coordinates(SOURCE.hex(), partition, n) for n in range(len(pages))]
    return sketch_pages(pages, SCHEME, coordinates=at, log_times=[1_000] * len(pages))


class Line:
    """A log with messages of two pages each, and matchers that begin where the one before stood."""

    def __init__(self, made: list[bytes]) -> None:
        self.broker = Broker()
        self.log = self.broker.create("sketches", 1).partitions[0]
        self.broker.create("verdicts", 1)
        self.store = ForgetfulStore()
        for start in range(0, len(made), EACH):
            held = tuple(made[start : start + EACH])
            span = Range(SOURCE, 0, start, start + len(held))
            self.log.append(encode_message(Message(bytes.fromhex(SCHEME.digest), (span,), held)))

    def judge(self) -> None:
        verdicts = Transactions(self.broker, "sketches", "verdicts", "match")
        verdicts.init()
        log, runtime = ScriptedLog(self.broker, "sketches"), quiet_runtime(Settings(seed=7, match_messages=1))
        known = verdicts.committed()
        role = MatchRole(log, log.messages, verdicts, self.store, DECIDER, known.offset if known else 0, runtime)
        log.follow(role.matcher.next_offset)
        while role.round():
            pass

    def refused(self, error: type[Exception]) -> str:
        with pytest.raises(error) as raised:
            self.judge()
        return str(raised.value)

    def follow(self, text: str) -> None:
        """The action of an operator who reads the error."""
        (command, offset), *more = re.findall(r"neardup accept (record|gap) (\d+)", text)
        assert not more
        decision = Decision.SKIP_RECORD if command == "record" else Decision.ACCEPT_GAP
        self.log.append(encode_control(Control(bytes.fromhex(SCHEME.digest), decision, int(offset))))

    def judged(self) -> list[int]:
        """Offsets in the source, in the order of the verdicts."""
        pairs = [pair for pair in self.broker.topic("verdicts").partitions[0].records if pair]
        verdicts = [json.loads(pair[1]) for pair in pairs]  # type: ignore[index]
        return [verdict["coordinates"]["offset"] for verdict in verdicts if verdict["n"] == 0]


def test_a_flipped_bit_costs_its_message_and_nothing_else() -> None:
    line = Line(records())
    flipped = bytearray(line.log.records[1])  # type: ignore[call-overload]
    flipped[len(flipped) // 2] ^= 4
    line.log.records[1] = bytes(flipped)

    error = line.refused(CorruptRecord)
    assert "the message at offset 1 of the sketch log is damaged: its checksum is of other bytes" in error
    line.follow(error)
    # The ranges that it accounted for are missing now, and that is reported, too.
    error = line.refused(SourceGap)
    assert "the message at offset 2 " in error
    assert "records 2 to 3 are missing" in error
    line.follow(error)
    line.judge()
    assert line.judged() == [0, 1, 4, 5, 6, 7]


def changed(record: bytes, **fields: int) -> bytes:
    assert HEADER.fields is not None
    out = bytearray(record)
    for name, value in fields.items():
        size = HEADER.fields[name][0].itemsize
        out[field_at(name) : field_at(name) + size] = value.to_bytes(size, "little", signed=value < 0)
    return bytes(out)


SPOILT: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "levels": (
        lambda record: changed(record, tape_level=64),
        "its tapes are of levels 64 and 0, and the last is 63",
    ),
    "content level": (lambda record: changed(record, content_level=200), "levels 0 and 200"),
    "flags": (lambda record: changed(record, flags=1 << 7), "it has flags 0x80, and there are"),
    "filter": (lambda record: shifted(record, "bloom_bytes", "url_bytes", 1), "filter has .* which is no power of two"),
    "sections": (lambda record: changed(record, url_bytes=9_000), "its sections do not add up to its length"),
    "kind": (lambda record: changed(record, kind=77), "not a sketch record"),
    "version": (lambda record: changed(record, version=9), "not a sketch record"),
    "size": (lambda record: changed(record, size=5), "says it has 5"),
    "place": (lambda record: changed(record, offset=-3), "its place or its time is negative"),
    "position": (lambda record: changed(record, position=-1), "its place or its time is negative"),
    "time": (lambda record: changed(record, log_time=-1), "its place or its time is negative"),
    "twice": (lambda record: changed(record, offset=2), "is in no range of the message, or out of order"),
}


def shifted(record: bytes, less: str, more: str, by: int) -> bytes:
    """Sections that add up, and yet are none."""
    assert HEADER.fields is not None
    sizes = {}
    for name in (less, more):
        start, size = field_at(name), HEADER.fields[name][0].itemsize
        sizes[name] = int.from_bytes(record[start : start + size], "little")
    return changed(record, **{less: sizes[less] - by, more: sizes[more] + by})


@pytest.mark.parametrize("name", SPOILT)
def test_a_record_that_no_sketcher_makes_is_refused_with_its_place_and_left_out(name: str) -> None:
    spoil, why = SPOILT[name]
    made = records()
    made[3] = spoil(made[3])
    line = Line(made)

    error = line.refused(CorruptRecord)
    assert re.search(rf"record 1 of the message at offset 1 of the sketch log: .*{why}", error), error
    line.follow(error)
    line.judge()
    assert line.judged() == [0, 1, 2, 4, 5, 6, 7]


@pytest.mark.seeds(1, 20)
def test_any_record_is_judged_or_refused_with_its_position(seed: int) -> None:
    """Never a broken invariant: bits flipped before the checksum was made, and fields of other records."""
    chance, made, names = random.Random(seed), records(), HEADER.names or ()
    for _ in range(150):
        spoilt = list(made)
        for _ in range(chance.randrange(1, 4)):
            at, name = chance.randrange(len(made)), chance.choice(names)
            record, other = bytearray(spoilt[at]), made[chance.randrange(len(made))]
            if chance.random() < 0.5:
                record[chance.randrange(len(record))] ^= 1 << chance.randrange(8)
            else:
                start, end = field_at(name), field_at(name) + HEADER[name].itemsize
                record[start:end] = other[start:end]
            spoilt[at] = bytes(record)
        line = Line(spoilt)
        for _ in range(2 * len(made)):
            try:
                line.judge()
                break
            except (CorruptRecord, SourceGap) as error:
                line.follow(str(error))
        else:
            pytest.fail("there is no end to it")
        assert len(set(line.judged())) == len(line.judged())


def test_all_kinds_of_flags_are_known() -> None:
    made = [changed(record, flags=int(sum(RecordFlag))) for record in records()]
    line = Line(made)
    line.judge()
    assert len(line.judged()) == len(made)


def test_message_for_another_log_of_the_name_is_ignored() -> None:
    line = Line(records())
    held = tuple(records()[4:6])
    late = Message(bytes.fromhex(SCHEME.digest), (Range(SOURCE, 7, 4, 6),), held, log=b"o" * 16)
    line.log.records.insert(0, encode_message(late))
    line.judge()
    assert line.judged() == list(range(8))
