"""A record of the `pages` topic on its way out."""

from typing import NamedTuple

from neardup.limits import KAFKA_FRAMING_BYTES


class Outgoing(NamedTuple):
    """One record. value: None where Kafka shall have no value."""

    key: bytes
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()

    @property
    def size(self) -> int:
        """Bytes, what Kafka adds included."""
        headers = sum(len(name) + len(text) for name, text in self.headers)
        return len(self.key) + len(self.value or b"") + headers + KAFKA_FRAMING_BYTES
