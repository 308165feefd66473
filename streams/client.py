"""Clients of the stream: PageProducer for a crawler, LiveVerdicts for an indexer.

A crawler publishes the pages that it fetched. Leaving the block waits until Kafka has all of them:

    from streams.client import PageProducer

    with PageProducer("127.0.0.1:9092") as pages:
        pages.publish("https://a.example/", b"<p>Hello", content_type="text/html", fetched_at=1767225600000)
        pages.gone("https://a.example/old.html")

An indexer consumes each verdict once. It stores the consumer's positions in its own database, in the transaction with
the rows made from the verdicts: after a crash both are there or neither is.

    import sqlite3

    from streams.client import LiveVerdicts, duplicate_of

    db = sqlite3.connect("index.db")
    db.executescript('''
        CREATE TABLE IF NOT EXISTS positions (partition TEXT PRIMARY KEY, next INTEGER);
        CREATE TABLE IF NOT EXISTS live (row INTEGER PRIMARY KEY, generation TEXT);
        CREATE TABLE IF NOT EXISTS pages
            (generation TEXT, url TEXT, kind TEXT, duplicate_of TEXT, log TEXT, page_id INTEGER, n INTEGER,
             PRIMARY KEY (generation, url));
    ''')

    class Positions:
        def load(self):
            return dict(db.execute("SELECT partition, next FROM positions"))

    with LiveVerdicts("127.0.0.1:9092", Positions()) as consumer:
        for batch in consumer.batches(follow=False):
            with db:  # one transaction
                for verdict in batch.verdicts:
                    db.execute(
                        '''INSERT INTO pages VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (generation, url) DO UPDATE
                           SET kind = excluded.kind, duplicate_of = excluded.duplicate_of, log = excluded.log,
                               page_id = excluded.page_id, n = excluded.n
                           WHERE excluded.log <> log OR (excluded.page_id, excluded.n) > (page_id, n)''',
                        (
                            *(batch.generation, verdict["url"], verdict["verdict"], duplicate_of(verdict)),
                            *(verdict["log"], verdict["page_id"], verdict["n"]),
                        ),
                    )
                db.executemany("REPLACE INTO positions VALUES (?, ?)", batch.positions.items())
                if batch.complete:
                    db.execute("REPLACE INTO live VALUES (0, ?)", (batch.generation,))

    SHOWN = "SELECT url, kind, duplicate_of FROM pages JOIN live USING (generation)"

`(page_id, n)` identifies a verdict within one generation and one log, and ascends with time. The last line of that
INSERT compares it, so an indexer that lost its positions and consumes everything again ends with the same table. The
numbers of two generations cannot be compared: a generation that judges the same log again has the same `log` and the
same page ids. Therefore the generation is part of the row's key. `neardup generation cutover` changes the live
generation; LiveVerdicts follows it, and `batch.complete` marks when the rows of the live generation can be shown.
Delete a generation's rows after `neardup generation remove`: a later generation may have the same name.

A verdict `gone` with the reason `taken down` (`neardup forget`) requires the index to delete the page's text.

VerdictConsumer consumes the verdicts of one topic, whichever generation is live.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Protocol

from neardup.canonical import policy_of
from neardup.errors import BadInput, NeardupError
from neardup.fetch_times import read_time
from neardup.page import Page
from neardup.standing import duplicate_of
from streams.errors import BrokerError, NoAnswer, RecordTooLarge, TopicError
from streams.formats.bodies import BodyFolder
from streams.formats.codecs import check_codec, fitting
from streams.formats.verdicts import decode_verdict
from streams.kafka import Admin, Connection, ControlReader, ControlTopic, TopicReader, Writer
from streams.kafka.connection import TRY_SECONDS_MAX, Setting, log
from streams.ports import Outgoing
from streams.process.traces import HEADER_BYTES, Traces

__all__ = [
    "BrokerError",
    "LiveVerdicts",
    "NotDelivered",
    "PageProducer",
    "PositionStore",
    "RecordTooLarge",
    "TopicError",
    "VerdictBatch",
    "VerdictConsumer",
    "duplicate_of",
]

#: Where to begin with an empty store; a number is a time, ms since the epoch.
Start = Literal["beginning", "end"] | int
#: Failures kept with their URLs until NotDelivered is raised; all are counted.
FAILURES_MAX = 1_000
#: Bytes of unacknowledged records, beyond which `publish` waits.
BUFFER_BYTES = 64 << 20
#: Advice after verdicts were deleted before they were consumed.
LOST = "clear the stored positions to go on with the verdicts that are left"
#: Interval of checks for added partitions.
PARTITIONS_SECONDS = 30.0
#: Interval of checks for a cut-over.
LIVE_SECONDS = 1.0
_BATCH_BYTES_MAX = 16 << 20
#: Longest wait for records: Ctrl-C has no effect meanwhile.
_WAIT_SECONDS = 0.2


class NotDelivered(NeardupError):
    """Pages that Kafka did not acknowledge: publish them again. failures: (URL, reason), FAILURES_MAX at most."""

    def __init__(self, topic: str, failures: list[tuple[str, str]], total: int) -> None:
        self.failures = failures
        shown = "; ".join(f"{url}: {reason}" for url, reason in failures[:3])
        more = f"; and {total - 3:,} more" if total > 3 else ""
        super().__init__(f"{total:,} page{'s' * (total != 1)} not written to topic {topic}: {shown}{more}")


class PageProducer:
    """Publishes pages: each once, those of one URL in the order of the calls. A context manager; not thread-safe.

    Publishing is asynchronous; `flush`, or leaving the block, waits until Kafka has all pages. A later call raises
    NotDelivered for pages that could not be delivered, before it does its own work.
    """

    def __init__(
        self,
        bootstrap: str,
        topic: str = "pages",
        *,
        codec: str = "raw",
        bodies: str | Path | None = None,
        kafka: Mapping[str, Setting] | None = None,
        record_bytes_max: int | None = None,
        buffer_bytes: int = BUFFER_BYTES,
        delivery_s: float = 120.0,
        on_error: Callable[[str, str], None] | None = None,
        traces: Traces | None = None,
    ) -> None:
        """Raises TopicError without the topic, BrokerError when Kafka does not answer, BadInput for bad settings.

        Args:
            codec: the sketchers' codec.
            bodies: folder for bodies too large for a record, under one of the sketchers' `body_ref_prefixes`.
            kafka: librdkafka settings (TLS, SASL).
            record_bytes_max: by default the topic's limit; reading it needs the right to describe its settings.
            delivery_s: time after which an unacknowledged page has failed.
            on_error: called with URL and reason of each failed page, instead of NotDelivered.
            traces: makes a span of each traced page and sends its context along.
        """
        check_codec(codec)
        self.topic = topic
        #: Pages and tombstones handed to Kafka so far, and the bytes of their records.
        self.sent = 0
        self._codec = codec
        self._bodies = None if bodies is None else BodyFolder(bodies)
        self._on_error = on_error
        self._traces = traces
        self._failures: list[tuple[str, str]] = []
        self._failed = 0
        settings = {"queue.buffering.max.kbytes": max(1, buffer_bytes >> 10), **(kafka or {})}
        connection = Connection(bootstrap, settings)
        if record_bytes_max is None:
            admin = Admin(connection)
            admin.topic(topic)
            record_bytes_max = int(admin.settings(topic)["max.message.bytes"])
        self.record_bytes_max = record_bytes_max
        self._writer = Writer(
            connection,
            topic,
            message_bytes_max=max(1_000, record_bytes_max),
            delivery_s=delivery_s,
            on_failure=self._not_delivered,
        )

    @property
    def acknowledged(self) -> int:
        """Pages and tombstones that Kafka has acknowledged."""
        return self._writer.acknowledged

    def publish(
        self,
        url: str,
        body: bytes,
        *,
        content_type: str = "",
        fetched_at: float | str | datetime | None = None,
        status: int = 200,
        score: float | None = None,
        truncated: bool = False,
    ) -> None:
        """Publish one fetch. Waits while the buffer is full.

        Publish answers to GET alone, and none whose connection was lost: they would replace the page. A program that
        writes records itself and knows neither sets the headers `http-method` and `truncated` (`streams.formats.raw`).

        Args:
            content_type: the HTTP header, with its charset.
            fetched_at: ms since the epoch, or what else `neardup.fetch_times` reads: seconds as of `time.time()`, a
                datetime with a time zone, a date as text; by default the time of arrival at Kafka.
            status: of HTTP. 404 and 410 mean that the page is gone; the sketchers reject others than 2xx, and those
                that bring no page or a part of it (204, 205, 206, 207, 208, 226).
            score: the crawler's own, 0 to 1, for the choice of canonical pages (`neardup canonical`); not with the
                codec `warc`.
            truncated: the crawler cut the body at its own limit of length; the verdict says so.

        Raises RecordTooLarge, BadInput and BadPage for this page; NotDelivered, BrokerError for earlier ones.
        """
        self.send(Page(url, bytes(body), content_type, _ms(fetched_at), status, score=score, truncated=truncated))

    def gone(self, url: str, *, fetched_at: float | str | datetime | None = None) -> None:
        """Publish that the page no longer exists. Raises as `publish`."""
        self.send(Page(url, None, fetched_at=_ms(fetched_at)))

    def send(self, page: Page) -> None:
        """`publish` for a Page."""
        self.poll()
        with self._traced(self._record(page), page.url) as record:
            while not self._accepted(record):
                self._writer.poll(0.1)

    def offer(self, page: Page) -> bool:
        """Publish without waiting; return False if the buffer is full."""
        self.poll()
        with self._traced(self._record(page), page.url) as record:
            return self._accepted(record)

    def _record(self, page: Page) -> Outgoing:
        return fitting(page, self._codec, self.record_bytes_max, self._bodies, self.topic)

    @contextmanager
    def _traced(self, record: Outgoing, url: str) -> Iterator[Outgoing]:
        """Add the headers of the page's trace, if it is traced and they fit."""
        if self._traces is None or record.size + HEADER_BYTES > self.record_bytes_max:
            yield record
            return
        with self._traces.publishing(url, self.topic) as headers:
            yield record._replace(headers=(*record.headers, *headers)) if headers else record

    def _accepted(self, record: Outgoing) -> bool:
        if not self._writer.try_send(record.value, key=record.key, headers=record.headers):
            return False
        self.sent += 1
        return True

    def poll(self) -> int:
        """Handle acknowledgements without waiting; return the number of unacknowledged pages.

        Needed only if no other method is called for long. Raises NotDelivered, BrokerError.
        """
        left = self._writer.poll()
        self._raise_failures()
        return left

    def flush(self) -> None:
        """Wait until Kafka has every page. Raises NotDelivered, BrokerError."""
        self._writer.flush()
        self._raise_failures()

    def close(self) -> None:
        """Close at once. Unacknowledged pages are lost: `flush` first."""
        self._writer.close()

    def _not_delivered(self, key: bytes, reason: str) -> None:
        url = key.decode("utf-8", "replace")
        if self._on_error is not None:
            self._on_error(url, reason)
            return
        self._failed += 1
        if len(self._failures) < FAILURES_MAX:
            self._failures.append((url, reason))

    def _raise_failures(self) -> None:
        if self._failed:
            failures, total = self._failures, self._failed
            self._failures, self._failed = [], 0
            raise NotDelivered(self.topic, failures, total)

    def __enter__(self) -> "PageProducer":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.flush()
        except NeardupError as failure:
            if error is None:
                raise
            error.add_note(str(failure))  # the block's own exception matters more
        finally:
            self.close()


