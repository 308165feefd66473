"""Verdicts as they lie in their topic; what others have written there is told from them, by its place."""

from typing import Any

import orjson

from neardup.errors import CorruptRecord

#: Of what type fields of every verdict are: see neardup/verdict.schema.json. The first four are its name.
_TYPES: dict[str, type] = {
    "verdict": str,
    "page_id": int,
    "n": int,
    "url": str,
    "coordinates": dict,
    "scheme": str,
    "decider": str,
}
_NAME = ("verdict", "page_id", "n", "url")


def decode_verdict(
    value: bytes | None, topic: str, partition: int, offset: int, needs: tuple[str, ...] = ()
) -> dict[str, Any]:
    """needs: fields that are asked for beside those that name a verdict.

    Raises CorruptRecord for what is no verdict, naming topic, partition and offset.
    """
    try:
        verdict = orjson.loads(value or b"")
    except orjson.JSONDecodeError as error:
        raise _none(topic, partition, offset, f"no JSON: {error.msg}" if value else "empty") from error
    if not isinstance(verdict, dict):
        raise _none(topic, partition, offset, "no object of JSON")
    wrong = [name for name in (*_NAME, *needs) if type(verdict.get(name)) is not _TYPES[name]]
    if wrong:
        raise _none(topic, partition, offset, f"{wrong[0]} is missing or of another type")
    return verdict


def _none(topic: str, partition: int, offset: int, why: str) -> CorruptRecord:
    return CorruptRecord(
        f"topic {topic}, partition {partition}, offset {offset}: no verdict of neardup ({why}); "
        "somebody else writes into this topic, and should have no right to"
    )
