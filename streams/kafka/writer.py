"""Writes records once each, in order: to `pages`, `pages.rejected` and the sketch log."""

import time
from collections.abc import Callable
from typing import cast

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from neardup.wording import counted
from streams.errors import BrokerError, NoAnswer, RecordTooLarge
from streams.kafka.connection import Cause, Connection, Headers, Setting, error_of
from streams.kafka.error_texts import SILENT
from streams.kafka.stranded import Stranded


class Writer:
    """An idempotent producer to one topic: each record once, each partition in the order of `send`.

    sent, acknowledged: numbers of records so far.
    gapless: whether all later records fail if a record fails. Then the sketch log always has a prefix of this writer's
    records: librdkafka must not give up a record after its own timeout and send the next record.
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
        """Make the producer.

        message_bytes_max: greatest size of a record with its headers, bytes.
        delivery_s: time limit of an acknowledgement, seconds.
        on_failure: function that receives key and reason of each record that was not written within `delivery_s`; other
            records continue. Without this function the first failure ends the writer.
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
            # Measured: half of the bytes of lz4 for pages and verdicts, three quarters for sketches, for a few
            # hundredths of a millisecond per page.
            "compression.type": "zstd",
            "message.max.bytes": message_bytes_max,
            # As in Java clients and aiokafka, so that tables of other programs can be joined with ours by key.
            "partitioner": "murmur2_random",
            "queue.buffering.max.kbytes": 256 << 10,
        }
        if on_failure:
            defaults["message.timeout.ms"] = int(delivery_s * 1000)
        self._make: Callable[[], Producer] = lambda: connection.make(Producer, defaults, fixed, self._cause)
        self._producer = self._make()
        # A new producer is harmless while no acknowledgement is outstanding.
        self._stranded = Stranded(topic, lambda: None)

    @property
    def outstanding(self) -> int:
        return self.sent - self.acknowledged - self.failed

    def send(
        self, value: bytes | None, *, key: bytes | None = None, headers: Headers = (), partition: int = -1
    ) -> None:
        """Queues one record. Waits while the queue is full.

        Raises RecordTooLarge with the key (the writer continues); BrokerError like `poll`.
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
            self.poll(0.2)  # raises, too, and names the record that ended the producer
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
        """Receives acknowledgements and returns the number of records without one.

        Raises BrokerError if a record failed, NoAnswer if none was acknowledged for `delivery_s`. Later records may be
        lost then, so the process must end, or start again, without committing what it read.
        """
        try:
            self._producer.poll(wait_s)
        except KafkaException as exception:  # the producer is dead, and reports it here first
            self._failed = self._failed or self._cause.explain(error_of(exception))
        overdue = self._on_failure is None and self.outstanding and time.monotonic() - self._progress > self._delivery_s
        if overdue and self._failed is None:
            waiting = f"no acknowledgement in {self._delivery_s:g} s for {counted(self.outstanding, 'record')}"
            raise NoAnswer(f"topic {self.topic}: {waiting}: {SILENT}{self._cause}")
        if self._failed is not None:
            raise BrokerError(f"topic {self.topic}: {self._failed}")
        return self.outstanding

    def flush(self) -> None:
        """Returns when every record is acknowledged, at once if none is outstanding. Raises like `poll`."""
        left = self.poll()
        while left:
            self._producer.flush(0.0)  # sends what lingers
            left = self.poll(0.02)

    def close(self) -> None:
        """Closes the producer. Unsent records are lost unless `flush` was called."""
        self._producer.purge()
