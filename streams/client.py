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
from dataclasses import dataclass, field, replace
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
from streams.formats.verdict_records import decode_verdict
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
#: Longest wait for Kafka's first answer to a producer, whose caller waits for it.
START_SECONDS_MAX = 10.0
#: Interval of checks for added partitions.
PARTITIONS_SECONDS = 30.0
#: Interval of checks for a cut-over.
LIVE_SECONDS = 1.0
_BATCH_BYTES_MAX = 16 << 20
#: Longest wait for records: Ctrl-C has no effect meanwhile.
_WAIT_SECONDS = 0.2


class NotDelivered(NeardupError):
    """Pages that Kafka did not acknowledge: publish them again.

    Args:
        topic: topic of the pages.
        failures: URL and reason of the failed pages, FAILURES_MAX at most.
        total: number of all failed pages.
    """

    def __init__(self, topic: str, failures: list[tuple[str, str]], total: int) -> None:
        self.failures = failures
        shown = "; ".join(f"{url}: {reason}" for url, reason in failures[:3])
        more = f"; and {total - 3:,} more" if total > 3 else ""
        super().__init__(f"{total:,} page{'s' * (total != 1)} not written to topic {topic}: {shown}{more}")


class PageProducer:
    """Publishes each page once, and the pages of one URL in the order of the calls. A context manager; not thread-safe.

    Publishing is asynchronous. `flush`, or leaving the block, waits until Kafka has all pages. If a page could not be
    delivered, the next call raises NotDelivered before it does its own work.
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
        """Connect to Kafka and find the topic.

        Args:
            bootstrap: addresses of brokers, `HOST:PORT,...`.
            topic: topic of the pages.
            codec: codec of the records, which must be that of the sketchers: `raw`, `json` or `warc`.
            bodies: folder or fsspec URL for bodies too large for a record, below one of the `body_ref_prefixes` of the
                sketchers.
            kafka: settings of librdkafka (TLS, SASL).
            record_bytes_max: greatest size of a record in bytes. By default the limit of the topic, whose reading needs
                the right to describe the settings of the topic.
            buffer_bytes: bytes of unacknowledged records beyond which `publish` waits.
            delivery_s: seconds after which an unacknowledged page has failed.
            on_error: function that receives URL and reason of each failed page. Without it, calls raise NotDelivered.
            traces: makes a span for each traced page, and sends the context of the span with the record.

        Raises:
            TopicError: if the topic is missing.
            BrokerError: if Kafka does not answer within START_SECONDS_MAX.
            BadInput: if a setting is invalid.
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
            Admin(replace(connection, request_s=START_SECONDS_MAX)).cluster_id()
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
        """Publish one fetch. Wait while the buffer is full.

        Publish answers to GET alone. Publish no answer whose connection was lost: it would replace the page. A program
        that writes records itself can mark such answers by the headers `http-method` and `truncated`
        (`streams.formats.raw`).

        Args:
            url: URL that served the page.
            body: bytes as fetched.
            content_type: value of the HTTP header, with its charset.
            fetched_at: fetch time in milliseconds since 1970, or another form that `neardup.fetch_times` reads: seconds
                as of `time.time()`, a datetime with a time zone, a date as text. By default the time of arrival at
                Kafka.
            status: HTTP status. 404 and 410 mean that the page is gone. The sketchers reject a status outside 2xx, and
                a status without a whole page (204, 205, 206, 207, 208, 226).
            score: the crawler's score of the page, 0 to 1, for the choice of canonical pages (`neardup canonical`). The
                codec `warc` has no score.
            truncated: whether the crawler cut the body at its own limit of length. The verdict repeats it.

        Raises:
            RecordTooLarge, BadInput, BadPage: if this page cannot be published.
            NotDelivered, BrokerError: if an earlier page was not delivered.
        """
        self.send(Page(url, bytes(body), content_type, _ms(fetched_at), status, score=score, truncated=truncated))

    def gone(self, url: str, *, fetched_at: float | str | datetime | None = None) -> None:
        """Publish that the page no longer exists.

        Args:
            url: URL of the page.
            fetched_at: time of the answer, in a form of `publish`.

        Raises:
            NeardupError: the errors of `publish`.
        """
        self.send(Page(url, None, fetched_at=_ms(fetched_at)))

    def send(self, page: Page) -> None:
        """Publish a Page as `publish` does."""
        self.poll()
        with self._traced(self._record(page), page.url) as record:
            while not self._accepted(record):
                self._writer.poll(0.1)

    def offer(self, page: Page) -> bool:
        """Publish a Page without waiting. Return False if the buffer is full: the page was not published."""
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
        """Handle acknowledgements without waiting. Return the number of unacknowledged pages.

        A caller needs it only if it calls no other method for long.

        Raises:
            NotDelivered: if a page was not delivered.
            BrokerError: if Kafka reports an error that ends the producer.
        """
        left = self._writer.poll()
        self._raise_failures()
        return left

    def flush(self) -> None:
        """Wait until Kafka has every page.

        Raises:
            NotDelivered: if a page was not delivered.
            BrokerError: if Kafka reports an error that ends the producer.
        """
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
        """Return the stored `VerdictBatch.positions`: each name with its newest number. Empty at first."""
        ...


