"""The command line as its users meet it: output, exit codes, one-line errors."""

import gzip
import json
import os
import re
import signal
import socket
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from streams.config.load import load
from streams.config.settings import OPTIONS
from streams.scan import scan as scanning
from streams.state.scan_directory import ScanDirectory
from tests.streams.shell import Shell, site, words


def test_scan_prints_its_summary(shell: Shell) -> None:
    site(shell.folder / "site")
    ended = shell("scan", "site", "--base-url", "https://a.example/", "--report", "report.html")
    assert ended.code == 0
    assert "3 pages" in ended.out
    assert [line.split()[1] for line in ended.out.splitlines() if line.startswith(("unique", "near_duplicate"))] == [
        "2", "1",
    ]  # fmt: skip
    assert "a.example" in ended.out
    assert "neardup-state" in ended.out
    assert "near duplicate" in (shell.folder / "report.html").read_text()


def test_first_scan_of_the_readme_prints_the_shown_output(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    root = Path(__file__).parents[3]
    monkeypatch.setenv("COLUMNS", "140")
    monkeypatch.setenv("NEARDUP_SEED", "7")  # under many others the two files share no key
    install = (root / "README.md").read_text().partition("\n## Install\n")[2]
    _, pages, scan = install.partition("```\n")[2].partition("```")[0].splitlines()
    (shell.folder / "LICENSE").write_bytes((root / "LICENSE").read_bytes())
    subprocess.run(pages, shell=True, check=True)
    ended = shell(*scan.partition("#")[0].split()[1:])
    assert ended.code == 0
    shown = install.partition("```text\n")[2].partition("```")[0].splitlines()
    printed = [line.rstrip() for line in ended.out.splitlines()]
    assert printed[0].startswith("2 pages in ")
    assert printed[1 : len(shown)] == shown[1:]


def test_second_scan_finds_duplicates_of_the_first_and_skips_finished_sources(shell: Shell) -> None:
    site(shell.folder / "site")
    (shell.folder / "more").mkdir()
    (shell.folder / "more" / "d.html").write_text(f"<title>Tin</title><p>{words('c')} again")
    assert shell("scan", "site").code == 0
    ended = shell("scan", "site", "more", "--json")
    output = json.loads(ended.out)
    assert (output["pages"], output["counts"]) == (1, {"near_duplicate": 1})
    assert [Path(path).name for path in output["skipped"]] == ["site"]
    assert set(output["state_bytes"]) >= {"index", "log", "verdicts"}


def test_verdicts_in_a_pipe_are_all_that_is_printed(shell: Shell) -> None:
    site(shell.folder / "site")
    ended = shell("scan", "site", "--memory", "--out", "-")
    verdicts = [json.loads(line) for line in ended.out.splitlines()]
    assert [verdict["verdict"] for verdict in verdicts] == ["unique", "near_duplicate", "unique"]
    assert ended.err == ""
    assert not (shell.folder / "neardup-state").exists()


@pytest.mark.slow
def test_a_reader_that_goes_away_and_a_full_disk_end_a_scan_quietly(shell: Shell) -> None:
    site(shell.folder / "site")
    command = [sys.executable, "-c", "from streams.commands import main; main()", "scan", "site"]
    reader, writer = os.pipe()
    os.close(reader)
    left = subprocess.run([*command, "--out", "-"], stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert left.returncode == 1
    assert all(line.startswith("neardup: compil") for line in left.stderr.splitlines())
    with open("/dev/full", "w") as full:
        left = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert left.returncode == 1
    assert left.stderr.splitlines()[-1] == "neardup: cannot write the output: no space left on device"  # cold: more
    assert [json.loads(line)["page_id"] for line in shell("scan", "site", "--out", "-").out.splitlines()] == [0, 1, 2]


def test_similar_pages_kept_apart_are_counted_by_reason(shell: Shell) -> None:
    (shell.folder / "shop").mkdir()
    for name in ("sweaters", "socks", "hats"):
        (shell.folder / "shop" / f"{name}.html").write_text(f"<title>{name}</title><p>{words('a')} {name} {name}")
    base = ("--base-url", "https://a.example/", "--report", "report.html")
    ended = shell("scan", "shop", *base)
    text = "2 pages similar to an earlier one, but kept apart: the titles name different things (2)"
    assert text in ended.out.splitlines()
    assert "Similar, but kept apart</h3>" in (shell.folder / "report.html").read_text()
    assert shell("export", "neardup-state", "--out", "urls.jsonl").code == 0
    rows = {row["url"][18:]: row for row in map(json.loads, (shell.folder / "urls.jsonl").read_text().splitlines())}
    assert [rows[f"{name}.html"]["alike"] for name in ("hats", "socks")] == [None, "https://a.example/hats.html"]


def test_a_scan_says_why_pages_were_rejected(shell: Shell) -> None:
    fetches = [{"url": f"https://a.example/{i}", "http_status": 500 + (i > 2), "body": "x"} for i in range(5)]
    lines = [*map(json.dumps, fetches), "not json"]
    (shell.folder / "a.jsonl").write_text("\n".join(lines))
    text = "rejected: HTTP status 500 (3); HTTP status 501 (2); not JSON (1)"
    assert text in shell("scan", "a.jsonl", "--memory").out.splitlines()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("scan", "nowhere.warc.gz"), "nowhere.warc.gz"),
        (("scan", "site", "--rule", "shingles"), "shingling"),
        (("scan", "site", "--set", "tape_minimum=1"), "tape_min"),
        (("scan", "site", "--set", "tape_min=much"), "much"),
        (("scan", "site", "--out", "-", "--json"), "standard output"),
        (("scan", "site", "--out", "no/such/folder"), "no/such/folder"),
        (("report", "--state", "site"), "no state directory"),
        (("explain", "https://a.example/", "--state", "nowhere"), "no state directory"),
        (("compare", "site/a.html", "site/none.html"), "none.html"),
        (("scan", "site", "--state", "site"), "site"),
    ],
)
def test_a_users_error_is_one_line_that_names_it(shell: Shell, arguments: tuple[str, ...], expected: str) -> None:
    site(shell.folder / "site")
    ended = shell(*arguments)
    assert ended.code == (1 if expected == "site" else 2)  # that folder is used by something else
    assert len(ended.err.splitlines()) == 1
    assert expected in ended.err


