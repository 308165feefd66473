"""Reads JSON of other programs as typed values, and says in a sentence which field is wrong.

Fields are declared once, as a `msgspec.Struct` with annotations. `tolerant_json` parses the text before, so missing
numbers written as `NaN` are null here, too.
"""

import re
from typing import Any, TypeVar

import msgspec
import orjson

from neardup.tolerant_json import loads

T = TypeVar("T")

#: Types in messages of msgspec, and their names in sentences.
_TYPES = {
    "str": "text",
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "bytes": "bytes",
    "array": "an array",
    "object": "an object",
    "null": "null",
}
_GIVEN = {**_TYPES, "float": "a fraction"}
_EXPECTED = re.compile(
    r"Expected `(?P<kinds>[^`]+)`(?:, got `(?P<given>[^`]+)`"
    r"|(?: of (?P<length>length))? (?P<sign>>=|<=) (?P<bound>\S+))"
)
_ENUM = "Invalid enum value "
_SIGNS = {">=": "at least", "<=": "at most"}


def decode(text: bytes, kind: type[T]) -> T:
    """Parses JSON text in UTF-8 as a value of a type. Raises ValueError with a sentence that names the field."""
    try:
        value = loads(text)
    except orjson.JSONDecodeError as error:
        # Not its own text: that counts lines within this one.
        raise ValueError(f"not JSON: {error.msg}, at character {error.pos}") from error
    return typed(value, kind)


def typed(value: Any, kind: type[T]) -> T:
    """Returns a parsed value as a value of a type. Raises ValueError with a sentence that names the field."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise ValueError(_sentence(str(error))) from None


def _sentence(message: str) -> str:
    """Words a message of msgspec, such as "Expected `str | null`, got `int` - at `$.lang`", as a sentence."""
    reason, _, place = message.partition(" - at `$")
    field = re.sub(r"\[\.\.\.\]", "", place.removesuffix("`")).lstrip(".")
    if found := _EXPECTED.fullmatch(reason):
        subject = field or "the value"
        kinds = [_TYPES.get(kind, kind) for kind in found["kinds"].split(" | ") if kind != "null"]
        required = " or ".join(kinds)
        if found["sign"]:
            bound = float(found["bound"])
            least = f"{_SIGNS[found['sign']]} {int(bound) if bound.is_integer() else bound:,}"
            if found["length"]:
                return f"{subject} has a length out of range: {required} of a length of {least} is required"
            return f"{subject} is out of range: {required} of {least} is required"
        return f"{subject} is {_GIVEN.get(found['given'], found['given'])}, and {required} is required"
    if reason.startswith(_ENUM):
        return f"{field or 'the value'} is {reason.removeprefix(_ENUM)}, which is no known value"
    name = reason.partition("`")[2].partition("`")[0]
    path = f"{field}.{name}" if field else name
    if reason.startswith("Object missing required field"):
        return f"{path} is missing"
    if reason.startswith("Object contains unknown field"):
        return f"{path} is no known field"
    return f"{field}: {reason}" if field else reason
