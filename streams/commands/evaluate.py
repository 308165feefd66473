from pathlib import Path
from typing import Annotated, Any

import click

from neardup.wording import counted
from streams.commands.options import Opt, command, values
from streams.commands.output import announce_compiler, bar, complain, complain_of, print_json, print_rich
from streams.commands.shared import (
    THREADS,
    Audits,
    Folder,
    InsteadState,
    Json,
    Labels,
    Links,
    OptionalPages,
    Reads,
    Seed,
    Truth,
    Writes,
    inputs,
)


class Options(Truth, Links, Json):
    paths: OptionalPages = ()
    state: InsteadState = None
    labels: Labels = ()
    verdicts: Annotated[Path | None, Reads("Verdicts by `scan --out` or `verdicts --json`: the run to evaluate.")] = (
        None
    )
    ratio_min: Annotated[
        float, Opt("Common share of two releases' texts from which they are duplicates.", "--ratio")
    ] = 0.75
    out: Annotated[Path, Folder("Folder for the report, its pictures and data.")] = Path("evaluation")
    labels_out: Annotated[Path | None, Writes("Write all labels that were used.")] = None
    audits: Audits = ()
    seed: Seed = 0
    threads: Annotated[int, Opt("Threads of the kernels.", low=1, high=256)] = THREADS


@command(
    "evaluate",
    "neardup evaluate crawl.warc.gz --out evaluation",
    "neardup evaluate --state DIR --labels labels.jsonl --out evaluation",
    "neardup evaluate crawl.warc.gz --releases '[0-9.]+' --out evaluation",
    "neardup evaluate --verdicts verdicts.jsonl --labels labels.jsonl",
    codes='A label is a line {"a": {"url": URL}, "b": {"url": URL}, "label": "correct"} (incorrect, undecided), an '
    'item {"url": URL, "item": TEXT}, with an "edition" where one item has several.',
)
def evaluate(options: Options) -> int:
    """Evaluate a crawl as Henzinger 2006 did: tables and plots, with the figures of the paper.

    Every rule is measured on labelled pairs, with intervals. Without labels, only the tables that need none are made.
    """
    from streams.evaluation.evaluate import evaluate_command

    announce_compiler()
    with inputs(options.paths) as files, bar(shown=not options.as_json) as shown:
        made = evaluate_command(files.paths, progress=shown.phase, **values(options, "paths", "as_json"))
    if options.as_json:
        print_json(made.to_json())
    else:
        counts = made.counts
        labels = ", ".join(f"{count:,} {label}" for label, count in made.labels.items()) or "none"
        copies = "exact copies set aside" if options.paths or options.state else "of them exact copies"
        click.echo(f"{counted(counts.pages, 'page')}, {counts.repeats:,} {copies}; labelled pairs: {labels}")
        if made.labels["correct"] or made.labels["incorrect"]:
            _print_rules(made.to_json())
        for note in made.notes:
            complain(note)
        click.echo(f"evaluation: {options.out / 'evaluation.html'}")
    complain_of(files.not_read.lines)
    return 3 if made.unread or files.not_read.lines else 0


def _print_rules(evaluation: dict[str, Any]) -> None:
    """Prints all rules side by side, with the intervals of F1."""
    from streams.process.terminal import table_of

    table = table_of("rule", ">precision", ">recall", ">F1", ">F1 95%")
    for row in evaluation["sections"]["rules"]["tables"].get("rules-all", []):
        shares = [f"{row[name]:.2f}" if row[name] is not None else "-" for name in ("precision", "recall", "F1")]
        table.add_row(row["rule"], *shares, str(row["F1 95%"] or "-"))
    print_rich(table)
