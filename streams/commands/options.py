"""Turns a dataclass into a command: its fields are the arguments and options, each with help, default and limits.

    class Options(Json):
        url: Annotated[str, Arg("URL", "The page.")]
        page_id: Annotated[int | None, Opt("An earlier fetch of the URL.", metavar="ID")] = None

    @command("explain", "neardup explain https://a.example/page.html")
    def explain(options: Options) -> int | None:
        \"""Say why a page got its verdict.\"""

The text of `--help` is the docstring of the function, the exit code what it returns. Commands share options by
inheritance. A field `settings: Annotated[Settings, Flags(...)]` is made of flags, environment and file.
"""

import math
import os
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, MISSING, Field, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Union, dataclass_transform, get_args, get_origin, get_type_hints

import click

from neardup.errors import NeardupError
from streams.config.load import load
from streams.config.settings import OPTIONS, Role
from streams.errors import WrongUsage

#: The commands of the modules that were imported, by name.
COMMANDS: dict[str, "Command"] = {}


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Given:
    """Base class of options: its subclasses are frozen dataclasses, made by keywords."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, kw_only=True)(cls)


@dataclass(frozen=True)
class Opt:
    """An option, or an argument.

    Args:
        flags: its spellings, separated by blanks, "--on/--off" for a pair; "": the name of the field. Of an argument:
            the option that may stand for it.
        low, high: limits of a number.
        choices: the admitted values.
        completes: values that a shell completes, if others are admitted, too.
        parse: makes the value from text.
        env: environment variable that is read if the option is missing.
        check: called with the value, before the command runs; raises WrongUsage.
    """

    help: str
    flags: str = ""
    _: KW_ONLY
    metavar: str = ""
    low: float | None = None
    high: float | None = None
    choices: Sequence[str] = ()
    completes: Sequence[str] = ()
    parse: Callable[[str], Any] | None = None
    env: str = ""
    check: Callable[[Any], None] | None = None
    shows_default: bool = True
    is_argument: bool = False


def Arg(metavar: str, help: str, flags: str = "", **more: Any) -> Opt:
    """An argument."""
    return Opt(help, flags, metavar=metavar, is_argument=True, **more)


@dataclass(frozen=True)
class Flags:
    """Settings as flags.

    names: of the settings. role: what `load` requires. connects: the role whose connection is tried before the command
    runs. argument: the setting that an argument may name, "" for none.
    """

    names: Sequence[str]
    role: str = ""
    connects: Role | None = None
    argument: str = ""


#: Settings by the panel of the help that shows them.
PANELS: Mapping[str, Sequence[str]] = {
    "Connection and topics": (
        *("bootstrap", "generation", "group", "topic_prefix", "sketches_of"),
        *("pages_topic", "rejected_topic", "sketches_topic", "verdicts_topic", "audit_topic"),
    ),
    "Pages": ("codec", "body_ref_prefixes", "message_bytes_max", "body_bytes_max"),
    "Batches": ("batch_pages", "batch_ms", "inflight_batches", "threads"),
    "Matching": ("state", "match_messages", "flush_ms", "transaction_timeout_ms", "transaction_deadline_ms"),
    "Decider": ("decider.rule", "decider.sites", "set"),
    "Shards": ("shards", "epoch", "candidates_topic", "effects_topic"),
    "Checkpoints": ("checkpoints", "checkpoint_messages", "checkpoints_kept"),
    "Audits and shadow rules": ("audit_rate", "shadow", "shadow_set"),
    "Monitoring": (
        *("stall_ms", "hold_ms", "metrics_host", "metrics_port", "log_level", "log_format", "traces", "trace_rate"),
    ),
}
CONNECTION = ("bootstrap", "generation", "group", "topic_prefix")
TOPICS = PANELS["Connection and topics"]
PAGES = ("codec", "body_ref_prefixes", "message_bytes_max")
SKETCHES = ("body_bytes_max",)
DECIDER = PANELS["Decider"]
SHARDS = PANELS["Shards"]
MONITORING = PANELS["Monitoring"][:-2]
TRACING = PANELS["Monitoring"][-2:]
SKETCH = (*TOPICS, *PAGES, *PANELS["Batches"], *SKETCHES, *MONITORING, *TRACING)
MATCH = (
    *(*TOPICS, *SKETCHES, *PANELS["Matching"], *PANELS["Checkpoints"], *DECIDER, *SHARDS),
    *(*PANELS["Audits and shadow rules"], *MONITORING, *TRACING),
)
#: What a shell completes for a metavar: names of files or of folders.
_PATHS: Mapping[str, str] = {
    **dict.fromkeys(("PATH", "FILE", "A", "B", "BEFORE", "AFTER", "LABELS", "MODEL", "RESULTS"), "file"),
    "DIR": "dir",
}
#: Metavars of numbers; click adds their limits.
_METAVARS: Mapping[Any, str] = {int: "N", float: "NUMBER"}
#: Flags that take several values and are no single setting.
_REPEATED = {
    "set": ("NAME=NUMBER", "A number of the decider, as tape_min=0.8; see `neardup config`; may be repeated."),
    "kafka": ("NAME=VALUE", "A librdkafka setting for all roles, or ROLE.NAME=VALUE for one; may be repeated."),
}


class Command(click.Command):
    """A command of a dataclass of options."""

    def __init__(
        self, name: str, run: Callable[[Any], int | None], examples: Sequence[str], codes: str, instead: str
    ) -> None:
        self.run, self.instead = run, instead
        self.options: type = get_type_hints(run)["options"]
        self.specs = dict(_specs(self.options))
        lines = ["\b", "Examples:", *(f"  {example}" for example in examples), "", codes]
        params = [parameter for field, hint in self.specs.values() for parameter in _parameters(field, *hint)]
        super().__init__(name, params=params, help=run.__doc__, epilog="\n".join(lines))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            if self.instead and error.message.startswith("Got unexpected extra argument"):
                error.message += f". {self.instead}"
            raise

    def invoke(self, ctx: click.Context) -> None:
        given, values = dict(ctx.params), {}
        for name, (_, (_, spec)) in self.specs.items():
            if isinstance(spec, Flags):
                values[name] = _settings(spec, given)
                continue
            values[name] = given[name]
            if spec.is_argument and (argument := given.get(f"{name}_argument")) is not None:
                if ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
                    raise WrongUsage(f"{spec.metavar.strip('[]')} is given twice: {argument} and {spec.flags}")
                values[name] = argument
            if spec.check is not None and values[name] not in (None, (), ""):
                spec.check(values[name])
        if code := self.run(self.options(**values)):
            ctx.exit(code)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes arguments, options, and the panels of settings."""
        panels: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": [], **{title: [] for title in PANELS}}
        for parameter in self.get_params(ctx):
            if isinstance(parameter, Argument):
                panels["Arguments"].append((parameter.make_metavar(ctx), parameter.help))
            elif record := parameter.get_help_record(ctx):
                panels[getattr(parameter, "panel", "Options")].append(record)
        for title, records in panels.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


