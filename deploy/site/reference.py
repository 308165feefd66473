"""The reference pages, as Markdown, generated from the code: they cannot lag behind it."""

import inspect
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from importlib import import_module
from typing import Annotated, Any, get_args, get_origin

import yaml


def commands() -> str:
    """The help of every command."""
    from streams.commands.app import all_commands, help_of

    out = [
        "# Commands\n",
        "This is the text of `neardup COMMAND --help`. `make site` writes it as a manual page, too: `neardup.1`.\n",
    ]
    for name in sorted(all_commands()):
        out.append(f"## neardup {name}\n\n```text\n{help_of(name.split())}\n```\n")
    return "\n".join(out)


def exit_codes() -> str:
    """The exit codes of every command."""
    from streams.commands.app import EXIT_CODES

    rows = re.findall(r"^ *(\d+)  (.+)$", EXIT_CODES, re.MULTILINE)
    return "# Exit codes\n\n" + _table(("exit code", "meaning"), rows)


def settings() -> str:
    """Every setting except those of the decider."""
    from streams.config import load
    from streams.config.settings import OPTIONS

    rows = [
        (
            "<br>".join(
                f"`{name}`" for name in (option.name, "" if option.kind.secret else option.flag, option.env) if name
            ),
            _value(option.default, secret=option.kind.secret),
            f"{option.help} ({option.kind.allowed})",
        )
        for option in OPTIONS.values()
        if not option.name.startswith("decider.")
    ]
    return f"# Settings\n\n{_text(load.__doc__)}\n\n" + _table(
        ("setting, flag, variable", "default", "description"), rows
    )


def chart_values() -> str:
    """Every value of the Helm chart."""
    from deploy.chart import CHART, table

    return f"# Chart values\n\n{table((CHART / 'values.yaml').read_text())}\n"


def decider() -> str:
    """Every number that can change a verdict."""
    from neardup.decider import Decider, SiteOverride
    from streams.config.settings import OPTIONS

    rows = [
        (f"`{option.parameter}`", _value(option.default), f"{option.help} ({option.kind.allowed})")
        for option in OPTIONS.values()
        if option.name.startswith("decider.")
    ]
    overrides = ", ".join(f"`{each.name}`" for each in fields(SiteOverride))
    return (
        f"# Decider\n\n{_text(inspect.getdoc(Decider))}\n\nSet a number by `--set NAME=VALUE`, or by "
        "`NEARDUP_DECIDER__NAME`.\n\n"
        + _table(("number", "default", "description"), rows)
        + f"\nSettings of a single site (`sites`): {overrides}.\n"
    )


def verdict() -> str:
    """The fields of a verdict, and its JSON Schema."""
    from neardup.verdict import schema

    document = json.loads(schema())
    kinds = ", ".join(f"`{kind}`" for kind in document["$defs"]["kind"]["enum"])
    out = [f"# Verdict\n\n{document['description']}\n\nKinds: {kinds}.\n", "## Fields\n", _fields(document)]
    for name in ("evidence", "representative", "coordinates"):
        out += [f"## Fields of {name}\n", _fields(document["$defs"][name])]
    out.append(
        f"## JSON Schema\n\n`neardup config schema` prints it.\n\n```json\n{json.dumps(document, indent=2)}\n```\n"
    )
    return "\n".join(out)


def _fields(schema: Mapping[str, Any]) -> str:
    required = schema.get("required", ())
    rows = [
        (f"`{name}`", _type(what), "yes" if name in required else "", what.get("description", ""))
        for name, what in schema["properties"].items()
    ]
    return _table(("field", "type", "always", "description"), rows)


def _type(what: Mapping[str, Any]) -> str:
    return str(what.get("type") or what.get("$ref", "").rpartition("/")[2])


def export_tables() -> str:
    """The columns of the tables that `neardup export` writes."""
    from streams.verdicts.export import COLUMNS, INTERNAL, TABLES

    rows = [
        (f"`{name}`", ", ".join(f"`{table}`" for table in TABLES if name in TABLES[table]), kind, meaning)
        for name, (kind, meaning) in COLUMNS.items()
    ]
    names = "".join(
        f"* `{table}`: {_names(name for name in columns if name not in INTERNAL[table])}"
        + (f"; with `--all-columns` {_names(INTERNAL[table])}\n" if INTERNAL[table] else "\n")
        for table, columns in TABLES.items()
    )
    return (
        "# Export tables\n\n`neardup export --table NAME` writes one of these tables. The columns have this order; in a"
        " table of web pages, those with ids are empty and come last, and in one of documents those with URLs. Later "
        "versions only add columns.\n\n"
        f"{names}\n" + _table(("column", "tables", "type", "meaning"), rows)
    )


def _names(columns: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in columns)


def formats() -> str:
    """The bytes of records: modules that define a format document it, and the layout of a sketch."""
    from neardup.sketch.layout import HEADER, RecordFlag, RecordKind, RecordSection

    titles = {
        "codecs": "Records of pages",
        "raw": "Codec raw",
        "json": "Codec json",
        "warc": "Codec warc",
        "bodies": "Bodies outside Kafka",
        "verdict_records": "Records of verdicts",
        "message": "Messages of the sketch log",
    }
    out = ["# Formats\n"]
    for name, title in titles.items():
        module = import_module(f"streams.formats.{name}")
        out.append(f"## {title}\n\n{_text(module.__doc__)}\n\nModule: `streams/formats/{name}.py`.\n")
    layout = import_module("neardup.sketch.layout")
    out.append(f"## Sketch record\n\n`neardup/sketch/layout.py`: {_text(layout.__doc__)}\n")
    rows = [
        (f"`{name}`", str(HEADER.fields[name][1]), str(HEADER.fields[name][0].itemsize), HEADER.fields[name][0].str)
        for name in HEADER.names
    ]
    out.append(_table(("field of the header", "offset", "bytes", "numpy type"), rows))
    for kind in (RecordKind, RecordFlag, RecordSection):
        out.append(f"`{kind.__name__}`: {', '.join(f'{each.name} = {each.value}' for each in kind)}.\n")
    return "\n".join(out)


