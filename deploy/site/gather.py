"""Gathers what is written beside the code into pages for mkdocs: README files, docstrings, help, settings.

    python deploy/site/gather.py FOLDER         # then: mkdocs build --strict -f FOLDER/mkdocs.yml

Nothing is written twice: a page that is wrong is mended where it stands, and `make site` gathers it again.
"""

import argparse
import inspect
import json
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import typer

ROOT = Path(__file__).parents[2]
#: Title, file, and what it is made of: sections of the README by their titles, and files as they are.
PAGES: Sequence[tuple[str, str, Sequence[str]]] = (
    ("First hour", "index.md", ("#", "#Scan a crawl", "#Cut an archive into sets", "#Judge the results of queries")),
    ("Three walks", "walks.md", ("deploy/walks/README.md",)),
    ("How it decides", "decides.md", ("#How it decides", "neardup/rules/README.md")),
    ("Run it", "run.md", ("#Run it behind Kafka", "#See what it does", "deploy/README.md")),
    ("On Kubernetes", "kubernetes.md", ("helm/neardup/README.md",)),
    ("Operate it", "operate.md", ("#Keep it running", "deploy/monitoring/README.md")),
    ("Evaluate it", "evaluate.md", ("#How well, how fast", "tests/bench/README.md")),
    ("Whole corpora", "partition.md", ("neardup/partition/README.md",)),
    ("Results of queries", "signals.md", ("neardup/signals/README.md",)),
    ("Extend it", "extend.md", ("CONTRIBUTING.md", "neardup/README.md", "streams/README.md")),
    ("Who should use what", "comparison.md", ("deploy/site/comparison.md",)),
    ("Library", "library.md", ("#Use it as a library",)),
    ("Commands", "commands.md", ()),
    ("Settings", "settings.md", ()),
    ("Verdict", "verdict.md", ()),
    ("Changes", "changes.md", ("CHANGELOG.md",)),
)


def sections(text: str) -> dict[str, str]:
    """The parts of a page by the titles of its second level; "" is what stands before them."""
    parts = re.split(r"(?m)^## (.+)$", text)
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def gathered(sources: Sequence[str]) -> str:
    """Sections of the README, begun with #, and whole files. Raises KeyError for a section that is not there."""
    readme, out = sections((ROOT / "README.md").read_text()), []
    for source in sources:
        if not source.startswith("#"):
            out.append((ROOT / source).read_text())
        elif source == "#":
            out.append(readme[""])
        else:
            out.append(f"## {source[1:]}\n{readme[source[1:]]}")
    return "\n\n".join(out)


def library() -> str:
    """The public names with their signatures and docstrings: one page."""
    import neardup
    from streams import client

    out = ["# Library\n"]
    for module, names in ((neardup, neardup.__all__), (client, client.__all__)):
        out.append(f"## `{module.__name__}`\n\n{_text(inspect.getdoc(module))}\n")
        for name in names:
            found = getattr(module, name)
            out.append(f"### `{name}{_signature(found)}`\n\n{_text(inspect.getdoc(found))}\n")
            out += _methods(found)
    return "\n".join(out)


def _methods(found: Any) -> Iterator[str]:
    if not inspect.isclass(found) or issubclass(found, Exception):
        return
    for name, member in vars(found).items():
        function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        if not name.startswith("_") and inspect.isfunction(function) and function.__doc__:
            yield f"* `{name}{_signature(function)}`: {_text(inspect.getdoc(function))}\n"


def _signature(found: Any) -> str:
    try:
        return re.sub(r"\s+", " ", str(inspect.signature(found)))
    except (TypeError, ValueError):
        return ""


def _text(doc: str | None) -> str:
    """A docstring as Markdown; what is indented in it stays as it is."""
    return re.sub(r"<([A-Za-z/])", r"&lt;\1", doc or "")


def commands() -> str:
    """The help of every command."""
    from streams.cli.app import app

    out = ["# Commands\n"]
    for words, command in sorted(_commands(typer.main.get_command(app))):
        context = command.make_context(" ".join(words), ["--help"], resilient_parsing=True, max_content_width=100)
        out.append(f"## `neardup {' '.join(words)}`\n\n```text\n{command.get_help(context)}\n```\n")
    return "\n".join(out)


def _commands(group: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, (*words, name))
        else:
            yield (*words, name), command


def settings() -> str:
    """Every setting with its flag, its variable and its default."""
    from streams.config.settings import OPTIONS

    rows = ["# Settings\n", "| setting | flag | variable | what it does |", "|---|---|---|---|"]
    for option in OPTIONS.values():
        flag = "" if option.kind.secret else f"`{option.flag}`"
        rows.append(f"| `{option.name}` | {flag} | `{option.env}` | {option.usage.replace('|', ' ')} |")
    return "\n".join(rows) + "\n"


def verdict() -> str:
    """The JSON Schema of a verdict."""
    from neardup.verdict import schema

    return f"# Verdict\n\n```json\n{json.dumps(json.loads(schema()), indent=2)}\n```\n"


_MADE = {"library.md": library, "commands.md": commands, "settings.md": settings, "verdict.md": verdict}


def gather(folder: Path) -> None:
    """Writes mkdocs.yml and the pages into a folder, which is made anew."""
    shutil.rmtree(folder, ignore_errors=True)
    pages = folder / "pages"
    pages.mkdir(parents=True)
    for _, file, sources in PAGES:
        made = gathered(sources)
        if file in _MADE:
            made = _MADE[file]() + "\n" + made
        (pages / file).write_text(made)
    for picture in (ROOT / "tests" / "bench").glob("*.svg"):
        shutil.copy(picture, pages)
    pictures = Path("deploy", "demo", "pictures")  # as the README has them
    shutil.copytree(ROOT / pictures, pages / pictures)
    (folder / "mkdocs.yml").write_text(
        json.dumps(  # which is YAML, too
            {
                "site_name": "neardup",
                "docs_dir": "pages",
                "site_dir": "site",
                "theme": {"name": "mkdocs", "highlightjs": False},
                "plugins": ["search"],
                "validation": {"links": {"not_found": "warn", "anchors": "warn", "absolute_links": "warn"}},
                "nav": [{title: file} for title, file, _ in PAGES],
            },
            indent=2,
        )
    )


def broken(pages: Path) -> list[str]:
    """Links of the pages to files, or to places in them, that are not there."""
    out = []
    for page in sorted(pages.glob("*.md")):
        text = re.sub(r"(?s)```.*?```|`[^`\n]*`", "", page.read_text())
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            file, _, _ = target.partition("#")
            if "://" not in target and file and not (pages / file).exists():
                out.append(f"{page.name}: {target}")
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    gather(folder)
    if wrong := broken(folder / "pages"):
        raise SystemExit("links that lead nowhere:\n" + "\n".join(wrong))


if __name__ == "__main__":
    main()