def test_a_mistyped_name_leaves_nothing_behind(shell: Shell) -> None:
    assert shell("scan", "nowhere.warc.gz").code == 2
    assert list(shell.folder.iterdir()) == []


@pytest.mark.parametrize("option", ["--report", "--out"])
@pytest.mark.parametrize("path", ["site", "site/a.html"])
def test_nothing_is_written_over_a_file_to_scan(shell: Shell, path: str, option: str) -> None:
    page = site(shell.folder / "site") / "a.html"
    held = page.read_bytes()
    ended = shell("scan", path, option, "site/a.html")
    assert ended.code == 1
    assert "would be overwritten" in ended.err
    assert page.read_bytes() == held


def test_two_outputs_want_two_files(shell: Shell) -> None:
    site(shell.folder / "site")
    ended = shell("scan", "site", "--out", "x", "--report", "./x")
    assert (ended.code, ended.err) == (2, "neardup: x is named twice; each output needs a file of its own\n")


@pytest.mark.parametrize("seed", ["hunter2", "-98765", str(98765 << 64)])
def test_a_wrong_seed_is_not_repeated(shell: Shell, monkeypatch: pytest.MonkeyPatch, seed: str) -> None:
    site(shell.folder / "site")
    monkeypatch.setenv("NEARDUP_SEED", seed)
    ended = shell("scan", "site")
    assert ended.code == 2
    assert "NEARDUP_SEED" in ended.err
    assert seed not in ended.err


