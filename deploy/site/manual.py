"""Writes the manual page `neardup.1` from the commands' own help: python deploy/site/manual.py FILE

`make site` writes it beside the web pages. Read it with `man ./neardup.1`.
"""

import re
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import click

from streams.commands.app import TASKS, all_commands, app


def manual() -> str:
    """The manual page in roff (man(7)): every command by task, its options, examples and exit codes."""
    lines = [
        f'.TH NEARDUP 1 "" "neardup {version("neardup")}" "User Commands"',
        ".SH NAME",
        _text(f"neardup - {(app.help or '').rstrip('.').lower()}"),
        ".SH SYNOPSIS",
        r".B neardup",
        r".I COMMAND",
        r"[ARGS]...",
        ".SH DESCRIPTION",
        _text(app.help or ""),
        _text("Commands follow by task. A setting of the stream is a flag, an environment variable or a line of a TOML "
              "file; the help of its flag names the variable."),
    ]  # fmt: skip
    commands = all_commands()
    for task, names in TASKS.items():
        lines.append(f".SH {_text(task.upper())}")
        for name in names:
            lines += _command(name, commands[name])
    lines += [".SH EXIT STATUS", *_items(re.findall(r"^ *(\d+)  (.+)$", app.epilog or "", re.MULTILINE))]
    lines += [".SH SEE ALSO", _text("The documentation of each task is made by `make site`.")]
    return "\n".join(lines) + "\n"


def _command(name: str, command: click.Command) -> Iterator[str]:
    context = command.make_context(f"neardup {name}", ["--help"], resilient_parsing=True)
    usage = " ".join(command.collect_usage_pieces(context))
    yield f".SS {_text(f'neardup {name} {usage}')}"
    for number, paragraph in enumerate((command.help or "").split("\n\n")):
        if number:
            yield ".PP"
        yield _text(paragraph)
    arguments = [each for each in command.get_params(context) if isinstance(each, click.Argument)]
    yield from _items([(each.make_metavar(context), getattr(each, "help", "")) for each in arguments])
    options = [each for each in command.get_params(context) if isinstance(each, click.Option)]
    yield from _items([record for each in options if (record := each.get_help_record(context))])
    epilog = (command.epilog or "").removeprefix("\b\n")
    examples, _, codes = epilog.partition("\n\n")
    yield from (".PP", _text("Examples:"), ".nf", *map(_text, examples.split("\n")[1:]), ".fi")
    if codes.strip():
        yield from (".PP", _text(codes))


def _items(rows: list[tuple[str, str]]) -> Iterator[str]:
    for name, text in rows:
        yield from (".TP", rf"\fB{_text(name)}\fR", _text(text))


def _text(text: str) -> str:
    """One line of roff: no character of it is a command."""
    line = re.sub(r"\s+", " ", text).strip().replace("\\", r"\e").replace("-", r"\-")
    return rf"\&{line}" if line.startswith((".", "'")) else line


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(manual())
