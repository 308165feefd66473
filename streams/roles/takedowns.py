"""Takes pages down on the stream, and counts the resulting verdicts."""

import time
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass

from neardup.errors import NeardupError
from neardup.limits import PLACE_BITS
from neardup.sketch.takedown import Takedown
from streams.client import VerdictConsumer
from streams.config.settings import Settings
from streams.kafka import Admin
from streams.roles.operator import forget
from streams.roles.runtime import connect, greet
from streams.roles.tail import NothingStored

#: Longest wait for the matcher to reach the takedown, which counts the pages.
MATCHER_SECONDS_MAX = 10.0
_LOOK_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class LoggedTakedown:
    """A takedown in the stream's log, at `offset`.

    pages, promoted: its verdicts `gone` and `promoted`; None if the matcher has not reached it, or its verdicts cannot
    be read.
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

    Raises as `streams.roles.forget`.
    """
    greet(settings, "match")
    consumer = None
    with suppress(NeardupError):  # a takedown does not fail because verdicts cannot be read
        kafka = connect(settings, "verdicts", reading=True).settings
        topic = settings.topics.verdicts
        consumer = VerdictConsumer(settings.bootstrap, NothingStored(), topic, start="end", kafka=kafka)
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
