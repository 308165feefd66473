"""The commands of the signals of a pair, and of what is learned of them."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from streams.cli.evaluation import AdjudicatorOption, ItemsOption, LabelsOption, NaturalOption, ReleasesOption
from streams.cli.options import JsonOption, announce_compiler, examples, must_exist, print_json, show

app = typer.Typer(rich_markup_mode=None)

PROBLEMS_SHOWN = 10
_CPUS = os.cpu_count() or 1

ModelOption = Annotated[Path | None, typer.Option(metavar="MODEL", help="What `neardup train` made: it decides.")]


@app.command(
    short_help="Show every signal of two files.",
    epilog=examples(
        "neardup signals a.html b.html",
        "neardup signals a.html b.html --query 'blue wool' --model model.json",
        "neardup signals a.html b.html --a-rendered a.dom.html --b-rendered b.dom.html",
    ),
)
def signals(
    a: Annotated[Path, typer.Argument(metavar="A")],
    b: Annotated[Path, typer.Argument(metavar="B")],
    a_url: Annotated[str | None, typer.Option(metavar="URL", help="URL of A; its domain counts.")] = None,
    b_url: Annotated[str | None, typer.Option(metavar="URL", help="URL of B.")] = None,
    a_rendered: Annotated[Path | None, typer.Option(metavar="FILE", help="A as a browser serialises it.")] = None,
    b_rendered: Annotated[Path | None, typer.Option(metavar="FILE", help="B as a browser serialises it.")] = None,
    query: Annotated[str, typer.Option(metavar="TEXT", help="What found both: snippets are around its words.")] = "",
    model: ModelOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show every signal of two files as Huffman 2007 defines them, and what a model says of the pair."""
    from neardup.signals.model import read_model
    from streams.comparison.signals import Given, signals_command

    must_exist((a, b, a_rendered, b_rendered, model))
    announce_compiler()
    known = None if model is None else read_model(model)
    show(
        signals_command(Given(a, a_url, a_rendered), Given(b, b_url, b_rendered), query=query, model=known),
        as_json=as_json,
    )


@app.command(
    short_help="Learn a model of labelled pairs.",
    epilog=examples(
        "neardup train results.jsonl --labels labels.jsonl --out model.json",
        "neardup train crawl.warc.gz --labels labels.jsonl --signals sketches --out online.json",
        'A result is a line {"query": TEXT, "url": URL, "body": TEXT, "rendered": TEXT}, a label is a line '
        '{"a": {"url": URL}, "b": {"url": URL}, "label": "correct"} (incorrect, undecided).',
    ),
)
def train(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH...", help="Results as JSON lines; or pages, as for scan.")
    ],
    labels: LabelsOption = None,
    natural: NaturalOption = False,
    releases: ReleasesOption = None,
    items: ItemsOption = None,
    adjudicator: AdjudicatorOption = "",
    out: Annotated[Path, typer.Option(metavar="FILE", help="For the model.")] = Path("model.json"),
    chosen: Annotated[
        str,
        typer.Option(
            "--signals",
            metavar="SET",
            help="F, F+R, F+R+FS+RS, ..., sketches, or names of signals with commas between.",
        ),
    ] = "F+R+FS+RS",
    by: Annotated[str, typer.Option(metavar="tree|rules", help="What decides in the end.")] = "tree",
    seeds: Annotated[int, typer.Option(min=1, max=99, help="Cross-validations of each learner.")] = 9,
    folds: Annotated[int, typer.Option(min=2, max=100, help="Of a cross-validation.")] = 10,
    base_url: Annotated[
        str | None, typer.Option(metavar="URL", help="What the file names of folders are appended to.")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, max=256, help="Processes that learn.")] = _CPUS,
    as_json: JsonOption = False,
) -> None:
    """Learn a decision tree and rules of labelled pairs, and measure both by the protocol of Huffman 2007."""
    from streams.batch.workers import Stopped
    from streams.commands.terminal import bar
    from streams.evaluation.evaluate import editions_of
    from streams.evaluation.train import TrainOptions, train_command

    must_exist((items, *(labels or ()), *paths))
    announce_compiler()
    editions = editions_of(releases, items, natural)
    options = TrainOptions(chosen, by, seeds, folds, workers, adjudicator)
    with bar(shown=not as_json) as shown:
        try:
            made = train_command(
                paths, labels or (), out, options, editions=editions, base_url=base_url, progress=shown.phase
            )
        except Stopped:
            typer.echo("neardup: interrupted", err=True)
            raise typer.Exit(130) from None
    if as_json:
        print_json(made.to_json())
    else:
        typer.echo(made.model.text())
        measured = made.model.measured
        for name in ("tree", "rules", "average"):
            told = ", ".join(f"{key} {value:.2f}" for key, value in measured[name].items())
            typer.echo(f"{name}: {told}")
        typer.echo(f"{made.pairs:,} labelled pairs, {made.duplicates:,} of them duplicates; model: {out}")
    for note in [*made.notes, *made.problems[:PROBLEMS_SHOWN]]:
        typer.echo(f"neardup: {note}", err=True)
    if made.problems:
        raise typer.Exit(3)


@app.command(
    "dedupe-results",
    short_help="Group the results of queries by a learned model.",
    epilog=examples(
        "neardup dedupe-results results.jsonl --model model.json --out groups.jsonl",
        'A result is a line {"query": TEXT, "url": URL, "body": TEXT, "rendered": TEXT}; rendered may be left out.',
    ),
)
def dedupe_results(
    results: Annotated[Path, typer.Argument(metavar="RESULTS", help="JSON lines; results of a query in their order.")],
    model: Annotated[Path, typer.Option(metavar="MODEL", help="What `neardup train` made: it decides.")],
    by: Annotated[
        str | None, typer.Option(metavar="tree|rules", help="What decides, if not as the model says.")
    ] = None,
    out: Annotated[Path, typer.Option(metavar="FILE", help="A line a query; -: standard output.")] = Path("-"),
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no summary.")] = False,
) -> None:
    """Put the results of each query into groups of duplicates, each with the rule that decided."""
    from contextlib import ExitStack

    import orjson

    from neardup.signals.model import read_model
    from streams.commands.terminal import bar
    from streams.comparison.results import Tally
    from streams.comparison.results import dedupe_results as command
    from streams.files.results import written

    announce_compiler(quiet=quiet)
    known = read_model(model)
    known = known if by is None else known.decided_by(by)
    tally = Tally()
    with ExitStack() as stack:
        shown = stack.enter_context(bar(shown=not quiet and str(out) != "-"))
        file = sys.stdout.buffer if str(out) == "-" else stack.enter_context(written(out))
        for line in command(results, known, tally, progress=shown.phase):
            file.write(orjson.dumps(line) + b"\n")
    if not quiet:
        told = f"{tally.queries:,} queries, {tally.results:,} results, {tally.duplicates:,} of them duplicates"
        typer.echo(told, err=str(out) == "-")
    for problem in tally.problems[:PROBLEMS_SHOWN]:
        typer.echo(f"neardup: {problem}", err=True)
    if tally.problems:
        raise typer.Exit(3)
