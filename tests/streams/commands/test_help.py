"""Help as the only manual: every command says what it does, what each option is for, and shows examples that work."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streams.commands.app import EXIT_CODES, all_commands, help_of, options_of
from tests.streams.command_lines import command_of, parsed

REPOSITORY = Path(__file__).parents[3]


ALL: dict[tuple[str, ...], Any] = {tuple(name.split()): command for name, command in all_commands().items()}


def examples(command: Any) -> list[str]:
    return re.findall(r"^ +((?:[A-Z_]+=\S+ )*neardup .*)$", command.help_epilogue or "", re.MULTILINE)


def test_the_first_word_of_some_commands_lists_them() -> None:
    assert set(re.findall(r"(?m)^│ (create|check) ", help_of(["topics"]))) == {"create", "check"}


def test_there_are_all_of_them() -> None:
    assert {("scan",), ("topics", "create"), ("evaluate", "tlcs")} <= set(ALL)
    assert len({words[0] for words in ALL}) <= 33
    assert len(help_of().splitlines()) < 80


def test_commands_of_evaluations_stand_in_the_last_group() -> None:
    *_, evaluate, studies = re.split(r"(?m)^╭─ ", help_of())
    commands = {name: set(re.findall(r"(?m)^│ ([a-z-]+)  ", text)) for name, text in (("e", evaluate), ("s", studies))}
    assert commands == {"e": {"evaluate", "label"}, "s": {"dedupe-results", "render", "signals", "train"}}
    assert "evaluate tlcs" in studies
    assert "evaluate signals" in studies


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_a_command_explains_itself(words: tuple[str, ...]) -> None:
    command = ALL[words]
    assert command.help, "no text"
    assert len(command.help.split("\n\n")[0]) <= 65, "its line in the list of commands"
    for names, text in options_of(command):
        assert text, f"{names}: no help"
        assert len(names[-1]) < 30
    assert examples(command), "no example"


def called(example: str) -> Iterator[list[str]]:
    """The words of each command of ours in a line."""
    for part in re.split(r" (?:[|>]|&&) ", example):
        given = shlex.split(re.sub(r"^(?:[A-Z_]+=\S+ )*", "", part))
        if given[0] == "neardup":
            yield given[1:]


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_examples_of_the_help_are_accepted(words: tuple[str, ...]) -> None:
    lines = [line for example in examples(ALL[words]) for line in called(example)]
    assert " ".join(words) in map(command_of, lines), "none of its own"
    for line in lines:
        parsed(line)


def test_the_list_of_exit_codes_is_whole() -> None:
    """What the code ends with, and what `--help` lists, of which the reference is made; 134 to 143 are signals'."""
    listed = dict(re.findall(r"^ *(\d+)  (.+)$", EXIT_CODES, re.MULTILINE))
    source = "".join(path.read_text() for path in (REPOSITORY / "streams").rglob("*.py"))
    used = {code for name in ("Exit", "sys.exit") for code in re.findall(rf"\b{re.escape(name)}\((\d+)\)", source)}
    used |= set(re.findall(r"^EXIT_CODE = (\d+)$", source, re.MULTILINE))
    (constants,) = re.findall(r"^EXIT_ERROR, .* = (.*)$", source, re.MULTILINE)
    used |= set(constants.split(", "))
    assert {"1", "2", "3", "75", "130"} <= used
    assert used | {"0", "134", "137", "139", "143"} == set(listed)
    shown = help_of()
    assert all(re.search(rf"(?m)^\s*{code}  ", shown) for code in listed)


def test_the_last_of_repeated_options_counts_and_lists_collect_all() -> None:
    words = "match --group a --group b --set tape_min=.8 --set b_min=3 --standby --standby"
    found = parsed(words.split())
    assert (found["settings"].group, found["settings"].set) == ("b", ("tape_min=.8", "b_min=3"))
    assert found["standby"] is True
