"""The command line: the composition root, the only place that picks adapters and prints."""

import errno
import gc
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from neardup.decider import RULE_NAMES, Decider
from neardup.errors import BadInput, InvariantBroken, NeardupError
from neardup.scheme import Scheme
from streams.cli import (
    canonical,
    copying,
    evaluation,
    generations,
    history,
    partition,
    plan,
    render,
    signals,
    stream,
    takedown,
    views,
)
from streams.cli.options import (
    EXIT_CODES,
    INPUTS,
    FollowLinksOption,
    IdFieldOption,
    JsonOption,
    TextFieldOption,
    announce_compiler,
    complain,
    examples,
    must_be_writable,
    must_exist,
    print_json,
    rule_values,
    show,
)
from streams.config.settings import OPTIONS
from streams.config.sites import sites_of
from streams.errors import WrongUsage
from streams.process.logs import is_logged, printable


class Commands(TyperGroup):
    """Commands of two words, as `evaluate tlcs`, beside those of one: `evaluate PATH`. Errors are printable."""

    def make_context(self, *given: Any, **more: Any) -> Any:
        with _printable_errors():
            return super().make_context(*given, **more)

    def invoke(self, ctx: Any) -> Any:
        with _printable_errors():
            return super().invoke(ctx)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = " ".join(args[:2])
        if name in self.commands:
            return name, self.commands[name], args[2:]
        return super().resolve_command(ctx, args)


@contextmanager
def _printable_errors() -> Iterator[None]:
    """What typer says of wrong usage repeats the arguments, among which a shell may have put names of files."""
    try:
        yield
    except Exception as error:
        if isinstance(told := getattr(error, "message", None), str):
            error.message = printable(told)  # type: ignore[attr-defined]
        raise


