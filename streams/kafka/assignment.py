"""Membership in a group whose members share the partitions of a topic by Kafka's own assignment.

Nothing is read or committed through it. The matcher that holds the log's one partition is active. Fencing (the
transactional id) is what prevents two active matchers; the membership only shows a standby when it may take over.
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


class Assignment:
    """A membership. held: numbers of the partitions that this member has, as of the last `look`.

    Assignment is incremental: when a member joins or ends, the others keep most of what they have.
    """

    def __init__(self, connection: Connection, topic: str, group: str) -> None:
        self.held: frozenset[int] = frozenset()
        defaults: dict[str, Setting] = {"session.timeout.ms": SESSION_MS, "heartbeat.interval.ms": 500}
        fixed: dict[str, Setting] = {
            "group.id": group,
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
        """Polls the group; returns whether this member has a partition. Must be called all the time."""
        self._consumer.poll(wait_s)
        if self.held:
            self._stranded.heard()  # a member that has lost all brokers loses its partitions, too
        elif reason := self._stranded.reason(self._consumer):
            log.warning("member of the group of %s has lost all brokers, and joins again: %s", self._topic, reason)
            old = self._consumer
            self._join()
            discard(lambda: leave(old))
        return bool(self.held)

    def close(self) -> None:
        """Leaves the group, so that other members need not wait for the end of the session."""
        leave(self._consumer)

    def _assigned(self, consumer: Consumer, places: list[TopicPartition]) -> None:
        consumer.incremental_assign(places)
        consumer.pause(places)
        if consumer is self._consumer:
            self.held |= {place.partition for place in places}

    def _revoked(self, consumer: Consumer, places: list[TopicPartition]) -> None:
        consumer.incremental_unassign(places)
        if consumer is self._consumer:
            self.held -= {place.partition for place in places}
