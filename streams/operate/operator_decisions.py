"""Writes decisions of an operator into the log, so that every later fold repeats them; counts what a takedown does."""

import time
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass

from neardup.errors import BadInput, NeardupError
from neardup.limits import PLACE_BITS
from neardup.sketch.takedown_hashes import Takedown
from streams.client import Stored, VerdictConsumer
from streams.config.settings import Settings
from streams.errors import BrokerError
from streams.formats.message import Control, Decision, Forget, decode_entry, encode_control
from streams.kafka import Admin, KafkaLog
from streams.roles.own_generation import control_topic, settings_of, shown
from streams.roles.runtime import connect, greet, write_control
from streams.roles.sketch_role import check_scheme

#: Longest wait for the matcher to reach the takedown, which counts the pages.
MATCHER_SECONDS_MAX = 10.0
_LOOK_SECONDS = 0.1


def decide(settings: Settings, decision: Decision, offset: int) -> int:
    """Writes an operator's decision about the message at `offset` of the sketch log.

    Returns the offset of the control record, which the matcher finds at its next start. Raises BadInput, BrokerError.
    """
    settings = settings_of(settings, control_topic(settings, "match").read(), settings.generation)
    connection = connect(settings, "match")
    with closing(KafkaLog(connection, settings.topics.sketches)) as log:
        begin, end = log.first_offset(), log.end()
    if not begin <= offset < end:
        raise BadInput(f"topic {settings.topics.sketches} holds offsets {begin} to {end - 1}, and not {offset}")
    control = Control(bytes.fromhex(settings.scheme().digest), decision, offset)
    return write_control(settings, settings.topics.sketches, [encode_control(control)])


def forget(settings: Settings, takedown: Takedown) -> int:
    """Takes pages down in all generations: each fold of a log drops them from its index at the takedown's record.

    Writes the takedown (1) to the control topic, from which backfills that have not caught up repeat it; (2) to the log
    of the settings' generation; (3) to the logs of all others. So no generation lacks it: a backfill that has read the
    control topic before (1) is recorded before (3). After a crash at any step, calling it again is safe.

    Returns the record's offset in the settings' log. Raises BrokerError, also for logs of (3) that cannot be written,
    which it names; TopicError; CorruptRecord; WrongScheme for a log of another seed, where the record would stop the
    matcher.
    """
    scheme, admin = settings.scheme(), Admin(connect(settings, "match"))
    control = control_topic(settings, "topics")
    recorded = control.read()
    own = settings_of(settings, recorded, settings.generation).topics.sketches
    check_scheme(own, _newest(settings, own), scheme)
    control.create(admin.topic(own).replicas)
    control.keep_takedown(takedown)  # (1)
    offset = write_control(settings, own, [encode_control(Forget(bytes.fromhex(scheme.digest), takedown))])  # (2)
    recorded = control.read()
    others = {
        settings_of(settings, recorded, name).topics.sketches: name for name in (*recorded.known, recorded.live, "")
    }
    missed = []
    for topic, name in others.items():
        try:
            if topic != own and admin.topics([topic]) and (newest := _newest(settings, topic)) is not None:
                known = recorded.known.get(name)
                digest = bytes.fromhex(known.scheme) if known else decode_entry(newest[1], newest[0]).scheme
                write_control(settings, topic, [encode_control(Forget(digest, takedown))])  # (3)
        except NeardupError as error:
            missed.append(f"topic {topic} of generation {shown(name)} ({error})")
    if missed:
        raise BrokerError(
            f"the takedown is in topic {control.name} and at offset {offset} of {own}, and not in "
            f"{', '.join(missed)}: repair that, or remove the generation, and call neardup forget again, which is safe"
        )
    return offset


def _newest(settings: Settings, topic: str) -> tuple[int, bytes] | None:
    """The newest message of a log, with its offset."""
    with closing(KafkaLog(connect(settings, "match"), topic)) as log:
        newest = log.last().get(0)
    return None if newest is None else (newest.offset(), newest.value() or b"")


@dataclass(frozen=True, slots=True)
class LoggedTakedown:
    """A takedown in the stream's log, at `offset`.

    pages, promoted: numbers of verdicts `gone` and `promoted` of the takedown; None if the matcher has not reached the
    takedown, or if the verdicts cannot be read.
    """

    offset: int
    pages: int | None = None
    promoted: int | None = None

    @property
    def cause(self) -> int:
        """Page id of its verdicts."""
        return self.offset << PLACE_BITS


def forget_stream(settings: Settings, takedown: Takedown) -> LoggedTakedown:
    """Writes the takedown into the logs of all generations, and counts the verdicts of the settings' matcher.

    Raises the errors of `forget`.
    """
    greet(settings, "match")
    consumer = None
    with suppress(NeardupError):  # a takedown does not fail because verdicts cannot be read
        kafka = connect(settings, "verdicts", reading=True).settings
        topic = settings.topics.verdicts
        consumer = VerdictConsumer(settings.bootstrap, Stored(), topic, start="end", kafka=kafka)
    written = LoggedTakedown(forget(settings, takedown))
    if consumer is None:
        return written
    with closing(consumer), suppress(NeardupError):
        return _judged(settings, written, consumer)
    return written


def _judged(settings: Settings, written: LoggedTakedown, consumer: VerdictConsumer) -> LoggedTakedown:
    """Counts the takedown's verdicts. consumer: began before it was written. Raises BrokerError, CorruptRecord."""
    admin, until = Admin(connect(settings, "match")), time.monotonic() + MATCHER_SECONDS_MAX
    ends: Mapping[int, int] | None = None
    kinds = {"gone": 0, "promoted": 0}
    while time.monotonic() < until:
        if ends is None:
            known = admin.committed(settings.group_of("match"), settings.topics.sketches, 0)
            if known is not None and known.offset > written.offset:  # in one transaction with its verdicts
                ends = admin.offsets(admin.topic(settings.topics.verdicts), "latest")
        elif consumer.has_read(ends):
            return LoggedTakedown(written.offset, kinds["gone"], kinds["promoted"])
        for batch in consumer.batches(wait_s=_LOOK_SECONDS):
            for verdict in batch.verdicts:
                if verdict["page_id"] == written.cause and verdict["verdict"] in kinds:
                    kinds[verdict["verdict"]] += 1
            if time.monotonic() >= until or (ends is not None and consumer.has_read(ends)):
                break
    return written
