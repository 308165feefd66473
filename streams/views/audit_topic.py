"""The newest pairs of the audit topic, read on demand."""

import threading
from collections.abc import Sequence

from neardup.errors import NeardupError
from neardup.evaluation.rules.audits import AuditPair
from streams.config.settings import Settings
from streams.kafka import TopicReader
from streams.roles.runtime import connect
from streams.views.audits import PAIRS_KEPT, AuditedPairs

#: Records before each partition's end that the first read takes. Some are counts, one for each transaction.
RECORDS_READ = 4 * PAIRS_KEPT
_READ_SECONDS = 0.2


class TopicAudits:
    """Audited pairs of the topic. Only committed lines count: the matcher writes them in its transactions."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._held = AuditedPairs()
        self._reader: TopicReader | None = None
        self._lock = threading.Lock()  # a reader is for one thread at a time

    def pairs(self) -> Sequence[AuditPair]:
        """Raises TopicError without the topic, BrokerError, BadInput."""
        with self._lock:
            try:
                self._read_new(self._reader or self._opened())
            except NeardupError:
                self._close()  # the topic may have been recreated: the next call opens it again
                raise
            return self._held.pairs()

    def _opened(self) -> TopicReader:
        self._held = AuditedPairs()
        reader = self._reader = TopicReader(
            connect(self._settings, "views"), self._settings.topics.audit, committed_only=True
        )
        begins, ends = reader.first_offsets(), reader.ends()
        reader.assign({partition: max(begins[partition], end - RECORDS_READ) for partition, end in ends.items()})
        return reader

    def _read_new(self, reader: TopicReader) -> None:
        reader.check()  # offsets of a recreated topic mean other records
        ends = reader.ends()
        while any(position < ends[partition] for partition, position in reader.positions().items()):
            for record in reader.read(1_000, wait_s=_READ_SECONDS):
                self._held.take(record.value() or b"")

    def close(self) -> None:
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None
