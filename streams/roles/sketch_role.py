"""The sketcher on Kafka: `pages` in, messages of the sketch log out, any number of processes side by side.

Each round: (1) poll a batch of records; (2) decode them to pages; (3) sketch them, a pure function; (4) send the
messages to the log, and rejected records to `pages.rejected`; (5) take acknowledgements; (6) commit the positions that
the log has acknowledged. 4 of one batch overlaps with 1 to 3 of the next, `inflight_batches` deep.

A crash before 4 leaves nothing behind. After 4 and before 6 the log may hold messages whose positions are not
committed: the next sketcher sends those pages again, in other batches, and the matcher drops the known ones by its
marks. 6 never comes before 5: pages that the log lacks would never be read again. Sending is idempotent and without
gaps, so the log holds a prefix of a sketcher's messages; the first failure ends the process before it commits. There
are no transactions: an open one of a dead sketcher would block the one partition for all.
"""

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from dataclasses import dataclass

from neardup.errors import BadInput, CorruptRecord, StateError
from neardup.fetch_times import UNDATED
from neardup.page import Page
from neardup.scheme import Scheme
from neardup.sketch.header import Header
from neardup.sketch.layout import RecordKind
from neardup.verdict import Coordinates
from streams.config.settings import BATCH_BYTES, Settings
from streams.errors import (
    NEW_GENERATION,
    SET_THE_SCHEME,
    BodiesAway,
    RecordTooLarge,
    TopicError,
    WrongScheme,
)
from streams.formats.bodies import Bodies
from streams.formats.codecs import Codec, unreadable
from streams.formats.message import as_first, decode_entry
from streams.kafka import Admin, Connection, KafkaLog, KafkaPages, KafkaTopic, Writer
from streams.kafka.topics import require
from streams.pipeline.packing import pack
from streams.pipeline.sketching import contained_sketches
from streams.ports import Range, Record
from streams.process import logs
from streams.roles.own_generation import generation_served
from streams.roles.runtime import STOP_SECONDS_MAX, WAIT_SECONDS, Runtime, Silence, connect

_log = logs.get("sketch")
_LOG_APPEND_TIME = 2
_REASON_BYTES_MAX = 512
#: Between two requests to a store of bodies that does not answer.
_AWAY_SECONDS_MIN, _AWAY_SECONDS_MAX = 1.0, 15.0
#: Requests for a body, in about a minute, while its store answers for other objects.
_BODY_TRIES_MAX = 8
_ACKNOWLEDGE_SECONDS = 0.02
#: Between two checks of an idle sketcher for a recreated topic, which may have no record at its position.
_IDLE_SECONDS = 5.0


#: Makes the reader of `pages` from the connection and the sketch log.
MakePages = Callable[[Connection, KafkaTopic], KafkaPages]


@dataclass(frozen=True, slots=True)
class _Sent:
    """An unacknowledged batch: its ranges, and the number of messages that the log's writer had sent with it."""

    ranges: list[Range]
    messages: int
    rejected: bool


