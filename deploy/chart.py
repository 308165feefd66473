"""Generates files of the chart from its values.yaml and the settings of the roles:

values.schema.json     lets Helm reject unknown keys and invalid values
files/kafka.json       librdkafka settings that are secret or reserved
Chart.yaml             both versions, from pyproject.toml

    python deploy/chart.py            # writes the files
    python deploy/chart.py --check    # reports stale files and writes nothing

The type of a value is that of its default. Comments above it: `# -- text` describes it; `# @schema {...}` adds to its
JSON Schema, and `# @schema NAME` adds one of SHAPES, or the schemas of all `settings` or `decider` numbers.
"""

import json
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import yaml

from streams.config.settings import OPTIONS, RESERVED, SECRET, Option

CHART = Path(__file__).resolve().parents[1] / "helm" / "neardup"

#: Settings that the chart derives from other values.
OWN = {
    *("bootstrap", "generation", "group", "topic_prefix", "state", "seed", "metrics_host", "metrics_port"),
    *("pages_topic", "rejected_topic", "sketches_topic", "verdicts_topic", "audit_topic"),
    *("checkpoints", "checkpoint_messages", "checkpoints_kept", "views_state", "views_token", "ask_token"),
    "audit",  # a local file; the chart has kafka.topics.audit
}
_QUANTITY = {"type": ["string", "number"], "pattern": r"^[0-9]+(\.[0-9]+)?(m|k|Ki|M|Mi|G|Gi|T|Ti)?$"}
_FROM_0_TO_1 = r"^(0?\.[0-9]{1,17}|[01](\.0*)?)$"
_AMOUNTS = {"type": "object", "additionalProperties": _QUANTITY}
SHAPES: Mapping[str, Mapping[str, Any]] = {
    "topic": {"pattern": "^[A-Za-z0-9._-]{1,200}$"},
    "name": {"pattern": r"^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?)?$"},
    "resources": {
        "properties": {"requests": _AMOUNTS, "limits": _AMOUNTS, "claims": {"type": "array"}},
        "additionalProperties": False,
    },
}


def schema_of_setting(option: Option) -> dict[str, Any]:
    """Return the JSON Schema of a setting, from the annotation of its field."""
    found = msgspec.json.schema(option.kind.type)
    if found.get("type") == "number":
        # `--set decider.tape_min=0.8` gives a string: Helm parses whole numbers only.
        found |= {"type": ["number", "string"], "pattern": _FROM_0_TO_1}
    elif "enum" in found:
        found = {"enum": found["enum"]}
    elif isinstance(option.default, Mapping):
        found = {"type": "object"}
    elif found.get("type") != "integer":
        # Not the pattern: Helm's regular expressions know no lookahead. Lists are texts with commas.
        found = {"type": "string"}
    return {"description": f"{option.help}: {option.kind.allowed}", **found}


def schema_of_settings(*, decider: bool) -> dict[str, Any]:
    properties = {}
    for name, option in OPTIONS.items():
        table, dot, short = name.rpartition(".")
        if option.kind.secret or name in OWN or (table == "decider") is not decider:
            continue
        assert dot == ("." if decider else "")
        properties[short] = schema_of_setting(option)
    return {"type": "object", "properties": properties, "additionalProperties": False}


class Value:
    """One key of values.yaml. path: with dots; default: parsed; text, annotations: of its comments."""

    def __init__(self, path: str, default: Any, comments: list[str]) -> None:
        self.path, self.default = path, default
        self.text = " ".join(line[3:] for line in comments if line.startswith("-- "))
        self.annotations = [line.removeprefix("@schema ") for line in comments if line.startswith("@schema ")]

    def schema(self) -> dict[str, Any]:
        kinds = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
        found: dict[str, Any] = {"type": kinds[type(self.default)]}
        if self.text:
            found["description"] = self.text
        for annotation in self.annotations:
            if annotation in ("settings", "decider"):
                found |= schema_of_settings(decider=annotation == "decider")
            else:
                found |= json.loads(annotation) if annotation.startswith("{") else SHAPES[annotation]
        return found


def values(text: str) -> Iterator[tuple[Value, bool]]:
    """Yield every key of values.yaml in order, and whether it is a leaf, whose default is one value."""
    lines = text.splitlines()

    def comments(line: int) -> list[str]:
        found: list[str] = []
        while line and (stripped := lines[line - 1].strip()).startswith("#"):
            found.insert(0, stripped.lstrip("# "))
            line -= 1
        return found

    def walk(node: yaml.MappingNode, prefix: str) -> Iterator[tuple[Value, bool]]:
        for key, value in node.value:
            path = f"{prefix}{key.value}"
            default = yaml.safe_load(yaml.serialize(value))
            made = Value(path, default, comments(key.start_mark.line))
            deeper = isinstance(value, yaml.MappingNode) and bool(value.value) and not made.annotations
            yield made, not deeper
            if deeper:
                yield from walk(value, f"{path}.")

    root = yaml.compose(text)
    assert isinstance(root, yaml.MappingNode)
    yield from walk(root, "")


def schema(text: str) -> str:
    """Return values.schema.json."""
    title = "Values of neardup's chart"
    root: dict[str, Any] = {"$schema": "http://json-schema.org/draft-07/schema#", "title": title}
    objects: dict[str, dict[str, Any]] = {
        "": root | {"type": "object", "properties": {}, "additionalProperties": False}
    }
    # Parent charts pass these down.
    objects[""]["properties"]["global"] = {"type": "object"}
    for value, leaf in values(text):
        above, _, name = value.path.rpartition(".")
        made = value.schema()
        if not leaf:
            made = objects[value.path] = made | {"properties": {}, "additionalProperties": False}
        objects[above]["properties"][name] = made
    return json.dumps(objects[""], indent=2) + "\n"


def table(text: str) -> str:
    """Return the values as rows of Markdown, for the site."""
    rows = ["| value | default | |", "|---|---|---|"]
    for value, leaf in values(text):
        if leaf:
            default = json.dumps(value.default)
            rows.append(f"| `{value.path}` | `{default}` | {value.text.replace('|', chr(92) + '|')} |")
    return "\n".join(rows)


def written() -> dict[Path, str]:
    """Return the content of each file."""
    text = (CHART / "values.yaml").read_text()
    version = tomllib.loads((CHART.parents[1] / "pyproject.toml").read_text())["project"]["version"]
    chart = re.sub(r"(?m)^(version|appVersion): .*$", rf"\1: {version}", (CHART / "Chart.yaml").read_text())
    return {
        CHART / "Chart.yaml": chart,
        CHART / "values.schema.json": schema(text),
        CHART / "files" / "kafka.json": json.dumps({"secret": SECRET, "reserved": RESERVED}, indent=2) + "\n",
    }


def main() -> int:
    stale = [path for path, text in written().items() if not path.exists() or path.read_text() != text]
    if "--check" in sys.argv[1:]:
        for path in stale:
            print(f"{path} is stale: run {Path(__file__).name}", file=sys.stderr)
        return 1 if stale else 0
    for path in stale:
        path.write_text(written()[path])
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