app = typer.Typer(
    name="neardup",
    cls=Commands,
    help="Finds which pages of a crawl repeat earlier ones, with evidence for each verdict.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

app.add_typer(partition.app)
app.add_typer(signals.app)
app.add_typer(render.app)
app.add_typer(evaluation.app)
app.add_typer(stream.app)
app.add_typer(history.app)
app.add_typer(copying.app)
app.add_typer(generations.app)
app.add_typer(canonical.app)
app.add_typer(takedown.app)
app.add_typer(views.app)
app.add_typer(plan.app)

#: See EXIT_CODES.
EXIT_ERROR, EXIT_USAGE, EXIT_PROBLEMS, EXIT_INTERRUPTED = 1, 2, 3, 130
#: Modules of optional dependencies, with the extra that brings them.
_EXTRAS = {
    "confluent_kafka": "kafka",
    "prometheus_client": "kafka",
    "aiohttp": "label",
    "duckdb": "batch",
    "rapidfuzz": "batch",
    "pyspark": "spark",
    "sklearn": "signals",
    "wittgenstein": "signals",
    "pandas": "signals",
    "faust": "views",
    "opentelemetry": "traces",
    "playwright": "render",
}
DEFAULT_STATE = Path("neardup-state")

StateOption = Annotated[
    Path, typer.Option("--state", metavar="DIR", envvar="NEARDUP_STATE", help="Where what is known is kept.")
]


@app.command(
    short_help="Judge every page of some files, each against all before it.",
    epilog=examples(
        "neardup scan crawl.warc.gz",
        "neardup scan more.warc.gz --state DIR --report report.html",
        "neardup scan site/ --base-url https://a.example/ --memory --out -",
        "neardup scan s3://bucket/texts/*.parquet --id-field doc_id --text-field text",
        codes="Exit codes: 0 done, 1 an error, 2 wrong usage, 3 done but some input could not be read, "
        "130 interrupted (the same command goes on from there).",
    ),
)
def scan(
    paths: Annotated[
        list[str],
        typer.Argument(metavar="PATH...", help=INPUTS),
    ],
    state: StateOption = DEFAULT_STATE,
    memory: Annotated[bool, typer.Option("--memory", help="Keep nothing: a throw-away run.")] = False,
    rule: Annotated[
        str | None, typer.Option(metavar="RULE", help=f"One of {', '.join(RULE_NAMES)}:MODEL; by default verified.")
    ] = None,
    numbers: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=NUMBER", help="A number of the decider, as tape_min=0.8; may be repeated."),
    ] = None,
    sites: Annotated[
        Path | None, typer.Option(metavar="FILE", help="What single sites want otherwise, as TOML or JSON.")
    ] = None,
    base_url: Annotated[
        str | None, typer.Option(metavar="URL", help="What the file names of folders are appended to.")
    ] = None,
    follow_links: FollowLinksOption = False,
    merge: Annotated[
        bool,
        typer.Option("--merge", help="Read all of them side by side, and judge pages in the order of their fetches."),
    ] = False,
    id_field: IdFieldOption = None,
    text_field: TextFieldOption = None,
    out: Annotated[
        str | None, typer.Option(metavar="FILE", help="The verdicts as JSON lines; - for standard output.")
    ] = None,
    report: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the HTML report there.")] = None,
    audit: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Append pairs for people to check, and counts, as JSON lines.")
    ] = None,
    audit_rate: Annotated[
        float, typer.Option(metavar="SHARE", help="Of the pages, those of which pairs are drawn.")
    ] = 0.1,
    shadow: Annotated[
        str | None, typer.Option(metavar="RULE", help="A rule that only looks on: where it disagrees is counted.")
    ] = None,
    shadow_numbers: Annotated[
        list[str] | None, typer.Option("--shadow-set", metavar="NAME=NUMBER", help="Its numbers; may be repeated.")
    ] = None,
    new_decider: Annotated[
        bool, typer.Option("--new-decider", help="Let rule and numbers decide from here on, where others did so far.")
    ] = False,
    again: Annotated[bool, typer.Option("--again", help="Scan sources once more that were finished before.")] = False,
    threads: Annotated[int, typer.Option(min=1, max=256, help="Threads that sketch.")] = max(
        1, (os.cpu_count() or 2) - 1
    ),
    as_json: JsonOption = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no summary.")] = False,
) -> None:
    """Judge every page of some files, each against all pages before it.

    State lives in a directory: a second scan with other files finds duplicates of the first, and a scan that was
    stopped goes on when it is called again. The secret seed of a new state is drawn at random, or taken from
    NEARDUP_SEED.
    """
    if out == "-" and as_json:
        raise WrongUsage("--json and --out - both want standard output; choose one")
    must_exist(paths)
    must_be_writable(report, audit, out)
    outputs = [Path(one) for one in (report, audit, out) if one is not None and one != "-"]
    if twice := [one for i, one in enumerate(outputs) if one.absolute() in map(Path.absolute, outputs[:i])]:
        raise WrongUsage(f"{twice[0]} is named twice; each output needs a file of its own")
    scheme, decider = _scheme(), _decider(rule, numbers, sites)

    from rich.console import Console

    from streams.commands.terminal import bar, sizes, state_line, summary
    from streams.files.report import write_report
    from streams.files.scan import Progress
    from streams.files.scan import scan as run
    from streams.files.state import State
    from streams.formats.documents import Fields
    from streams.pipeline.audit import open_audit
    from streams.pipeline.audit import shadow_numbers as numbers_of
    from streams.process.last_words import LastWords
    from streams.process.open_files import raise_open_files

    raise_open_files()
    others = numbers_of(shadow_numbers or [])
    announce_compiler(quiet=quiet)
    told = Console(stderr=out == "-" or as_json)
    quiet = quiet or as_json or out == "-"
    where = None if memory else state
    with (
        LastWords() as last,
        State.open(where, scheme=scheme, decider=decider, new_decider=new_decider) as opened,
    ):
        for message in opened.messages:
            complain(message)
        looking = open_audit(opened.decider, file=audit, rate=audit_rate, shadow=shadow, numbers=others, warn=complain)
        with looking or nullcontext(), bar(shown=not quiet) as shown:

            def progress(now: Progress) -> None:
                last.reading = now.path
                shown.update(now)

            result = run(
                paths,
                opened,
                base_url=base_url,
                follow_links=follow_links,
                merge=merge,
                fields=Fields(text_field, id_field),
                out=out,
                written=outputs,
                again=again,
                threads=threads,
                progress=progress,
                audit=looking,
            )
        if report is not None:
            write_report(opened, report, result)
        if as_json:
            print_json({**asdict(result), "state_bytes": None if memory else sizes(opened.path)})
        elif not quiet:
            pages = sum(source.pages for source in opened.sources.values())
            summary(told, result, "" if memory else state_line(state, pages))
            if report is not None:
                told.print(f"report: {report}", highlight=False, soft_wrap=True, markup=False)
    if result.interrupted:
        complain("interrupted; the same command goes on from here" if not memory else "interrupted")
        raise typer.Exit(EXIT_INTERRUPTED)
    if result.pages and result.counts.get("rejected") == result.pages:
        complain(f"nothing could be read of any page: {', '.join(list(result.reasons)[:3])}")
        raise typer.Exit(EXIT_PROBLEMS)
    if result.problems_total:
        raise typer.Exit(EXIT_PROBLEMS)


