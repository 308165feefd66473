"""Exit code 2: a path that is missing or must not be written, a port in use. Nothing is begun."""

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from neardup import warm
from neardup.decider import ONLINE_RULES
from neardup.errors import NeardupError
from streams.commands.app import SHORT, TASKS, all_commands
from tests.streams.shell import Shell, site

MISSING = (
    *("scan nowhere.warc", "report nowhere", "explain https://a.example/ nowhere", "compare nowhere.html a.html"),
    *("copy nowhere --out kept.jsonl", "partition nowhere.warc", "views nowhere", "export nowhere --out urls.csv"),
    *("canonical --state nowhere", "forget --state nowhere --site a.example", "publish nowhere.warc"),
    *(
        "explain --rows --state nowhere",
        "checkpoint nowhere --checkpoints copies",
        "replay nowhere",
        "diff nowhere nowhere.jsonl",
    ),
    *("checkpoints --checkpoints nowhere", "restore new --checkpoints nowhere", "views site --audit nowhere.jsonl"),
    *("label nowhere.warc --labels labels.jsonl", "tune nowhere.jsonl", "evaluate nowhere.warc", "evaluate --state no"),
    *("evaluate --verdicts nowhere.jsonl", "evaluate tlcs nowhere.warc", "evaluate signals nowhere.jsonl"),
    *("dedupe-results nowhere.jsonl --model a.json", "train nowhere.jsonl --natural", "signals a.html nowhere.html"),
    *("render nowhere.jsonl", "backfill nowhere.warc --generation second", "config --config nowhere.toml"),
    *("scan a.html --sites nowhere.toml", "compare a.html a.html --model nowhere.json"),
    *("compare a.html a.html --state nowhere", "scan a.html --rule signals:nowhere.json"),
)
UNWRITABLE = (
    *("scan a.html --out no/such", "scan a.html --report no/such", "scan a.html --audit no/such"),
    *("scan a.html --state a.html", "report state --out no/such", "copy state --out no/such.jsonl"),
    *("export state --out no/such.csv", "diff state state --html no/such", "diff state state --pages no/such.csv"),
    *("replay state --out no/such", "partition a.html --out a.html", "evaluate a.html --out a.html"),
    *("evaluate a.html --labels-out no/such", "evaluate tlcs a.html --out a.html", "train a.html --out no/such"),
    *("evaluate signals a.html --out a.html", "render a.html --out no/such", "seed no/such", "seed a.html"),
    *("dedupe-results a.html --model a.html --out no/such", "label a.html --labels a.html/labels"),
    *("restore a.html --checkpoints copies", "checkpoint state --checkpoints a.html/copies"),
)


