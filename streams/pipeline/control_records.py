"""Control records among the log's messages: operators' decisions on messages that cannot be folded, and deciders.

The decider changes only at a control record that names another one.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict

from neardup.decider import Decider
from neardup.errors import CorruptRecord
from neardup.rules.posted_keys import keeps_the_same
from streams.formats.message import Control, Decision, Message, NewDecider, Word, decode_entry, is_control

#: Reads the log's messages from an offset to its present end.
LogFrom = Callable[[int], Iterable[tuple[int, bytes]]]
#: Changes of the decider with their offsets, in the log's order.
DeciderChanges = Sequence[tuple[int, NewDecider]]


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


def decider_changes_in(messages: Iterable[tuple[int, bytes]]) -> DeciderChanges:
    return [(offset, record) for offset, record in control_records_in(messages) if isinstance(record, NewDecider)]


def decider_after(decider: Decider, change: NewDecider) -> Decider:
    """Return the decider behind a change. A change is void if it names another decider as its predecessor."""
    follows = change.before.digest == decider.digest and not incompatibility(change.before, change.after)
    return change.after if follows else decider


def decider_at(decider: Decider, changes: DeciderChanges, end: int) -> Decider:
    """Return the decider at the offset `end`. decider: the one before all changes."""
    for offset, change in changes:
        if offset < end:
            decider = decider_after(decider, change)
    return decider


def describe_change(before: Decider, after: Decider) -> str:
    """List the fields in which two deciders differ, for people."""
    old, new = asdict(before), asdict(after)
    return ", ".join(f"{name} {old[name]} -> {new[name]}" for name in new if old[name] != new[name])


def incompatibility(before: Decider, after: Decider) -> str:
    """Return why `after` cannot continue with an index that `before` built; "" if it can."""
    if keeps_the_same(before, after):
        return ""
    return f"rule {after.rule} with its numbers keeps other keys in the index than {before.rule} does"
