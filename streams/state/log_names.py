"""The log that an index was folded from on Kafka, and its generation: rows of the META family, named as the fields.

The index of a scan or of the library has none of them: its log lies in the same directory.
"""

from typing import NamedTuple

from neardup.index.base import Family, Store


class LogNames(NamedTuple):
    """topic_id: of the log, in hex, as verdicts_id, which the index of a shard lacks. effects_id: for a judge."""

    cluster_id: str = ""
    topic_id: str = ""
    generation: str = ""
    verdicts_id: str = ""
    effects_id: str = ""


_KEYS = [name.encode() for name in LogNames._fields]


def log_names(store: Store) -> LogNames | None:
    """Return the names in an index; None for a new one, and for that of a scan."""
    rows = store.get_many(Family.META, _KEYS)
    return LogNames(*((row or b"").decode() for row in rows)) if any(row is not None for row in rows) else None


def keep_log_names(store: Store, names: LogNames) -> None:
    """Write the names into an index, durably."""
    store.write({Family.META: {key: name.encode() for key, name in zip(_KEYS, names, strict=True)}})
    store.flush()
