"""Reads the control topic for the pages: generations, and the policy of canonical pages."""

import threading
from collections.abc import Sequence
from dataclasses import replace

from neardup.canonical import policy_of
from neardup.errors import NeardupError
from streams.config.settings import Settings
from streams.kafka import Connection, ControlReader, ControlTopic, Generations
from streams.roles.runtime import connect

#: Limit of each request to Kafka: a person waits for the page.
ANSWER_SECONDS_MAX = 5.0


def short_connection(settings: Settings) -> Connection:
    """Return a connection whose requests end after ANSWER_SECONDS_MAX."""
    return replace(connect(settings, "views"), request_s=ANSWER_SECONDS_MAX)


class ControlView:
    """The present content of the control topic; from any thread."""

    def __init__(self, settings: Settings) -> None:
        self._topic = ControlTopic(short_connection(settings), settings.generations_topic)
        self._reader: ControlReader | None = None
        self._lock = threading.Lock()  # a reader is for one thread at a time

    def now(self) -> Generations:
        """Raises BrokerError, CorruptRecord, TopicError."""
        with self._lock:
            if self._reader is None:
                if not self._topic.exists():
                    return Generations()
                self._reader = self._topic.follow()
            try:
                return self._reader.look()
            except NeardupError:  # the topic may have been recreated: the next call opens it again
                self._close()
                raise

    def policy(self) -> Sequence[str]:
        """Return the policy of canonical pages. Raises as `now`, and BadInput for an unknown criterion."""
        return policy_of(self.now().canonical)

    def close(self) -> None:
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None
