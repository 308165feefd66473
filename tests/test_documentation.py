"""The pages of the documentation: their length, links, words, and the commands, files and variables that they name."""

import ast
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from streams.config.settings import OPTIONS, PREFIX
from tests.streams.command_lines import COMMANDS, options, parsed

ROOT = Path(__file__).parents[1]
#: Lines. Other pages have at most LINES_MAX.
LIMITS = {"README.md": 150, "CHANGELOG.md": 100}
LINES_MAX = 300
#: Processes, pages and functions are no persons.
MISLEADING = re.compile(r"\b(whoever|nobody|somebody|anybody)\b", re.IGNORECASE)
#: Variables that are read elsewhere than in the settings.
OTHER_VARIABLES = {"NEARDUP_SEED", "NEARDUP_SEED_FILE", "NEARDUP_SET", "NEARDUP_DECIDER__NAME", "NEARDUP_KAFKA__NAME"}


def _pages() -> list[Path]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
    known = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if known.returncode == 0:
        return [ROOT / name for name in sorted(known.stdout.split()) if (ROOT / name).is_file()]
    out = []  # an sdist
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in ("build", "demo", "dist")]
        out += [Path(folder, name) for name in files if name.endswith(".md")]
    return sorted(out)


PAGES = _pages()
NAMES = [page.relative_to(ROOT).as_posix() for page in PAGES]
every_page = pytest.mark.parametrize("page", PAGES, ids=NAMES)


def prose(text: str) -> str:
    return re.sub(r"(?ms)^ *```.*?^ *```$", "", text)


def anchors(text: str) -> set[str]:
    titles = re.findall(r"(?m)^#+ (.+)$", prose(text))
    return {re.sub(r"[^\w\- ]", "", title.replace("`", "").strip().lower()).replace(" ", "-") for title in titles}


def blocks(text: str) -> Iterator[str]:
    """The lines of code blocks without a language, that is of shells, lines that end with \\ joined."""
    for block in re.findall(r"(?ms)^```\n(.*?)^```$", text):
        yield from re.sub(r"\\\n", " ", block).splitlines()


def test_there_are_all_pages() -> None:
    assert {"README.md", "SECURITY.md", "ARCHITECTURE.md", "deploy/operate.md", "streams/exactly-once.md"} <= set(NAMES)


@every_page
def test_a_page_has_a_bounded_length(page: Path) -> None:
    name = page.relative_to(ROOT).as_posix()
    assert len(page.read_text().splitlines()) <= LIMITS.get(name, LINES_MAX)


@every_page
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    text = re.sub(r"`[^`\n]*`", "", prose(page.read_text()))
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), target
        if anchor and file.suffix == ".md":
            assert anchor in anchors(file.read_text()), target


@every_page
def test_a_page_calls_no_process_a_person(page: Path) -> None:
    assert MISLEADING.findall(page.read_text()) == []


def _called(line: str) -> Iterator[list[str]]:
    """The words of each command of this program in a line of a shell."""
    for part in re.split(r" (?:[|>]|2?>|&&) ", re.sub(r"\s+#.*", "", line.removeprefix("$ "))):
        words = shlex.split(re.sub(r"^(?:[A-Z_]+=\S+ )*", "", part).removesuffix("&"))
        if words[:1] == ["neardup"]:
            yield words[1:]


@every_page
def test_the_program_takes_the_commands_of_a_page(page: Path) -> None:
    for line in blocks(page.read_text()):
        if not re.match(r"(\$ )?(\w+=\S+ )*neardup ", line):
            continue
        for words in _called(line):
            parsed(words)


OPTIONS_OF_COMMANDS = {"--version", "--install-completion"}.union(*map(options, COMMANDS))


@every_page
def test_options_that_a_page_names_exist(page: Path) -> None:
    for code in re.findall(r"`(neardup [^`]*)`", prose(page.read_text())):
        assert set(re.findall(r"(?<![\w-])--[a-z][\w-]*", code)) <= OPTIONS_OF_COMMANDS, code


@every_page
def test_no_figure_of_a_page_was_measured_under_load(page: Path) -> None:
    assert re.findall(r"under load|busy machine|others? used", page.read_text()) == []


@every_page
def test_targets_of_make_exist(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"(?m)^([a-z-]+):", makefile)) | {
        f"test-{each.name}" for each in (ROOT / "tests").iterdir()
    }
    named = set(re.findall(r"`make ([a-z-]+)", page.read_text()))
    assert named <= targets


@cache
def _variables() -> set[str]:
    known = {option.env for option in OPTIONS.values()} | OTHER_VARIABLES
    known |= {f"{option.env}_FILE" for option in OPTIONS.values() if option.kind.secret}
    known |= set(re.findall(r"NEARDUP_[A-Z_]+", (ROOT / "streams" / "scrapy.py").read_text()))
    for folder in ("tests", "streams", "neardup", "Makefile"):
        files = [ROOT / folder] if (ROOT / folder).is_file() else (ROOT / folder).rglob("*.py")
        known |= {found for file in files for found in re.findall(r"NEARDUP_(?:TEST|GATE|TRACE)\w+", file.read_text())}
    return known


@every_page
def test_variables_of_settings_exist(page: Path) -> None:
    named = set(re.findall(rf"\b{PREFIX}[A-Z_]+[A-Z]", page.read_text()))
    assert {name for name in named if not name.startswith("NEARDUP_KAFKA__")} <= _variables()


@every_page
def test_files_that_a_page_names_exist(page: Path) -> None:
    """Paths below a folder of the repository, in backticks."""
    folders = {"neardup", "streams", "deploy", "helm", "tests"}
    for path in re.findall(r"`((?:\w+/)[\w./-]+)`", prose(page.read_text())):
        if path.partition("/")[0] in folders and "NAME" not in path:
            assert (ROOT / path).exists() or (page.parent / path).exists(), path


def test_a_wrong_page_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A page\n\nNobody [reads](none.md) `tests/none.py`.\n\n```\nneardup scan --no-such x\n```\n")
    for check in (
        test_links_of_a_page_lead_somewhere,
        test_a_page_calls_no_process_a_person,
        test_files_that_a_page_names_exist,
    ):
        with pytest.raises(AssertionError):
            check(page)
    with pytest.raises(Exception, match="no-such"):
        test_the_program_takes_the_commands_of_a_page(page)


def _tests_of(file: Path) -> set[str]:
    return {node.name for node in ast.parse(file.read_text()).body if isinstance(node, ast.FunctionDef)}


def test_each_row_of_the_failures_names_a_test_that_exists() -> None:
    rows = re.findall(r"(?m)^\| (?!Role |---).* \| ([^|]+) \|$", (ROOT / "streams/roles/failures.md").read_text())
    assert len(rows) > 40
    for cell in rows:
        named = re.fullmatch(r"`(tests/[\w/]+\.py)::(test_\w+)`", cell)
        assert named, cell
        assert named[2] in _tests_of(ROOT / named[1]), cell