@pytest.fixture
def ready(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """A shell beside a page and the state directory of a scan of it; compiling, or asking Kafka, fails."""
    site(shell.folder / "site")
    (shell.folder / "a.html").write_text((shell.folder / "site" / "a.html").read_text())
    assert shell("scan", "site", "--state", "state").code == 0
    monkeypatch.setenv("NEARDUP_SEED", "7")
    monkeypatch.setattr("streams.roles.runtime.greet", lambda settings, role: None)
    monkeypatch.setattr(warm, "notice", lambda needs: "compiling")
    monkeypatch.setattr(warm, "make_ready", compiled)
    return shell


def compiled(*given: object) -> None:
    raise NeardupError("no: compiled before it was refused")


def called(command: str) -> list[str]:
    name, _, _ = command.partition(" ")
    two = " ".join(command.split()[:2])
    return two.split() + command.split()[2:] if two in SHORT else [name, *command.split()[1:]]


def test_a_missing_path_has_exit_code_2(ready: Shell) -> None:
    wrong = {}
    for command in MISSING:
        ended = ready(*called(command))
        if ended.code != 2 or "no" not in ended.err:
            wrong[command] = (ended.code, ended.err)
    assert not wrong, "\n".join(f"{name}: {each}" for name, each in wrong.items())


def test_a_path_that_cannot_be_written_has_exit_code_2(ready: Shell) -> None:
    wrong = {}
    before = sorted(ready.folder.rglob("*"))
    for command in UNWRITABLE:
        ended = ready(*called(command))
        if ended.code != 2:
            wrong[command] = (ended.code, ended.err)
    assert not wrong, "\n".join(f"{name}: {each}" for name, each in wrong.items())
    assert sorted(ready.folder.rglob("*")) == before


def test_missing_rights_have_exit_code_2(ready: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.commands.shared.os.access", lambda path, mode: False)
    for command in ("scan a.html", "report state --out report.html", "evaluate a.html", "scan site --state new"):
        ended = ready(*called(command))
        assert (ended.code, "permission denied" in ended.err) == (2, True), (command, ended.err)


def test_a_port_in_use_has_exit_code_2(ready: Shell) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        port = str(held.getsockname()[1])
        for command in ("views state", "label site --labels labels.jsonl"):
            ended = ready(*command.split(), "--port", port)
            assert (ended.code, "cannot listen on" in ended.err) == (2, True), (command, ended.err)


def test_a_state_directory_is_an_argument_or_an_option_not_both(ready: Shell) -> None:
    for command in ("report state", "replay state", "views state"):
        ended = ready(*command.split(), "--state", "other")
        assert (ended.code, "is given twice" in ended.err) == (2, True), (command, ended.err)


def test_a_required_option_is_demanded(ready: Shell) -> None:
    for command in ("copy state", "export state", "label site", "dedupe-results a.html"):
        ended = ready(*command.split())
        assert (ended.code, "Missing option" in ended.err) == (2, True), (command, ended.err)


def test_verdicts_of_a_scan_are_exported(ready: Shell) -> None:
    ended = ready("verdicts", "state")
    assert (ended.code, "neardup export DIR --table verdicts --out verdicts.csv" in ended.err) == (2, True), ended.err
    assert ready("export", "state", "--table", "verdicts", "--out", "verdicts.csv").code == 0


def test_each_module_is_a_command_of_the_list() -> None:
    folder = Path(sys.modules["streams.commands"].__file__ or "").parent
    parts = {"__init__", "app", "deciders", "options", "output", "paths", "scan_summary", "shared", "terminal"}
    modules = {path.stem for path in folder.glob("*.py")} - parts
    assert modules == {command.run.__module__.rpartition(".")[2] for command in all_commands().values()}
    assert sum(map(len, TASKS.values())) == len(SHORT) == len(all_commands())


def test_help_of_every_command_imports_nothing_heavy() -> None:
    code = """
import json, sys
from streams.commands.app import all_commands, main
sys.argv = ["neardup", "--help"]
all_commands()
try:
    main()
except SystemExit:
    pass
heavy = ("numba", "numpy", "rocksdict", "jinja2", "rich", "publicsuffixlist", "confluent_kafka", "aiohttp")
print(json.dumps([name for name in heavy if name in sys.modules]))
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(ended.stdout.splitlines()[-1]) == []


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ("scan --me", "--merge"),
        ("exp", "explain"),
        ("train --by t", "tree"),
        ("match --rule ta", "tape"),
        ("scan --rule ver", "verified"),
        ("scan --shadow ta", "tape"),
        ("scan cra", "file,cra"),
        ("scan one.warc t", "file,t"),
        ("copy neardup", "dir,neardup"),
        ("compare a.html b", "file,b"),
        ("export --out ver", "file,ver"),
        ("match --state wa", "dir,wa"),
        ("match --config ne", "file,ne"),
    ],
)
def test_a_shell_completes_commands_options_and_values(start: str, expected: str) -> None:
    environment = {"_NEARDUP_COMPLETE": "bash_complete", "COMP_WORDS": f"neardup {start}"}
    environment["COMP_CWORD"] = str(len(start.split()))
    command = [sys.executable, "-c", "from streams.commands import main; main()"]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert expected in ended.stdout


def test_a_shell_completes_no_rule_that_a_scan_refuses() -> None:
    environment = {"_NEARDUP_COMPLETE": "bash_complete", "COMP_WORDS": "neardup scan --rule s", "COMP_CWORD": "3"}
    command = [sys.executable, "-c", "from streams.commands import main; main()"]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert [line.removeprefix("plain,") for line in ended.stdout.split()] == [
        rule for rule in ONLINE_RULES if rule.startswith("s")
    ]
