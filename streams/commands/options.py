"""Arguments and options that several commands share, and the settings of the stream as flags.

A command is a function of `streams.commands.app`; cyclopts makes its arguments and options of its parameters:

    @command(FILES, "neardup report DIR --out report.html")
    def report(state: State = STATE, *, out: Annotated[Path, Writes("The file.")] = Path("report.html")) -> None:
        \"""Write a report of a scan as one HTML file.\"""

The text of `--help` is the docstring, the exit code what the function returns. Options that belong together are fields
of a dataclass that several commands take. Settings of the stream are flags of a `SettingFlags`, made from the table in
`streams.config.settings`: one line there gives flag, variable, check, help and chart.
"""

import math
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from cyclopts import Group, Parameter

from neardup.decider import ONLINE_RULES, Decider
from neardup.errors import BadInput
from neardup.scheme import Scheme
from streams.config.load import decider_numbers, load
from streams.config.settings import OPTIONS, TOPIC_NAME, Role, Settings
from streams.config.sites import sites_of
from streams.errors import WrongUsage
from streams.files.input_formats import TABLES, TITLES

if TYPE_CHECKING:
    from neardup.evaluation.truth import Editions
    from streams.client import Start
    from streams.files.not_read import NotRead
    from streams.files.sources import ReadOptions

Paths = str | Path | Sequence[str | Path]
STATE = Path("neardup-state")
CPUS = os.cpu_count() or 1
#: Default of threads and processes that leave a processor to the main one.
THREADS = max(1, CPUS - 1)
SEED_MAX = (1 << 63) - 1
_AGO = re.compile(r"(\d{1,9})([smhd])")
_UNIT_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
RULES = ", ".join(ONLINE_RULES)


def Opt(help: str, *names: str, check: Callable[[Any], None] | None = None, **more: Any) -> Parameter:
    """An option or argument.

    Args:
        help: sentence for the help.
        names: spellings of the option; by default the name of the parameter.
        check: function that receives a value which is not empty, and raises WrongUsage.
    """
    validator = None if check is None else (lambda kind, value: None if value in (None, (), "") else check(value))
    return Parameter(name=names or None, help=help, validator=validator, **more)


def Number(help: str, *names: str, low: float, high: float | None = None, **more: Any) -> Parameter:
    """An option of a finite number within limits."""
    between = f"{low:g} or more" if high is None else f"from {low:g} to {high:g}"

    def check(value: float) -> None:
        if not math.isfinite(value) or value < low or (high is not None and value > high):
            raise WrongUsage(f"{names[0] if names else 'a number'}: {value:g} is out of range: {between}")

    return Opt(f"{help} [{between}]", *names, check=check, metavar="N", **more)


def Reads(help: str, *names: str, **more: Any) -> Parameter:
    """A file that must exist."""
    return Opt(help, *names, check=must_exist, metavar=more.pop("metavar", "FILE"), **more)


def Writes(help: str, *names: str) -> Parameter:
    """A file that the command writes at its end."""
    return Opt(help, *names, check=must_be_writable, metavar="FILE", allow_leading_hyphen=True)


def Folder(help: str) -> Parameter:
    """A folder that the command makes or writes to."""
    return Opt(help, check=must_be_folder, metavar="DIR")


def Many(help: str, *names: str, **more: Any) -> Parameter:
    """An option that may be repeated."""
    return Opt(f"{help} May be repeated.", *names, negative_iterable="", **more)


def _each(given: Paths) -> list[str]:
    return [str(given)] if isinstance(given, str | Path) else [str(one) for one in given]


def must_exist(given: Paths) -> None:
    """Raises WrongUsage for a path that does not exist or cannot be read. URLs and `-` are not checked."""
    for path in _each(given):
        if path == "-" or "://" in path:
            continue
        if not os.path.exists(path):
            raise WrongUsage(f"{path}: no such {'option or ' * path.startswith('-')}file or folder")
        if not os.access(path, os.R_OK):
            raise WrongUsage(f"{path}: cannot be read: permission denied")


def is_topic(source: str) -> bool:
    """Tells `topic:NAME` from a path. Raises WrongUsage unless NAME may name a topic."""
    of, _, name = source.partition(":")
    if of != "topic":
        return False
    if not re.fullmatch(TOPIC_NAME, name):
        raise WrongUsage(f"{source!r} names no topic; one is topic:verdicts")
    return True


def must_be_writable(given: Paths) -> None:
    """Raises WrongUsage for a file that cannot be written; `-` is standard output."""
    for path in (Path(one) for one in _each(given) if one != "-"):
        folder = path.absolute().parent
        if path.is_dir():
            raise WrongUsage(f"{path}: is a folder; name a file")
        if not folder.is_dir():
            raise WrongUsage(f"{path}: cannot be written: there is no folder {folder}")
        if not os.access(path if path.exists() else folder, os.W_OK):
            raise WrongUsage(f"{path}: cannot be written: permission denied")


