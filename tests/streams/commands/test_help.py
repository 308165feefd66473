"""Help as the only manual: every command says what it does, what each option is for, and shows examples that work."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from streams.commands.app import EXIT_CODES, all_commands, app

REPOSITORY = Path(__file__).parents[3]


ALL: dict[tuple[str, ...], Any] = {tuple(name.split()): command for name, command in all_commands().items()}


def examples(command: Any) -> list[str]:
    return re.findall(r"^ +((?:[A-Z_]+=\S+ )*neardup .*)$", command.epilog or "", re.MULTILINE)


def test_the_first_word_of_some_commands_lists_them() -> None:
    result = CliRunner().invoke(app, ["topics", "--help"])
    assert result.exit_code == 0
    assert [line.split("  ")[0] for line in result.output.splitlines()] == [
        "neardup topics create",
        "neardup topics check",
    ]


def test_there_are_all_of_them() -> None:
    assert {("scan",), ("topics", "create"), ("evaluate", "tlcs")} <= set(ALL)
    assert len(ALL) > 25


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_a_command_explains_itself(words: tuple[str, ...]) -> None:
    command = ALL[words]
    assert command.help, "no text"
    assert command.short_help, "no line in the list of commands"
    assert len(command.short_help) <= 65
    for parameter in command.params:
        if parameter.param_type_name == "option":
            assert parameter.help, f"{parameter.opts}: no help"
            assert len(parameter.opts[-1]) < 30
    assert examples(command), "no example"


def called(example: str) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """The commands of ours in a line, and what each is given."""
    for part in re.split(r" (?:[|>]|&&) ", example):
        given = shlex.split(re.sub(r"^(?:[A-Z_]+=\S+ )*", "", part))
        if given[0] == "neardup":
            yield next(
                (tuple(given[1 : 1 + count]), given[1 + count :])
                for count in (2, 1)
                if tuple(given[1 : 1 + count]) in ALL
            )


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_its_examples_are_such_as_it_takes(words: tuple[str, ...]) -> None:
    lines = [list(called(example)) for example in examples(ALL[words])]
    assert words in {name for line in lines for name, _ in line}, "none of its own"
    for name, given in (each for line in lines for each in line):
        ALL[name].make_context(" ".join(name), list(given), resilient_parsing=False)


def test_the_list_of_exit_codes_is_whole() -> None:
    """What the code ends with, and what `--help` lists, of which the reference is made; 134 to 143 are signals'."""
    listed = dict(re.findall(r"^ *(\d+)  (.+)$", EXIT_CODES, re.MULTILINE))
    source = "".join(path.read_text() for path in (REPOSITORY / "streams").rglob("*.py"))
    used = {code for name in ("Exit", "sys.exit") for code in re.findall(rf"\b{re.escape(name)}\((\d+)\)", source)}
    used |= set(re.findall(r"^EXIT_CODE = (\d+)$", source, re.MULTILINE))
    (constants,) = re.findall(r"^EXIT_ERROR, .* = (.*)$", source, re.MULTILINE)
    used |= set(constants.split(", "))
    assert {"1", "2", "3", "75", "130"} <= used
    assert used | {"0", "134", "137", "143"} == set(listed)
