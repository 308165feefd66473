"""Detects clients that have lost all brokers while Kafka answers other clients.

A broker whose session has expired names no broker in its metadata. librdkafka 2.15 then drops its last connection and
may never connect again (a race in its re-bootstrap). The client reports no error, so it has to be queried.
"""

import threading
import time
from collections.abc import Callable
from contextlib import suppress

from confluent_kafka import Consumer, KafkaException, Producer

from streams.errors import NoAnswer
from streams.kafka.connection import error_of

#: Longest time without an answer before a client is queried, and how long the query waits.
_QUIET_SECONDS = 10.0
_KNOWS_SECONDS = 2.0


class Stranded:
    """Decides whether a client is to be replaced. `heard` records an answer of Kafka to the client."""

    def __init__(self, topic: str, answers: Callable[[], object]) -> None:
        """answers: raises NoAnswer if Kafka answers no client at all."""
        self._topic, self._answers = topic, answers
        self.heard()

    def heard(self) -> None:
        self._heard = time.monotonic()

    def reason(self, client: Consumer | Producer) -> str:
        """Why the client is to be replaced; "" if it is not, or was queried in the last _QUIET_SECONDS."""
        if time.monotonic() - self._heard <= _QUIET_SECONDS:
            return ""
        self.heard()
        if not self._error(client):
            return ""
        try:
            self._answers()
        except NoAnswer:
            return ""
        return self._error(client)  # queried again: Kafka may have come back in between

    def _error(self, client: Consumer | Producer) -> str:
        try:
            client.list_topics(self._topic, timeout=_KNOWS_SECONDS)
        except KafkaException as exception:
            return str(error_of(exception))
        return ""


#: Longest wait of `leave` for the revocation of what is assigned, and one poll of it.
_LEAVE_SECONDS = 5.0
_POLL_SECONDS = 0.05


def leave(consumer: Consumer) -> None:
    """Leaves the group and closes the consumer. Messages that were fetched are dropped.

    `close` alone may never return while an assignment is queued that no poll has delivered: librdkafka 2.15 then waits
    for an answer to the revocation after it has closed the queue that would bring it, and keeps the GIL. So the
    assignment is delivered and revoked before.
    """
    with suppress(KafkaException):  # raised for a member that another one of its name has fenced; close() returns then
        consumer.unsubscribe()
        deadline = time.monotonic() + _LEAVE_SECONDS
        while (consumer.poll(_POLL_SECONDS) is not None or consumer.assignment()) and time.monotonic() < deadline:
            pass
    consumer.close()


def discard(close: Callable[[], None]) -> None:
    """Closes a replaced consumer by `close`, in a thread: it may wait for a broker.

    A consumer that is not closed is destroyed with its last reference. If its session has expired, librdkafka 2.15 then
    never returns: the main thread of the client waits for an answer to the revocation and takes a whole core.
    """
    threading.Thread(target=close, name="discarded consumer", daemon=True).start()
