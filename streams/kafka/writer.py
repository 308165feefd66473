"""Writing records that nobody reads twice: to `pages`, `pages.rejected` and the sketch log."""

import time
from collections.abc import Callable, Sequence
from typing import cast

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from streams.errors import BrokerError, RecordTooLarge
from streams.kafka.connection import Cause, Connection, Setting, error_of
from streams.kafka.stranded import Stranded
from streams.kafka.wording import SILENT

Headers = Sequence[tuple[str, bytes]]


class Writer:
    """An idempotent producer to one topic: each record once, each partition in the order of `send`.

    gapless: for the sketch log. A record that fails takes all later ones with it, so that what the log holds of this
    writer is always a prefix: librdkafka may not give up a record by its own timeout and send the next one.
    Not thread-safe.
    """

    def __init__(
        self,
        connection: Connection,
        topic: str,
        *,
        message_bytes_max: int = 1_000_000,
        gapless: bool = False,
        linger_ms: float = 5,
        delivery_s: float = 120.0,
        on_failure: Callable[[bytes, str], None] | None = None,
    ) -> None:
        """message_bytes_max: of one record with its headers. delivery_s: how long an acknowledgement may take.

        on_failure: told key and reason of each record that was not written (after `delivery_s` it is given up); the
        others go on. Without it the first failure ends the writer.
        """
        self.topic = topic
        self.sent = self.acknowledged = self.failed = 0
        #: Offset of the newest acknowledged record (of any partition).
        self.last_offset = -1
        self._delivery_s = delivery_s
        self._progress = time.monotonic()
        self._failed: str | None = None
        self._on_failure = on_failure
        self._cause = Cause()
        fixed: dict[str, Setting] = {"enable.idempotence": True}
        if gapless:
            fixed |= {"message.timeout.ms": 0, "enable.gapless.guarantee": True}
        defaults: dict[str, Setting] = {
            "linger.ms": linger_ms,
            # By measurement: half of what lz4 leaves of pages and verdicts, three quarters of sketches, for a few
            # hundredths of a millisecond a page.
            "compression.type": "zstd",
            "message.max.bytes": message_bytes_max,
            # As Java clients and aiokafka do it: tables and streams of other programs meet ours by key.
            "partitioner": "murmur2_random",
            "queue.buffering.max.kbytes": 256 << 10,
        }
        if on_failure:
            defaults["message.timeout.ms"] = int(delivery_s * 1000)
        self._make: Callable[[], Producer] = lambda: connection.make(Producer, defaults, fixed, self._cause)
        self._producer = self._make()
        self._stranded = Stranded(topic, lambda: None)  # a new producer does no harm while nothing is outstanding

    @property
    def outstanding(self) -> int:
        return self.sent - self.acknowledged - self.failed

    def send(
        self, value: bytes | None, *, key: bytes | None = None, headers: Headers = (), partition: int = -1
    ) -> None:
        """Queues one record; waits while the queue is full.

        Raises RecordTooLarge, naming the key (the writer goes on); BrokerError as `poll` does.
        """
        while not self.try_send(value, key=key, headers=headers, partition=partition):
            self.poll(0.1)
        self.poll(0)

    def try_send(
        self, value: bytes | None, *, key: bytes | None = None, headers: Headers = (), partition: int = -1
    ) -> bool:
        """Queues one record, or returns False if the queue is full. Never waits; raises RecordTooLarge, BrokerError."""
        if self.outstanding == 0:
            if self._stranded.reason(self._producer):
                self._producer = self._make()
            self._progress = time.monotonic()
        try:
            self._producer.produce(
                self.topic, value, key, partition, on_delivery=self._delivered, headers=list(headers) or None
            )
        except BufferError:
            return False
        except KafkaException as exception:
            error = error_of(exception)
            if error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
                name = (key or b"").decode("utf-8", "replace")
                raise RecordTooLarge(
                    f"{name or 'a record'} has {len(value or b'')} bytes, too many for one message to {self.topic}"
                ) from exception
            self.poll(0.2)  # raises too, and says more: which record the producer has died of
            raise BrokerError(f"topic {self.topic}: {self._cause.explain(error)}") from exception
        self.sent += 1
        return True

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.acknowledged += 1
            self._progress = time.monotonic()
            self._stranded.heard()
            self._cause.over()
            self.last_offset = cast(int, message.offset())
            return
        key = message.key()
        why = self._cause.explain(error)
        if self._on_failure is not None:
            self.failed += 1
            self._on_failure(key if isinstance(key, bytes) else b"", why)
        elif self._failed is None:
            name = key.decode("utf-8", "replace") if isinstance(key, bytes) else "a record"
            self._failed = f"{name} was not written: {why}"

    def poll(self, wait_s: float = 0.0) -> int:
        """Takes acknowledgements in and returns how many records wait for theirs.

        Raises BrokerError if a record failed or none was acknowledged for `delivery_s`: nothing after it may be taken
        as written, and the process must end without committing what it read.
        """
        try:
            self._producer.poll(wait_s)
        except KafkaException as exception:  # the producer is dead, and says so here first
            self._failed = self._failed or self._cause.explain(error_of(exception))
        overdue = self._on_failure is None and self.outstanding and time.monotonic() - self._progress > self._delivery_s
        if overdue and self._failed is None:
            why = f"{SILENT}{self._cause}"
            self._failed = f"no acknowledgement in {self._delivery_s:g} s for {self.outstanding} records: {why}"
        if self._failed is not None:
            raise BrokerError(f"topic {self.topic}: {self._failed}")
        return self.outstanding

    def flush(self) -> None:
        """Returns when every record is acknowledged. Raises as `poll`."""
        while self.poll(0.02):
            self._producer.flush(0.0)  # sends what lingers

    def close(self) -> None:
        """Gives up what is not sent; `flush` first if it matters."""
        self._producer.purge()
