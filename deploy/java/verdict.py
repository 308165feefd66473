"""Writes src/neardup/Verdict.java from the JSON Schema of a verdict.

    python deploy/java/verdict.py

A test compares the file with the schema.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from neardup.verdict import schema

TARGET = Path(__file__).resolve().parent / "src" / "neardup" / "Verdict.java"

_HEAD = """\
// Generated from neardup/verdict.schema.json by deploy/java/verdict.py: do not edit.
package neardup;

import com.fasterxml.jackson.annotation.JsonProperty;
import java.util.List;
import java.util.Map;

"""
_SCALARS = {"integer": ("long", "Long"), "number": ("double", "Double"), "boolean": ("boolean", "boolean")}


def render() -> str:
    """Returns the source of the class."""
    root = orjson.loads(schema())
    definitions: dict[str, Any] = root["$defs"]
    # An object within a record gets a record of its own, as the definitions have.
    definitions |= {name: each for name, each in root["properties"].items() if _is_record(each)}
    inner = [_kind(definitions["kind"])]
    inner += [_record(_camel(name, 1), each, definitions, 1) for name, each in definitions.items() if _is_record(each)]
    main = _record("Verdict", root, definitions, 0).removesuffix("{}\n")
    return f"{_HEAD}{main}{{\n" + "\n".join(inner) + "}\n"


def _is_record(definition: Mapping[str, Any]) -> bool:
    return "properties" in definition


def _camel(name: str, first: int = 0) -> str:
    words = name.split("_")
    return "".join(word.capitalize() if place >= 1 - first else word for place, word in enumerate(words))


def _kind(definition: Mapping[str, Any]) -> str:
    values = ",\n".join(f'        @JsonProperty("{each}") {each.upper()}' for each in definition["enum"])
    return f"    /** Kinds of verdicts. */\n    public enum Kind {{\n{values}\n    }}\n"


def _record(name: str, definition: Mapping[str, Any], definitions: Mapping[str, Any], depth: int) -> str:
    """Returns a record with its fields' descriptions. depth: 1 within the class."""
    indent = "    " * depth
    required = set(definition.get("required", ()))
    fields = definition["properties"].items()
    title = definition["title"] + ". " if "title" in definition else ""
    lines = ["/**", f" * {title}{definition.get('description', name + '.')} An absent field is null, or false."]
    described = [(_camel(field), each["description"]) for field, each in fields if "description" in each]
    lines += [" *", *(f" * @param {field} {text}" for field, text in described)] if described else []
    parameters = [_parameter(field, each, definitions, field in required) for field, each in fields]
    lines += [" */", f"public record {name}(", *(f"        {each}," for each in parameters[:-1])]
    return "".join(f"{indent}{line}\n" for line in [*lines, f"        {parameters[-1]}) {{}}"])


def _parameter(field: str, definition: Mapping[str, Any], definitions: Mapping[str, Any], needed: bool) -> str:
    mark = "@JsonProperty(required = true) " if needed else ""
    return f"{mark}{_type(field, definition, definitions, needed)} {_camel(field)}"


def _type(field: str, definition: Mapping[str, Any], definitions: Mapping[str, Any], needed: bool) -> str:
    """Returns the Java type of a field. needed: never absent, so that it can be a primitive."""
    if "$ref" in definition:
        name = definition["$ref"].rsplit("/", 1)[1]
        target = definitions[name]
        named = _is_record(target) or name == "kind"
        return _camel(name, 1) if named else _type(field, target, definitions, needed)
    if _is_record(definition):
        return _camel(field, 1)
    if "const" in definition:
        return "long"
    kind = definition["type"]
    if kind in _SCALARS:
        return _SCALARS[kind][0 if needed else 1]
    if kind == "array":
        return f"List<{_type(field, definition['items'], definitions, False)}>"
    if kind == "object":
        values = definition.get("additionalProperties")
        return f"Map<String, {_value(values, definitions)}>"
    return "String"


def _value(values: Any, definitions: Mapping[str, Any]) -> str:
    if not isinstance(values, dict):
        return "Object"
    return "String" if "enum" in values else _type("", values, definitions, False)


if __name__ == "__main__":
    TARGET.write_text(render(), encoding="utf-8")
    print(re.sub(r".*/deploy", "deploy", str(TARGET)))
