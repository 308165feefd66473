"""Control records among the log's messages, and the operator's decisions on messages that cannot be folded."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from neardup.errors import CorruptRecord
from streams.formats.message import Control, Decision, Message, Word, decode_entry, is_control

#: Reads the log's messages from an offset to its present end.
LogFrom = Callable[[int], Iterable[tuple[int, bytes]]]


def control_records_in(messages: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, Word]]:
    """Yield each control record with its offset. Skip unreadable ones: the fold reports them when it reaches them."""
    for offset, data in messages:
        if not is_control(data):
            continue
        try:
            entry = decode_entry(data, offset)
        except CorruptRecord:
            continue
        if not isinstance(entry, Message):
            yield offset, entry


def through_first_control(messages: Sequence[tuple[int, bytes]]) -> Sequence[tuple[int, bytes]]:
    """Return the messages through the first control record (it may change the decider), or all of them."""
    for number, (_, data) in enumerate(messages, 1):
        if is_control(data):
            return messages[:number]
    return messages


class OperatorDecisions:
    """Finds an operator's decision on a message. Reads the log only when a message needs one."""

    def __init__(self, log_from: LogFrom) -> None:
        self._log_from = log_from
        self._found: set[tuple[Decision, int]] = set()

    def __call__(self, decision: Decision, offset: int) -> bool:
        """Return whether the log holds this decision on the message at `offset`, anywhere behind that message."""
        if (decision, offset) not in self._found:
            for position, record in control_records_in(self._log_from(offset + 1)):
                if isinstance(record, Control) and record.offset < position:
                    self._found.add((record.decision, record.offset))
        return (decision, offset) in self._found
