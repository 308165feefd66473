"""Start of the command line: imports, notices of compilation, directories that it touches."""

import os
import re
import subprocess
import sys
from contextlib import closing

import pytest

from neardup import warm
from neardup.decider import Decider
from neardup.scheme import Scheme
from streams.state.matcher_directory import MatcherDirectory
from tests.streams.shell import Shell, site


def test_a_cache_that_cannot_be_written_costs_time_alone() -> None:
    """As for a user without a home. Not run to its end: each process compiles for itself."""
    code = "from neardup.warm import notice; from streams.commands import main; print(notice()); main()"
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    environment["XDG_CACHE_HOME"] = "/dev/null/nowhere"
    command = [sys.executable, "-c", code, "--version"]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    output, version = ended.stdout.splitlines()
    assert re.search("for this run only.* /dev/null/nowhere/neardup cannot be written", output)
    assert version.startswith("neardup ")


def test_the_process_that_compiles_for_judging_ends_well() -> None:
    """A command that only judges compiles in its own process: an error there ends the command's first run."""
    warm.main(["judging"])


def test_commands_without_kernels_do_not_import_them(shell: Shell) -> None:
    """The compiler and the arrays take longer to import than an answer may take."""
    commands = [
        *(
            "--help",
            "--version",
            "scan --help",
            "sketch --help",
            "config schema --nonsense",
            "scan",
            "scan nowhere.warc",
        ),
        *("scan . --rule shingles", "scan . --set tape_min=much", "compare a b --set tape_minimum=1"),
        *("report --state nowhere", "explain https://a.example/ --state nowhere", "match --nonsense"),
        *("sketch --threads none", "topics create --partitions 0", "evaluate --threads 0"),
    ]
    code = """
import sys
from streams.commands import app as cli
for command in sys.argv[1:]:
    sys.argv = ["neardup", *command.split()]
    try:
        cli.main()
    except SystemExit:
        pass
    found = {"numba", "numpy", "rocksdict", "jinja2", "publicsuffixlist", "asyncio", "http.client"} & set(sys.modules)
    assert not found, f"{command} imported {found}"
import streams.client
found = {"numba", "numpy", "rocksdict"} & set(sys.modules)
assert not found, f"a client of the stream imported {found}"
import streams.roles.own_generation, streams.operate.ping
found = {"numba", "rocksdict"} & set(sys.modules)
assert not found, f"a command that only connects imported {found}"
"""
    ended = subprocess.run([sys.executable, "-c", code, *commands], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-500:]


def test_a_scan_imports_what_a_scan_needs(shell: Shell) -> None:
    """Templates of reports and signals of pairs serve other commands, and took a tenth of a scan's start."""
    site(shell.folder / "site")
    code = """
import sys
from streams.commands import app as cli
try:
    cli.main()
except SystemExit as ended:
    assert not ended.code
found = {
    *("jinja2", "difflib", "http.client", "confluent_kafka", "rocksdict"),
    *("neardup.report.run_report", "neardup.signals.result_pages"),
} & set(sys.modules)
assert not found, f"a scan imported {found}"
"""
    command = ("scan", str(shell.folder / "site"), "--base-url", "https://a.example/", "--memory", "--quiet")
    ended = subprocess.run([sys.executable, "-c", code, *command], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-500:]


