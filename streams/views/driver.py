"""Faust's Kafka driver with four corrections: it consumes committed records only and drops none of them, commits only
verdicts whose rows are in the changelogs, and writes each row once.

Faust flushes its producer before it commits, but gives up if nothing was sent for .1 s, as on a loaded machine: a
worker killed then lost these rows for good, because their verdicts were not consumed again. Faust also counts as done
what it consumed before a partition was revoked and assigned again, even if the application skipped it; committing that
before the consumer seeks to the committed offset loses it as well.

While it restores its tables, Faust drops verdicts that it fetches, and does not always seek back: a worker that took
over before the first commit of a partition never applied them.

A broker that was silent beyond its session answers NotLeaderForPartition to a produce request whose records it has
appended. The repeated request wrote them twice, and the views ended: hence the idempotent producer.

Verdicts are applied in the order of their partition: a row that has one applies no older one. When partitions are
reassigned, consumed verdicts must be skipped (`PartitionProgress`); the new owner consumes them again from the
committed offset. Until then no later verdict may be applied, and no later offset committed.

One set of settings serves both clients: `credentials` translates librdkafka's TLS and SASL settings.
"""

import ssl
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from faust import SASLCredentials, SSLCredentials
from faust.transport.drivers import TRANSPORTS
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread, Consumer, Producer, Transport
from faust.types import TP

from neardup.errors import BadInput

#: Scheme of broker addresses that selects this driver.
SCHEME = "committed"
TRANSPORTS.aliases[SCHEME] = f"{__name__}:CommittedTransport"
_NEVER = -1
PROTOCOLS = ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_TAKEN = (
    *("security.protocol", "sasl.mechanism", "sasl.mechanisms", "sasl.username", "sasl.password"),
    *("ssl.ca.location", "ssl.certificate.location", "ssl.key.location", "ssl.key.password"),
    *("ssl.endpoint.identification.algorithm", "enable.ssl.certificate.verification"),
)
_SECURITY = ("security.", "sasl.", "ssl.", "enable.ssl.", "enable.sasl.")


class _CommittedThread(AIOKafkaConsumerThread):
    def _create_worker_consumer(self, transport: Any) -> Any:
        consumer = super()._create_worker_consumer(transport)
        # The consumer passes it to its fetcher at its start, which comes later.
        assert not hasattr(consumer, "_fetcher") or consumer._fetcher is None
        consumer._isolation_level = "read_committed"
        return consumer

    async def _fetch_records(self, consumer: Any, active_partitions: set[TP], *given: Any, **more: Any) -> Any:
        """Return fetched records of active partitions; seek back to the first one of any other partition.

        If Faust pauses the last active partition while a fetch is under way, aiokafka fetches from all partitions.
        """
        records = dict(await super()._fetch_records(consumer, active_partitions, *given, **more))
        for place in [each for each in records if each not in active_partitions]:
            consumer.seek(place, records.pop(place)[0].offset)
        return records


class CommittedConsumer(Consumer):
    """rows_kept: waits until all changed rows are in the changelogs; returns the applied offset of each partition.

    None: the rows will never arrive.
    """

    rows_kept: Callable[[], Awaitable[Mapping[TP, int] | None]]

    def __init__(self, *given: Any, **more: Any) -> None:
        self._to_resume: set[TP] = set()
        super().__init__(*given, **more)

    async def _commit_offsets(self, offsets: Mapping[Any, int], start_new_transaction: bool = True) -> bool:
        kept = await self.rows_kept()
        if kept is None:
            return False
        done = {partition: min(offset, kept[partition]) for partition, offset in offsets.items() if partition in kept}
        return bool(await super()._commit_offsets(done, start_new_transaction))

    async def on_partitions_assigned(self, assigned: set[TP], generation_id: int = 0) -> None:
        """Pause all partitions first: Faust pauses them only after some turns of the loop."""
        self.pause_partitions(assigned)
        await super().on_partitions_assigned(assigned, generation_id)

    def pause_partitions(self, tps: Iterable[TP]) -> None:
        super().pause_partitions(tps)
        self._to_resume.difference_update(tps)

    def resume_partitions(self, tps: Iterable[TP]) -> None:
        """Resume them in `resume_flow`, which follows: before it, Faust clears the queues of fetched verdicts."""
        self._to_resume.update(tps)

    def resume_flow(self) -> None:
        super().resume_partitions(self._to_resume)
        self._to_resume.clear()
        super().resume_flow()

    async def wait_empty(self) -> None:
        """Wait before a revocation or a stop, but not for messages that will never be acknowledged."""
        if await self.rows_kept() is not None:
            await super().wait_empty()

    def _new_consumer_thread(self) -> Any:
        return _CommittedThread(self, loop=self.loop, beacon=self.beacon)


