"""How Scheme and Decider are written as JSON, so that their digests outlive new fields.

Fields of the first release are always written. A later one names its neutral value, the one with which the program
does what it did before the field came: it is written only if it differs from that. So what was written before keeps
its bytes, and with them its digest, and whoever has no use for the new field goes on with the index that he has.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar

from neardup.errors import OtherVersion

_Value = TypeVar("_Value")
_NEUTRAL = "neutral"


def later(default: _Value, *, neutral: _Value) -> _Value:
    """A field that came after the first release. default: for new deciders; neutral: never changes once released."""
    value: _Value = dataclasses.field(default=default, metadata={_NEUTRAL: neutral})
    return value


def neutral_values(kind: type) -> dict[str, Any]:
    """Of the fields of a dataclass that came after the first release."""
    fields = dataclasses.fields(kind)
    return {field.name: field.metadata[_NEUTRAL] for field in fields if _NEUTRAL in field.metadata}


def written(value: Any) -> Any:
    """A dataclass as plain values, neutral ones left out; mappings of dataclasses likewise."""
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
    """The values of all fields of a dataclass. values: what `written` gave, from JSON; where: whose they are.

    Raises OtherVersion for a field that this program does not know, ValueError for anything but all fields of the
    first release.
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
    """The error of something written that this program does not know."""
    return OtherVersion(f"{where}: written by a newer version of neardup (this one does not know {what}); run that one")
