from pathlib import Path
from typing import Annotated

import click

from neardup.errors import BadInput
from streams.commands.options import Opt, command, values
from streams.commands.output import announce_compiler, bar, complain, complain_of
from streams.commands.shared import THREADS, Audits, InsteadState, Links, OptionalPages, Reads, Seed, inputs
from streams.config.settings import LABEL_PORT
from streams.errors import WrongUsage


class Options(Links):
    paths: OptionalPages = ()
    labels: Annotated[Path, Opt("File that labels are appended to, and read from.", metavar="FILE")]
    state: InsteadState = None
    rule: Annotated[str, Opt("Pairs to draw: B, C, combined, site-split, B-only, C-only.", metavar="RULE")] = "B"
    count: Annotated[int, Opt("Number of pairs.", low=1, high=100_000)] = 200
    by: Annotated[str, Opt("Strata of the sample.", metavar="all|level|site")] = "all"
    seed: Seed = 0
    audits: Audits = ()
    sets: Annotated[Path | None, Reads("Draw pairs from the sets of a partition: its sets.jsonl.", "--sets")] = None
    port: Annotated[int, Opt("Port on 127.0.0.1; 0: any free one.", low=0, high=65_535)] = LABEL_PORT
    threads: Annotated[int, Opt("Threads of the kernels.", low=1, high=256)] = THREADS


@command("label", "neardup label crawl.warc.gz --labels labels.jsonl --rule B --count 100")
def label(options: Options) -> None:
    """Label pairs of a crawl in a browser, with their texts side by side. Ctrl-C ends it.

    The page is served on this machine only.
    """
    from streams.evaluation.label import check_options, label_command

    try:
        check_options(**values(options, "seed", "sets", "base_url", "follow_links", "threads"))
    except BadInput as error:
        raise WrongUsage(str(error)) from error
    announce_compiler()
    with inputs(options.paths) as files, bar(shown=True) as shown:
        complain_of(files.not_read.lines)
        label_command(
            files.paths,
            progress=shown.phase,
            ready=lambda url: click.echo(f"label pairs at {url} (Ctrl-C ends)"),
            warn=complain,
            **values(options, "paths"),
        )
