"""The Faust application: consumes `verdicts` and keeps the rows of the views in tables on RocksDB.

Faust delivers at least once: after `kill -9` some seconds of verdicts come again, and some of the rows that one verdict
changes have it already. A row applies only newer verdicts (`streams.views.view_rows`), so repeats change nothing. Each
partition of the topic has its own rows and its own part of every table.

The tables belong to one topic id: a topic that is deleted and recreated gets new tables, filled from its start.
"""

import asyncio
import contextlib
import shutil
import socket
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import faust
import orjson
from aiokafka.errors import IllegalStateError
from faust.types import TP

from neardup.decider import Decider
from neardup.urls import id_of
from streams.config.settings import Settings
from streams.errors import BrokerError, TopicError, bad_input
from streams.evaluation.label import LabelFile
from streams.kafka import Admin, KafkaTopic
from streams.kafka.admin import BROKER_TIME
from streams.process import logs
from streams.process.shutdown import completed, stop_event
from streams.roles.runtime import connect
from streams.views import entries
from streams.views.audited_pairs import Audits, NoAudits
from streams.views.changelogs import Changelogs
from streams.views.driver import SCHEME, CommittedConsumer, PartitionProgress, credentials
from streams.views.entries import TABLE, Entry, Row
from streams.views.health import of_stream
from streams.views.lists import Facts, closeness_to
from streams.views.monitoring import Monitor, Rate, monitored
from streams.views.peers import Peers, own_address
from streams.views.row_batch import RowBatch, key_of
from streams.views.search import SECONDS_MAX, joined, search_rows
from streams.views.stream_health import StreamHealth
from streams.views.stream_topics import ControlView, StreamOrigin, TopicAudits
from streams.views.view_rows import EVERYTHING, ROWS_VERSION, TABLES, apply
from streams.views.web import serve

_log = logs.get("views")

#: After this time without a heartbeat the partitions of a killed worker are reassigned.
SESSION_SECONDS = 10.0
#: Longest time for Faust to join and to restore its changelogs.
START_SECONDS_MAX = 300.0
STOP_SECONDS_MAX = 20.0
#: Limit of Kafka's requests for the lag: a person waits for the page.
LAG_SECONDS_MAX = 5.0
#: Verdicts applied together, and the longest wait for a full batch: many verdicts change the same rows.
BATCH_VERDICTS, BATCH_SECONDS = 1_000, 0.5


class _PartitionRows(RowBatch):
    """The rows of one partition during a batch. Faust's table interface serves only the current event's partition."""

    def __init__(self, tables: Mapping[str, Any], partition: int) -> None:
        self._stores = {name: table.data._db_for_partition(partition) for name, table in tables.items()}
        self._partition = partition
        super().__init__(lambda table, key: self._stores[table].get(key))

    async def keep(self, changelogs: Changelogs) -> None:
        """Write changed rows to the disk and send them to the changelogs."""
        for name, rows in self.changed().items():
            store = self._stores[name]
            for key, value in rows.items():
                store.put(key, value)
            await changelogs.send(name, self._partition, rows.items())


def _rows_from(store: Any, start: bytes, back: bool) -> Iterator[tuple[bytes, bytes]]:
    """Yield the rows of a store from a key on."""
    rows: Iterator[tuple[bytes, bytes]] = store.items(backwards=back, from_key=start)
    return rows


def _bytes_of(store: Any) -> int:
    """Bytes on disk and in memtables."""
    sizes = ("rocksdb.total-sst-files-size", "rocksdb.cur-size-all-mem-tables")
    return sum(store.property_int_value(each) or 0 for each in sizes)