def must_be_folder(given: Paths) -> None:
    """Raises WrongUsage for a folder that could not be made or written to."""
    for path in (Path(one).absolute() for one in _each(given)):
        if path.exists() and not path.is_dir():
            raise WrongUsage(f"{path}: is no folder; name a folder")
        nearest = next(one for one in (path, *path.parents) if one.exists())
        if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
            raise WrongUsage(f"{path}: cannot be written: permission denied")


def must_be_state(state: Path) -> None:
    """Raises WrongUsage for what is no state directory."""
    if not (state / "scheme.json").is_file():
        if state == STATE:  # where none was named, or not as an option
            raise WrongUsage(f"{state} is no state directory; name it by --state, or make it by `neardup scan FILE`")
        raise WrongUsage(f"{state} is no state directory; `neardup scan FILE --state {state}` makes one")


def must_be_scan(state: Path) -> None:
    """Raises WrongUsage for what is no state directory of a scan."""
    must_be_state(state)
    if not (state / "log").is_dir():
        raise WrongUsage(f"{state} is the state directory of a matcher; name that of a scan")


@dataclass(frozen=True)
class Inputs:
    """Inputs as local files. copies: folder for further copies. not_read: what of the inputs is not read, so far."""

    paths: list[Path]
    copies: Path
    not_read: "NotRead"


@contextmanager
def inputs(given: Sequence[str | Path]) -> Iterator[Inputs]:
    """Yields inputs as local files (`streams.files.fetching`); copies of remote ones are removed at the end."""
    from streams.files.fetching import fetched
    from streams.files.not_read import NotRead

    not_read = NotRead()
    with tempfile.TemporaryDirectory(prefix="neardup-inputs-") as folder:
        yield Inputs(fetched(given, Path(folder), not_read), Path(folder), not_read)


def parse_start(text: str, now_ms: int) -> "Start":
    """`beginning`, `end`, a time ago (`30s`, `15m`, `2h`, `7d`), or a date and time (ISO 8601; local without a zone).

    now_ms, and a time in the result: ms since the epoch. Raises WrongUsage.
    """
    if text == "beginning":
        return "beginning"
    if text == "end":
        return "end"
    if ago := _AGO.fullmatch(text):
        return max(0, now_ms - int(ago[1]) * _UNIT_MS[ago[2]])
    try:
        return max(0, int(datetime.fromisoformat(text).timestamp() * 1000))
    except (ValueError, OverflowError, OSError):
        raise WrongUsage(
            f"{text[:40]!r} is no place to begin: beginning, end, a time ago as 15m, or a time as 2026-01-31T12:00"
        ) from None


