"""Exit code 2: a path that is missing or must not be written, a port in use. Nothing is begun."""

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from neardup import warm
from neardup.errors import NeardupError
from streams.commands.app import load_commands
from tests.streams.shell import Shell, site

MISSING = (
    *("scan nowhere.warc", "report nowhere", "explain https://a.example/ nowhere", "compare nowhere.html a.html"),
    *("copy nowhere --out kept.jsonl", "partition nowhere.warc", "views nowhere", "export nowhere --out urls.csv"),
    *("canonical --state nowhere", "forget --state nowhere --site a.example", "publish nowhere.warc"),
    *(
        "explain --rows --state nowhere",
        "checkpoint make nowhere --checkpoints copies",
        "replay nowhere",
        "diff nowhere nowhere.jsonl",
    ),
    *("checkpoint list --checkpoints nowhere", "checkpoint restore new --checkpoints nowhere"),
    *("views site --audit nowhere.jsonl", "label nowhere.warc --labels labels.jsonl", "evaluate nowhere.warc"),
    *("evaluate --labels nowhere.jsonl --propose", "evaluate --state no"),
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
    *(
        "evaluate signals a.html --out a.html",
        "render a.html --out no/such",
        "config seed no/such",
        "config seed a.html",
    ),
    *("dedupe-results a.html --model a.html --out no/such", "label a.html --labels a.html/labels"),
    *("checkpoint restore a.html --checkpoints copies", "checkpoint make state --checkpoints a.html/copies"),
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


def test_a_missing_path_has_exit_code_2(ready: Shell) -> None:
    wrong = {}
    for command in MISSING:
        ended = ready(*command.split())
        if ended.code != 2 or "no" not in ended.err:
            wrong[command] = (ended.code, ended.err)
    assert not wrong, "\n".join(f"{name}: {each}" for name, each in wrong.items())


def test_a_path_that_cannot_be_written_has_exit_code_2(ready: Shell) -> None:
    wrong = {}
    before = sorted(ready.folder.rglob("*"))
    for command in UNWRITABLE:
        ended = ready(*command.split())
        if ended.code != 2:
            wrong[command] = (ended.code, ended.err)
    assert not wrong, "\n".join(f"{name}: {each}" for name, each in wrong.items())
    assert sorted(ready.folder.rglob("*")) == before


def test_missing_rights_have_exit_code_2(ready: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.commands.options.os.access", lambda path, mode: False)
    for command in ("scan a.html", "report state --out report.html", "evaluate a.html", "scan site --state new"):
        ended = ready(*command.split())
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
        assert (ended.code, "state" in ended.err) == (2, True), (command, ended.err)


def test_a_required_option_is_demanded(ready: Shell) -> None:
    for command in ("copy state", "export state", "label site", "dedupe-results a.html"):
        ended = ready(*command.split())
        assert (ended.code, "requires an argument" in ended.err) == (2, True), (command, ended.err)


def test_a_missing_default_state_directory_leads_to_the_option(ready: Shell) -> None:
    for command in ("explain --prefix https://a.example/ state", "explain https://a.example/", "report"):
        ended = ready(*command.split())
        assert ended.code == 2
        assert (
            ended.err
            == "neardup: neardup-state is no state directory; name it by --state, or make it by `neardup scan FILE`\n"
        )


def test_a_word_too_many_is_named(ready: Shell) -> None:
    for command, words in (
        ("verdicts state", "unexpected argument: state"),
        ("report state b c", "unexpected arguments: b c"),
    ):
        ended = ready(*command.split())
        assert (ended.code, words in ended.err, "--help" in ended.err) == (2, True, True), ended.err


def test_a_takedown_of_nothing_that_can_be_named_has_exit_code_2(ready: Shell) -> None:
    for given in (["nowhere"], ["--site", "a.example/b"], ["--site", "www.a.example"], ["--prefix", "https://a.example"],
                  ["--prefix", "a.example/"], ["http://"]):  # fmt: skip
        ended = ready("forget", *given, "--state", "state")
        assert (ended.code, len(ended.err.splitlines())) == (2, 1), (given, ended.err)


def test_a_topic_needs_a_valid_name(ready: Shell) -> None:
    for name in ("topic:", "topic:a b", "topic:."):
        for command in (["export", name, "--out", "a.csv"], ["diff", "state", name], ["diff", name, "state"],
                        ["evaluate", "site", "--audit", name]):  # fmt: skip
            ended = ready(*command)
            assert (ended.code, f"{name!r} names no topic; one is topic:verdicts" in ended.err) == (2, True), ended.err


def test_verdicts_of_a_scan_are_exported(ready: Shell) -> None:
    assert ready("verdicts", "state").code == 2
    assert "neardup export DIR --table verdicts" in ready("verdicts", "--help").out
    assert ready("export", "state", "--table", "verdicts", "--out", "verdicts.csv").code == 0


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
heavy = ("numba", "numpy", "rocksdict", "jinja2", "publicsuffixlist", "confluent_kafka", "aiohttp")
print(json.dumps([name for name in heavy if name in sys.modules]))
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(ended.stdout.splitlines()[-1]) == []


@pytest.mark.parametrize("shell_name", ["bash", "zsh", "fish"])
def test_a_shell_completes_commands_and_options(shell_name: str) -> None:
    script = load_commands().generate_completion(shell=shell_name)  # type: ignore[arg-type]
    for word in ("explain", "checkpoint", "restore", "bootstrap", "merge", "stars"):
        assert word in script


def test_bash_takes_the_completion_script(tmp_path: Path) -> None:
    (tmp_path / "script").write_text(load_commands().generate_completion(shell="bash"))
    command = ["bash", "-c", 'source "$0" && complete -p neardup', tmp_path / "script"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.endswith(" neardup\n")