class IdempotentProducer(Producer):
    """Repeats a request without writing its records twice."""

    def _settings_extra(self) -> Mapping[str, Any]:
        return {"acks": "all", "enable_idempotence": True}


class CommittedTransport(Transport):
    """Transport of CommittedConsumer and IdempotentProducer."""

    Consumer = CommittedConsumer
    Producer = IdempotentProducer


class PartitionProgress:
    """State of one worker. In a new generation of the consumer group, partitions are consumed from their commits."""

    def __init__(self) -> None:
        self._applied: dict[TP, tuple[int, int]] = {}
        self._skipped: dict[TP, tuple[int, int]] = {}

    def accepts(self, message: Any, mine: Collection[TP], generation: int) -> bool:
        """Return whether to apply a verdict; otherwise it is skipped. mine: the worker's present partitions."""
        partition, of = TP(message.topic, message.partition), message.generation_id
        if partition in mine and of == generation and of > self._skipped.get(partition, (_NEVER, 0))[0]:
            return True
        self.skipped(partition, of, message.offset)
        return False

    def skipped(self, partition: TP, generation: int, offset: int) -> None:
        """Note that the verdict at an offset was consumed in a generation and not applied."""
        if generation > self._skipped.get(partition, (_NEVER, 0))[0]:
            self._skipped[partition] = generation, offset

    def applied(self, partition: TP, generation: int, end: int) -> None:
        """Note that all verdicts before the offset `end` are applied and their rows handed to the changelogs."""
        self._applied[partition] = generation, end

    def ends(self, generation: int) -> Mapping[TP, int]:
        """Return the offset up to which each partition may be committed; only partitions with applied verdicts."""
        return {partition: end for partition, (of, end) in self._applied.items() if of == generation}

    def waiting(self, partition: TP, generation: int) -> int | None:
        """Return the first offset that was skipped and not consumed again yet."""
        of, offset = self._skipped.get(partition, (_NEVER, 0))
        return offset if of == generation else None


def credentials(values: Mapping[str, str]) -> SASLCredentials | SSLCredentials | None:
    """Return Faust's `broker_credentials`; None for plain text.

    Raises BadInput for a setting that this driver lacks: it would connect in another way than configured.
    """
    for name in values:
        if name.startswith(_SECURITY) and name not in _TAKEN:
            raise BadInput(f"kafka.{name}: the views' driver has no such setting; it has {', '.join(_TAKEN)}")
    protocol = values.get("security.protocol", "plaintext").lower()
    if protocol not in PROTOCOLS:
        raise BadInput(f"kafka.security.protocol = {protocol!r}: must be one of {', '.join(PROTOCOLS)}")
    context = _context(values) if protocol.endswith("ssl") else None
    if not protocol.startswith("sasl"):
        return None if context is None else SSLCredentials(context)
    mechanism = values.get("sasl.mechanism") or values.get("sasl.mechanisms") or ""
    if mechanism not in MECHANISMS:
        raise BadInput(f"kafka.sasl.mechanism = {mechanism!r}: the views' driver knows {', '.join(MECHANISMS)}")
    return SASLCredentials(
        username=values.get("sasl.username", ""),
        password=values.get("sasl.password", ""),
        mechanism=mechanism,
        ssl_context=context,
    )


def _context(values: Mapping[str, str]) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if path := values.get("ssl.ca.location"):
        # As librdkafka: only the named certificates are trusted.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        how = {"capath" if Path(path).is_dir() else "cafile": path}
        _load("ssl.ca.location", path, lambda: context.load_verify_locations(**how))
    if values.get("ssl.endpoint.identification.algorithm", "https") == "none":
        context.check_hostname = False
    if values.get("enable.ssl.certificate.verification", "true").lower() == "false":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if own := values.get("ssl.certificate.location"):
        key, password = values.get("ssl.key.location") or None, values.get("ssl.key.password") or None
        # An empty password: without one OpenSSL would prompt on the terminal.
        _load("ssl.certificate.location", own, lambda: context.load_cert_chain(own, key, password or ""))
    return context


def _load(name: str, path: str, load: Callable[[], None]) -> None:
    try:
        load()
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError; its text names no secret
        raise BadInput(f"kafka.{name} = {path}: cannot be used: {getattr(error, 'strerror', None) or error}") from error
