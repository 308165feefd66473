"""The topics of sketches and of pages as an origin: any of their records, as long as they hold it."""

from contextlib import closing

from neardup.errors import BadInput
from neardup.limits import PLACE_BITS
from neardup.page import Page
from neardup.verdict import Coordinates
from streams.config.settings import Settings
from streams.errors import BrokerError
from streams.formats.bodies import Bodies
from streams.formats.codecs import Codec
from streams.kafka import Reader, Writer
from streams.ports import Record
from streams.roles.runtime import connect
from streams.views.origin import record_at

#: A record that somebody waits for.
READ_SECONDS_MAX = 10.0
#: Of a record, beside value and headers: its key, and what the protocol adds.
_ROOM_BYTES = 100_000


class StreamOrigin:
    """The topics of sketches and of pages, as long as they hold what is asked for. Readers are made when needed."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._readers: dict[str, Reader] = {}
        bodies = Bodies(settings.body_ref_prefixes, settings.body_bytes_max)
        self._codec = Codec(settings.codec, bodies, settings.body_bytes_max)

    def record(self, page_id: int, log: str | None) -> bytes:
        # Uncommitted ones too, as the matcher reads it: nobody writes transactions there.
        found = self._read(self._settings.topics.sketches, log, 0, page_id >> PLACE_BITS, committed_only=False)
        return record_at(page_id, found.value())

    def page(self, coordinates: Coordinates) -> Page:
        return self._codec.page(self._page_record(coordinates))

    def _page_record(self, place: Coordinates) -> Record:
        pages = self._settings.topics.pages
        return self._read(pages, place.source, place.partition, place.offset, committed_only=True)

    sends_again = True

    def send_again(self, coordinates: Coordinates) -> None:
        """To the same partition, behind whatever came of the URL since: it gets a verdict of its own."""
        record = self._page_record(coordinates)
        value, headers = record.value(), [(name, data or b"") for name, data in record.headers() or ()]
        room = len(value or b"") + sum(len(name) + len(data) for name, data in headers) + _ROOM_BYTES
        connection = connect(self._settings, "views")
        pages, patience = self._settings.topics.pages, READ_SECONDS_MAX
        with closing(Writer(connection, pages, message_bytes_max=room, delivery_s=patience)) as writer:
            writer.send(value, key=record.key(), headers=headers, partition=coordinates.partition)
            writer.flush()

    def _read(self, topic: str, source: str | None, partition: int, offset: int, *, committed_only: bool) -> Record:
        """The record at this place of the topic with the id `source`."""
        reader = self._readers.get(topic)
        if reader is None:
            reader = Reader(connect(self._settings, "views"), topic, committed_only=committed_only)
            self._readers[topic] = reader
        place = f"topic {topic}, partition {partition}, offset {offset}"
        if reader.topic.id.hex() != source:
            # Perhaps it was made anew since: the next one who asks gets a reader of what is there then.
            self._readers.pop(topic).close()
            raise BadInput(f"{place}: this place is one of another topic (id {source}) than the one that is there now")
        if not 0 <= partition < reader.topic.partitions:
            raise BadInput(f"{place}: there is no such partition")
        reader.assign({partition: offset})
        found = reader.read(1, wait_s=READ_SECONDS_MAX)
        if not found:
            raise BrokerError(f"{place}: nothing came within {READ_SECONDS_MAX:.0f} s")
        if found[0].offset() != offset:
            raise BadInput(f"{place}: no such record is there any more")
        return found[0]

    def close(self) -> None:
        for reader in self._readers.values():
            reader.close()
