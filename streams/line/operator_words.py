"""What operators have decided about messages that cannot be taken as they are: their words stand later in the log."""

from collections.abc import Callable, Iterable

from neardup.errors import CorruptRecord
from streams.formats.message import Control, Decision, decode_entry, is_control

#: The log's messages from an offset on, to the end that it has when asked.
Ahead = Callable[[int], Iterable[tuple[int, bytes]]]


class Decisions:
    """Whether an operator decided so about the message at an offset: looked for only when one is in question."""

    def __init__(self, ahead: Ahead) -> None:
        self._ahead = ahead
        self._found: set[tuple[Decision, int]] = set()

    def __call__(self, decision: Decision, offset: int) -> bool:
        """Reads the log from there to its end, unless the word is known already."""
        if (decision, offset) not in self._found:
            for at, data in self._ahead(offset + 1):
                if not is_control(data):
                    continue
                try:
                    entry = decode_entry(data, at)
                except CorruptRecord:
                    continue  # its own turn will come
                if isinstance(entry, Control) and entry.offset < at:
                    self._found.add((entry.decision, entry.offset))
        return (decision, offset) in self._found