def test_the_user_learns_that_the_compiler_runs(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[tuple[str, ...]] = []
    monkeypatch.setattr(warm, "KEPT", True)
    monkeypatch.setattr(warm, "notice", lambda needs: "compiling")
    monkeypatch.setattr(warm, "warm", lambda needs: compiled.append(tuple(needs)))
    site(shell.folder / "site")
    commands = [
        ("scan", "site", "--base-url", "https://a.example/"),
        ("report",),
        ("explain", "https://a.example/a.html"),
        ("compare", "site/a.html", "site/b.html"),
        ("evaluate", "--state", "neardup-state", "--json"),
    ]
    for command in commands:
        ended = shell(*command)
        assert (ended.code, ended.err.splitlines()[0]) == (0, "neardup: compiling")
    assert shell("scan", "site", "--memory", "--quiet").err == ""
    # A report judges nothing, and a scan compares no texts.
    scanned = warm.SCANNING
    assert compiled == [scanned, ("sketching",), *[warm.ALL] * (len(commands) - 2), scanned]
    monkeypatch.setattr(warm, "KEPT", False)  # then each process compiles what it needs
    assert shell("scan", "site", "--memory").err.splitlines()[0] == "neardup: compiling"
    assert len(compiled) == len(commands) + 1


@pytest.mark.parametrize(
    ("wish", "expected"),
    [
        (("--rule", "nope", "site"), "rule 'nope': there is in-use, B, C"),
        (("--by", "nope", "site"), "strata 'nope': there is"),
        ((), "name either files"),
        (("--state", "nowhere"), "nowhere is no state directory"),
        (("nowhere.warc",), "nowhere.warc: no such file"),
        (("--audit", "nowhere.jsonl", "site"), "nowhere.jsonl"),
        (("--labels", "site", "site"), "cannot write labels site"),
    ],
)
def test_label_reports_wrong_usage_before_compiling(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, wish: tuple[str, ...], expected: str
) -> None:
    monkeypatch.setattr(warm, "notice", lambda needs: "compiling")
    monkeypatch.setattr(warm, "warm", lambda needs: pytest.fail("compiled"))
    site(shell.folder / "site")
    labels = () if "--labels" in wish else ("--labels", "labels.jsonl")
    ended = shell("label", *labels, *wish)
    assert (ended.code, expected in ended.err, "compiling" in ended.err) == (2, True, False), ended.err


@pytest.mark.parametrize(
    "command",
    [
        ("evaluate", "nowhere.warc"),
        ("evaluate", "site", "--labels", "nowhere.jsonl"),
        ("evaluate tlcs", "nowhere.warc"),
        ("evaluate signals", "nowhere.jsonl"),
        ("evaluate", "site", "--labels", "nowhere.jsonl", "--propose"),
        ("signals", "site/a.html", "nowhere.html"),
        ("train", "nowhere.jsonl", "--natural"),
        ("partition", "nowhere.warc", "--out", "sets"),
        ("compare", "site/a.html", "nowhere.html"),
        ("scan", "nowhere.warc"),
    ],
    ids=lambda command: " ".join(command),
)
def test_missing_file_is_reported_before_compiling(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.setattr(warm, "notice", lambda needs: "compiling")
    monkeypatch.setattr(warm, "warm", lambda needs: pytest.fail("compiled"))
    site(shell.folder / "site")
    ended = shell(*command[0].split(), *command[1:])
    assert ended.code == 2
    assert re.search(r"nowhere\.\w+: no such file or folder", ended.err), ended.err
    assert "compiling" not in ended.err


@pytest.mark.parametrize("need", warm.ALL)
def test_kernels_are_compiled_ahead_of_time(need: str) -> None:
    """Each kernel that is named for a need is called: one that is not would be announced by every run."""
    code = f"from neardup import warm\nwarm.warm(({need!r},))\n"
    code += f"print([kernel.__name__ for kernel in warm._SECONDS[{need!r}] if not kernel.signatures])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_notice_of_compilation_names_cores_and_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm, "_held", lambda kernel: False)
    monkeypatch.setattr(warm, "KEPT", True)
    for cores, expected in (({0}, "on 1 core here"), ({0, 1}, "on 2 cores here"), (set(range(64)), "on 2 cores here")):
        monkeypatch.setattr(os, "sched_getaffinity", lambda pid, cores=cores: cores)
        assert expected in warm.notice()
    assert "on 1 core here" in warm.notice(("judging",)), "one core has no helper"
    monkeypatch.setattr(warm, "_held", lambda kernel: kernel is not warm.sketch_batch)
    (seconds,) = re.findall(r"machine: (\d+) seconds", warm.notice())
    assert 17 <= int(seconds) <= 17 + 2, "what is there already is not counted"


def test_the_share_compiled_is_measured_by_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    held: set[object] = set()
    monkeypatch.setattr(warm, "_held", lambda kernel: kernel in held)
    seen = []
    for kernel in (warm.find_hosts, warm.hash_spans, warm.sniff, warm.sketch_batch):
        held.add(kernel)
        seen.append(warm.share_done(("sketching",)))
        assert warm.is_warm(("sketching",)) == (seen[-1] == 1.0) == (kernel is warm.sketch_batch)
    assert seen == sorted(seen)
    assert 0 < seen[0] < seen[1] < seen[2] < 0.2
    assert not warm.is_warm()
    assert warm.share_done(("judging",)) == 0.0


@pytest.mark.slow
def test_files_are_judged_and_read_without_extras(shell: Shell) -> None:
    """As after `pip install neardup`, without extras."""
    site(shell.folder / "site")
    assert shell("scan", "site").code == 0
    commands = (
        "export neardup-state --out urls.csv",
        "copy neardup-state --out kept.jsonl",
        "replay neardup-state --out again.jsonl",
        "diff neardup-state again.jsonl",
        "partition site --out sets --workers 1",
        "explain --rows",
    )
    code = """
import sys
for name in ("aiohttp", "confluent_kafka", "duckdb", "pandas", "prometheus_client", "rapidfuzz", "sklearn"):
    sys.modules[name] = None
from streams.commands import main
for command in sys.argv[1:]:
    sys.argv = ["neardup", *command.split()]
    try:
        main()
    except SystemExit as end:
        assert not end.code, command
"""
    ended = subprocess.run([sys.executable, "-c", code, *commands], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-500:]
    assert "hot keys: none" in ended.stdout, "the last command"


def test_all_of_the_package_is_there_when_asked() -> None:
    code = """
import sys, neardup
assert "numba" not in sys.modules
assert {name for name in dir(neardup) if not name.startswith("_")} == set(neardup.__all__)
for name in neardup.__all__:
    assert getattr(neardup, name).__name__ == name
assert neardup.Page is neardup.page.Page
try:
    neardup.Pages
except AttributeError as error:
    assert "Pages" in str(error)
else:
    raise AssertionError
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-500:]


@pytest.mark.parametrize("command", [("report",), ("explain", "https://a.example/"), ("scan", "site")])
def test_a_matchers_directory_is_left_to_the_matcher(shell: Shell, command: tuple[str, ...]) -> None:
    site(shell.folder / "site")
    path, scheme = shell.folder / "state", Scheme(seed=7)
    with closing(MatcherDirectory(path, scheme)) as directory:
        directory.first_decider(Decider(scheme=scheme.digest))
    before = sorted(path.iterdir())
    ended = shell(*command, "--state", "state")
    assert ended.code == 1
    assert "belongs to `neardup match`" in ended.err
    assert sorted(path.iterdir()) == before
    MatcherDirectory(path, scheme).close()


def test_client_without_its_extra_names_the_package() -> None:
    code = "import sys; sys.modules['confluent_kafka'] = None; import streams.client"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    words = "ModuleNotFoundError: confluent_kafka is not installed, and the stream needs it: "
    words += "pip install '.[kafka]' in a clone, or pip install 'neardup[kafka]' if your package index has neardup"
    assert ended.stderr.splitlines()[-1] == words
    assert "During handling" not in ended.stderr
