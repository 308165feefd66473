"""Who of several matchers of one line is at work: whoever Kafka gives the log's one partition.

Nothing is read and nothing committed through this membership. It is not what keeps two from telling: that the
transactional id does. It only says to whom waits when he may begin.
"""

from collections.abc import Callable

from confluent_kafka import Consumer, TopicPartition

from streams.kafka.admin import Admin
from streams.kafka.connection import TRY_SECONDS_MAX, Cause, Connection, Setting, log
from streams.kafka.stranded import Stranded, discard, leave

#: Who is not heard of for so long is dead: the least that brokers allow by default.
SESSION_MS = 6_000
#: A round that takes longer has lost its place, for all that is known here.
_ROUND_MS_MAX = 900_000


class Leader:
    """A membership in a group of matchers. leads: whether the partition is held, as of the last `look`."""

    def __init__(self, connection: Connection, topic: str, group: str) -> None:
        self.leads = False
        defaults: dict[str, Setting] = {"session.timeout.ms": SESSION_MS, "heartbeat.interval.ms": 500}
        fixed: dict[str, Setting] = {
            "group.id": group,
            # Who has it keeps it when another one joins.
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
        """Takes news in; whether this member leads. To be called all the time."""
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
        """Leaves the group: whoever waits need not wait for the session's end."""
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
