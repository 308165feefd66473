"""Writes Scheme and Decider as JSON, so that their digests stay equal when fields are added.

Fields of the first release are always written. A later field names its neutral value: the one with which the program
behaves as it did before the field existed. It is written only if it differs from that. So a deployment that does not
use a new field keeps its digest and its index.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar

from neardup.errors import OtherVersion

_Value = TypeVar("_Value")
_NEUTRAL = "neutral"


def later(default: _Value, *, neutral: _Value) -> _Value:
    """Declare a field that was added after the first release.

    Args:
        default: value of the field in a new object.
        neutral: value with which the program behaves as before the field existed. It never changes after a release.
    """
    value: _Value = dataclasses.field(default=default, metadata={_NEUTRAL: neutral})
    return value


def neutral_values(kind: type) -> dict[str, Any]:
    """Returns the neutral values of the fields of a dataclass that were added after the first release."""
    fields = dataclasses.fields(kind)
    return {field.name: field.metadata[_NEUTRAL] for field in fields if _NEUTRAL in field.metadata}


def written(value: Any) -> Any:
    """Returns a dataclass as plain values without neutral ones; mappings of dataclasses likewise."""
    if isinstance(value, Mapping):
        return {name: written(each) for name, each in value.items()}
    if not dataclasses.is_dataclass(value):
        return value
    names = {field.name: field.metadata for field in dataclasses.fields(value)}
    values = {name: getattr(value, name) for name in names}
    return {
        name: written(each)
        for name, each in values.items()
        if _NEUTRAL not in names[name] or each != names[name][_NEUTRAL]
    }


def read(kind: type, values: Any, where: str) -> dict[str, Any]:
    """Return the values of all fields of a dataclass.

    Args:
        kind: the dataclass.
        values: result of `written`, parsed from JSON.
        where: origin of the values, which errors name.

    Raises:
        OtherVersion: if this program does not know a field of the values.
        ValueError: if the values lack a field of the first release.
    """
    if not isinstance(values, dict):
        raise ValueError(f"not an object of JSON, but {type(values).__name__}")
    fields = dataclasses.fields(kind)
    if unknown := sorted(values.keys() - {field.name for field in fields}):
        raise newer(where, ", ".join(unknown))
    if missing := [field.name for field in fields if _NEUTRAL not in field.metadata and field.name not in values]:
        raise ValueError(f"{', '.join(missing)} missing")
    return neutral_values(kind) | values


def newer(where: str, what: str) -> OtherVersion:
    """Makes the error for fields that this program does not know."""
    return OtherVersion(f"{where}: written by a newer version of neardup (this one does not know {what}); run that one")