def _ms(when: float | str | datetime | None) -> int | None:
    return None if when is None else read_time(when).ms


class PositionStore(Protocol):
    """Stores the positions of a consumer of verdicts."""

    def load(self) -> Mapping[str, int]:
        """Return the stored `VerdictBatch.positions`, each name with its newest number; empty at first."""
        ...


@dataclass(frozen=True, slots=True)
class Stored:
    """Positions at hand; by default none."""

    positions: Mapping[str, int] = field(default_factory=dict)

    def load(self) -> Mapping[str, int]:
        return self.positions


@dataclass(frozen=True, slots=True)
class VerdictBatch:
    """Some verdicts, with the positions behind them."""

    #: JSON objects as published; those of one URL in order.
    verdicts: list[dict[str, Any]]
    #: To be stored in one transaction with the rows made from the verdicts. It has all names, not only this batch's.
    positions: dict[str, int]
    #: LiveVerdicts: generation of the verdicts.
    generation: str = ""
    #: LiveVerdicts: the generation is consumed up to the end that its topic had at the switch, so it can be shown.
    complete: bool = False


class VerdictConsumer:
    """Yields each verdict once, across restarts and crashes of the caller. A context manager; not thread-safe.

    Reads committed verdicts only, without a consumer group: Kafka stores no position. To share the work, give each
    process its own `partitions` and store. Skips null records, which an operator writes to delete a URL from a
    compacted topic.
    """

    def __init__(
        self,
        bootstrap: str,
        store: PositionStore,
        topic: str = "verdicts",
        *,
        start: Start = "beginning",
        partitions: list[int] | None = None,
        kafka: Mapping[str, Setting] | None = None,
    ) -> None:
        """start: for an empty store; a number is a time, ms since the epoch. partitions: by default all.

        Raises TopicError if the topic is missing or the positions belong to another one (it was recreated),
        PositionLost if verdicts were deleted before they were consumed, BrokerError, BadInput.
        """
        self._connection = Connection(bootstrap, kafka or {})
        self._only = None if partitions is None else frozenset(partitions)
        self._reader = self._open(topic)
        try:
            self._reader.assign(self._starts(store.load(), start))
        except BaseException:
            self._reader.close()
            raise
        self._checked = time.monotonic()

    @property
    def positions(self) -> dict[str, int]:
        """Return the positions of the last batch.

        Before the first batch: those to store at once, unless `start` is the beginning.
        """
        prefix = self._reader.topic.id.hex()
        return {f"{prefix}/{partition}": offset for partition, offset in sorted(self._reader.positions().items())}

    def batches(
        self, *, follow: bool = True, count: int = 1_000, wait_s: float | None = None
    ) -> Iterator[VerdictBatch]:
        """Yield batches of 1 to `count` verdicts.

        follow: wait for further verdicts; else end with those committed at the call. wait_s: end after this time
        without a verdict. Raises PositionLost, TopicError, BrokerError, CorruptRecord.
        """
        ends = {} if follow else self.ends()
        last = time.monotonic()
        while follow or not self.has_read(ends):
            records = self._reader.read(count, bytes_max=_BATCH_BYTES_MAX, wait_s=_WAIT_SECONDS)
            verdicts = [self._decoded(record) for record in records if record.value() is not None]
            if verdicts:
                yield VerdictBatch(verdicts, self.positions)
                last = time.monotonic()
            elif wait_s is not None and time.monotonic() - last >= wait_s:
                return
            if follow and time.monotonic() - self._checked >= PARTITIONS_SECONDS:
                self._check_partitions()

    def ends(self) -> dict[int, int]:
        """Return the offset behind the last committed verdict of each partition. Raises BrokerError."""
        return self._reader.ends()

    def has_read(self, ends: Mapping[int, int]) -> bool:
        """Return whether everything before these offsets was yielded, in the assigned partitions."""
        return all(position >= ends.get(partition, 0) for partition, position in self._reader.positions().items())

    def close(self) -> None:
        self._reader.close()

    def _decoded(self, record: Any) -> dict[str, Any]:
        return decode_verdict(record.value(), record.topic(), record.partition(), record.offset())

    def _open(self, topic: str) -> TopicReader:
        return TopicReader(self._connection, topic, committed_only=True, lost=LOST)

    def __enter__(self) -> "VerdictConsumer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _assigned(self) -> list[int]:
        existing = range(self._reader.topic.partitions)
        if self._only is None:
            return list(existing)
        if not self._only <= set(existing):
            raise BadInput(f"topic {self._reader.topic.name} has partitions 0 to {len(existing) - 1} only")
        return sorted(self._only)

    def _starts(self, stored: Mapping[str, int], start: str | int) -> dict[int, int]:
        topic, assigned = self._reader.topic, self._assigned()
        known = {}
        for name, offset in stored.items():
            identity, _, partition = name.partition("/")
            if identity != topic.id.hex():
                raise TopicError(
                    f"the stored positions are of topic id {identity[:32]}, and topic {topic.name} has {topic.id.hex()}"
                    ": it was made anew, or is another one; clear the stored positions to read it from its start (and "
                    "compare page ids only among verdicts of one `log`)"
                )
            known[int(partition)] = int(offset)
        if known:
            # An added partition is consumed from its start.
            begins = self._reader.first_offsets() if set(assigned) - known.keys() else {}
            return {each: known[each] if each in known else begins[each] for each in assigned}
        if isinstance(start, int):
            found = self._reader.at_time(start)
        else:
            found = self._reader.first_offsets() if start == "beginning" else self._reader.ends()
        return {each: found[each] for each in assigned}

    def _check_partitions(self) -> None:
        self._checked = time.monotonic()
        if self._only is not None:
            return
        try:
            if self._reader.now() == self._reader.topic:
                return
        except NoAnswer as error:
            log.warning("added partitions are unknown: %s", error)
            return
        fresh, stored = self._open(self._reader.topic.name), self.positions
        self._reader.close()
        self._reader = fresh
        fresh.assign(self._starts(stored, "beginning"))