@dataclass(frozen=True, slots=True)
class Stored:
    """A store of positions that the caller holds in memory; by default no positions."""

    positions: Mapping[str, int] = field(default_factory=dict)

    def load(self) -> Mapping[str, int]:
        return self.positions


@dataclass(frozen=True, slots=True)
class VerdictBatch:
    """Some verdicts, with the positions behind the last of them."""

    #: The verdicts as published JSON objects. Verdicts of one URL are in order.
    verdicts: list[dict[str, Any]]
    #: The positions to store in one transaction with the rows made from the verdicts. Contains the names of all
    #: partitions, also of partitions without a verdict in this batch.
    positions: dict[str, int]
    #: Generation of the verdicts, if LiveVerdicts yielded the batch.
    generation: str = ""
    #: Whether LiveVerdicts has consumed the generation up to the end that its topic had at the switch, so that an index
    #: can show the generation.
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
        """Connect to Kafka and begin at the stored positions.

        Args:
            bootstrap: addresses of brokers, `HOST:PORT,...`.
            store: store of the consumer's positions.
            topic: topic of the verdicts.
            start: where to begin if the store is empty. A number is a time in milliseconds since 1970.
            partitions: numbers of the partitions to consume. By default all.
            kafka: settings of librdkafka (TLS, SASL).

        Raises:
            TopicError: if the topic is missing, or if the positions belong to another topic because it was recreated.
            PositionLost: if Kafka deleted verdicts before they were consumed.
            BrokerError: if Kafka does not answer.
            BadInput: if a setting or a partition is invalid.
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

        Args:
            follow: whether to wait for further verdicts. Otherwise the last batch ends with the verdicts that are
                committed at the call.
            count: greatest number of verdicts of a batch.
            wait_s: seconds without a verdict after which the call ends. None: never.

        Raises:
            PositionLost: if Kafka deleted verdicts before they were consumed.
            TopicError: if the topic was deleted or recreated.
            BrokerError: if Kafka reports an error.
            CorruptRecord: if a record is no verdict.
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

    After `neardup generation cutover`, LiveVerdicts switches to the other generation within LIVE_SECONDS, between two
    batches. The verdicts of a generation are about all pages. So LiveVerdicts consumes a generation from its start when
    the generation becomes live for the first time, and from the stored positions when the generation becomes live
    again.

    Keep a row for each (generation, URL), and show the rows of the generation whose batch was `complete` last. The
    first complete batch after a start or a cut-over has no verdicts. LiveVerdicts yields it even if no verdict is left
    to consume, for example after a cut-over back. VerdictConsumer can consume a generation into the same rows and
    positions before the generation is live.
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
        """Connect to Kafka, find the live generation, and begin at its stored positions.

        Positions of topics that belong to no generation, for example of a recreated topic, are kept and not used.

        Args:
            bootstrap: addresses of brokers, `HOST:PORT,...`.
            store: store of the consumer's positions.
            topic: topic of the verdicts of the unnamed generation, with its prefix.
            group: setting `group` of the roles.
            prefix: setting `topic_prefix` of the roles.
            start: where to begin if the store is empty. A number is a time in milliseconds since 1970.
            kafka: settings of librdkafka (TLS, SASL).

        Raises:
            NeardupError: the errors of VerdictConsumer.
            CorruptRecord: if the control topic cannot be read.
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
        """Yield batches of up to `count` verdicts of one generation.

        Arguments and errors are those of `VerdictConsumer.batches`.
        """
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