class StreamSource:
    """The tables as the data of the pages. where: the topic. partitions: its partitions at the start."""

    def __init__(self, settings: Settings, topic: KafkaTopic, address: str) -> None:
        """address: this worker's, for the others. Raises BadInput where the folder of the tables cannot be made."""
        self.where, self.partitions = f"topic {topic.name}", topic.partitions
        self._topic = topic
        folder = Path(settings.views_state).absolute() / name_of(settings, topic)
        with bad_input(f"cannot keep the views' tables in {folder}"):
            folder.mkdir(parents=True, exist_ok=True)
        connection = connect(settings, "views")
        self._admin = Admin(type(connection)(connection.bootstrap, connection.settings, LAG_SECONDS_MAX))
        brokers = [f"{SCHEME}://{address.strip()}" for address in settings.bootstrap.split(",")]
        self.app = faust.App(
            name_of(settings, topic),
            broker=brokers,
            broker_credentials=credentials(settings.kafka("views")),
            store="rocksdb://",
            datadir=str(folder),
            topic_partitions=topic.partitions,
            topic_replication_factor=topic.replicas,
            topic_disable_leader=True,
            broker_session_timeout=SESSION_SECONDS,
            broker_heartbeat_interval=SESSION_SECONDS / 4,
            # A row of the changelogs has some kB: a batch of 16 kB would carry half a dozen.
            producer_max_batch_size=512 << 10,
            producer_linger=0.05,
            web_enabled=False,
            canonical_url=address,
        )
        self._tables: dict[str, Any] = {
            name: self.app.Table(
                name,
                partitions=topic.partitions,
                key_type=bytes,
                value_type=bytes,
                options={"driver": "rocksdict"},
            )
            for name in TABLES
        }
        self._changes = Changelogs(self.app, self._tables, self._fail)
        self._closeness = closeness_to(Decider(scheme="", **settings.decider_values))
        self._rate, self._others_rate, self._applied = Rate(), 0.0, 0
        self._progress = PartitionProgress()
        self._peers = Peers(address, settings.views_token)
        self._control = ControlView(settings)
        self._health = StreamHealth(settings, self._control, address, self._peers)
        self.origin = StreamOrigin(settings)
        self.audits: Audits = TopicAudits(settings) if settings.audit_topic else NoAudits()
        self._failed: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
        verdicts = self.app.topic(
            topic.name, key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw"
        )
        self.app.agent(verdicts, name="verdicts")(self._follow)

    async def _follow(self, stream: Any) -> None:
        async for events in stream.take_events(BATCH_VERDICTS, BATCH_SECONDS):
            try:
                await self._apply(events)
            except Exception as error:  # noqa: BLE001  # Faust would log it and continue with the next verdicts
                self._fail(error)
                await asyncio.Event().wait()

    async def _apply(self, events: Sequence[Any]) -> None:
        """Apply verdicts of any partitions, each partition's in order. Faust may commit them afterwards."""
        parts: dict[TP, _PartitionRows] = {}
        first: dict[TP, int] = {}
        last: dict[TP, int] = {}
        applied = 0
        mine, generation = self.app.consumer.assignment(), self.app.consumer_generation_id
        for event in events:
            message = event.message
            if not self._progress.accepts(message, mine, generation):
                continue
            place = TP(message.topic, message.partition)
            applied += 1
            first.setdefault(place, message.offset)
            last[place] = message.offset
            rows = parts.setdefault(place, _PartitionRows(self._tables, message.partition))
            if event.value is None:
                continue  # an operator's tombstone in a compacted topic
            try:
                apply(orjson.loads(event.value or b""), rows, round(message.timestamp * 1000), self._closeness)
            except (KeyError, TypeError, ValueError) as error:
                _log.warning(
                    "skipped a record that is not a verdict",
                    topic=message.topic,
                    partition=message.partition,
                    offset=message.offset,
                    error=repr(error),
                )
        for place, rows in parts.items():
            if place in self.app.consumer.assignment() and generation == self.app.consumer_generation_id:
                await rows.keep(self._changes)
                self._progress.applied(place, generation, last[place] + 1)
            else:
                self._progress.skipped(place, generation, first[place])
        self._rate.count(applied)
        self._applied += applied

    def _fail(self, error: BaseException) -> None:
        if not self._failed.done():
            self._failed.set_result(error)

    async def watch(self, monitor: Monitor) -> None:
        """Watch the lag; ends only by cancellation. Stops the views if they do not progress."""
        try:
            progress = lambda: (self._applied, self._changes.restored)  # noqa: E731
            await monitor.run(self._own_lag_of_all, progress, lambda: bool(self.app.rebalancing))
        except Exception as error:  # noqa: BLE001  # this task's result is not awaited
            self._fail(error)

    async def _rows_kept(self) -> Mapping[TP, int] | None:
        """See `streams.views.driver.CommittedConsumer`."""
        ends = self._progress.ends(self.app.consumer_generation_id)
        if not self._failed.done():
            await self._changes.arrived()
        return None if self._failed.done() else ends

    def policy(self) -> Sequence[str]:
        return self._control.policy()

    def rows(self, table: str, key: str) -> Sequence[Row]:
        rows = list(self.own_rows(table, key))
        for url, parts in self._others().items():
            rows += self._peers.rows(url, parts, table, key)
        return rows

    def own_rows(self, table: str, key: str) -> Sequence[Row]:
        name = key_of(key)
        return [orjson.loads(value) for store in self._own_stores(table) if (value := store.get(name)) is not None]

    def entries(self, of: str, start: str, limit: int, back: bool) -> Sequence[Entry]:
        others = [self._peers.entries(url, parts, of, start, limit, back) for url, parts in self._others().items()]
        return entries.joined([self.own_entries(of, start, limit, back), *others], limit, back)

    def own_entries(self, of: str, start: str, limit: int, back: bool) -> Sequence[Entry]:
        held = [entries.read(partial(_rows_from, store), of, start, limit, back) for store in self._own_stores(TABLE)]
        return entries.joined(held, limit, back)

    def _own_stores(self, table: str) -> list[Any]:
        """Return the stores of this worker's partitions. Faust's own lookup serves one. Standby copies are left out."""
        mine = self._parts(self.app.assignor.assigned_actives())
        return [store for part, store in list(self._tables[table].data._dbs.items()) if part in mine]

    def documents(self, given: str) -> Mapping[str, str]:
        """Search for the id: the stream does not know the files of its documents."""
        if "://" in given:
            return {}
        urls = [str(item["url"]) for item in self.search(given)["items"]]
        return {url: f"{given} ({url})" for url in urls if id_of(url) == given}

    def search(self, text: str, after: str = "") -> Facts:
        others = [self._peers.search(url, parts, text, after) for url, parts in self._others().items()]
        return joined([self.own_search(text, after), *others])

    def own_search(self, text: str, after: str = "") -> Facts:
        seconds = SECONDS_MAX / max(1, len(stores := self._own_stores("urls")))
        first = key_of(after)
        # Faust keeps its offset beside the rows, which are JSON objects.
        rows = [
            (pair for pair in _rows_from(store, first, False) if pair[1].startswith(b"{") and pair[0] != first)
            for store in stores
        ]
        return joined([search_rows(each, text, seconds) for each in rows])

    def _parts(self, places: Collection[TP]) -> set[int]:
        return {place.partition for place in places if place.topic == self._topic.name}

    def _others(self) -> dict[str, Collection[int]]:
        (name, *_) = changelogs(self.app.conf.id)
        held = {url: topics.get(name, ()) for url, topics in self.app.assignor.tables_metadata().items()}
        return self._peers.others(held)

    async def lag(self) -> dict[int, int] | None:
        """Return the lag of all partitions. Raises BrokerError."""
        out, rate = await self.own_lag(), 0.0
        for url, parts in self._others().items():
            other = await asyncio.to_thread(self._peers.own, url, parts)
            out |= {int(partition): int(count) for partition, count in other["lag"].items()}
            rate += float(other["rate"])
        self._others_rate = rate
        return out

    async def own_lag(self) -> dict[int, int]:
        """Return the lag of this worker's partitions. Raises BrokerError."""
        ends = await asyncio.to_thread(self._admin.offsets, self._topic, "latest", committed_only=True)
        consumer = self.app.consumer
        out = {}
        for place in sorted(consumer.assignment()):
            if place.topic != self._topic.name:
                continue
            try:
                # It is behind the markers of transactions, and behind verdicts consumed but not yet applied.
                position = await consumer.position(TP(place.topic, place.partition)) or 0
            except IllegalStateError:
                continue  # being reassigned
            # Acknowledged messages stay in `unacked` if their partition was revoked and assigned again.
            unacked = [message for message in consumer.unacked if not message.acked]
            waiting = [message.offset for message in unacked if message.tp == place]
            if (left := self._progress.waiting(place, self.app.consumer_generation_id)) is not None:
                waiting.append(left)
            out[place.partition] = max(0, ends[place.partition] - min([position, *waiting]))
        return out

    async def _own_lag_of_all(self) -> Mapping[int, int]:
        """Return `own_lag`; stop the views if the topic was deleted or recreated, or has more partitions."""
        known = self._topic
        now = (await asyncio.to_thread(self._admin.topics, [known.name])).get(known.name)
        if now is None or now.id != known.id:
            advice = "once it is there, start the views again: they consume the new one, into new tables"
            self._fail(TopicError.anew(known.name, known.id, now.id if now else None, advice))
        elif now.partitions > self.partitions:
            self._fail(
                TopicError(
                    f"topic {now.name} has {now.partitions} partitions now, and these views consume {self.partitions}; "
                    "restart them to consume all"
                )
            )
        return await self.own_lag()

    async def own(self) -> Mapping[str, Any]:
        lag = {str(partition): count for partition, count in (await self.own_lag()).items()}
        # Standby copies are included.
        tables = {name: sum(map(_bytes_of, list(table.data._dbs.values()))) for name, table in self._tables.items()}
        return {"lag": lag, "rate": self._rate.now(), "tables": tables}

    async def health(self) -> Facts:
        newest = max((row["at"] for row in self.own_rows("counts", EVERYTHING)), default=None)
        kafka, problem = await self._health.kafka()
        workers = await self._health.workers(self.own, self._others())
        return of_stream(self.where, kafka, workers, self.partitions, await self._health.roles(), newest, problem)

    def rate(self) -> float | None:
        return self._rate.now() + self._others_rate

    async def start(self) -> None:
        """Start and restore the tables from disk and changelogs. Raises BrokerError."""
        self.app.finalize()
        cast(CommittedConsumer, self.app.consumer).rows_kept = self._rows_kept
        await self.app.start()
        try:
            async with asyncio.timeout(START_SECONDS_MAX):
                await self.app.tables.wait_until_recovery_completed()
        except TimeoutError:
            raise BrokerError(f"{self.where}: the views were not ready within {START_SECONDS_MAX:.0f} s") from None

    async def stopped(self) -> None:
        """Wait until Faust or the application fails. Raises BrokerError with the reason."""
        given_up = asyncio.ensure_future(self.app.wait_until_stopped())
        try:
            await asyncio.wait((given_up, self._failed), return_when=asyncio.FIRST_COMPLETED)
        finally:
            given_up.cancel()
        reason = self._failed.result() if self._failed.done() else self.app.crash_reason
        raise BrokerError(f"{self.where}: the views stopped: {reason!r}; restarting is safe")

    async def stop(self) -> None:
        """Stop Faust within STOP_SECONDS_MAX; uncommitted verdicts come again at the next start."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP_SECONDS_MAX):
                await self.app.stop()
        self.origin.close()
        self._control.close()
        if isinstance(self.audits, TopicAudits):
            self.audits.close()


def name_of(settings: Settings, topic: KafkaTopic) -> str:
    """Return the name of the consumer group and of the changelogs: one for each topic id and version of rows."""
    return f"{settings.group_of('views')}.{topic.id.hex()[:12]}.{ROWS_VERSION}"


def verdicts_topic(settings: Settings) -> KafkaTopic:
    """Raises TopicError if it is missing, BadInput for a Kafka setting that Faust's driver lacks."""
    credentials(settings.kafka("views"))
    return Admin(connect(settings, "views")).topic(settings.topics.verdicts)


