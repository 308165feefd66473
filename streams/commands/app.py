"""The list of commands by task, and the end of the process: exit codes and one-line errors."""

import errno
import faulthandler
import gc
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import click

from neardup.errors import InvariantBroken, NeardupError
from streams.commands.options import COMMANDS, Command
from streams.commands.output import complain
from streams.errors import Interrupted, WrongUsage, how_to_install
from streams.process.logs import is_logged, printable

#: Commands by the task of their user. A command's module has its name, with underscores, or stands in `_MODULES`.
TASKS: Mapping[str, Mapping[str, str]] = {
    "Find duplicates in files": {
        "scan": "Judge the pages of files, each against all before it.",
        "report": "Write a state directory as an HTML file.",
        "explain": "Say why a page got its verdict.",
        "compare": "Compare two files by every rule.",
        "copy": "Write the pages of a scan without duplicates.",
        "partition": "Divide a corpus into sets of similar pages.",
    },
    "Read verdicts": {
        "views": "Serve verdicts, clusters and sites as web pages.",
        "ask": "Answer what adding a page would give, over HTTP.",
        "export": "Write verdicts as tables: Parquet, CSV, JSON lines.",
        "verdicts": "Kafka: print verdicts as they come.",
        "schema": "Print the JSON Schema of a verdict.",
        "canonical": "Set the policy that chooses canonical pages.",
        "forget": "Take pages down, in every fold of the log.",
    },
    "Run the stream on Kafka": {
        "config": "Print every setting and its source.",
        "seed": "Draw a secret seed, and write it to a file.",
        "topics create": "Create the topics that are missing.",
        "topics check": "Check the topics.",
        "run": "Run sketcher and matcher in one process.",
        "sketch": "Run a sketcher: pages in, sketches to the log.",
        "match": "Run the matcher: the log in, verdicts out, exactly once.",
        "shard": "Run some shards, which find candidates for a judge.",
        "judge": "Run the judge of shards, in place of the matcher.",
        "publish": "Publish the pages of files.",
        "ping": "Send a page through the stream.",
        "accept-gap": "Continue past pages that are missing.",
        "skip-record": "Leave out what cannot be read.",
    },
    "Back up, replay, and judge history anew": {
        "checkpoint": "Copy an index to where it can be restored from.",
        "checkpoints": "List the checkpoints.",
        "restore": "Make a state directory from a checkpoint.",
        "replay": "Emit the verdicts of a part of the log again.",
        "diff": "Compare two histories of verdicts.",
        "backfill": "Kafka: judge history anew, beside the live run.",
        "generations": "Kafka: list the generations, and which one is live.",
        "generations remove": "Kafka: delete a generation's topics.",
        "cutover": "Kafka: make another generation the live one.",
    },
    "Evaluate and tune": {
        "label": "Label pairs of a crawl in a browser.",
        "tune": "Propose numbers of the decider from labelled pairs.",
        "audit": "Kafka: print the pairs that the matcher drew.",
        "evaluate": "Make the tables of Henzinger 2006 over a crawl.",
        "evaluate tlcs": "Measure trustable LCS as Huang 2008 did.",
        "evaluate signals": "Measure signals and classifiers as Huffman 2007 did.",
    },
    "Deduplicate results of queries": {
        "dedupe-results": "Group the results of queries by a learned model.",
        "train": "Train a model from labelled pairs.",
        "signals": "Print every signal of two files.",
        "render": "Add bodies that a browser rendered to results.",
    },
}
SHORT = {name: text for commands in TASKS.values() for name, text in commands.items()}
#: Modules of the commands that share one with another command.
_MODULES = {
    "topics create": "topics",
    "topics check": "topics",
    "generations remove": "generations",
    "cutover": "generations",
    "audit": "verdicts",
    "judge": "match",
    "run": "match",
    "skip-record": "accept_gap",
    "checkpoint": "checkpoints",
    "restore": "checkpoints",
}

#: The end of `neardup --help`; the reference page of exit codes is made from it.
EXIT_CODES = """\b
Exit codes:
    0  done
    1  an error; the text says what to do
    2  wrong usage: an option, a setting, a path that is missing or not writable, a port in use; nothing was begun
    3  done, but an input could not be read or is damaged, or all its pages were rejected
   75  a call to Kafka hung and the process ended itself; start it again
  130  interrupted; the same command continues from there
  134  aborted by a library, usually for lack of memory: a scan names its limits; the same command continues
  137  killed by SIGKILL, usually by the kernel for lack of memory; likewise
  143  ended by SIGTERM in the middle (a role: by the second one); likewise"""
