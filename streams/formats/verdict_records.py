"""Decodes records of the `verdicts` topic. Errors name the position of a record that is not a verdict.

The key is the URL, the value a JSON object as `neardup config schema` describes it. There is no codec for Avro or
Protobuf: no schema registry could be run to test one.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from neardup.errors import CorruptRecord

#: A verdict as its readers have it: the fields of its JSON.
Verdict = Mapping[str, Any]

#: Types of fields that every verdict has, as in neardup/verdict.schema.json. The first four identify a verdict.
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
    """Decodes a verdict. needs: required fields beside those that identify a verdict.

    Raises CorruptRecord for a record that is not a verdict, with topic, partition and offset.
    """
    verdict = decode_object(value, topic, partition, offset, "verdict")
    wrong = [name for name in (*_NAME, *needs) if type(verdict.get(name)) is not _TYPES[name]]
    if wrong:
        raise _none("verdict", topic, partition, offset, f"{wrong[0]} is missing or of another type")
    return verdict


def decode_object(value: bytes | None, topic: str, partition: int, offset: int, what: str) -> dict[str, Any]:
    """Decode any JSON object. what: name of the object in errors.

    Raises CorruptRecord with topic, partition and offset.
    """
    try:
        found = orjson.loads(value or b"")
    except orjson.JSONDecodeError as error:
        raise _none(what, topic, partition, offset, f"no JSON: {error.msg}" if value else "empty") from error
    if not isinstance(found, dict):
        raise _none(what, topic, partition, offset, "no object of JSON")
    return found


def _none(what: str, topic: str, partition: int, offset: int, why: str) -> CorruptRecord:
    return CorruptRecord(
        f"topic {topic}, partition {partition}, offset {offset}: no {what} of neardup ({why}); "
        "another program writes to this topic, and should have no right to"
    )
