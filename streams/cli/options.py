"""Settings as flags: every command of the stream takes those that concern it, each naming its environment variable."""

import inspect
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from neardup.decider import RULE_NAMES
from streams.config.load import load
from streams.config.settings import OPTIONS, Role, Settings, without_credentials
from streams.errors import WrongUsage
from streams.process.logs import printable

if TYPE_CHECKING:  # an import that most commands need not wait for
    from neardup.warm import Need

FollowLinksOption = Annotated[
    bool, typer.Option("--follow-links", help="In folders, read files too that are links to elsewhere.")
]
#: What commands take that read pages.
INPUTS = (
    "WARC, WET, WACZ, JSON lines, Parquet, folders of these or of HTML; URLs of files, as s3:// or https://; - for "
    "standard input."
)
IdFieldOption = Annotated[
    str | None,
    typer.Option("--id-field", metavar="NAME", help="Of JSON lines and Parquet: a document's id, URL or not; or url."),
]
TextFieldOption = Annotated[
    str | None, typer.Option("--text-field", metavar="NAME", help="Likewise: its text; by default body.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="For machines: JSON on standard output.")]

#: Settings of one kind: in help they stand together.
CONNECTION = ("bootstrap", "generation", "group", "topic_prefix")
TOPICS = ("sketches_of", "pages_topic", "rejected_topic", "sketches_topic", "verdicts_topic", "audit_topic")
PAGES = ("codec", "body_ref_prefixes", "message_bytes_max")
#: What shapes sketches, with the seed.
SKETCHES = ("body_bytes_max", "article_tape_bytes_max")
BATCHES = ("batch_pages", "batch_ms", "batch_bytes", "inflight_batches", "buffer_bytes_max", "threads")
MATCHING = ("state", "match_messages", "flush_ms", "transaction_timeout_ms", "transaction_deadline_ms")
DECIDER = tuple(name for name in OPTIONS if name.startswith("decider.") and name != "decider.sites")
CHECKPOINTS = ("checkpoints", "checkpoint_messages", "checkpoints_kept")
AUDITING = ("audit", "audit_rate", "audit_bytes_max", "shadow", "shadow_set")
WATCHING = ("stall_ms", "hold_ms", "metrics_host", "metrics_port", "log_level", "log_format")
TRACING = ("traces", "trace_rate")
#: What a role's help begins with, without a title: most who start one need no more.
_FIRST = ("bootstrap", "generation", "state", "decider.rule", "threads", "checkpoints", "metrics_port")
_GROUPS = {
    "Topics and groups": (*CONNECTION, *TOPICS),
    "Pages": (*PAGES, *SKETCHES),
    "Batches": BATCHES,
    "Matching": MATCHING,
    "What a duplicate is": DECIDER,
    "Checkpoints": CHECKPOINTS,
    "Looking on: audits and shadow rules": AUDITING,
    "Watching": (*WATCHING, *TRACING),
}
_GROUP_OF = {name: title for title, names in _GROUPS.items() for name in names if name not in _FIRST}


class Grouped(TyperCommand):
    """A command whose help has its settings in groups, behind the few that most want."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        groups: dict[str, list[tuple[str, str]]] = {"Options": [], **{title: [] for title in _GROUPS}}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                groups[getattr(parameter, "rich_help_panel", None) or "Options"].append(record)
        for title, records in groups.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


#: The end of `neardup --help`; the reference page of exit codes is made from it.
EXIT_CODES = """\b
Exit codes:
    0  done
    1  an error; the text says what to do
    2  wrong usage: an option, a setting, a file that is not there; nothing was begun
    3  done, but some input could not be read, or no page of it
   75  a call to Kafka hung and the process ended itself; start it again
  130  interrupted; the same command goes on from there
  134  aborted by a library, as a rule for want of memory: a scan names its limits; the same command goes on
  137  killed by SIGKILL, as a rule by the kernel for want of memory; likewise
  143  ended by SIGTERM in the middle (a role: by the second one); likewise"""


def examples(*commands: str, codes: str = "") -> str:
    """The end of a command's help: examples, one a line whatever the terminal's width, and exit codes."""
    return "\n".join(["\b", "Examples:", *(f"  {command}" for command in commands), "", codes])


def complain(text: str) -> None:
    """A line on stderr, or several: names and URLs in it come from strangers, and may hold credentials."""
    typer.echo(f"neardup: {printable(without_credentials(text))}", err=True)


def must_exist(given: Sequence[str | Path | None]) -> None:
    """Raises WrongUsage for a path that is not there, before anything is begun. URLs are not asked for."""
    for path in (str(one) for one in given if one is not None):
        if path != "-" and "://" not in path and not os.path.exists(path):
            raise WrongUsage(f"{path}: no such file or folder")


def must_be_writable(*files: str | Path | None) -> None:
    """Raises WrongUsage for a file that a command could not write at its end; `-` is standard output."""
    for file in files:
        if file is None or str(file) == "-":
            continue
        path = Path(file)
        folder = path.absolute().parent
        if path.is_dir():
            raise WrongUsage(f"{path}: a folder, and a file is to be written")
        if not folder.is_dir():
            raise WrongUsage(f"{path}: cannot be written, as there is no folder {folder}")
        if not os.access(path if path.exists() else folder, os.W_OK):
            raise WrongUsage(f"{path}: cannot be written: permission denied")


@contextmanager
def inputs(given: Sequence[str | Path]) -> Iterator[list[Path]]:
    """What a command reads that keeps nothing, as files (`streams.files.fetching`); copies vanish at the end."""
    must_exist(given)

    from streams.files.fetching import fetched

    with tempfile.TemporaryDirectory(prefix="neardup-inputs-") as folder:
        yield fetched(given, Path(folder))


def print_json(value: Any) -> None:
    """For machines; on a terminal ASCII alone, since what strangers wrote may hold signs that rule it."""
    import json

    import orjson

    # Not by json: NaN is null here, as JSON has none.
    told = orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS | orjson.OPT_APPEND_NEWLINE)
    if sys.stdout.isatty():
        told = json.dumps(orjson.loads(told), indent=2).encode() + b"\n"
    sys.stdout.buffer.write(told)


def show(result: Any, *, as_json: bool) -> None:
    """Prints what a command found. result: something to print, with `to_json`."""
    if as_json:
        print_json(result.to_json())
        return
    from rich.console import Console

    Console().print(result)


def announce_compiler(*needs: "Need", quiet: bool = False) -> None:
    """Says on stderr what a wait is for, where kernels are not compiled yet, and compiles them.

    needs: what the command does; by default all.
    """
    from neardup.warm import ALL, make_ready, notice

    needs = needs or ALL
    if quiet or not notice(needs):
        make_ready(lambda told: None if quiet else complain(told), needs)
        return
    began = time.monotonic()
    with _compiling(needs):
        make_ready(complain, needs)
    complain(f"compiled, in {time.monotonic() - began:.0f} s")


@contextmanager
def _compiling(needs: Sequence["Need"]) -> Iterator[None]:
    """On a terminal a bar: how much of the work is done, since when, and at this pace for how long yet."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    from neardup.kernels import KEPT
    from neardup.warm import share_done

    console, done = Console(stderr=True), threading.Event()
    if not console.is_terminal or not KEPT:  # what is not kept, nobody can see grow
        yield
        return
    columns = (BarColumn(), TaskProgressColumn(), TimeElapsedColumn(), TextColumn("{task.fields[left]}"))
    with Progress(TextColumn("compiling"), *columns, console=console, transient=True) as progress:
        before, began = share_done(needs), time.monotonic()
        task = progress.add_task("", total=100, completed=int(100 * before), left="")

        def tell() -> None:
            told, ends = before, 0.0
            while not done.wait(0.5):
                share, now = share_done(needs), time.monotonic()
                if share > told:
                    told, ends = share, now + (now - began) * (1 - share) / (share - before)
                left = f"about {ends - now:.0f} s more" if ends > now else ""
                progress.update(task, completed=int(100 * share), left=left)

        teller = threading.Thread(target=tell, name="neardup-compiling", daemon=True)
        teller.start()
        try:
            yield
        finally:
            done.set()
            teller.join()


def rule_values(flag: str, said: str | None, others: Sequence[str] = ()) -> dict[str, Any]:
    """The decider's fields that a flag means: a rule's name, or `signals:MODEL`; none for one of `others`.

    Raises BadInput.
    """
    name, _, model = (said or "").partition(":")
    if not name or said in others:
        return {}
    if name not in RULE_NAMES or (model and name != "signals"):
        raise WrongUsage(f"{flag} {said}: there is {', '.join([*others, *RULE_NAMES[:-1]])}, signals:MODEL")
    if name != "signals":
        return {"rule": name}
    if not model:
        raise WrongUsage(f"{flag} signals wants a model: signals:FILE; `neardup train --signals sketches` makes one")
    return {"rule": name, "model": OPTIONS["decider.model"].kind.parse(model)}


def takes_settings(
    names: Sequence[str], *, role: str = "", greets: Role | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A decorator for typer commands: `settings`, their first parameter, is made from flags for `names`, --config and
    --kafka, the environment, and the file. role: what `load` asks for. greets: whose connection is tried first, for a
    person who waits. Other parameters stay as they are.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = list(inspect.signature(command).parameters.values())[1:]
        flags = [_flag(name) for name in names]
        taken = {parameter.name for parameter in flags}

        def call(**given: Any) -> None:
            chosen = {name: given.pop(name) for name in taken}
            settings: Settings = load(os.environ, flags=chosen, role=role)
            if greets is not None:
                from streams.roles.runtime import greet

                greet(settings, greets)
            command(settings, **given)

        call.__doc__ = command.__doc__
        call.__name__ = command.__name__
        flags += [_config(), _kafka()]
        taken |= {"config", "kafka"}
        call.__signature__ = inspect.Signature([*own, *flags])  # type: ignore[attr-defined]
        call.__annotations__ = {parameter.name: parameter.annotation for parameter in (*own, *flags)}
        return call

    return decorate


def _flag(name: str) -> inspect.Parameter:
    option = OPTIONS[name]
    told = typer.Option(option.flag, metavar="VALUE", help=option.usage, rich_help_panel=_GROUP_OF.get(name))
    annotation = Annotated[str | None, told]
    return _parameter(option.parameter, annotation)


def _config() -> inspect.Parameter:
    told = typer.Option("--config", metavar="FILE", help="Settings as TOML. [NEARDUP_CONFIG]")
    return _parameter("config", Annotated[str | None, told])


def _kafka() -> inspect.Parameter:
    told = typer.Option(
        "--kafka",
        metavar="NAME=VALUE",
        help="Any librdkafka setting, or ROLE.NAME=VALUE for one role; may be repeated.",
    )
    return _parameter("kafka", Annotated[list[str] | None, told])


def _parameter(name: str, annotation: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