EXIT_ERROR, EXIT_USAGE, EXIT_PROBLEMS, EXIT_INTERRUPTED = 1, 2, 3, 130
_CODES = {WrongUsage: EXIT_USAGE, Interrupted: EXIT_INTERRUPTED}
#: Modules of optional dependencies, with the extra that brings them.
EXTRAS = {
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


class Commands(click.Group):
    """Commands of one word and of two, as `evaluate PATH` and `evaluate tlcs PATH`. Errors are printable."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(SHORT)

    def get_command(self, ctx: click.Context, cmd_name: str) -> Command | None:
        if cmd_name not in SHORT:
            return None
        import_module(f"streams.commands.{_MODULES.get(cmd_name, cmd_name.replace('-', '_').replace(' ', '_'))}")
        found = COMMANDS[cmd_name]
        found.short_help = SHORT[cmd_name]
        return found

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        name = " ".join(args[:2])
        if len(args) > 1 and (found := self.get_command(ctx, name)):
            return name, found, args[2:]
        below = [known for known in SHORT if known.startswith(f"{args[0]} ")]
        if below and args[0] not in SHORT and not ctx.resilient_parsing:
            if {"-h", "--help"} & set(args[1:]):
                click.echo("".join(f"neardup {known}  {SHORT[known]}\n" for known in below), nl=False)
                ctx.exit()
            ctx.fail(f"{args[0]}: name one of {', '.join(below)}")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        """Completes a word at a time: of `topics create`, `topics`, and then `create`."""
        from click.shell_completion import CompletionItem

        typed = [*ctx._protected_args, *ctx.args][:1]
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        names = [name.split() for name in SHORT]
        words = [name[len(typed)] for name in names if len(name) > len(typed) and name[: len(typed)] == typed]
        return [CompletionItem(word) for word in dict.fromkeys(words) if word.startswith(incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, SHORT))
        for task, commands in TASKS.items():
            with formatter.section(task):
                formatter.write_dl([(name.ljust(width), text) for name, text in commands.items()])

    def make_context(self, *given: Any, **more: Any) -> click.Context:
        with _printable_errors():
            return super().make_context(*given, **more)

    def invoke(self, ctx: click.Context) -> Any:
        with _printable_errors():
            return super().invoke(ctx)


@contextmanager
def _printable_errors() -> Iterator[None]:
    """Messages of wrong usage repeat the arguments, which may hold names of files that a shell expanded."""
    try:
        yield
    except click.ClickException as error:
        error.message = printable(error.message)
        raise


def _print_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        from importlib.metadata import version

        click.echo(f"neardup {version('neardup')}")
        ctx.exit()


app = Commands(
    "neardup",
    help="Find which pages of a crawl repeat earlier ones, with evidence for each verdict.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    subcommand_metavar="COMMAND [ARGS]...",
    params=[
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_print_version,
            help="Print the version.",
        )
    ],
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def all_commands() -> dict[str, Command]:
    """Every command by its name; imports all their modules."""
    context = click.Context(app, info_name="neardup")
    return {name: found for name in SHORT if (found := app.get_command(context, name))}


#: Matching makes many small objects without cycles; collecting as often as Python does costs a fifth of its time.
GC_THRESHOLDS = 100_000, 50, 100


def main() -> None:
    """Runs a command. Errors that the user can mend are one line, without a stack trace."""
    gc.set_threshold(*GC_THRESHOLDS)
    _report_fatal_signals()
    if instruction := os.environ.get("_NEARDUP_COMPLETE"):
        from click.shell_completion import shell_complete

        sys.exit(shell_complete(app, {}, "neardup", "_NEARDUP_COMPLETE", instruction))
    sys.exit(_code(_run))


def _report_fatal_signals() -> None:
    """A process that a library ends by SIGSEGV or SIGABRT, mostly for lack of memory, writes where it was.

    So do the processes that it starts.
    """
    if sys.__stderr__ is not None:
        faulthandler.enable(sys.__stderr__)
        os.environ.setdefault("PYTHONFAULTHANDLER", "1")


def _run() -> int:
    try:
        with app.make_context("neardup", sys.argv[1:]) as context:
            app.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    sys.stdout.flush()
    return 0


def _code(run: Callable[[], int]) -> int:
    """Runs a function and returns the exit code; prints errors."""
    try:
        return run()
    except NeardupError as error:
        if not is_logged(error):
            if isinstance(error, InvariantBroken):
                raise
            complain(str(error))
        return next((code for kind, code in _CODES.items() if isinstance(error, kind)), EXIT_ERROR)
    except ModuleNotFoundError as error:
        if error.name not in EXTRAS:
            raise
        complain(f"{error.name} is not installed, and this command needs it: {how_to_install(EXTRAS[error.name])}")
        return EXIT_ERROR
    except MemoryError:
        from streams.process.memory_limits import out_of_memory

        complain(out_of_memory())
        return EXIT_ERROR
    except OSError as error:
        if is_logged(error):
            return EXIT_ERROR
        if not isinstance(error, BrokenPipeError) and error.errno != errno.ENOSPC:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if error.errno == errno.ENOSPC:
            complain("cannot write the output: no space left on device")
        return EXIT_ERROR
    except KeyboardInterrupt:
        complain("interrupted")
        return EXIT_INTERRUPTED
    except Exception as error:
        if not is_logged(error):
            raise
        return EXIT_ERROR
