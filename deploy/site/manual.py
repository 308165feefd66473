"""Writes the manual page `neardup.1` from the commands' own help: python deploy/site/manual.py FILE

`make site` writes it beside the web pages. Read it with `man ./neardup.1`.
"""

import re
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from cyclopts import App

from streams.commands.app import EXIT_CODES, all_commands, app, options_of


def manual() -> str:
    """The manual page in roff (man(7)): every command by task, its options, examples and exit codes."""
    commands = all_commands()
    lines = [
        f'.TH NEARDUP 1 "" "neardup {version("neardup")}" "User Commands"',
        ".SH NAME",
        _text(f"neardup - {str(app.help).rstrip('.').lower()}"),
        ".SH SYNOPSIS",
        r".B neardup",
        r".I COMMAND",
        r"[ARGS]...",
        ".SH DESCRIPTION",
        _text(str(app.help)),
        _text("Commands follow by task. A setting of the stream is a flag, an environment variable or a line of a TOML "
              "file; the help of its flag names the variable."),
    ]  # fmt: skip
    task = ""
    for name, command in commands.items():
        (group,) = app[name.split()[0]].group
        if group.name != task:
            task = group.name
            lines.append(f".SH {_text(task.upper())}")
        lines += _command(name, command)
    lines += [".SH EXIT STATUS", *_items(re.findall(r"^ *(\d+)  (.+)$", EXIT_CODES, re.MULTILINE))]
    lines += [".SH SEE ALSO", _text("The documentation of each task is made by `make site`.")]
    return "\n".join(lines) + "\n"


def _command(name: str, command: App) -> Iterator[str]:
    yield f".SS {_text(f'neardup {name}')}"
    for number, paragraph in enumerate(str(command.help).split("\n\n")):
        if number:
            yield ".PP"
        yield _text(paragraph)
    yield from _items([(", ".join(names), text) for names, text in options_of(command)])
    examples, _, codes = str(command.help_epilogue or "").partition("\n\n")
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
