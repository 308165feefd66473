"""Reads pages and sketches from their topics, while these retain them."""

from contextlib import closing

from neardup.errors import BadInput
from neardup.limits import PLACE_BITS
from neardup.page import Page
from neardup.verdict import Coordinates
from streams.config.settings import Settings
from streams.errors import BrokerError
from streams.formats.bodies import Bodies
from streams.formats.codecs import Codec
from streams.kafka import TopicReader, Writer
from streams.ports import Record
from streams.roles.runtime import connect
from streams.views.origin import record_at

#: Limit of reading a record: a person waits for the page.
READ_SECONDS_MAX = 10.0
#: Bytes of a record beside value and headers: key and protocol.
_ROOM_BYTES = 100_000


class StreamOrigin:
    """The topics of sketches and of pages. Readers are opened when needed."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._readers: dict[str, TopicReader] = {}
        bodies = Bodies(settings.body_ref_prefixes, settings.body_bytes_max)
        self._codec = Codec(settings.codec, bodies, settings.body_bytes_max)

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