#: Inputs of commands that read pages. A name that begins with a hyphen may be `-`; `must_exist` refuses others.
INPUTS = f"{TITLES}, folders of these or of HTML; URLs of files, as s3:// or https://; - for standard input."
_INPUT: Mapping[str, Any] = {"check": must_exist, "allow_leading_hyphen": True}
_RESULTS = "Results as JSON lines; or pages, as for scan."
Pages = Annotated[str, Opt(INPUTS, "PATH", **_INPUT)]
RequiredPages = Annotated[str, Opt(INPUTS, "PATH", required=True, **_INPUT)]
Results = Annotated[Path, Opt(_RESULTS, "PATH", **_INPUT)]
RequiredResults = Annotated[Path, Opt(_RESULTS, "PATH", required=True, **_INPUT)]
#: The state directory of a scan, as an argument or as --state.
State = Annotated[
    Path,
    Opt("The state directory of a scan.", "--state", check=must_be_state, metavar="DIR", env_var="NEARDUP_STATE"),
]
#: A state directory instead of files.
InsteadState = Annotated[
    Path | None, Opt("The state directory of a scan, instead of files.", "--state", check=must_be_state, metavar="DIR")
]
#: A scan's directory in place of the stream.
OfScan = Annotated[
    Path | None,
    Opt("The state directory of a scan; by default the stream.", "--state", check=must_be_scan, metavar="DIR"),
]
Labels = Annotated[tuple[Path, ...], Many("File of labels of pairs.", "--labels", check=must_exist, metavar="FILE")]
AsJson = Annotated[bool, Opt("Print JSON on standard output.", "--json")]
Quiet = Annotated[bool, Opt("Print no progress and no summary.", "--quiet", "-q")]
Threads = Annotated[int, Number("Threads of the kernels.", "--threads", low=1, high=256)]
Workers = Annotated[int, Number("Processes.", "--workers", low=1, high=256)]
Seed = Annotated[int, Number("Random seed of samples, splits and intervals.", "--seed", low=0, high=SEED_MAX)]
Seeds = Annotated[int, Number("Cross-validations of each learner.", "--seeds", low=1, high=99)]
Folds = Annotated[int, Number("Folds of each cross-validation.", "--folds", low=2, high=100)]
Port = Annotated[int, Number("Port; 0: any free one.", "--port", low=0, high=65_535)]
Host = Annotated[str, Opt("Address to serve at; a public one needs a token.", "--host")]
HostNames = Annotated[tuple[str, ...], Many("Host name of a proxy in front.", "--name", metavar="HOST[:PORT]")]
Numbers = Annotated[tuple[str, ...], Many("A number of the decider, as tape_min=0.8.", "--set", metavar="NAME=NUMBER")]
BaseUrl = Annotated[str | None, Opt("URL of a folder of pages; file names are appended.", "--base-url", metavar="URL")]
FollowLinks = Annotated[bool, Opt("Read files behind symbolic links out of a folder, too.", "--follow-links")]
Adjudicator = Annotated[str, Opt("The labeller whose label counts where labels differ.", "--adjudicator")]
Model = Annotated[
    Path | None, Reads("Model by `neardup train`, which decides by the rule `signals`.", "--model", metavar="MODEL")
]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Documents:
    """How files are read as pages or documents."""

    base_url: BaseUrl = None
    follow_links: FollowLinks = False
    id_field: Annotated[
        str | None, Opt(f"{TABLES}: the field of a document's id, which need not be a URL.", metavar="NAME")
    ] = None
    text_field: Annotated[str | None, Opt(f"{TABLES}: the field of a document's text.", metavar="NAME")] = None
    ids_across_files: Annotated[
        bool, Opt("An id names one document in all files, as of a site that is crawled again; not one in each file.")
    ] = False

    def reading(self) -> "ReadOptions":
        from streams.files.sources import ReadOptions
        from streams.formats.json import Fields

        fields = Fields(self.text_field, self.id_field)
        return ReadOptions(self.base_url, self.follow_links, fields, ids_across_files=self.ids_across_files)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Truth:
    """Natural truth: labels that follow from URLs."""

    natural: Annotated[bool, Opt("Label pairs by their URLs: one path in several releases is one page.")] = False
    releases: Annotated[
        str | None, Opt("Regular expression of the release in a path; implies --natural.", metavar="REGEX")
    ] = None
    items: Annotated[Path | None, Reads("File of the items that pages are about; implies --natural.")] = None

    def editions(self) -> "Editions | None":
        """The source of items and editions. Raises WrongUsage for more than one."""
        from streams.evaluation.evaluate import editions_of

        return editions_of(self.releases, self.items, self.natural)


READ_AS_USUAL, NO_TRUTH = Documents(), Truth()


def rule_values(flag: str, name: str | None, others: Sequence[str] = ()) -> dict[str, Any]:
    """The decider's fields that select a rule by its name; none for one of `others`. Raises WrongUsage."""
    if not name or name in others:
        return {}
    if name not in ONLINE_RULES:
        raise WrongUsage(f"{flag} {name}: must be one of {', '.join([*others, *ONLINE_RULES])}")
    return {"rule": name}


def decider_of(
    rule: str | None = None, numbers: Sequence[str] = (), sites: Path | None = None
) -> Callable[[Scheme], Decider] | None:
    """What options require; None: what the state directory has. Raises WrongUsage."""
    if rule is None and not numbers and sites is None:
        return None
    values = {**rule_values("--rule", rule), **decider_numbers(numbers)}
    if sites is not None:
        try:
            values["sites"] = sites_of(sites)
        except BadInput as error:
            raise WrongUsage(f"--sites {error}") from None
    return lambda scheme: Decider(scheme=scheme.digest, **values)


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
CHECKPOINTS = PANELS["Checkpoints"]
MONITORING = PANELS["Monitoring"][:-2]
TRACING = PANELS["Monitoring"][-2:]
SKETCH = (*TOPICS, *PAGES, *PANELS["Batches"], *SKETCHES, *MONITORING, *TRACING)
MATCH = (
    *(*TOPICS, *SKETCHES, *PANELS["Matching"], *CHECKPOINTS, *DECIDER),
    *(*PANELS["Audits and shadow rules"], *MONITORING, *TRACING),
)
#: Settings that stand first in the help, outside the panels.
_FIRST = {"bootstrap", "generation", "state", "decider.rule", "set", "threads", "checkpoints", "metrics_port"}
_GROUPS = {title: Group(title, sort_key=number) for number, title in enumerate(PANELS, 10)}
_GROUP_OF = {name: _GROUPS[title] for title, names in PANELS.items() for name in names if name not in _FIRST}
#: Flags that take several values and are no single setting.
_REPEATED = {
    "set": ("NAME=NUMBER", "A number of the decider, as tape_min=0.8; see `neardup config`."),
    "kafka": ("NAME=VALUE", "A librdkafka setting for all roles, or ROLE.NAME=VALUE for one."),
}


