from pathlib import Path
from typing import Annotated

from streams.commands.options import Arg, Opt, command, values
from streams.commands.output import announce_compiler, bar, show_evaluation
from streams.commands.shared import (
    THREADS,
    Adjudicator,
    BaseUrl,
    Folder,
    Folds,
    Json,
    Labels,
    Reads,
    Seeds,
    Truth,
    Workers,
    must_exist,
)
from streams.errors import WrongUsage


class Options(Truth, BaseUrl, Json):
    paths: Annotated[
        tuple[Path, ...], Arg("[PATH]...", "Results as JSON lines; or pages, as for scan.", check=must_exist)
    ] = ()
    judge: Annotated[tuple[Path, ...], Reads("Pages to judge, as PATH; may be repeated.", "--judge", "PATH")] = ()
    train: Annotated[
        tuple[Path, ...], Reads("Pages to learn from, whose models judge PATH; may be repeated.", "--train")
    ] = ()
    group: Annotated[str | None, Opt("Compare with folds that keep a group whole.", choices=("page", "query"))] = None
    labels: Labels = ()
    adjudicator: Adjudicator = ""
    out: Annotated[Path, Folder("Folder for the report, its pictures and data.")] = Path("evaluation-signals")
    pairs: Annotated[int, Opt("Most pairs to label by natural truth.", low=1, high=100_000)] = 1000
    seeds: Seeds = 9
    folds: Folds = 10
    workers: Workers = THREADS


@command(
    "evaluate signals",
    "neardup evaluate signals results.jsonl --labels labels.jsonl --out evaluation",
    "neardup evaluate signals crawl.warc.gz --natural --seeds 3",
    "neardup evaluate signals --train german.jsonl --judge french.jsonl --labels labels.jsonl",
)
def evaluate_signals(options: Options) -> int:
    """Measure signals and classifiers as Huffman 2007 did: each signal, sets of them, curves, cost, languages."""
    from streams.evaluation.signals import evaluate_signals as run

    paths = (*options.paths, *options.judge)
    if not paths:
        raise WrongUsage("no pages: name files of them, by PATH or --judge")
    announce_compiler()
    with bar(shown=not options.as_json) as shown:
        given = values(options, "paths", "judge", "labels", "natural", "releases", "items", "as_json")
        made = run(paths, options.labels, editions=options.editions(), progress=shown.phase, **given)
    return show_evaluation(made, options.out, as_json=options.as_json)
