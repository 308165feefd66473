import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import click

from neardup.wording import counted
from streams.commands.options import Arg, Opt, command
from streams.commands.output import announce_compiler, bar, complain_of
from streams.commands.shared import Quiet, Writes, must_exist


class Options(Quiet):
    results: Annotated[
        Path, Arg("RESULTS", "Results as JSON lines, those of a query in their order.", check=must_exist)
    ]
    model: Annotated[Path, Opt("Model by `neardup train`, which decides.", metavar="MODEL", check=must_exist)]
    by: Annotated[
        str | None, Opt("The classifier that decides; by default that of the model.", choices=("tree", "rules"))
    ] = None
    out: Annotated[Path, Writes("File for the groups, a line for each query; - for standard output.")] = Path("-")


@command(
    "dedupe-results",
    "neardup dedupe-results results.jsonl --model model.json --out groups.jsonl",
    codes='A result is a line {"query": TEXT, "url": URL, "body": TEXT, "rendered": TEXT}; rendered may be left out.',
)
def dedupe_results(options: Options) -> int:
    """Put the results of each query into groups of duplicates, each with the rule that decided."""
    import orjson

    from neardup.signals.model import read_model
    from streams.comparison.dedupe_results import DedupeCounts
    from streams.comparison.dedupe_results import dedupe_results as lines_of
    from streams.files.query_results import result_file

    announce_compiler(quiet=options.quiet)
    model = read_model(options.model)
    model = model if options.by is None else model.decided_by(options.by)
    tally, piped = DedupeCounts(), str(options.out) == "-"
    with ExitStack() as stack:
        shown = stack.enter_context(bar(shown=not options.quiet and not piped))
        file = sys.stdout.buffer if piped else stack.enter_context(result_file(options.out))
        for line in lines_of(options.results, model, tally, progress=shown.phase):
            file.write(orjson.dumps(line) + b"\n")
    if not options.quiet:
        queries = f"{tally.queries:,} {'query' if tally.queries == 1 else 'queries'}"
        text = f"{queries}, {counted(tally.results, 'result')}, {counted(tally.duplicates, 'duplicate')}"
        click.echo(text, err=piped)
    complain_of(tally.problems)
    return 3 if tally.problems else 0
