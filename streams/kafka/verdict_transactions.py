"""Commits verdicts and the log's offset in one transaction."""

import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from neardup.errors import NeardupError
from streams.errors import BrokerError, Fenced, NoAnswer, RecordTooLarge, Stopped, Unsettled, verdicts_gone
from streams.kafka.admin import Admin
from streams.kafka.connection import (
    FENCED,
    TRY_SECONDS_MAX,
    Cause,
    Connection,
    Headers,
    Setting,
    T,
    checked,
    committed_of,
    error_of,
    repeat,
)
from streams.ports import Committed, TopicIds
from streams.process.watchdog import Watchdog

#: Seconds for which a transaction may continue after a stop was requested.
STOP_SECONDS_MAX = 5.0

#: Topic, key, value, headers.
_Record = tuple[str, bytes | None, bytes, list[tuple[str, str | bytes | None]] | None]


#: Advice if no matcher will be started again.
NOWHERE = TopicIds(bytes(16), bytes(16))

#: The advice concerns a batch with the verdicts of a takedown; all others are small.
_QUEUE_FULL = (
    "the client's queue stays full; if Kafka takes the records, and only needs longer for so many, set "
    "transaction_deadline_ms and transaction_timeout_ms to more (at most 900000) and start again"
)


class KafkaVerdicts:
    """Writes `verdicts`: a batch of verdicts and the log's next offset become visible together, or not at all.

    The transactional id excludes a second matcher, not the group: `init` fences its previous owner.
    transaction_timeout_ms: the broker aborts a transaction that is open for longer, and fences its producer. It must
    exceed `deadline_s`; otherwise a broker that is away for a while would fence its own client. first: digest of the
    decider at the log's start, which is committed with each offset; it is set before the first commit.

    A transaction that fails is never repeated by the same producer, nor is another one begun by it. A producer keeps
    its epoch after an abort. The broker therefore accepts records of the aborted transaction that arrive late, and they
    become part of the next transaction (seen with librdkafka 2.15.1 and a silent broker). The `init` of a new producer
    raises the epoch, so that the broker refuses such records, however short `socket.timeout.ms` is.

    A producer is retired, too, once a request of a transaction was repeated, even if the transaction succeeded: the
    first request may still arrive within the next transaction, and move the committed offset back or end it early.
    """

    def __init__(
        self,
        connection: Connection,
        topic: str,
        *,
        log_topic: str,
        audit_topic: str = "",
        group: str,
        transactional_id: str,
        topic_ids: TopicIds = NOWHERE,
        transaction_timeout_ms: int = 120_000,
        deadline_s: float = 90.0,
        message_bytes_max: int = 1_000_000,
    ) -> None:
        """Make the producer of verdicts.

        topic_ids: ids that are stored with the committed offset; `check` compares the topic with `TopicIds.sink`.
        deadline_s: time limit of a call of init, committed or commit, seconds; the process ends if a call hangs longer.
        """
        self.topic = topic
        self.transactional_id = transactional_id
        self._commits = 0
        self._repeated = ""  # the call that was repeated; no transaction may follow it
        self._log, self.topic_ids, self.first = log_topic, topic_ids, ""
        self._audit_topic = audit_topic
        self._deadline_s = deadline_s
        self._connection = connection
        self._cause = Cause()
        self._watchdog = Watchdog(deadline_s + 3 * TRY_SECONDS_MAX, late=connection.heartbeat)
        self._admin = Admin(connection)
        defaults: dict[str, Setting] = {
            # With the default of 100 ms a transaction mostly waits: 103 transactions/s instead of 240.
            "retry.backoff.ms": 5,
            "compression.type": "zstd",
            "partitioner": "murmur2_random",
            "message.max.bytes": message_bytes_max,
        }
        fixed: dict[str, Setting] = {
            "transactional.id": transactional_id,
            "transaction.timeout.ms": transaction_timeout_ms,
        }
        self._producer: Producer = connection.make(Producer, defaults, fixed, self._cause)
        # Never joins the group: it names the group in transactions, and requests its offset. With read_committed, so
        # that it waits for an offset in an open transaction.
        member: dict[str, Setting] = {
            "group.id": group,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
        }
        self._member: Consumer = connection.make(Consumer, {}, member, self._cause)

    def init(self) -> None:
        """Fences earlier owners of the transactional id, and ends their transaction. Raises BrokerError, Fenced."""
        self._guarded("init", lambda: self._call("init", lambda: self._producer.init_transactions(TRY_SECONDS_MAX)))

    def committed(self) -> Committed | None:
        """The committed offset of the log; None if there is none, or it has expired. Raises BrokerError."""
        asked = [TopicPartition(self._log, 0)]
        ask = self._member.committed

        def committed() -> Committed | None:
            what = f"offset of {self._log} for {self.transactional_id}"
            call = lambda: checked(ask(asked, timeout=min(TRY_SECONDS_MAX, self._deadline_s)))  # noqa: E731
            try:
                (found,) = repeat(what, call, self._cause, self._deadline_s, self._connection.go_on)
            except NoAnswer as error:  # stays one: `neardup run` starts again
                # Seen with Kafka 4.3.1 and one replica: a broker killed between decision and markers (KAFKA-20734).
                hint = "if Kafka is up, a transaction may hang there: look with kafka-transactions.sh find-hanging"
                raise NoAnswer(f"{error}; {hint}") from error
            return committed_of(found)

        return self._guarded("the committed offset", committed)

    def commit(
        self,
        verdicts: Sequence[tuple[bytes, bytes]],
        next_offset: int,
        audit: Sequence[bytes] = (),
        headers: Mapping[int, Headers] = MappingProxyType({}),
    ) -> None:
        """Commits (key, value) pairs and the next offset of the log in one transaction. Returns after the commit.

        audit: values for its topic, in the same transaction. headers: headers of some of the pairs, by their index.
        Raises Fenced: end the process, because another one owns the stream. Unsettled: refused, or the outcome is
        unknown. RecordTooLarge, BrokerError: remove the cause first. After each of them close this object, make a new
        one, `init` it, and use `committed`. A call that hangs ends the process.
        """

        records: list[_Record] = [(self.topic, key, value, None) for key, value in verdicts]
        for place, more in headers.items():
            topic, key, value, _ = records[place]
            records[place] = (topic, key, value, list(more))
        records += [(self._audit_topic, None, value, None) for value in audit]

        what = f"the transaction up to offset {next_offset} of {self._log}"
        if self._repeated:
            reason = f"{self._repeated} was repeated in the last transaction, and may still arrive"
            raise Unsettled(f"{what} needs a new producer: {reason}", commits=self._commits)
        self._guarded(what, lambda: self._transaction(records, next_offset))
        self._commits += 1

    def _transaction(self, records: Sequence[_Record], next_offset: int) -> None:
        producer = self._producer
        note = Committed(next_offset, self.topic_ids, self.first).note
        place = [TopicPartition(self._log, 0, next_offset, note)]
        self._call("begin", producer.begin_transaction)
        self._produce(records)
        group = self._member.consumer_group_metadata()
        self._call("offsets", lambda: producer.send_offsets_to_transaction(place, group, TRY_SECONDS_MAX))
        self._call("commit", lambda: producer.commit_transaction(TRY_SECONDS_MAX))

    def _produce(self, records: Sequence[_Record]) -> None:
        """Queues the records."""
        for topic, key, value, headers in records:
            queued = False
            while not queued:
                try:
                    self._producer.produce(topic, value, key, headers=headers)
                    queued = True
                except BufferError:
                    self._producer.poll(0.05)
                    self._in_time(f"writing {len(records)} records in one transaction")
                except KafkaException as exception:
                    raise self._failed("produce", error_of(exception)) from exception

    def _failed(self, what: str, error: KafkaError) -> NeardupError:
        """The exception for an error that remains when the call is repeated."""
        error = self._kept(error)
        if error.code() in FENCED:
            return Fenced(
                f"another process has taken over transactional id {self.transactional_id}, or a transaction "
                f"outlived its transaction_timeout_ms ({what}: {error.name()}: {error.str()})"
            )
        if error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
            return RecordTooLarge(f"a verdict is too large for one message to {self.topic}")
        text = f"{what} for {self.transactional_id}: {self._cause.explain(error)}"
        if error.txn_requires_abort() and not error.fatal():
            return Unsettled(f"{text}; the transaction failed", commits=self._commits)
        return BrokerError(text)

    def _kept(self, error: KafkaError) -> KafkaError:
        """The first error of the transaction, which the client keeps.

        A later call may report its wrong state instead.
        """
        try:
            self._producer.begin_transaction()  # has no effect: a transaction is open
        except KafkaException as exception:
            kept = error_of(exception)
            if kept.fatal() or kept.txn_requires_abort():
                return kept
        return error

    def _call(self, what: str, call: Callable[[], None]) -> None:
        """Repeats `call` while its outcome is unknown. Raises Fenced, Unsettled, RecordTooLarge, BrokerError."""
        while True:
            try:
                call()
                self._producer.poll(0)
                self._cause.over()
                return
            except KafkaException as exception:
                error = error_of(exception)
                if error.txn_requires_abort() or not error.retriable():
                    raise self._failed(what, error) from exception
                if what != "init":
                    self._repeated = what
                self._producer.poll(0.02)
                self._in_time(f"{what} for {self.transactional_id}", error)

    def _guarded(self, what: str, call: Callable[[], T]) -> T:
        self._until, self._hurries = time.monotonic() + self._deadline_s, False
        with self._watchdog.watch(f"{what} ({self.transactional_id})"):
            return call()

    def _in_time(self, what: str, error: KafkaError | None = None) -> None:
        """Raises Unsettled after the deadline, and Stopped some seconds after a stop was requested."""
        now, stop = time.monotonic(), self._connection.stop
        self._connection.heartbeat(f"{what}: {self._cause.explain(error)}" if error is not None else "")
        if stop is not None and stop.is_set() and not self._hurries:
            self._until, self._hurries = min(self._until, now + STOP_SECONDS_MAX), True
        if now <= self._until:
            return
        if self._hurries:
            raise Stopped(f"{what}: stopped while Kafka did not answer; the next start finds out what Kafka did")
        explained = self._cause.explain(error) if error else f"{_QUEUE_FULL}{self._cause}"
        raise Unsettled(f"{what}: not known after {self._deadline_s:g} s: {explained}", commits=self._commits)

    def check(self) -> None:
        """Raises TopicError if the topic was deleted or recreated; BrokerError within seconds if that is unknown."""
        now = self._admin.topics([self.topic], TRY_SECONDS_MAX).get(self.topic)
        if now is None or now.id != self.topic_ids.sink:
            raise verdicts_gone(self.topic, self.topic_ids.sink, now.id if now else None)

    def close(self) -> None:
        """Closes without waiting. The next `init` ends an open transaction."""
        with self._watchdog.watch("closing"):
            self._producer.purge()
            self._member.close()
        self._watchdog.close()
