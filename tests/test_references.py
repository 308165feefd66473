"""Dotted names and paths in backticks exist in this repository: those of docstrings, comments and pages."""

import ast
import builtins
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PACKAGES = ("neardup", "streams")
#: Names of other programs, by their first part.
OTHERS = {
    *dir(builtins),
    "llvm",
    "numba",
    "Dispatcher",
    "Rdict",
    "RdictIter",
    "WriteOptions",
    "dataset",
    "group",
    "offsets",
    "plugin",
}
#: Settings of the Java clients, topics, and consumer groups.
EXAMPLES = {
    *("neardup.bootstrap", "neardup.topic", "neardup.generations", "sketches.third", "verdicts.third"),
    *("neardup.match", "neardup.verdicts", "neardup.views"),
}
#: Its counters look like paths.
COUNTERS = ROOT / "streams" / "scrapy.py"
#: Files of the repository; others in backticks are a user's.
SUFFIXES = {"py", "md", "toml", "yaml", "tsv"}
DOMAINS = {"com", "example", "io"}
Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


class Source(NamedTuple):
    """A module. code: its text without docstrings and comments; prose: these."""

    code: str
    prose: str
    names: frozenset[str]


@cache
def source(file: Path) -> Source:
    text = file.read_text()
    lines, prose = text.splitlines(), re.findall(r"(?m)^\s*#+:? (.*)$", text)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, Documented) and (words := ast.get_docstring(node, clean=False)):
            prose.append(words)
            first = node.body[0]
            lines[first.lineno - 1 : first.end_lineno] = [""] * ((first.end_lineno or 0) - first.lineno + 1)
    code = "\n".join(line for line in lines if not line.lstrip().startswith("#"))
    return Source(code, "\n".join(prose), frozenset(re.findall(r"\w+", code)))


@cache
def modules() -> dict[str, list[Path]]:
    """The modules of the packages, by their last name."""
    found: dict[str, list[Path]] = {}
    for package in PACKAGES:
        for file in sorted((ROOT / package).rglob("*.py")):
            name = file.parent.name if file.name == "__init__.py" else file.stem
            found.setdefault(name, []).append(file)
    return found


@cache
def code() -> str:
    return "\n".join(source(file).code for files in modules().values() for file in files)


@cache
def words() -> frozenset[str]:
    return frozenset(re.findall(r"\w+", code()))


@cache
def quoted() -> frozenset[str]:
    """Dotted names that are strings of code, or the ends of such strings."""
    return frozenset(re.findall(r"[\"/](\w+(?:\.\w+)+)\"", code()))


@cache
def members() -> frozenset[str]:
    """What classes define, and what code reads of objects: `Matcher.fold`, `batch.complete`."""
    return frozenset(re.findall(r"(?m)(?:[\w)\]]\.|^ +(?:async )?def |^ +)(\w+)(?=\b(?!\.))", code()))


def resolves(parts: list[str]) -> bool:
    """Whether the name of a module, or of something in it, is that of one that exists: `neardup.urls.owner_of`."""
    for count in range(len(parts), 0, -1):
        path = ROOT.joinpath(*parts[:count])
        for file in (path.with_suffix(".py"), path / "__init__.py"):
            if file.is_file():
                return set(parts[count:]) <= source(file).names
    return ROOT.joinpath(*parts).is_dir()


@cache
def keys_of_the_chart() -> frozenset[str]:
    return frozenset(re.findall(r"\w+", (ROOT / "helm/neardup/values.yaml").read_text()))


@cache
def files() -> list[Path]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if listed.returncode == 0:
        return [ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]
    return [file for file in ROOT.rglob("*") if file.is_file()]  # an sdist


@cache
def file_names() -> frozenset[str]:
    return frozenset(file.name for file in files())


def exists(name: str, folder: Path) -> bool:
    """Whether a dotted name is that of a file, a module, something in a module or class, or written in code."""
    parts = name.split(".")
    if name in EXAMPLES or parts[0] in OTHERS or parts[-1] in DOMAINS or name in file_names():
        return True
    if name in quoted():  # a topic, or a logger
        return True
    if parts[-1] in SUFFIXES:
        return False
    if parts[0] in (*PACKAGES, "tests", "deploy"):
        return resolves(parts)
    beside = folder / f"{parts[0]}.py"
    owners = [*modules().get(parts[0], ()), *([beside] if beside.is_file() else [])]
    if any(set(parts[1:]) <= source(file).names for file in owners):
        return True
    return (parts[0] in words() and set(parts[1:]) <= members()) or set(parts) <= keys_of_the_chart()


def names_of(prose: str) -> Iterator[str]:
    """The dotted names in backticks, without those of a user's files."""
    for text in re.findall(r"`([^`\n]+)`", prose):
        found = re.fullmatch(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+)(?:\(.*\))?", text)
        if found and not re.search(r"\.(html|parquet|txt|json|jsonl|index|db|ini|xml|gz)$", found[1]):
            yield found[1]


def paths_of(prose: str) -> Iterator[str]:
    """The paths in backticks that begin with a folder of the repository."""
    for path in re.findall(r"`((?:neardup|streams|deploy|helm|tests)/[\w./-]+)`", prose):
        if "NAME" not in path:
            yield path


def missing(prose: str, folder: Path) -> list[str]:
    names = [name for name in names_of(prose) if not exists(name, folder)]
    return names + [path for path in paths_of(prose) if not (ROOT / path).exists() and not (folder / path).exists()]


def test_names_and_paths_in_docstrings_and_comments_exist() -> None:
    sources = [file for named in modules().values() for file in named if file != COUNTERS]
    found = {file.relative_to(ROOT).as_posix(): missing(source(file).prose, file.parent) for file in sources}
    assert {file: names for file, names in found.items() if names} == {}


def test_names_in_pages_exist() -> None:
    pages = [file for file in files() if file.suffix == ".md" and file.name != "CHANGELOG.md"]
    assert len(pages) > 30
    prose = {page: re.sub(r"(?ms)^ *```.*?^ *```$", "", page.read_text()) for page in pages}
    found = {page.relative_to(ROOT).as_posix(): missing(text, page.parent) for page, text in prose.items()}
    assert {page: names for page, names in found.items() if names} == {}


def test_a_name_that_does_not_exist_is_found() -> None:
    wrong = "`posted.keeps_the_same`, `streams.roles.forget`, `streams/none.py`, `Matcher.no_such`, `none.py`"
    right = "`neardup.open_index`, `streams.operate.cut_over`, `tests/oracle`, `Decider.tape_min`, `urls.owner_of(url)`"
    assert missing(wrong, ROOT) == [*re.findall(r"`([\w.]+)`", wrong), "streams/none.py"]
    assert missing(right, ROOT) == []
