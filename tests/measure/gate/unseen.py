"""Is the default rule right on pages nobody tuned it for? A table: what was seen there, and what should be.

    python -m tests.measure.gate.unseen --data ../shared/data --tree libsfml-doc=FOLDER --out build/unseen.md

Rows are of the gate's classes under other seeds than its own, of the public sets that --data names, and of each folder
of HTML (--tree, as in `tests.measure.gate.ablation`). Labelled pairs are told in halves: the even rows are for choosing
numbers by, the odd ones for judging. Beside the default stands `tape`, which looks at no paths, headings and siblings.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from neardup.decider import Decider
from neardup.scheme import Scheme
from tests.measure.gate import boards, editions, names, same
from tests.measure.gate.ablation import (
    Source,
    given_pages,
    human_pairs,
    of_class,
    pairs,
    public_halves,
    texts_of_one_site,
    tree,
)
from tests.measure.gate.measure import SEED, Tally

RULES = ("verified", "tape")


class Row(NamedTuple):
    """One line. wanted: of which number of a Tally, and how much."""

    source: Source
    number: str
    wanted: str


#: Generators of classes, with the number that counts of them.
CLASSES = (
    (names.rest_records, "wrong", "< 10"),
    (names.second_pages, "wrong", "< 2"),
    (names.impl_trees, "wrong", "< 2"),
    (names.operators, "exact", "0"),
    (names.operators, "wrong", "< 2"),
    (same.clocks, "found", "1"),
    (same.filed_twice, "found", "as `tape`"),
    (boards.forum_profiles, "wrong", "< 12"),
    (names.untitled_texts, "F1", "as `tape`"),
    (editions.editions, "found", "as `tape`"),
    (same.two_headlines, "found", "as `tape`"),
    (editions.syndicated, "found", "> .6"),
)


def told(tally: Tally, number: str) -> str:
    """wrong: items hidden behind another, per 1,000; exact: those of them that are called exact duplicates."""
    if number == "wrong":
        return f"{tally.wrong_per_1000:.1f} wrong per 1,000"
    if number == "exact":
        return f"{tally.wrong_exact} exact duplicates that are not"
    return f"{tally.found_share:.3f} found" if number == "found" else f"F1 {tally.f1:.3f}"


def of_classes(pages: int) -> Iterator[Row]:
    made: dict[str, Source] = {}
    for generate, number, wanted in CLASSES:
        name = generate.__name__
        made[name] = made.get(name) or of_class(generate, pages)
        yield Row(made[name], number, wanted)


def of_labels(data: Path) -> Iterator[Row]:
    rows = human_pairs(data / "human_pairs.jsonl.xz")
    for name, some in (("all", rows), ("even rows", rows[::2]), ("odd rows", rows[1::2])):
        for make, wanted in ((pairs, "> .87"), (texts_of_one_site, "as `tape`")):
            source = make(some)
            yield Row(Source(f"{source.name}: {name}", source.measure), "F1", wanted)


def of_folders(trees: Sequence[str], count: int) -> Iterator[Row]:
    for one in trees:
        name, _, folder = one.partition("=")
        source = tree(name, Path(folder), count)
        yield Row(source, "wrong", "< 2")
        yield Row(source, "exact", "0")


def table(rows: Iterator[Row]) -> Iterator[str]:
    """In Markdown, a line at a time."""
    yield "| where | " + " | ".join(f"`{rule}`" for rule in RULES) + " | wanted |"
    yield "|---" * (2 + len(RULES)) + "|"
    scheme = Scheme(seed=SEED).digest
    for row in rows:
        tallies = [row.source.measure(Decider(scheme, rule=rule)) for rule in RULES]
        cells = [told(tally, row.number) for tally in tallies]
        yield f"| {row.source.name} | " + " | ".join(cells) + f" | {row.wanted} |"


def _rows(given: argparse.Namespace) -> Iterator[Row]:
    yield from of_classes(given.pages)
    if given.data is not None:
        yield from of_labels(given.data)
        for source in public_halves(given.data, given.real):
            yield Row(source, "F1", "as `tape`")
    yield from of_folders(given.tree, given.real)


def main() -> None:
    given = given_pages("The default rule on pages that it was not made on.", 400, 2000, "build/unseen.md")
    lines = []
    for line in table(_rows(given)):
        print(line, flush=True)
        lines.append(line)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
