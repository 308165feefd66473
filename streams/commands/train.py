"""`neardup train`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import click

from streams.commands.options import Arg, Opt, command
from streams.commands.output import announce_compiler, complain, complain_of, print_json
from streams.commands.paths import must_be_writable, must_exist
from streams.commands.shared import CPUS, RESULTS, Adjudicator, BaseUrl, Folds, Json, Labels, Seeds, Truth, Workers


@dataclass(frozen=True, kw_only=True)
class Options(Truth, BaseUrl, Json):
    paths: Annotated[tuple[Path, ...], Arg("PATH...", RESULTS, check=must_exist)]
    labels: Labels = ()
    adjudicator: Adjudicator = ""
    out: Annotated[Path, Opt("For the model.", metavar="FILE", check=must_be_writable)] = Path("model.json")
    signals: Annotated[
        str, Opt("F, F+R, F+R+FS+RS, ..., sketches, or names of signals with commas between.", metavar="SET")
    ] = "F+R+FS+RS"
    by: Annotated[str, Opt("What decides in the end.", choices=("tree", "rules"))] = "tree"
    seeds: Seeds = 9
    folds: Folds = 10
    workers: Workers = CPUS


@command(
    "train",
    "neardup train results.jsonl --labels labels.jsonl --out model.json",
    "neardup train crawl.warc.gz --labels labels.jsonl --signals sketches --out online.json",
    codes='A result is a line {"query": TEXT, "url": URL, "body": TEXT, "rendered": TEXT}, a label is a line '
    '{"a": {"url": URL}, "b": {"url": URL}, "label": "correct"} (incorrect, undecided).',
)
def train(options: Options) -> int:
    """Train a decision tree and rules from labelled pairs, and measure both by the protocol of Huffman 2007."""
    from streams.batch.workers import Stopped
    from streams.commands.terminal import bar
    from streams.evaluation.evaluate import editions_of
    from streams.evaluation.train import TrainOptions, train_command

    announce_compiler()
    editions = editions_of(options.releases, options.items, options.natural)
    given = TrainOptions(
        options.signals, options.by, options.seeds, options.folds, options.workers, options.adjudicator
    )
    with bar(shown=not options.as_json) as shown:
        try:
            made = train_command(
                options.paths,
                options.labels,
                options.out,
                given,
                editions=editions,
                base_url=options.base_url,
                progress=shown.phase,
            )
        except Stopped:
            complain("interrupted")
            return 130
    if options.as_json:
        print_json(made.to_json())
    else:
        click.echo(made.model.text())
        for name in ("tree", "rules", "average"):
            shares = ", ".join(f"{key} {value:.2f}" for key, value in made.model.measured[name].items())
            click.echo(f"{name}: {shares}")
        click.echo(f"{made.pairs:,} labelled pairs, {made.duplicates:,} of them duplicates; model: {options.out}")
    for note in made.notes:
        complain(note)
    complain_of(made.problems)
    return 3 if made.problems else 0