class SketchRole:
    """One sketcher. `round` does one round; `run` goes on until it is stopped.

    first: the log is empty; the first message names this program's version. Several sketchers may find it empty.
    """

    def __init__(
        self,
        pages: KafkaPages,
        log: Writer,
        rejected: Writer,
        scheme: Scheme,
        runtime: Runtime,
        *,
        first: bool = False,
    ) -> None:
        self._first = first
        settings = self._settings = runtime.settings
        self._pages, self._log, self._rejected = pages, log, rejected
        self._scheme = scheme
        self._scheme_digest = bytes.fromhex(scheme.digest)
        self._bodies = Bodies(settings.body_ref_prefixes, scheme.body_bytes_max)
        self._codec = Codec(settings.codec, self._bodies, scheme.body_bytes_max, pages.topic.name)
        self._metrics = runtime.metrics
        self._health = runtime.health.role("sketch")
        self._stop = runtime.stop
        self._traces = runtime.traces
        self._steady_s = runtime.steady_s
        self._inflight: deque[_Sent] = deque()
        self._acknowledged: list[Range] = []
        self._checked = self._steady_s()
        self._silence = Silence(_log)
        self._times_logged: set[str] = set()

    def run(self) -> None:
        """Raises BrokerError, TopicError, PositionLost, RecordTooLarge."""
        while not self._stop.is_set():
            self.round(WAIT_SECONDS)
        self._finish()

    def round(self, wait_s: float = 0.0) -> bool:
        """One round; False if there was nothing to read."""
        self._health.turned()
        batch = self._poll(wait_s)  # (1)
        if batch is not None:
            records, ranges = batch
            with self._traced(records) as headers:
                pages = self._decode(records)  # (2)
                sketches = self._sketch(records, pages)  # (3)
                self._send(records, ranges, sketches, headers)  # (4)
            self._silence.ends()
            self._checked = self._steady_s()
        elif self._steady_s() - self._checked > _IDLE_SECONDS:
            self._silence.check(self._pages.check)
            self._checked = self._steady_s()
        left = self._acknowledge()  # (5)
        while left > self._settings.inflight_batches and not self._stop.is_set():
            self._health.turned()
            left = self._acknowledge(_ACKNOWLEDGE_SECONDS)
            self._report_lag()  # a log that accepts nothing keeps it here for long
        self._commit()  # (6)
        assigned = self._pages.assigned()
        if self._silence.reason:
            self._health.not_ready(self._silence.reason)
        elif assigned:
            self._health.ready(f"reads {len(assigned)} partitions")
        elif self._pages.rebalances:
            # One too many, or a spare: an upgrade waits until it is ready before it stops an old one.
            self._health.ready("stands by: all partitions are read by others")
        else:
            self._health.not_ready("has not joined the group of sketchers yet")
        return batch is not None

    def _poll(self, wait_s: float) -> tuple[Sequence[Record], list[Range]] | None:
        settings = self._settings
        # With unacknowledged batches the wait is short: their commit follows it.
        before = self._pages.rebalances
        with self._metrics.step("sketch", "poll"):
            batch = self._pages.read(
                settings.batch_pages,
                bytes_max=BATCH_BYTES,
                linger_s=settings.batch_ms / 1000,
                wait_s=min(wait_s, 0.02) if self._inflight else wait_s,
            )
        self._metrics.restarts["sketch", "rebalance"].inc(self._pages.rebalances - before)
        self._report_lag()
        return None if batch is None else (batch.records, batch.ranges)

    def _report_lag(self) -> None:
        self._metrics.lag["sketch"].set(sum(self._pages.lag().values()))

    def _decode(self, records: Sequence[Record]) -> list[Page]:
        with self._metrics.step("sketch", "decode"):
            pages = [self._page(record) for record in records]
        self._log_times(records, pages)
        self._metrics.pages["sketch"].inc(len(pages))
        self._metrics.bytes["sketch"].inc(sum(len(page.body or b"") for page in pages))
        self._metrics.batch_pages["sketch"].observe(len(pages))
        return pages

    def _log_times(self, records: Sequence[Record], pages: Sequence[Page]) -> None:
        """Logs each form of fetch times that are not in milliseconds once, with the first record that has it."""
        for record, page in zip(records, pages, strict=True):
            undated = page.fetched_at is None and page.body is not None and self._settings.codec == "warc"
            form = UNDATED if undated and not page.problem else page.time_read_as
            if form and form not in self._times_logged:
                self._times_logged.add(form)
                where = {"partition": record.partition(), "offset": record.offset()}
                counts = "the time of the record counts" if form == UNDATED else f"read as {form}"
                _log.warning("fetched_at is not in milliseconds", times=counts, **where)

    def _page(self, record: Record) -> Page:
        """Decodes a record. Waits while the store of its body does not answer.

        Rejects the page if its store fails _BODY_TRIES_MAX times in a row and answers for another object each time:
        one broken object must not block a partition. Raises BodiesAway if this sketcher is stopped meanwhile: the next
        one starts with the same batch.
        """
        wait_s, tries = _AWAY_SECONDS_MIN, 0
        while True:
            try:
                return self._codec.page(record)
            except BodiesAway as error:
                reason = str(error)
                tries = tries + 1 if self._bodies.answers(error.store) else 0
                if tries == _BODY_TRIES_MAX:
                    return unreadable(record, f"{reason}; tried {tries} times while it answered for other objects")
                _log.warning("waits for a body", partition=record.partition(), offset=record.offset(), reason=reason)
                self._health.not_ready(f"partition {record.partition()} waits: {reason}")
                self._health.turned()
                if self._stop.wait(wait_s):
                    raise
                wait_s = min(2 * wait_s, _AWAY_SECONDS_MAX)

    def _sketch(self, records: Sequence[Record], pages: list[Page]) -> list[bytes]:
        source = self._pages.topic.id.hex()
        times = []
        for record in records:
            kind, stamp = record.timestamp()
            if kind != _LOG_APPEND_TIME:
                raise TopicError(
                    f"topic {self._pages.topic.name}: message.timestamp.type is not LogAppendTime (partition "
                    f"{record.partition()}, offset {record.offset()}): a producer's clock must not be the log time; "
                    "set it and see `neardup topics check`"
                )
            # The record's own time, not the running maximum: so each sketcher makes the same sketch of a page, and a
            # partition that moves to another sketcher does not start with earlier times.
            times.append(stamp)
        with self._metrics.step("sketch", "sketch"):
            return contained_sketches(
                pages,
                self._scheme,
                coordinates=[Coordinates(source, record.partition(), record.offset()) for record in records],
                log_times=times,
                threads=self._settings.threads,
                topic=self._pages.topic.name,
            )

    def _traced(self, records: Sequence[Record]) -> AbstractContextManager[Sequence[tuple[str, bytes]]]:
        """Headers of the messages made of these pages."""
        if self._traces is None:
            return nullcontext(())
        return self._traces.sketching(records)

    def _send(
        self,
        records: Sequence[Record],
        ranges: list[Range],
        sketches: list[bytes],
        headers: Sequence[tuple[str, bytes]],
    ) -> None:
        with self._metrics.step("sketch", "produce"):
            rejected = False
            for record, sketch in zip(records, sketches, strict=True):
                if sketch[1] == RecordKind.REJECTED:
                    self._reject(record, Header(sketch).reason)
                    rejected = True
            positions = [(record.partition(), record.offset()) for record in records]
            for packed in pack(self._scheme_digest, ranges, positions, sketches, log=self._pages.topic_ids.sink):
                message, self._first = as_first(packed) if self._first else packed, False
                self._log.send(message, headers=headers)
            self._inflight.append(_Sent(ranges, self._log.sent, rejected))

    def _reject(self, record: Record, reason: str) -> None:
        """Copies a rejected record, with its position and the reason as additional headers."""
        self._metrics.rejected(reason)
        position = {
            "neardup-reason": reason.encode()[:_REASON_BYTES_MAX],
            "neardup-topic-id": self._pages.topic.id.hex().encode(),
            "neardup-partition": b"%d" % record.partition(),
            "neardup-offset": b"%d" % record.offset(),
        }
        headers = [(name, value or b"") for name, value in record.headers() or ()] + list(position.items())
        try:
            self._rejected.send(record.value(), key=record.key(), headers=headers)
        except RecordTooLarge:
            # The pages topic keeps the body until its retention; here its key and position stay.
            where = {"partition": record.partition(), "offset": record.offset()}
            _log.warning("a rejected page is too large for its topic", reason=reason, **where)
            self._rejected.send(b"", key=record.key(), headers=[*position.items(), ("neardup-cut", b"true")])

    def _acknowledge(self, wait_s: float = 0.0) -> int:
        """Queues acknowledged batches for the commit; returns the number of the others. Raises BrokerError."""
        with self._metrics.step("sketch", "acknowledge"):
            self._log.poll(wait_s)
            while self._inflight and self._log.acknowledged >= self._inflight[0].messages:
                if self._inflight[0].rejected and self._rejected.poll(wait_s):
                    break
                self._acknowledged += self._inflight.popleft().ranges
        return len(self._inflight)

    def _commit(self) -> None:
        with self._metrics.step("sketch", "commit"):
            self._pages.commit(self._acknowledged)
        self._acknowledged = []

    def _finish(self) -> None:
        """Waits for acknowledgements; the next start reads and sends unacknowledged pages again."""
        deadline = self._steady_s() + STOP_SECONDS_MAX
        while self._acknowledge(_ACKNOWLEDGE_SECONDS) and self._steady_s() < deadline:
            self._health.turned()
        self._commit()


