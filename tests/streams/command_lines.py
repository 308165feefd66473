"""Command lines are read as the program reads them, without running them."""

from typing import Any

from streams.commands.app import all_commands, load_commands, options_of
from streams.errors import WrongUsage

COMMANDS = all_commands()


def command_of(words: list[str]) -> str:
    """The name of the command that a line begins with. Raises StopIteration."""
    return next(name for count in (2, 1) if (name := " ".join(words[:count])) in COMMANDS)


def options(name: str) -> set[str]:
    """The options of a command, in all their spellings."""
    return {spelling for names, _ in options_of(COMMANDS[name]) for spelling in names} | {"--help", "-h"}


def parsed(words: list[str]) -> dict[str, Any]:
    """The arguments of a line; empty if it names a path that does not exist here. Raises CycloptsError, ValueError."""
    known = options(command_of(words))
    for word in words:
        if word.startswith("--") and word.partition("=")[0] not in known:
            raise ValueError(f"no option {word}")
    try:
        return load_commands().parse_args(words, exit_on_error=False, print_error=False)[1].arguments
    except WrongUsage:
        return {}
