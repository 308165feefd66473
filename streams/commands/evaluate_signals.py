"""`neardup evaluate signals`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import click

from streams.commands.options import Arg, Opt, command
from streams.commands.output import announce_compiler, complain, print_json, print_table
from streams.commands.paths import must_be_folder, must_exist
from streams.commands.shared import RESULTS, THREADS, Adjudicator, BaseUrl, Folds, Json, Labels, Seeds, Truth, Workers


@dataclass(frozen=True, kw_only=True)
class Options(Truth, BaseUrl, Json):
    paths: Annotated[tuple[Path, ...], Arg("PATH...", RESULTS, check=must_exist)]
    labels: Labels = ()
    adjudicator: Adjudicator = ""
    out: Annotated[Path, Opt("For the report, its pictures and data.", metavar="DIR", check=must_be_folder)] = Path(
        "evaluation-signals"
    )
    pairs: Annotated[int, Opt("Most pairs that natural truth labels.", low=1, high=100_000)] = 1000
    seeds: Seeds = 9
    folds: Folds = 10
    workers: Workers = THREADS


@command(
    "evaluate signals",
    "neardup evaluate signals results.jsonl --labels labels.jsonl --out evaluation",
    "neardup evaluate signals crawl.warc.gz --natural --seeds 3",
)
def evaluate_signals(options: Options) -> int:
    """Measure signals and classifiers as Huffman 2007 did: each signal, sets of them, curves, cost, languages."""
    from streams.batch.workers import Stopped
    from streams.commands.terminal import bar
    from streams.evaluation.evaluate import editions_of
    from streams.evaluation.signals import SignalsOptions
    from streams.evaluation.signals import evaluate_signals as run

    announce_compiler()
    given = SignalsOptions(
        options.out,
        editions_of(options.releases, options.items, options.natural),
        options.pairs,
        options.seeds,
        options.folds,
        options.workers,
        options.adjudicator,
    )
    with bar(shown=not options.as_json) as shown:
        try:
            made = run(options.paths, options.labels, given, base_url=options.base_url, progress=shown.phase)
        except Stopped:
            complain("interrupted")
            return 130
    if options.as_json:
        print_json(made.to_json())
    else:
        for section in made.sections:
            for table in section.tables:
                print_table(table)
            if section.missing:
                complain(f"{section.title}: {section.missing}")
        for note in made.notes:
            complain(note)
        click.echo(f"evaluation: {options.out / 'evaluation.html'}")
    return 3 if made.unread else 0
