"""The command line: `command` adds a command; `main` runs one, and ends the process with its exit code."""

import errno
import faulthandler
import gc
import inspect
import io
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from itertools import count
from typing import Any

from cyclopts import App, CycloptsError, Group, Parameter, UnusedCliTokensError

from neardup.errors import InvariantBroken, NeardupError
from streams.commands.output import complain
from streams.errors import Interrupted, WrongUsage, how_to_install
from streams.process.logs import is_logged

#: The tasks by which `neardup --help` lists the commands, in their order.
FILES, VERDICTS, STREAM, OPERATE, EVALUATE = (
    Group(name, sort_key=number)
    for number, name in enumerate(
        (
            "Find duplicates in files",
            "Read verdicts",
            "Run the stream on Kafka",
            "Operate, back up, judge history again",
            "Evaluate and label",
        )
    )
)
#: Commands that serve nothing but an evaluation of a paper; the last group.
STUDIES = Group(
    "Repeat the evaluations of papers",
    help="Also `neardup evaluate tlcs` and `neardup evaluate signals`. No scan and no stream needs these.",
    sort_key=5,
)
#: Modules of the commands; importing them adds the commands.
_MODULES = ("files", "verdicts", "serve", "configuration", "stream", "operate", "evaluation", "results")

#: The end of `neardup --help`; the reference page of exit codes is made from it.
EXIT_CODES = """Exit codes:
    0  done
    1  an error; the text says what to do
    2  wrong usage: an option, a setting, a path that is missing or not writable, a port in use; nothing was begun
    3  done, but an input could not be read or is damaged, or all its pages were rejected
   75  a call to Kafka hung and the process ended itself; start it again
  130  interrupted; the same command continues from there
  134  aborted by a library, usually for lack of memory: a stack names the place; the same command continues
  137  killed by SIGKILL, usually by the kernel for lack of memory; likewise
  139  ended by SIGSEGV, a defect of a library: a stack names the place; likewise
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
#: Columns of a help that is not printed to a terminal.
HELP_COLUMNS = 100


def _shown_default(value: Any) -> str | None:
    return None if value in (None, (), "", False, True) else str(value)


def _version() -> str:
    from importlib.metadata import version  # slow to import

    return f"neardup {version('neardup')}"


app = App(
    name="neardup",
    help="Find which pages of a crawl repeat earlier ones, with evidence for each verdict.",
    help_epilogue=EXIT_CODES,
    help_format="plaintext",
    help_flags=["--help", "-h"],
    version_flags=["--version"],
    version=_version,
    default_parameter=Parameter(negative="", allow_repeating=True, show_default=_shown_default, show_env_var=True),
    usage="Usage: neardup COMMAND [ARGS]...",
)
#: Commands of two words, by the first one.
_PARENTS: dict[str, App] = {}
#: Commands stand in the help in the order in which they are added.
_ORDER = count()
_Run = Callable[..., int | None]


def command(task: Group, *examples: str, name: str = "", codes: str = "") -> Callable[[_Run], _Run]:
    """A decorator: adds a function as a command, whose parameters are arguments and options.

    Args:
        task: group of the help that lists the command.
        examples: lines of the help.
        name: name of the command; by default the name of the function, with hyphens. The first of two words is a
            `family`.
        codes: text about exit codes or forms of input.
    """

    def add(run: _Run) -> _Run:
        first, _, second = (name or run.__name__.replace("_", "-")).partition(" ")
        text = "\n".join(["Examples:", *(f"  {example}" for example in examples), *(["", codes] if codes else [])])
        given: dict[str, Any] = {"help": _flowing(run.__doc__), "help_epilogue": text, "help_format": "plaintext"}
        if second:
            _PARENTS[first].command(run, name=second, **given)
        elif known := _PARENTS.get(first):
            known.default(run)
            known.help, known.help_epilogue = given["help"], text
        else:
            app.command(run, name=first, group=task, sort_key=next(_ORDER), **given)
        return run

    return add


def _flowing(text: str | None) -> str:
    """A docstring with each paragraph on one line, which the help folds to the terminal's width."""
    return "\n\n".join(" ".join(each.split()) for each in inspect.cleandoc(text or "").split("\n\n"))


def family(task: Group, name: str, help: str = "") -> None:
    """Add the first word of commands of two words.

    help: sentence for the help; by default the sentence of the command of this one word.
    """
    _PARENTS[name] = App(
        name=name,
        help=help or None,
        help_format="plaintext",
        help_flags=["--help", "-h"],
        version_flags=[],
        help_epilogue="",
        group=task,
        sort_key=next(_ORDER),
    )
    app.command(_PARENTS[name])


app.register_install_completion_command(help="Install completion of commands and options for this shell.")


def load_commands() -> App:
    """Imports the modules of all commands, and returns the application."""
    for name in _MODULES:
        import_module(f"streams.commands.{name}")
    return app


def all_commands() -> dict[str, App]:
    """Every command by its name."""
    load_commands()
    found: dict[str, App] = {}
    for first in _names(app):
        one = app[first]
        if one.default_command is not None:
            found[first] = one
        found.update({f"{first} {second}": one[second] for second in _names(one)})
    return found


def _names(one: App) -> list[str]:
    return [name for name in one if not name.startswith("-")]


def help_of(words: Sequence[str] = ()) -> str:
    """The text of `neardup WORDS --help`."""
    from rich.console import Console

    out = io.StringIO()
    load_commands().help_print(list(words), console=Console(file=out, width=HELP_COLUMNS))
    return out.getvalue()


def options_of(one: App) -> Iterator[tuple[tuple[str, ...], str]]:
    """Arguments and options of a command: spellings, and help."""
    for argument in one.assemble_argument_collection():
        if argument.parse and argument.show:
            yield argument.names, argument.parameter.help or ""


#: Matching makes many small objects without cycles; collecting as often as Python does costs a fifth of its time.
GC_THRESHOLDS = 200_000, 50, 100


def main() -> None:
    """Runs a command. Errors that the user can mend are one line, without a stack trace."""
    gc.set_threshold(*GC_THRESHOLDS)
    _report_fatal_signals()
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
        code = load_commands()(
            sys.argv[1:], exit_on_error=False, print_error=False, result_action="return_value", backend="asyncio"
        )
    except CycloptsError as error:
        complain(_words_of(error))
        words = [word for word in (error.command_chain or ()) if word]
        complain(f"`{' '.join(['neardup', *words])} --help` shows what is allowed")
        return EXIT_USAGE
    sys.stdout.flush()
    return code or 0


def _words_of(error: CycloptsError) -> str:
    if isinstance(error, UnusedCliTokensError) and error.unused_tokens:
        many = "s" if len(error.unused_tokens) > 1 else ""
        return f"unexpected argument{many}: {shlex.join(error.unused_tokens)}"
    return str(error)


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
        from streams.process.resource_limits import out_of_memory

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
