"""Reads topics for the pages, on demand: the control topic, the newest audited pairs, pages and their sketches."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Generic, TypeVar

from neardup.canonical import policy_of
from neardup.errors import BadInput, NeardupError
from neardup.evaluation.audits import AuditPair
from neardup.limits import PLACE_BITS
from neardup.page import Page
from neardup.verdict import Coordinates
from streams.config.settings import Settings
from streams.errors import BrokerError
from streams.formats.bodies import Bodies
from streams.formats.codecs import Codec
from streams.kafka import Connection, ControlReader, ControlTopic, Generations, TopicReader, Writer
from streams.ports import Record
from streams.roles.runtime import connect
from streams.views.audited_pairs import PAIRS_KEPT, AuditedPairs
from streams.views.source import record_at

#: Limits of each request to Kafka and of reading a record: a person waits for the page.
ANSWER_SECONDS_MAX, READ_SECONDS_MAX = 5.0, 10.0
#: Records before each partition's end that the first read of the audit topic takes. Some are counts, one for each
#: transaction.
AUDIT_RECORDS_READ = 4 * PAIRS_KEPT
_AUDIT_READ_SECONDS = 0.2
#: Bytes of a record beside value and headers: key and protocol.
_ROOM_BYTES = 100_000

_Reader = TypeVar("_Reader", ControlReader, TopicReader)


def short_connection(settings: Settings) -> Connection:
    """Return a connection whose requests end after ANSWER_SECONDS_MAX."""
    return replace(connect(settings, "views"), request_s=ANSWER_SECONDS_MAX)


class _OnDemand(Generic[_Reader]):
    """A reader for one thread at a time. It is opened when needed, and again after an error."""

    def __init__(self) -> None:
        self._reader: _Reader | None = None
        self._lock = threading.Lock()

    @contextmanager
    def _reading(self, opened: Callable[[], _Reader]) -> Iterator[_Reader]:
        with self._lock:
            try:
                self._reader = self._reader or opened()
                yield self._reader
            except NeardupError:
                self._close()  # the topic may have been recreated
                raise

    def close(self) -> None:
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None


class ControlView(_OnDemand[ControlReader]):
    """The present content of the control topic: generations, and the policy of canonical pages."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self._topic = ControlTopic(short_connection(settings), settings.generations_topic)

    def now(self) -> Generations:
        """Raises BrokerError, CorruptRecord, TopicError."""
        if self._reader is None and not self._topic.exists():
            return Generations()
        with self._reading(self._topic.follow) as reader:
            return reader.look()

    def policy(self) -> Sequence[str]:
        """Return the policy of canonical pages. Raises as `now`, and BadInput for an unknown criterion."""
        return policy_of(self.now().canonical)


class TopicAudits(_OnDemand[TopicReader]):
    """Audited pairs of the topic. Only committed lines count: the matcher writes them in its transactions."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self._settings = settings
        self._held = AuditedPairs()

    def pairs(self) -> Sequence[AuditPair]:
        """Raises TopicError without the topic, BrokerError, BadInput."""
        with self._reading(self._opened) as reader:
            reader.check()  # offsets of a recreated topic mean other records
            ends = reader.ends()
            while any(position < ends[partition] for partition, position in reader.positions().items()):
                for record in reader.read(1_000, wait_s=_AUDIT_READ_SECONDS):
                    self._held.take(record.value() or b"")
            return self._held.pairs()

    def _opened(self) -> TopicReader:
        self._held = AuditedPairs()
        reader = TopicReader(connect(self._settings, "views"), self._settings.topics.audit, committed_only=True)
        begins, ends = reader.first_offsets(), reader.ends()
        reader.assign({partition: max(begins[partition], end - AUDIT_RECORDS_READ) for partition, end in ends.items()})
        return reader


class StreamOrigin:
    """The topics of sketches and of pages. Readers are opened when needed."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._readers: dict[str, TopicReader] = {}
        bodies = Bodies(settings.body_ref_prefixes, settings.body_bytes_max)
        self._codec = Codec(settings.codec, bodies, settings.body_bytes_max, settings.topics.pages)

    def record(self, page_id: int, log: str | None) -> bytes:
        # With uncommitted records, as the matcher reads the log: its writers use no transactions.
        found = self._read(self._settings.topics.sketches, log, 0, page_id >> PLACE_BITS, committed_only=False)
        return record_at(page_id, found.value())

    def page(self, coordinates: Coordinates) -> Page:
        return self._codec.page(self._page_record(coordinates))

    def _page_record(self, coordinates: Coordinates) -> Record:
        pages = self._settings.topics.pages
        return self._read(pages, coordinates.source, coordinates.partition, coordinates.offset, committed_only=True)

    sends_again = True

    def send_again(self, coordinates: Coordinates) -> None:
        """Produce the record again to its partition; it gets a new verdict."""
        record = self._page_record(coordinates)
        value, headers = record.value(), [(name, data or b"") for name, data in record.headers() or ()]
        room = len(value or b"") + sum(len(name) + len(data) for name, data in headers) + _ROOM_BYTES
        connection = connect(self._settings, "views")
        pages, patience = self._settings.topics.pages, READ_SECONDS_MAX
        with closing(Writer(connection, pages, message_bytes_max=room, delivery_s=patience)) as writer:
            writer.send(value, key=record.key(), headers=headers, partition=coordinates.partition)
            writer.flush()

    def _read(self, topic: str, source: str | None, partition: int, offset: int, *, committed_only: bool) -> Record:
        """Return the record at this position. source: topic id that it belongs to."""
        reader = self._readers.get(topic)
        if reader is None:
            reader = TopicReader(connect(self._settings, "views"), topic, committed_only=committed_only)
            self._readers[topic] = reader
        where = f"topic {topic}, partition {partition}, offset {offset}"
        if reader.topic.id.hex() != source:
            # The topic may have been recreated: the next call opens it again.
            self._readers.pop(topic).close()
            raise BadInput(f"{where}: it belongs to another topic (id {source}) than the present one of this name")
        if not 0 <= partition < reader.topic.partitions:
            raise BadInput(f"{where}: no such partition")
        reader.assign({partition: offset})
        found = reader.read(1, wait_s=READ_SECONDS_MAX)
        if not found:
            raise BrokerError(f"{where}: no answer within {READ_SECONDS_MAX:.0f} s")
        if found[0].offset() != offset:
            raise BadInput(f"{where}: the record is not retained any more")
        return found[0]

    def close(self) -> None:
        for reader in self._readers.values():
            reader.close()
