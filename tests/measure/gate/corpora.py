"""All rules on real pages of natural truth, tuned and reported halves apart.

    python -m tests.measure.gate.corpora FOLDER build/corpora

FOLDER holds the archives, or what they unpack to. Each set is cut in two that share no page: thresholds may be looked
at on the tuned half, figures are of the other. The oracle of natural truth is `neardup.evaluation.truth`, with
its limits: the same path in two editions is one item if the LCS ratio of the full token sequences is at least .75;
other paths are other items. So pages of the guides that some languages have untranslated count as other items though
their texts are equal. Written are each half's pages, items and whole evaluation, and corpora.md, a table of all rules.
"""

import argparse
import re
import sys
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streams.evaluation.evaluate import evaluate_command
from tests.measure.gate.web import Served, write_web


@dataclass(frozen=True)
class Public:
    """One set. edition: what tells editions apart in a path. tuned: which (item, edition) belong to the tuned half."""

    archive: str
    name: str
    halves: str
    edition: re.Pattern[str]
    tuned: Callable[[str, str], bool]


def _language(item: str) -> str:
    return item.rsplit("/", 2)[-2]


#: Of the guides' languages in the order of their names, every second one.
_TUNED_LANGUAGES = frozenset(("ca", "da", "el", "es", "id", "ja", "nl", "ro", "sv", "zh_CN"))

SETS = (
    Public(
        *("kafka_site_3x", "documentation, ten releases", "releases 30-34 / 35-39"),
        re.compile(r"^3\d(?=/)"),
        lambda item, edition: edition < "35",
    ),
    Public(
        *("installation_guide_9arch_19lang", "guides, nine architectures", "languages, every second"),
        re.compile(r"installation-guide-[a-z0-9]+"),
        lambda item, edition: _language(item) in _TUNED_LANGUAGES,
    ),
    Public(
        *("libreoffice_help_enUS_enGB", "help, two kinds of English", "paths of even sums"),
        re.compile(r"libreoffice-help-en-[a-z]{2}[^/]*|(?<=/)en-[A-Z]{2}(?=/)"),
        lambda item, edition: sum(item.rpartition("*/")[2].encode()) % 2 == 0,
    ),
)


def pages_of(folder: Path, one: Public) -> Iterator[tuple[bool, Served]]:
    """(whether it is of the tuned half, page) of a set, from its folder or its archive."""
    for path, body in _files(folder, one.archive):
        found = [match[0] for match in one.edition.finditer(path)]
        if found:
            item, edition = one.edition.sub("*", path), " ".join(dict.fromkeys(found))
            url = f"http://{one.archive.replace('_', '-').lower()}.example/{path.replace('%', '%25')}"
            yield one.tuned(item, edition), Served(url, item, lambda body=body: body, edition)  # type: ignore[misc]


def _files(folder: Path, archive: str) -> Iterator[tuple[str, bytes]]:
    root, packed = folder / archive, folder / f"{archive}.tar.xz"
    if root.is_dir():
        for path in sorted(root.rglob("*.html")):
            if not path.is_symlink():
                yield path.relative_to(root).as_posix(), path.read_bytes()
        return
    if not packed.exists():
        sys.exit(f"{folder} holds neither {archive} nor {packed.name}")
    with tarfile.open(packed) as tar:  # read in its own order: a step back decompresses all that lies before
        bodies = {
            member.name.removeprefix("./").removeprefix(f"{archive}/"): file.read()
            for member in tar
            if member.isfile() and member.name.endswith(".html") and (file := tar.extractfile(member)) is not None
        }
    yield from sorted(bodies.items())


#: Read from the texts of at most 5,000 of the pairs; the LCS ratio itself made the labels.
_YARDSTICKS = ("yardstick: exact Jaccard of 5-shingles",)
_COLUMNS = ("rule", "accepted", "precision", "precision 95%", "recall", "recall 95%", "F1", "F1 95%")


def table_of(title: str, evaluation: dict[str, Any]) -> str:
    """A Markdown table of all rules on one half."""
    labels, pages = evaluation["labels"], evaluation["corpus"]["pages"]
    lines = [
        f"\n## {title}\n\n{pages:,} pages; {labels['correct']:,} pairs correct, {labels['incorrect']:,} incorrect\n",
        "| " + " | ".join(_COLUMNS) + " |",
        "|---" * len(_COLUMNS) + "|",
    ]
    sections = evaluation["sections"]
    yardsticks = [row for row in sections["ablations"]["tables"]["ablations-all"] if row["variant"] in _YARDSTICKS]
    rows = [*sections["rules"]["tables"]["rules-all"], *({**row, "rule": row["variant"]} for row in yardsticks)]
    for row in rows:
        found = [row.get(name) for name in _COLUMNS]
        cells = ["-" if cell is None else f"{cell:.3f}" if isinstance(cell, float) else str(cell) for cell in found]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    options = argparse.ArgumentParser(description="Evaluates all rules on public sets of natural truth.")
    options.add_argument("folder", type=Path)
    options.add_argument("out", type=Path)
    options.add_argument("--threads", type=int, default=2)
    given = options.parse_args()
    report = "# All rules on real pages of natural truth\n"
    for one in SETS:
        halves: dict[bool, list[Served]] = {True: [], False: []}
        for tuned, page in pages_of(given.folder, one):
            halves[tuned].append(page)
        for tuned, pages in halves.items():
            name = "tuned" if tuned else "reported"
            at = given.out / f"{one.archive}-{name}"
            write_web(pages, at, seed=1)
            evaluation = evaluate_command(
                [at / "pages.jsonl"], items=at / "items.jsonl", out=at / "evaluation", threads=given.threads
            )
            table = table_of(f"{one.name}: {name} ({one.halves})", evaluation.to_json())
            print(table, flush=True)
            report += table
    (given.out / "corpora.md").write_text(report)


if __name__ == "__main__":
    main()
