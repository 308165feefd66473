"""`neardup evaluate tlcs`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import click

from streams.commands.options import Arg, Opt, command
from streams.commands.output import announce_compiler, complain, print_json, print_table
from streams.commands.paths import must_be_folder, must_exist
from streams.commands.shared import THREADS, Json, Links, Truth, Workers


@dataclass(frozen=True, kw_only=True)
class Options(Truth, Links, Json):
    paths: Annotated[
        tuple[Path, ...], Arg("PATH...", "WARC files, folders of HTML, JSON lines, as for scan.", check=must_exist)
    ]
    out: Annotated[Path, Opt("For the report, its data, and the partitions.", metavar="DIR", check=must_be_folder)] = (
        Path("evaluation-tlcs")
    )
    pairs: Annotated[int, Opt("Near-duplicates, and other pairs, to measure.", low=1, high=100_000)] = 500
    workers: Workers = THREADS


@command("evaluate tlcs", "neardup evaluate tlcs crawl.warc.gz --releases '[0-9.]+' --out evaluation")
def evaluate_tlcs(options: Options) -> int:
    """Measure trustable LCS as Huang 2008 did: signatures, windows, slopes, and three systems side by side."""
    from streams.commands.terminal import bar
    from streams.evaluation.evaluate import editions_of
    from streams.evaluation.tlcs import TlcsOptions
    from streams.evaluation.tlcs import evaluate_tlcs as run

    announce_compiler()
    editions = editions_of(options.releases, options.items, options.natural)
    given = TlcsOptions(options.out, editions, options.pairs, options.workers, 1000 + 500 * options.workers)
    with bar(shown=not options.as_json) as shown:
        made = run(
            options.paths, given, base_url=options.base_url, follow_links=options.follow_links, progress=shown.phase
        )
    if options.as_json:
        print_json(made.to_json())
    else:
        for section in made.sections:
            for table in section.tables:
                print_table(table)
            if section.missing:
                complain(f"{section.title}: {section.missing}")
        click.echo(f"evaluation: {options.out / 'evaluation.html'}")
    return 3 if made.unread else 0
