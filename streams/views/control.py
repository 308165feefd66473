"""The stream's control topic as the pages need it: generations, and the policy of canonical pages."""

import threading
from collections.abc import Sequence
from dataclasses import replace

from neardup.canonical import policy_of
from neardup.errors import NeardupError
from streams.config.settings import Settings
from streams.kafka import Connection, ControlReader, ControlTopic, Generations
from streams.roles.runtime import connect

#: Each of Kafka's answers, for a page that somebody waits for.
ANSWER_SECONDS_MAX = 5.0


def hasty(settings: Settings) -> Connection:
    """A connection of the views' that gives up after ANSWER_SECONDS_MAX."""
    return replace(connect(settings, "views"), request_s=ANSWER_SECONDS_MAX)


class Control:
    """What the control topic says now; from any thread."""

    def __init__(self, settings: Settings) -> None:
        self._topic = ControlTopic(hasty(settings), settings.generations_topic)
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
            except NeardupError:  # it may have been made anew: the next one who asks follows that
                self._close()
                raise

    def policy(self) -> Sequence[str]:
        """By which canonical pages are chosen. Raises as `now`, and BadInput for a criterion that is not known here."""
        return policy_of(self.now().canonical)

    def close(self) -> None:
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None
