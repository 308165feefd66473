"""Prints a partition in a terminal."""

from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from neardup.report.partition import unsigned
from streams.batch.results import Summary
from streams.process.terminal import safe

SHOWN = 10


def summary(console: Console, made: Summary, out: Path) -> None:
    """Prints counts, the largest sets and problems."""
    counts = made.counts
    console.print(
        f"{counts.documents:,} documents in {made.seconds:,.1f} s: {made.sets:,} sets of two or more with "
        f"{made.in_sets:,} documents; {counts.repeats:,} repeat another's text",
        highlight=False,
    )
    compared, similar = (sum(one[i] for one in counts.rounds) for i in (0, 1))
    console.print(
        f"{counts.signatures:,} signatures, {counts.dropped_signatures:,} dropped as template or spam; "
        f"{counts.sets:,} perhaps-similar sets; {compared:,} pairs compared in {len(counts.rounds)} rounds, "
        f"{similar:,} similar",
        highlight=False,
    )
    console.print(f"left uncompared in a set: {counts.uncompared:,}", highlight=False)
    if advice := unsigned(asdict(counts)):
        console.print(advice, highlight=False)
    table = Table(box=None, pad_edge=False)
    table.add_column("largest sets")
    table.add_column("documents", justify="right")
    for url, size in made.largest[:SHOWN]:
        table.add_row(safe(url, 100), f"{size:,}")
    if made.largest:
        console.print(table)
    for taken in made.fields_taken:
        console.print(safe(taken), soft_wrap=True)
    for reason, many in list(made.reasons.items())[:SHOWN]:
        console.print(f"refused: {safe(reason)} ({many:,})", soft_wrap=True, highlight=False)
    for problem in made.problems[:SHOWN]:
        console.print("problem: ", safe(problem, 400), soft_wrap=True)
    console.print(f"sets: {out / 'sets.jsonl'}", highlight=False, soft_wrap=True, markup=False)
