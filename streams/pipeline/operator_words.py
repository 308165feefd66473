"""Operators' words among the log's messages, and what they decided on messages that cannot be taken as they are."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from neardup.errors import CorruptRecord
from streams.formats.message import Control, Decision, Message, Word, decode_entry, is_control

#: The log's messages from an offset on, to the end that it has when asked.
Ahead = Callable[[int], Iterable[tuple[int, bytes]]]


def words_among(messages: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, Word]]:
    """All words with their offsets, in the log's order. What cannot be read is passed over: its own turn will come."""
    for offset, data in messages:
        if not is_control(data):
            continue
        try:
            entry = decode_entry(data, offset)
        except CorruptRecord:
            continue
        if not isinstance(entry, Message):
            yield offset, entry


def up_to_word(found: Sequence[tuple[int, bytes]]) -> Sequence[tuple[int, bytes]]:
    """The messages up to and with the first word, behind which another decider may decide; all of them without one."""
    for number, (_, data) in enumerate(found, 1):
        if is_control(data):
            return found[:number]
    return found


class Decisions:
    """Whether an operator decided so about the message at an offset: looked for only when one is in question."""

    def __init__(self, ahead: Ahead) -> None:
        self._ahead = ahead
        self._found: set[tuple[Decision, int]] = set()

    def __call__(self, decision: Decision, offset: int) -> bool:
        """Reads the log from there to its end, unless the word is known already."""
        if (decision, offset) not in self._found:
            for at, word in words_among(self._ahead(offset + 1)):
                if isinstance(word, Control) and word.offset < at:
                    self._found.add((word.decision, word.offset))
        return (decision, offset) in self._found
