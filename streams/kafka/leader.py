"""Decides which of several matchers of a stream is active: the one to which Kafka assigns the log's one partition.

Nothing is read or committed through this group membership. Fencing (the transactional id) is what prevents two active
matchers. The membership only shows a standby when it may take over.
"""

from collections.abc import Callable

from confluent_kafka import Consumer, TopicPartition

from streams.kafka.admin import Admin
from streams.kafka.connection import TRY_SECONDS_MAX, Cause, Connection, Setting, log
from streams.kafka.stranded import Stranded, discard, leave

#: Session timeout: a member without a heartbeat for so long counts as dead. The least that brokers allow by default.
SESSION_MS = 6_000
#: Longest time between two polls: a member that takes longer may have lost the partition.
_ROUND_MS_MAX = 900_000


class Leader:
    """A membership in a group of matchers. leads: whether the partition is held, as of the last `look`."""

    def __init__(self, connection: Connection, topic: str, group: str) -> None:
        self.leads = False
        defaults: dict[str, Setting] = {"session.timeout.ms": SESSION_MS, "heartbeat.interval.ms": 500}
        fixed: dict[str, Setting] = {
            "group.id": group,
            # The member that has the partition keeps it when another one joins.
            "partition.assignment.strategy": "cooperative-sticky",
            "max.poll.interval.ms": _ROUND_MS_MAX,
            "enable.auto.commit": False,
            "auto.offset.reset": "latest",
        }
        self._topic = topic
        self._make: Callable[[], Consumer] = lambda: connection.make(Consumer, defaults, fixed, Cause())
        admin = Admin(connection)
        self._stranded = Stranded(topic, lambda: admin.topics([topic], TRY_SECONDS_MAX))
        self._join()

    def _join(self) -> None:
        self._consumer = self._make()
        callbacks = {"on_assign": self._assigned, "on_revoke": self._revoked, "on_lost": self._revoked}
        self._consumer.subscribe([self._topic], **callbacks)

    def look(self, wait_s: float = 0.0) -> bool:
        """Polls the group; returns whether this member leads. Must be called all the time."""
        self._consumer.poll(wait_s)
        if self.leads:
            self._stranded.heard()  # a member that has lost all brokers loses the partition, too
        elif reason := self._stranded.reason(self._consumer):
            log.warning("member of the group of %s has lost all brokers, and joins again: %s", self._topic, reason)
            old = self._consumer
            self._join()
            discard(lambda: leave(old))
        return self.leads

    def close(self) -> None:
        """Leaves the group, so that a standby need not wait for the end of the session."""
        leave(self._consumer)

    def _assigned(self, consumer: Consumer, places: list[TopicPartition]) -> None:
        consumer.incremental_assign(places)
        consumer.pause(places)
        if consumer is self._consumer:
            self.leads = self.leads or bool(places)

    def _revoked(self, consumer: Consumer, places: list[TopicPartition]) -> None:
        consumer.incremental_unassign(places)
        if consumer is self._consumer:
            self.leads = self.leads and not places