class SettingFlags:
    """Settings of the stream that were given as flags: the fields are those of `flags`. NONE: without any flag."""

    NONE: ClassVar[Any]

    def read(self, role: str = "", connects: Role | None = None, **arguments: str | Path | None) -> Settings:
        """Joins flags, environment, file and defaults. Raises WrongUsage.

        Args:
            role: role whose settings `load` requires.
            connects: role whose connection is tried.
            arguments: settings that the command takes as arguments; None: not given.
        """
        given = {each.name: getattr(self, each.name) for each in fields(self)}  # type: ignore[arg-type]
        named = {name: None if value is None else str(value) for name, value in arguments.items()}
        settings = load(os.environ, flags={**given, **named}, role=role)
        if connects is not None:
            from streams.roles.runtime import greet

            greet(settings, connects)
        return settings


@cache
def _flag(name: str) -> tuple[str, Any]:
    """The parameter of a setting, and its annotation."""
    group: dict[str, Any] = {"group": _GROUP_OF[name]} if name in _GROUP_OF else {}
    if name in _REPEATED:
        metavar, text = _REPEATED[name]
        return name, Annotated[tuple[str, ...], Many(text, f"--{name}", metavar=metavar, **group)]
    option = OPTIONS[name]
    usage = Opt(option.usage, option.flag, metavar="VALUE", allow_leading_hyphen=True, **group)
    return option.parameter, Annotated[str | None, usage]


def flags(*names: str) -> Any:
    """Makes a subclass of `SettingFlags` for these settings."""
    spec = dict(_flag(name) for name in dict.fromkeys((*names, "kafka")))
    spec["config"] = Annotated[str | None, Opt("File of settings, as TOML [NEARDUP_CONFIG]", metavar="FILE")]
    values = {name: () if name in _REPEATED else None for name in spec}
    made: Any = type("Flags", (SettingFlags,), {**values, "__annotations__": spec, "__module__": __name__})
    # Neither comparison nor representation: making them for all settings would take a part of each start.
    made = Parameter(name="*")(dataclass(kw_only=True, eq=False, repr=False)(made))
    made.NONE = made()
    return made


#: The settings that commands take as flags.
if TYPE_CHECKING:  # classes that are made at run time are no types
    NoFlags = SettingFlags
    AllFlags = SettingFlags
    ConnectionFlags = SettingFlags
    VerdictFlags = SettingFlags
    ForgetFlags = SettingFlags
    SketchFlags = SettingFlags
    MatchFlags = SettingFlags
    RunFlags = SettingFlags
    PublishFlags = SettingFlags
    DecisionFlags = SettingFlags
    CheckTopicFlags = SettingFlags
    GenerationFlags = SettingFlags
    RemoveFlags = SettingFlags
    CheckpointFlags = SettingFlags
    MakeCheckpointFlags = SettingFlags
    ReplayFlags = SettingFlags
    ViewsFlags = SettingFlags
else:
    NoFlags = flags()
    AllFlags = flags(
        *(name for name, option in OPTIONS.items() if not option.kind.secret and not option.flag.endswith("=")), "set"
    )
    ConnectionFlags = flags(*CONNECTION)
    VerdictFlags = flags(*CONNECTION, "verdicts_topic")
    ForgetFlags = flags(*CONNECTION, *TOPICS, *SKETCHES)
    SketchFlags = flags(*SKETCH)
    MatchFlags = flags(*MATCH)
    RunFlags = flags(*SKETCH, *MATCH)
    PublishFlags = flags(*CONNECTION, "pages_topic", *PAGES, *TRACING)
    DecisionFlags = flags(*TOPICS)
    CheckTopicFlags = flags(*TOPICS, "codec")
    GenerationFlags = flags(*CONNECTION, "pages_topic", "sketches_topic", "verdicts_topic")
    RemoveFlags = flags(*CONNECTION, "rejected_topic", "sketches_topic", "verdicts_topic")
    CheckpointFlags = flags("checkpoints")
    MakeCheckpointFlags = flags("checkpoints", "checkpoints_kept")
    ReplayFlags = flags(*TOPICS, "checkpoints", *SKETCHES, "threads", *DECIDER)
    ViewsFlags = flags(
        *(*CONNECTION, "views_state", "views_metrics", "verdicts_topic", "audit_topic", "sketches_of"),
        *("sketches_topic", "pages_topic", "codec", "body_ref_prefixes", *DECIDER),
        *(name for name in MONITORING if name != "hold_ms"),
    )