class LiveVerdicts:
    """Yields the verdicts of the live generation. A context manager; not thread-safe.

    It switches to another generation within LIVE_SECONDS after `neardup generation cutover`, between two batches. A
    generation's verdicts are about all pages: it is consumed from its start when it becomes live for the first time,
    and from its stored positions when it becomes live again. Keep a row for each (generation, URL), and show the rows
    of the generation whose batch was `complete` last. The first complete batch after a start or a cut-over has no
    verdicts: it comes even if nothing is left to consume, as after a cut-over back. VerdictConsumer can consume a
    generation into the same rows and positions before it is live.
    """

    def __init__(
        self,
        bootstrap: str,
        store: PositionStore,
        topic: str = "verdicts",
        *,
        group: str = "neardup",
        prefix: str = "",
        start: Start = "beginning",
        kafka: Mapping[str, Setting] | None = None,
    ) -> None:
        """Raises as VerdictConsumer, and CorruptRecord for an unreadable control topic.

        Positions of topics that belong to no generation, such as a recreated one, are kept but not used.

        Args:
            topic: of the unnamed generation, with the prefix.
            group, prefix: the roles' `group` and `topic_prefix`.
            start: for an empty store.
        """
        self._bootstrap, self._topic, self._kafka = bootstrap, topic, kafka
        connection = Connection(bootstrap, kafka or {})
        self._admin = Admin(connection)
        self._control = ControlTopic(connection, f"{prefix}{group}.generations")
        self._control_reader: ControlReader | None = None
        self._positions = dict(store.load())
        self._canonical = ""
        #: The live generation at the last check; "" is the unnamed one.
        self.generation = self._live()
        self._complete = False
        self._checked = time.monotonic()
        self._consumer = self._open(self.generation, "beginning" if self._positions else start)
        self._ends = self._consumer.ends()

    def batches(
        self, *, follow: bool = True, count: int = 1_000, wait_s: float | None = None
    ) -> Iterator[VerdictBatch]:
        """Yield batches of up to `count` verdicts of one generation. Arguments and errors as of VerdictConsumer."""
        last = time.monotonic()
        while True:
            if self._newly_complete():
                self._complete = True
                yield self._batch([], self.positions)
            # While following, check for a cut-over; otherwise consume to the end, however slow Kafka is.
            quiet_s = wait_s if not follow else LIVE_SECONDS if wait_s is None else min(wait_s, LIVE_SECONDS)
            over = False
            for batch in self._consumer.batches(follow=follow, count=count, wait_s=quiet_s):
                yield self._batch(batch.verdicts, batch.positions)
                last = time.monotonic()
                over = self._cut_over(LIVE_SECONDS)
                if over or self._newly_complete():
                    break
            if over or self._cut_over(0.0) or self._newly_complete():
                continue
            if not follow or (wait_s is not None and time.monotonic() - last >= wait_s):
                return

    @property
    def positions(self) -> dict[str, int]:
        """Return the positions of the last batch.

        Before the first batch: those to store at once, unless `start` is the beginning.
        """
        return self._positions | self._consumer.positions

    def _newly_complete(self) -> bool:
        return not self._complete and self._consumer.has_read(self._ends)

    def _batch(self, verdicts: list[dict[str, Any]], positions: Mapping[str, int]) -> VerdictBatch:
        self._positions |= positions
        return VerdictBatch(verdicts, dict(self._positions), self.generation, self._complete)

    @property
    def canonical(self) -> tuple[str, ...]:
        """Return the policy of canonical pages at the last check, for `neardup.canonical.choose`.

        Empty: use the verdicts' own `canonical`. Raises BadInput for an unknown criterion.
        """
        return policy_of(self._canonical)

    def close(self) -> None:
        self._consumer.close()
        if self._control_reader is not None:
            self._control_reader.close()

    def _live(self, within_s: float | None = None) -> str:
        if self._control_reader is None:
            if not self._control.exists(within_s):
                return ""
            self._control_reader = self._control.follow()
        generations = self._control_reader.look(within_s)
        self._canonical = generations.canonical
        return generations.live

    def _cut_over(self, after_s: float) -> bool:
        """Check for a cut-over if the last check is `after_s` ago; switch to the live generation."""
        if time.monotonic() - self._checked < after_s:
            return False
        try:
            live = self._live(TRY_SECONDS_MAX)  # an unanswered request is repeated
        except NoAnswer as error:
            log.warning("the live generation is unknown: %s", error)
            live = self.generation
        self._checked = time.monotonic()
        if live == self.generation:
            return False
        before, self._consumer = self._consumer, self._open(live, "beginning")
        before.close()
        self._ends = self._consumer.ends()
        self.generation, self._complete = live, False
        return True

    def _open(self, name: str, start: Start) -> VerdictConsumer:
        topic = f"{self._topic}.{name}" if name else self._topic
        prefix = self._admin.topic(topic).id.hex() + "/"
        held = {name: offset for name, offset in self._positions.items() if name.startswith(prefix)}
        return VerdictConsumer(self._bootstrap, Stored(held), topic, start=start, kafka=self._kafka)

    def __enter__(self) -> "LiveVerdicts":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