class Argument(click.Argument):
    """An argument with help."""

    def __init__(self, *given: Any, help: str, **more: Any) -> None:
        super().__init__(*given, **more)
        self.help = help


def command(
    name: str, *examples: str, codes: str = "", instead: str = ""
) -> Callable[[Callable[[Any], int | None]], Any]:
    """A decorator: registers a function that takes `options`, a dataclass, and returns an exit code or None.

    codes: text about exit codes. instead: advice to a user who gives an argument that the command does not take.
    """

    def decorate(run: Callable[[Any], int | None]) -> Callable[[Any], int | None]:
        COMMANDS[name] = Command(name, run, examples, codes, instead)
        return run

    return decorate


def _specs(options: type) -> Iterator[tuple[str, tuple[Field[Any], tuple[Any, Any]]]]:
    """Fields with type and metadata: those of the class itself before those that it inherits."""
    hints, known = get_type_hints(options, include_extras=True), {field.name: field for field in fields(options)}
    for owner in (each for each in options.__mro__ if is_dataclass(each)):
        for name in owner.__annotations__:
            if field := known.pop(name, None):
                kind, spec = get_args(hints[name])
                yield name, (field, (kind, spec))


def _parameters(field: Field[Any], kind: Any, spec: Any) -> Iterator[click.Parameter]:
    if isinstance(spec, Flags):
        yield from _of_settings(spec)
        return
    if get_origin(kind) in (Union, types.UnionType):
        kind = get_args(kind)[0]
    many = get_origin(kind) is tuple
    kind = get_args(kind)[0] if many else kind
    default = None if field.default in (MISSING, ()) else field.default
    common: dict[str, Any] = {
        "type": _type(kind, spec),
        "metavar": spec.metavar or _METAVARS.get(kind),
        "envvar": spec.env or None,
    }
    metavar = spec.metavar.strip("[].")
    if spec.completes:
        common["shell_complete"] = _completing(spec.completes)
    elif metavar in _PATHS:
        common["shell_complete"] = _completing_paths(_PATHS[metavar])
    if spec.is_argument:
        name = f"{field.name}_argument" if spec.flags else field.name
        required = field.default is MISSING and not spec.flags
        text = f"{spec.help} [or {spec.flags}]" if spec.flags else spec.help
        given = {**common, "metavar": spec.metavar, "envvar": None}
        yield Argument([name], help=text, nargs=-1 if many else 1, required=required, **given)
        if not spec.flags:
            return
        common["metavar"] = metavar
    names = spec.flags.split() or ["--" + field.name.replace("_", "-")]
    if default is not None and not many:
        common["default"] = default  # an explicit None would satisfy `required`
    if kind is bool:
        common |= {"is_flag": True, "type": None}
    shown = spec.shows_default and default not in (None, "") and kind is not bool
    yield click.Option(
        [field.name, *names],
        help=spec.help,
        multiple=many,
        required=field.default is MISSING and not spec.is_argument,
        show_default=shown,
        show_envvar=True,
        **common,
    )


