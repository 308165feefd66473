"""Prints the test files of a source file: `make tests-of FILE=neardup/urls.py`.

First the files that import the module, then those that import it through one other module.
"""

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]


def module_of(path: Path) -> str:
    """The dotted name of a file of this repository."""
    parts = path.resolve().relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(path: Path) -> Iterator[str]:
    """The names that a file imports: modules, and members that may be modules."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def users_of_names() -> tuple[dict[Path, str], dict[str, set[Path]]]:
    """The modules of all files, and the files that import each name."""
    files = {file: module_of(file) for top in ("neardup", "streams", "tests") for file in (ROOT / top).rglob("*.py")}
    users: dict[str, set[Path]] = {}
    for file in files:
        for name in imported(file):
            users.setdefault(name, set()).add(file)
    return files, users


def importing(path: Path) -> tuple[set[str], set[str]]:
    """The test files that import the module, and those that import it through one other module."""
    files, users = users_of_names()
    direct = users.get(module_of(path), set())
    further = {file for user in direct for file in users.get(files[user], ())}
    first, second = (
        {str(file.relative_to(ROOT)) for file in each if file.name.startswith("test_")} for each in (direct, further)
    )
    return first, second - first


if __name__ == "__main__":
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_file():
        sys.exit("usage: make tests-of FILE=neardup/urls.py")
    direct, further = importing(Path(sys.argv[1]))
    print(*sorted(direct), *(f"{name} (through another module)" for name in sorted(further)), sep="\n")
