"""The decider at each offset of the sketch log: it changes only at a control record that names another one."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict

from neardup.decider import Decider
from neardup.rules.posted import keeps_the_same
from streams.formats.message import NewDecider
from streams.pipeline.control_records import control_records_in

#: Changes of the decider with their offsets, in the log's order.
DeciderChanges = Sequence[tuple[int, NewDecider]]


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
    if (before.shards, before.epoch) != (after.shards, after.epoch):
        return f"{_form(before)} built the index, and {_form(after)} cannot continue with it"
    if before.epoch and before.digest != after.digest:
        return "each shard keeps the decider that its index was built with"
    if keeps_the_same(before, after):
        return ""
    return f"rule {after.rule} with its numbers keeps other keys in the index than {before.rule} does"


def _form(decider: Decider) -> str:
    return f"{decider.shards} shards with an epoch of {decider.epoch} messages" if decider.epoch else "one matcher"