def _completing(words: Sequence[str]) -> Any:
    return lambda context, parameter, incomplete: [word for word in words if word.startswith(incomplete)]


def _completing_paths(kind: str) -> Any:
    """kind: "file" or "dir"."""

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[Any]:
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type=kind)]

    return complete


def _type(kind: Any, spec: Opt) -> Any:
    if spec.parse is not None:
        return _Parsed(spec.parse)
    if spec.choices:
        return click.Choice(spec.choices)
    if spec.low is not None or spec.high is not None:
        return click.IntRange(spec.low, spec.high) if kind is int else _FloatRange(spec.low, spec.high)
    return _Parsed(Path) if kind is Path else kind


class _FloatRange(click.FloatRange):
    """A finite number within limits; click's own takes NaN."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not math.isfinite(number := super().convert(value, param, ctx)):
            self.fail(f"{value} is no finite number.", param, ctx)
        return number


class _Parsed(click.ParamType):
    """A value that a function makes of text."""

    name = "value"

    def __init__(self, parse: Callable[[str], Any]) -> None:
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except (ValueError, NeardupError) as error:
            self.fail(str(error), param, ctx)


def _of_settings(spec: Flags) -> Iterator[click.Parameter]:
    if spec.argument:
        option = OPTIONS[spec.argument]
        yield Argument([f"{option.parameter}_argument"], help=f"{option.help} [or {option.flag}]", required=False,
                       metavar="[DIR]", shell_complete=_completing_paths("dir"))  # fmt: skip
    for name in (*spec.names, "kafka"):
        if name in _REPEATED:
            metavar, text = _REPEATED[name]
            made = click.Option([name, f"--{name}"], metavar=metavar, help=text, multiple=True)
        else:
            option = OPTIONS[name]
            allowed = option.kind.allowed
            _, one_of, words = allowed.partition("one of ")
            complete = _completing(words.split(", ")) if one_of else None
            if allowed.startswith("a folder"):
                complete = _completing_paths("dir")
            elif "a file" in allowed:
                complete = _completing_paths("file")
            made = click.Option(
                [option.parameter, option.flag], metavar="VALUE", help=option.usage, shell_complete=complete
            )
        made.panel = _PANEL_OF.get(name, "Options")  # type: ignore[attr-defined]
        yield made
    yield click.Option(
        ["config", "--config"],
        metavar="FILE",
        help="File of settings, as TOML [NEARDUP_CONFIG]",
        shell_complete=_completing_paths("file"),
    )


def _settings(spec: Flags, given: Mapping[str, Any]) -> Any:
    parameters = [name if name in _REPEATED else OPTIONS[name].parameter for name in (*spec.names, "kafka")]
    flags = {name: given[name] for name in (*parameters, "config")}
    if spec.argument and (argument := given[f"{spec.argument}_argument"]) is not None:
        if flags[spec.argument] is not None:
            raise WrongUsage(f"DIR is given twice: {argument} and {OPTIONS[spec.argument].flag}")
        flags[spec.argument] = argument
    settings = load(os.environ, flags=flags, role=spec.role)
    if spec.connects is not None:
        from streams.roles.runtime import greet

        greet(settings, spec.connects)
    return settings


#: Settings that stand first in the help, outside the panels.
_FIRST = {"bootstrap", "generation", "state", "decider.rule", "set", "threads", "checkpoints", "metrics_port"}
_PANEL_OF = {name: title for title, names in PANELS.items() for name in names if name not in _FIRST}


def values(options: Any, *without: str) -> dict[str, Any]:
    """Fields of a dataclass of options by name, for a function that takes parameters of these names."""
    return {field.name: getattr(options, field.name) for field in fields(options) if field.name not in without}