def metrics() -> str:
    """Every metric of a process."""
    from streams.process.metrics import Metrics

    rows = []
    for family in sorted(Metrics().registry.collect(), key=lambda each: each.name.startswith("process_")):
        labels = sorted({label for sample in family.samples for label in sample.labels} - {"le"})
        name = family.name + ("_total" if family.type == "counter" else "")
        rows.append((f"`{name}`", family.type, ", ".join(f"`{label}`" for label in labels), family.documentation))
    return (
        "# Metrics\n\nEach role serves these at `/metrics`, port 9464, in the text format of Prometheus.\n\n"
        + _table(("metric", "type", "labels", "description"), rows)
    )


def alert_rules() -> str:
    """Every alert and recording rule that the chart ships."""
    from deploy.chart import CHART

    groups = yaml.safe_load((CHART / "files" / "rules.yaml").read_text())["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    alerts = [
        (rule["alert"], rule["labels"]["severity"], rule.get("for", "0s"), _code(rule["expr"]))
        for rule in rules
        if "alert" in rule
    ]
    recorded = [(f"`{rule['record']}`", _code(rule["expr"])) for rule in rules if "record" in rule]
    return (
        "# Alert rules\n\nA condition must last for the time in the third column before the alert fires.\n\n"
        + _table(("alert", "severity", "holds for", "condition"), alerts)
        + "\n## Recorded expressions\n\n"
        + _table(("name", "expression"), recorded)
    )


def library() -> str:
    """The public names with their signatures and docstrings."""
    import neardup
    from neardup import canonical
    from streams import client

    out = ["# Library\n"]
    for module, names in (
        (neardup, neardup.__all__),
        (client, client.__all__),
        (canonical, ("choose", "policy_of")),
    ):
        out.append(f"## {module.__name__}\n\n{_text(inspect.getdoc(module))}\n")
        for name in names:
            found = getattr(module, name)
            out.append(f"### {name}\n\n```python\n{name}{_signature(found)}\n```\n\n{_text(inspect.getdoc(found))}\n")
            out += _methods(found)
    return "\n".join(out)


def _methods(found: Any) -> Iterator[str]:
    if not inspect.isclass(found) or issubclass(found, Exception):
        return
    for name, member in vars(found).items():
        function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        if not name.startswith("_") and inspect.isfunction(function) and function.__doc__:
            text = _text(inspect.getdoc(function)).replace("\n", "\n  ")
            yield f"* `{name}{_signature(function, wide=10_000)}`: {text}\n"


def _signature(found: Any, wide: int = 88) -> str:
    """Without the metadata of annotations; a parameter per line if one line is not wide enough."""
    try:
        signature = inspect.signature(found)
    except (TypeError, ValueError):
        return ""
    plain = [
        each.replace(annotation=get_args(each.annotation)[0]) if get_origin(each.annotation) is Annotated else each
        for each in signature.parameters.values()
    ]
    text = str(signature.replace(parameters=plain))
    if len(text) <= wide:
        return text
    _, mark, returned = text.rpartition(") -> ")
    return "(\n" + "".join(f"    {each},\n" for each in plain) + f"){' -> ' + returned if mark else ''}"


def _text(doc: str | None) -> str:
    """A docstring as Markdown: its arguments and errors become lists, and other indented lines stay as they are."""
    lines, section = [], ""
    for line in re.sub(r"<([A-Za-z/])", r"&lt;\1", inspect.cleandoc(doc or "")).splitlines():
        if head := re.fullmatch(r"(Args|Raises|Returns|Example):", line):
            section = head[1]
            lines += [f"**{section}**", ""]
            continue
        if line and not line.startswith(" "):
            section = ""
        if section in ("Args", "Raises"):
            line = f"* {line[4:]}" if re.match(r" {4}\S", line) else line[2:]
        elif section == "Returns":
            line = line[4:]
        lines.append(line)
    return "\n".join(lines)


def _value(value: Any, *, secret: bool = False) -> str:
    return "" if secret or value in (None, "", (), {}) else f"`{value}`"


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(_cell(each) for each in line)} |\n" for line in lines)


def _code(text: str) -> str:
    """Code in a cell of a table."""
    return "`" + re.sub(r"\s+", " ", text).replace("|", "\\|") + "`"


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|").replace("<", "&lt;") if not text.startswith("`") else text


#: By the page's name in the site.
PAGES: Mapping[str, Callable[[], str]] = {
    "commands.html": commands,
    "exit-codes.html": exit_codes,
    "settings.html": settings,
    "chart-values.html": chart_values,
    "decider.html": decider,
    "verdict.html": verdict,
    "export-tables.html": export_tables,
    "formats.html": formats,
    "metrics.html": metrics,
    "alert-rules.html": alert_rules,
    "library.html": library,
}
