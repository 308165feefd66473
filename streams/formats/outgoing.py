"""Defines a record to be written to the `pages` topic."""

from typing import NamedTuple

from neardup.limits import KAFKA_FRAMING_BYTES


class Outgoing(NamedTuple):
    """A record to be written. value: None for a null value in Kafka."""

    key: bytes
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()

    @property
    def size(self) -> int:
        """Size in bytes, with Kafka's overhead."""
        headers = sum(len(name) + len(text) for name, text in self.headers)
        return len(self.key) + len(self.value or b"") + headers + KAFKA_FRAMING_BYTES
