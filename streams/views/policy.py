"""The policy of canonical pages as the stream's control topic has it."""

import threading

from neardup.canonical import policy_of
from neardup.errors import NeardupError
from streams.config.settings import Settings
from streams.kafka import ControlReader
from streams.roles.generations import control_topic


class StreamPolicy:
    """The policy as the control topic has it now."""

    def __init__(self, settings: Settings) -> None:
        self._control = control_topic(settings, "views")
        self._reader: ControlReader | None = None
        self._lock = threading.Lock()  # a reader is for one thread at a time

    def now(self) -> tuple[str, ...]:
        """Raises BrokerError, CorruptRecord, BadInput."""
        with self._lock:
            if self._reader is None:
                if not self._control.exists():
                    return ()
                self._reader = self._control.follow()
            try:
                return policy_of(self._reader.look().canonical)
            except NeardupError:
                self._reader.close()
                self._reader = None
                raise

    def close(self) -> None:
        with self._lock:
            if self._reader is not None:
                self._reader.close()
                self._reader = None
