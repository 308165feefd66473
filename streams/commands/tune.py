from pathlib import Path
from typing import Annotated

import click

from streams.commands.options import Arg, Opt, command, values
from streams.commands.output import announce_compiler, bar, complain, complain_of, print_json, print_rich
from streams.commands.shared import INPUTS, THREADS, BaseUrl, InsteadState, Json, Seed, inputs, must_exist


class Options(BaseUrl, Json):
    labels: Annotated[
        tuple[Path, ...], Arg("LABELS...", "Labels by `neardup label` or `evaluate --labels-out`.", check=must_exist)
    ]
    state: InsteadState = None
    pages: Annotated[
        tuple[str, ...], Opt(f"Files of the pages, may be repeated: {INPUTS}", metavar="PATH", check=must_exist)
    ] = ()
    content: Annotated[bool, Opt("Count same_content as a duplicate, too.", "--same-content")] = False
    seed: Seed = 0
    threads: Annotated[int, Opt("Threads of the kernels.", low=1, high=256)] = THREADS


@command(
    "tune",
    "neardup tune labels.jsonl --state DIR",
    "neardup tune labels.jsonl --pages crawl.warc.gz",
    "neardup tune labels.jsonl --state DIR --json | jq .flags",
)
def tune(options: Options) -> None:
    """Propose numbers of the decider for your crawl, from labelled pairs. Nothing is changed.

    Numbers are chosen on one half of the pairs and measured on the other, with 95% intervals. With --state the scan's
    log is folded again with them, and the changed verdicts are shown.
    """
    from streams.evaluation.tune import command as advised
    from streams.evaluation.tune import shown, tune_command

    announce_compiler()
    with inputs(options.pages) as files, bar(shown=not options.as_json) as progress:
        found = tune_command(
            options.labels, files.paths, progress=progress.phase, **values(options, "labels", "pages", "as_json")
        )
    complain_of(files.not_read.lines)
    if options.as_json:
        print_json(found.to_json())
        return
    print_rich(shown(found))
    if advice := advised(found, options.state):
        click.echo(f"\n{advice}")  # by itself, so that no terminal's width breaks it
    for problem in found.tuning.problems:
        complain(problem)