def test_a_scan_takes_its_seed_from_the_file_that_the_environment_names(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    site(shell.folder / "site")
    (shell.folder / "seed").write_text("0x7\n")
    monkeypatch.delenv("NEARDUP_SEED", raising=False)
    monkeypatch.setenv("NEARDUP_SEED_FILE", "seed")
    assert shell("scan", "site").code == 0
    assert json.loads((shell.folder / "neardup-state" / "scheme.json").read_text())["seed"] == 7
    monkeypatch.setenv("NEARDUP_SEED_FILE", "missing")
    ended = shell("scan", "site", "--memory")
    assert (ended.code, "NEARDUP_SEED_FILE" in ended.err) == (2, True)


def test_another_rule_on_a_used_state_is_refused(shell: Shell) -> None:
    site(shell.folder / "site")
    assert shell("scan", "site").code == 0
    ended = shell("scan", "site", "--again", "--rule", "shingling")
    assert ended.code == 1
    assert "another directory" in ended.err


def test_input_that_cannot_be_read_whole_has_an_exit_code_of_its_own(shell: Shell) -> None:
    line = json.dumps({"url": "https://a.example/", "body": words("a")})
    (shell.folder / "rejected.jsonl").write_text(f'{line}\n{{"url": broken\n')
    whole = gzip.compress((shell.folder / "rejected.jsonl").read_bytes() * 100)
    (shell.folder / "cut.jsonl.gz").write_bytes(whole[:-20])
    for name, code in (("rejected.jsonl", 0), ("cut.jsonl.gz", 3)):
        ended = shell("scan", name, "--memory", "--json")
        output = json.loads(ended.out)
        assert output["counts"]["rejected"] >= 1
        assert (ended.code, len(output["problems"])) == (code, code // 3)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_has_an_exit_code_of_its_own(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    site(shell.folder / "site")
    whole = scanning.Verdicts.write

    def signalled(out: scanning.Verdicts, source: bytes, lines: bytes) -> None:
        os.kill(os.getpid(), number)
        whole(out, source, lines)

    monkeypatch.setattr(scanning.Verdicts, "write", signalled)
    ended = shell("scan", "site", "--out", "verdicts")
    assert (ended.code, ended.err) == (130, "neardup: interrupted; the same command continues from here\n")
    monkeypatch.undo()
    again = Shell(shell.folder, monkeypatch, shell._capsys)("scan", "site", "--out", "verdicts")
    assert again.code == 0
    assert len((shell.folder / "verdicts").read_text().splitlines()) == 3


def test_names_of_files_cannot_steer_the_terminal(shell: Shell) -> None:
    name = "\x1b[31mred\u202e\nline.warc"
    (shell.folder / name).write_bytes(b"WARC/1.0\r\n")
    ended = shell("scan", name, "--memory")
    assert ended.code == 3
    assert [output for output in ended.out.splitlines() if output.startswith("problem: ")] == [
        f"problem: {shell.folder}/\ufffd[31mred\ufffd line.warc: byte 0: a WARC header that is cut off or too long; "
        "skipped to the next record"
    ]


STEERING = "\x1b[31m\x07\u202e\u200b\x9b"


def test_errors_cannot_steer_the_terminal(shell: Shell) -> None:
    for arguments in (
        ("scan", f"{STEERING}none"),
        ("evaluate", f"{STEERING}none"),
        ("scan", ".", "--set", f"{STEERING}=1"),
        ("scan", ".", f"--{STEERING}"),
        (f"{STEERING}none",),
        ("config", "--codec", f"{STEERING}none"),
    ):
        ended = shell(*arguments)
        assert ended.code in (1, 2)
        assert ended.err.isascii(), arguments
        assert ended.err.replace("\n", "").isprintable(), arguments
        assert ended.err.count("[31m"), arguments


def test_messages_of_several_lines_stay_that(shell: Shell) -> None:
    ended = shell("config", "--codec", "xml", "--threads", "many")
    assert len(ended.err.splitlines()) > 1


def test_settings_show_no_credentials_of_urls(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEARDUP_CHECKPOINTS", "s3://AKIAKEY:sekret/wort@bucket/a?token=sekret&x=1")
    monkeypatch.setenv("NEARDUP_BODY_REF_PREFIXES", "https://ana:sekret@a.example/, s3://b/, ftp://sekret@c.example/")
    monkeypatch.setenv("NEARDUP_KAFKA__SASL_OAUTHBEARER_TOKEN_ENDPOINT_URL", "https://me:sekret@id.example/token")
    for form in ((), ("--json",)):
        output = shell("config", *form).out
        assert "sekret" not in output
        assert "AKIAKEY" not in output
    for rest in ("bucket/a?token=***&x=***", "//***@a.example/, s3://b/, ftp://***@c.example/", "***@id.example/token"):
        assert rest in output, rest
    monkeypatch.setenv("NEARDUP_BODY_REF_PREFIXES", "https://ana:sekret@a.example/no-slash")
    ended = shell("config")
    assert ended.code == 2
    assert "sekret" not in ended.out + ended.err


def test_explain_names_reason_and_rejected_candidates(shell: Shell) -> None:
    site(shell.folder / "site")
    assert shell("scan", "site", "--base-url", "https://a.example/").code == 0
    ended = shell("explain", "https://a.example/b.html")
    assert ended.code == 0
    assert "near" in ended.out
    assert "a.html" in ended.out
    assert json.loads(shell("explain", "https://a.example/b.html", "--json").out)
    missing = shell("explain", "https://a.example/none.html")
    assert missing.code == 1
    assert "none.html" in missing.err


def test_compare_puts_two_files_before_every_rule(shell: Shell) -> None:
    site(shell.folder / "site")
    ended = shell("compare", "site/a.html", "site/b.html")
    for rule in ("shingling", "simhash", "combined", "site-split", "simhash64", "verified"):
        assert rule in ended.out
    assert "9" in ended.out
    assert "41" in ended.out
    assert json.loads(shell("compare", "site/a.html", "site/b.html", "--json").out)


@pytest.mark.parametrize("command", [(), ("scan",), ("report",), ("compare",), ("explain",), ("run",), ("config",)])
def test_help_has_examples(shell: Shell, command: tuple[str, ...]) -> None:
    ended = shell(*command, "--help")
    assert ended.code == 0
    if command:
        assert any(line.startswith("  neardup " + command[0]) for line in ended.out.splitlines())
    else:
        assert "..." not in ended.out.partition("Commands")[2], "a command's line is cut"


def test_the_version_is_reported(shell: Shell) -> None:
    assert shell("--version").out.startswith("neardup 0.")


def test_a_missing_extra_is_named(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    for module in [name for name in sys.modules if name.startswith("streams.kafka")]:
        monkeypatch.delitem(sys.modules, module)
    ended = shell("topics", "check")
    assert ended.code == 1
    assert "neardup[kafka]" in ended.err


def test_settings_say_where_they_come_from(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    (shell.folder / "neardup.toml").write_text('group = "crawl"\n[decider]\ntape_min = 0.8\n')
    monkeypatch.setenv("NEARDUP_SEED", "4711")
    monkeypatch.setenv("NEARDUP_CODEC", "warc")
    output = shell("config", "--config", "neardup.toml", "--threads", "3", "--json").out
    rows = {row["setting"]: row for row in json.loads(output)}
    assert (rows["group"]["value"], rows["codec"]["value"], rows["threads"]["value"]) == ("crawl", "warc", "3")
    assert "neardup.toml" in rows["decider.tape_min"]["origin"]
    assert "NEARDUP_CODEC" in rows["codec"]["origin"]
    assert "--threads" in rows["threads"]["origin"]
    assert rows["bootstrap"]["origin"] == "default"
    assert "4711" not in output


def test_all_wrong_settings_are_reported_at_once(shell: Shell) -> None:
    ended = shell("config", "--codec", "xml", "--threads", "many", "--bootstrap", "nowhere")
    assert ended.code == 2
    for name in ("codec", "threads", "bootstrap"):
        assert name in ended.err


def test_a_role_without_a_seed_says_how_to_give_one(shell: Shell) -> None:
    ended = shell("match")
    assert ended.code == 2
    assert "NEARDUP_SEED_FILE" in ended.err


@pytest.mark.parametrize(
    "command",
    [("verdicts",), ("topics", "check"), ("topics", "check", "--page"), ("publish", "a.jsonl"),
     ("label", "a.jsonl", "--labels", "l.jsonl", "--audit", "topic:a"),
     ("accept", "gap", "3"), ("replay",), ("diff", "topic:a", "topic:b"), ("export", "topic:a", "--out", "-")],
)  # fmt: skip
def test_an_address_without_a_broker_is_reported(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
    monkeypatch.setattr("streams.roles.runtime.GREETING_SECONDS_MAX", 0.2)
    monkeypatch.setenv("NEARDUP_SEED", "7")
    Path("a.jsonl").write_text("{}")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))  # no process listens there
        result = shell(*command, "--bootstrap", f"127.0.0.1:{free.getsockname()[1]}")
    assert result.code == 1
    assert "no broker can be reached: check that Kafka runs, and that `bootstrap` names its address" in result.err
    assert "FAIL" not in result.err, result.err


def test_a_seed_is_drawn_once_and_is_its_owners(shell: Shell) -> None:
    result = shell("config", "seed", "seed")
    text = Path("seed").read_text()
    assert result.code == 0, result.err
    assert text.strip() not in result.out + result.err
    assert Path("seed").stat().st_mode & 0o777 == 0o600
    assert load({"NEARDUP_SEED_FILE": "seed"}).seed == int(text, 0)
    again = shell("config", "seed", "seed")
    assert (again.code, "exists already" in again.err, Path("seed").read_text()) == (2, True, text)
    assert "cannot write no/such/seed" in shell("config", "seed", "no/such/seed").err


def test_the_package_is_the_command() -> None:
    made = subprocess.run([sys.executable, "-m", "neardup", "--version"], capture_output=True, text=True, check=True)
    assert made.stdout == f"neardup {version('neardup')}\n"


def test_an_evaluation_is_written_and_reported(shell: Shell) -> None:
    for release in ("1.0", "2.0"):
        (shell.folder / "site" / release).mkdir(parents=True)
        for name in "abc":
            text = f"<title>{name}</title><p>{words(name)} {release}"
            (shell.folder / "site" / release / f"{name}.html").write_text(text)
    ended = shell("evaluate", "site", "--base-url", "https://a.example/", "--natural", "--out", "evaluation")
    assert ended.code == 0, ended.err
    assert "3 correct" in ended.out
    assert any(line.startswith("verified ") for line in ended.out.splitlines())
    assert (shell.folder / "evaluation" / "evaluation.html").is_file()
    result = json.loads(shell("evaluate", "site", "--out", "other", "--json").out)
    assert result["corpus"]["pages"] == 6


def test_an_evaluation_of_nothing_is_refused(shell: Shell) -> None:
    ended = shell("evaluate")
    assert ended.code == 2
    assert "--state" in ended.err


@pytest.mark.parametrize(
    "command",
    [
        ("scan", "site", "--report", "{}"),
        ("scan", "site", "--out", "{}"),
        ("scan", "site", "--audit", "{}"),
        ("report", "--out", "{}"),
        ("export", "neardup-state", "--out", "{}"),
    ],
    ids=lambda command: " ".join((command[0], command[-2])),
)
def test_where_nothing_can_be_written_nothing_is_begun(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    site(shell.folder / "site")
    assert shell("scan", "site").code == 0
    monkeypatch.setattr(ScanDirectory, "open", None)  # opening it would fail
    for path, expected in (("no/such.csv", "there is no folder"), ("folder.csv", "a folder")):
        (shell.folder / "folder.csv").mkdir(exist_ok=True)
        ended = shell(*command[:-1], path)
        assert (ended.code, expected in ended.err) == (2, True), ended.err


def test_config_shows_flag_and_variable_of_each_setting(shell: Shell) -> None:
    output = shell("config").out
    for name, option in OPTIONS.items():
        assert (f"[{option.env}" if option.kind.secret else f"[{option.flag}, {option.env}") in output, name


def test_help_of_a_role_has_its_settings_in_groups(shell: Shell) -> None:
    for role in ("sketch", "match", "run"):
        output = shell(role, "--help").out
        titles = re.findall(r"(?m)^╭─ (.+?) ─+╮$", output)
        assert titles[:2] == ["Parameters", "Connection and topics"]
        assert "Monitoring" in titles
        assert output.index("--bootstrap") < output.index("Connection and topics ") < output.index("--pages-topic")
        assert ("Decider" in titles) == (role != "sketch")
