from pathlib import Path
from typing import Annotated

import click

from neardup.wording import counted
from streams.commands.options import Opt, command, values
from streams.commands.output import announce_compiler, bar, complain, complain_of, print_json
from streams.commands.shared import (
    CPUS,
    Adjudicator,
    BaseUrl,
    Folds,
    Json,
    Labels,
    Results,
    Seeds,
    Truth,
    Workers,
    Writes,
)


class Options(Truth, BaseUrl, Json):
    paths: Results
    labels: Labels = ()
    adjudicator: Adjudicator = ""
    out: Annotated[Path, Writes("File for the model.")] = Path("model.json")
    signals: Annotated[
        str, Opt("F, F+R, F+R+FS+RS, ..., sketches, or names of signals with commas between.", metavar="SET")
    ] = "F+R+FS+RS"
    by: Annotated[str, Opt("The classifier that decides.", choices=("tree", "rules"))] = "tree"
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
    from streams.evaluation.train import train_command

    announce_compiler()
    with bar(shown=not options.as_json) as shown:
        given = values(options, "paths", "labels", "natural", "releases", "items", "as_json")
        made = train_command(options.paths, options.labels, editions=options.editions(), progress=shown.phase, **given)
    if options.as_json:
        print_json(made.to_json())
    else:
        click.echo(made.model.text())
        for name in ("tree", "rules", "average"):
            shares = ", ".join(f"{key} {value:.2f}" for key, value in made.model.measured[name].items())
            click.echo(f"{name}: {shares}")
        click.echo(
            f"{counted(made.pairs, 'labelled pair')}, {counted(made.duplicates, 'duplicate')}; model: {options.out}"
        )
    for note in made.notes:
        complain(note)
    complain_of(made.problems)
    return 3 if made.problems else 0