def check_scheme(topic: str, message: tuple[int, bytes] | None, scheme: Scheme) -> None:
    """Raises WrongScheme if a message (offset, bytes) of the log has another scheme. None: the log has no message."""
    if message is None:
        return
    offset, data = message
    try:
        held = decode_entry(data, offset).scheme.hex()
    except CorruptRecord:
        return  # the matcher reports it
    if held != scheme.digest:
        raise WrongScheme(
            f"topic {topic} holds sketches of scheme {held} (offset {offset}), and {scheme.digest} is set: "
            f"their pages would never meet; {SET_THE_SCHEME} that the log was begun with, or {NEW_GENERATION}"
        )


def run_sketcher(settings: Settings, runtime: Runtime, *, reader: MakePages | None = None) -> None:
    """Read pages and write sketches until the runtime is stopped. Restarting is always safe.

    Args:
        settings: settings of the role.
        runtime: stop request, health and metrics of the process.
        reader: function that makes the reader of pages; by default a member of the consumer group.

    Raises:
        TopicError: if a topic is missing or misconfigured.
        WrongScheme: if the log is of another scheme.
        BadInput: if the generation judges the sketches of another generation.
        StateError: if the generation has other settings.
        NeardupError: the errors of SketchRole.run.
    """
    if settings.judges_anew:
        raise BadInput(
            f"generation {settings.generation!r} judges the sketches of {settings.sketches_of!r}: it has no "
            "sketchers of its own; run `neardup match` alone, or leave sketches_of out"
        )
    scheme = settings.scheme()
    names = settings.topics
    connection = connect(settings, "sketch", runtime)
    admin = Admin(connection)
    require(admin, names, names.pages, names.rejected, names.sketches)
    with ExitStack() as held:
        known = held.enter_context(generation_served(settings, "sketch", runtime))
        if known is not None and known.filling and reader is None:
            raise StateError(
                f"generation {known.name} is still being filled by a backfill, which reads pages in the order of their "
                f"fetch times and repeats all takedowns; continue it: neardup backfill --generation {known.name}, with "
                "the options that it was begun with"
            )
        sketches = KafkaLog(connection, names.sketches)
        with closing(sketches):
            newest, empty = sketches.last().get(0), not sketches.end()
        last = None if newest is None else (newest.offset(), newest.value() or b"")
        check_scheme(names.sketches, last, scheme)
        log = Writer(
            connection,
            names.sketches,
            message_bytes_max=settings.message_bytes_max,
            gapless=True,
            linger_ms=0,  # a message is a batch of pages already
        )
        held.callback(log.close)
        limit = int(admin.settings(names.rejected)["max.message.bytes"])
        rejected = Writer(connection, names.rejected, message_bytes_max=limit)
        held.callback(rejected.close)
        reading = connect(settings, "sketch", runtime, reading=True)
        make = reader or (lambda reading, log: KafkaPages(reading, names.pages, settings.group_of("sketch"), log))
        pages = make(reading, sketches.topic)
        held.callback(pages.close)
        SketchRole(pages, log, rejected, scheme, runtime, first=empty).run()