@app.command(
    short_help="Write what a state directory knows as one HTML file.",
    epilog=examples("neardup report --state DIR --out report.html"),
)
def report(
    state: StateOption = DEFAULT_STATE,
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where to write it.")] = Path("report.html"),
) -> None:
    """Write what is known in a state directory as one HTML file: verdicts, pictures, samples to judge them by."""
    _require(state)
    must_be_writable(out)

    from streams.files.report import write_report
    from streams.files.state import State

    announce_compiler("sketching")
    with State.open(state) as opened:
        write_report(opened, out)
    typer.echo(f"report: {out}")


@app.command(
    short_help="Put two files before every rule.",
    epilog=examples(
        "neardup compare old.html new.html",
        "neardup compare a.html b.html --a-url https://a.example/1/x --b-url https://a.example/2/x",
        "neardup compare a.html b.html --state neardup-state",
    ),
)
def compare(
    a: Annotated[Path, typer.Argument(metavar="A")],
    b: Annotated[Path, typer.Argument(metavar="B")],
    a_url: Annotated[str | None, typer.Option(metavar="URL", help="URL of A; its site and host count.")] = None,
    b_url: Annotated[str | None, typer.Option(metavar="URL", help="URL of B.")] = None,
    numbers: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=NUMBER", help="A number of the decider.")
    ] = None,
    model: Annotated[
        Path | None, typer.Option(metavar="MODEL", help="What `neardup train` made: the rule signals.")
    ] = None,
    state: Annotated[
        Path | None, typer.Option("--state", metavar="DIR", help="Sample and decide as this scan does.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare two files by every rule: numbers, decisions, evidence, and the words that differ.

    Words are sampled with a fixed seed, so that the same files always give the same numbers; with --state by the seed
    and the numbers of a scan.
    """
    if state is not None:
        _require(state)
    must_exist((a, b))
    make = _decider(None, numbers)

    from neardup.signals.model import read_model
    from streams.comparison.compare import SCHEME, compare_command

    announce_compiler()
    scheme, decider = SCHEME, None
    if state is not None:
        from streams.files.state import State

        with State.open(state) as opened:
            scheme, decider = opened.scheme, opened.decider
    decider, known = make(scheme) if make else decider, None if model is None else read_model(model)
    made = compare_command(a, b, a_url=a_url, b_url=b_url, scheme=scheme, decider=decider, model=known)
    show(made, as_json=as_json)


@app.command(
    short_help="Say why a page got its verdict.",
    epilog=examples("neardup explain https://a.example/page.html --state DIR"),
)
def explain(
    url: Annotated[str, typer.Argument(metavar="URL")],
    state: StateOption = DEFAULT_STATE,
    page_id: Annotated[
        int | None, typer.Option(metavar="ID", help="An earlier fetch of the URL; by default its latest verdict.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Say why a page got its verdict, and which candidates were rejected by what.

    The page is judged again, with the index as it was when the page arrived.
    """
    _require(state)

    from streams.commands.terminal import bar
    from streams.comparison.explain import explain_command
    from streams.files.state import State

    announce_compiler()
    with State.open(state) as opened:
        with bar(shown=not as_json) as shown:
            result = explain_command(opened, url, page_id=page_id, progress=shown.folded)
        show(result, as_json=as_json)


@app.command(short_help="Print the JSON Schema of a verdict.", epilog=examples("neardup schema > verdict.schema.json"))
def schema() -> None:
    """Print the JSON Schema of a verdict, for those who read them."""
    from neardup.verdict import schema as text

    sys.stdout.write(text())


def _scheme() -> Scheme | None:
    seed = os.environ.get("NEARDUP_SEED")
    if not seed:
        return None
    try:
        value = int(seed, 0)
    except ValueError:
        value = -1
    if not 0 <= value < 1 << 64:
        raise WrongUsage("NEARDUP_SEED is not a number of 64 bits (as 12345 or 0x1f)")
    return Scheme(seed=value)


def _decider(
    rule: str | None, numbers: list[str] | None, sites: Path | None = None
) -> Callable[[Scheme], Decider] | None:
    """What the options ask for, or None: as the state directory has it."""
    if rule is None and not numbers and sites is None:
        return None
    values = rule_values("--rule", rule)
    if sites is not None:
        try:
            values["sites"] = sites_of(sites)
        except BadInput as error:
            raise WrongUsage(f"--sites {error}") from None
    for text in numbers or []:
        name, _, value = text.partition("=")
        option = OPTIONS.get("decider." + name)
        if option is None or name in ("rule", "sites"):
            names = (known.removeprefix("decider.") for known in OPTIONS if known.startswith("decider."))
            raise WrongUsage(f"--set {text}: there is {', '.join(sorted(set(names) - {'rule', 'sites'}))}")
        try:
            values[name] = option.kind.parse(value)
        except (ValueError, TypeError):
            raise WrongUsage(f"--set {text}: {name} is {option.kind.allowed}") from None
    return lambda scheme: Decider(scheme=scheme.digest, **values)


def _require(state: Path) -> None:
    if not (state / "scheme.json").is_file():
        raise WrongUsage(f"{state} is no state directory; name one with --state, or make one with: neardup scan")


@app.callback(invoke_without_command=True)
def _options(
    show: Annotated[bool, typer.Option("--version", help="Print the version.", is_eager=True)] = False,
) -> None:
    if show:
        from importlib.metadata import version

        typer.echo(f"neardup {version('neardup')}")
        raise typer.Exit


def main() -> None:
    """The entry point: errors that are the user's to mend are one line, without a stack trace."""
    # Matching makes many small objects without cycles; collecting as often as Python does costs a fifth of its time.
    gc.set_threshold(100_000, 50, 100)
    try:
        app()
    except InvariantBroken as error:
        if not is_logged(error):
            raise
        sys.exit(EXIT_ERROR)
    except NeardupError as error:
        if not is_logged(error):
            complain(str(error))
        sys.exit(EXIT_USAGE if isinstance(error, WrongUsage) else EXIT_ERROR)
    except ModuleNotFoundError as error:
        if error.name not in _EXTRAS:
            raise
        complain(f"{error.name} is not installed; this command needs: pip install 'neardup[{_EXTRAS[error.name]}]'")
        sys.exit(EXIT_ERROR)
    except MemoryError as error:
        complain("".join(["out of memory", *getattr(error, "__notes__", ())]))
        sys.exit(EXIT_ERROR)
    except BrokenPipeError:  # the reader of a pipe went away
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_ERROR)
    except OSError as error:
        if is_logged(error):
            sys.exit(EXIT_ERROR)
        if error.errno != errno.ENOSPC:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        complain("cannot write the output: no space left on device")
        sys.exit(EXIT_ERROR)
    except KeyboardInterrupt:
        complain("interrupted")
        sys.exit(EXIT_INTERRUPTED)
    except Exception as error:
        if not is_logged(error):
            raise
        sys.exit(EXIT_ERROR)
