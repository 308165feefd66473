"""Prints the part of requirements.lock that an installation with some extras, or a build, needs.

    python locked.py pyproject.toml requirements.lock kafka scrapy    # neardup[kafka,scrapy], without development tools
    python locked.py pyproject.toml requirements.lock --build         # the build backend

The lock names below each package the packages that need it. The program prints all packages that the given ones need,
with their hashes, for pip install --require-hashes --no-deps.
"""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path


def name_of(requirement: str) -> str:
    """PEP 503's form of the name that a requirement begins with."""
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    if found is None:
        raise ValueError(f"no requirement: {requirement!r}")
    return re.sub(r"[-_.]+", "-", found[0]).lower()


def blocks(lock: str) -> Iterator[tuple[str, str, set[str]]]:
    """Yields (name, text, names of the packages that need it) for each package of the lock."""
    for text in re.split(r"(?m)^(?=[A-Za-z0-9])", lock):
        if "==" not in text:
            continue
        _, _, via = text.partition("# via")
        yield name_of(text), text, {name_of(line) for line in re.findall(r"^\s*#?\s*([A-Za-z0-9]\S*)", via, re.M)}


def required(pyproject: str, extras: list[str]) -> set[str]:
    """The packages that pyproject.toml itself names for these extras, or for --build."""
    document = tomllib.loads(pyproject)
    project = document["project"]
    if extras == ["--build"]:
        return {name_of(each) for each in document["build-system"]["requires"]}
    found = list(project["dependencies"])
    for extra in extras:
        found += project["optional-dependencies"][extra]
    direct = {name_of(each) for each in found}
    if project["name"] in direct:  # an extra that builds on another one
        inner = {name for each in found for name in re.findall(rf"{project['name']}\[([\w, -]+)\]", each)}
        more = [extra.strip() for names in inner for extra in names.split(",")]
        direct |= required(pyproject, more)
    return direct - {project["name"]}


def closed(found: list[tuple[str, str, set[str]]], direct: set[str]) -> set[str]:
    kept = set(direct)
    while more := {name for name, _, parents in found if parents & kept} - kept:
        kept |= more
    return kept


def main(pyproject: Path, lock: Path, extras: list[str]) -> int:
    found = list(blocks(lock.read_text()))
    direct = required(pyproject.read_text(), extras)
    missing = direct - {name for name, _, _ in found}
    if missing:
        print(f"{lock} lacks {', '.join(sorted(missing))}", file=sys.stderr)
        return 1
    kept = closed(found, direct)
    print("".join(text for name, text, _ in found if name in kept), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]))