def changelogs(name: str) -> list[str]:
    """Return Faust's names of the changelogs."""
    return [f"{name}-{table}-changelog" for table in TABLES]


def make_changelogs(settings: Settings, topic: KafkaTopic) -> None:
    """Create the changelogs: Faust may not see for minutes the topics that it creates itself, and consumes nothing.

    They need as many partitions as the topic of verdicts, also after some were added there.
    """
    admin, required = Admin(connect(settings, "views")), dict([("cleanup.policy", "compact"), BROKER_TIME])
    for each in changelogs(name_of(settings, topic)):
        if not admin.create(each, topic.partitions, topic.replicas, required):
            admin.grow(each, topic.partitions)


def forget(settings: Settings, topic: KafkaTopic) -> None:
    """Delete the tables, on disk and in Kafka: the next start consumes the topic from its start.

    Raises BrokerError while other views of the same group run.
    """
    name = name_of(settings, topic)
    Admin(connect(settings, "views")).forget(name, changelogs(name))
    shutil.rmtree(Path(settings.views_state) / name, ignore_errors=True)


async def run(
    settings: Settings,
    sock: socket.socket,
    *,
    rebuild: bool = False,
    names: Collection[str] = (),
    address: str | None = None,
    labels: LabelFile | None = None,
    ready: Callable[[str], None] = lambda url: None,
) -> None:
    """Consume the topic and serve the pages until a signal.

    rebuild: empty the tables first. address: URL for other workers. Raises TopicError, BrokerError, BadInput.
    """
    address = own_address(sock, address)
    names = [*names, urlsplit(address).netloc]
    topic = await asyncio.to_thread(verdicts_topic, settings)
    if rebuild:
        await asyncio.to_thread(forget, settings, topic)
    await asyncio.to_thread(make_changelogs, settings, topic)
    source = StreamSource(settings, topic, address)
    stop = stop_event()
    with monitored(settings) as monitor:
        watching = asyncio.ensure_future(source.watch(monitor))
        try:
            if not await completed(source.start(), stop):
                return
            monitor.ready()
            decider, until = Decider(scheme="", **settings.decider_values), source.stopped()
            token = settings.views_token
            await serve(
                source, decider, sock, names=names, token=token, labels=labels, ready=ready, until=until, stop=stop
            )
        finally:
            watching.cancel()
            await source.stop()
