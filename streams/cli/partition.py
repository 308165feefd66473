"""The command of the partition: a corpus into sets of similar pages."""

import os
from pathlib import Path
from typing import Annotated

import typer

from neardup.decider import RULE_NAMES
from streams.cli.options import (
    INPUTS,
    FollowLinksOption,
    IdFieldOption,
    JsonOption,
    TextFieldOption,
    announce_compiler,
    complain,
    examples,
    must_exist,
    print_json,
    rule_values,
)
from streams.errors import WrongUsage

app = typer.Typer(rich_markup_mode=None)

METHODS = ("tlcs", "cosine")
KINDS = ("transitive", "stars")
ENGINES = ("duckdb", "spark")
_CPUS = os.cpu_count() or 1


@app.command(
    short_help="Cut a corpus into sets of similar pages.",
    epilog=examples(
        "neardup partition crawl.warc.gz --out sets",
        "neardup partition site/ --base-url https://a.example/ --out sets --set slope_max=0.08 --sets stars",
        "neardup partition crawl.warc.gz --out sets --method verified",
        "neardup partition crawl.warc.gz --out sets --method signals:model.json",
        codes="Exit codes: 0 done, 1 an error, 2 wrong usage, 3 done but some input could not be read, "
        "130 interrupted (the same command goes on from there).",
    ),
)
def partition(
    given_paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH...",
            help=INPUTS,
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="For the sets, their tables and the report.")] = Path(
        "partition"
    ),
    method: Annotated[
        str, typer.Option(metavar="METHOD", help=f"One of {', '.join([*METHODS, *RULE_NAMES])}:MODEL.")
    ] = "tlcs",
    numbers: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=NUMBER", help="A number of the method; may be repeated."),
    ] = None,
    sets: Annotated[
        str | None,
        typer.Option(metavar="KIND", help="transitive: what hangs together; stars: what is like one page."),
    ] = None,
    base_url: Annotated[
        str | None, typer.Option(metavar="URL", help="What the file names of folders are appended to.")
    ] = None,
    follow_links: FollowLinksOption = False,
    id_field: IdFieldOption = None,
    text_field: TextFieldOption = None,
    workers: Annotated[int, typer.Option(min=1, max=256, help="Processes that read and compare texts.")] = _CPUS,
    memory: Annotated[int, typer.Option(min=1, metavar="MB", help="Of all processes together.")] = 1000 + 500 * _CPUS,
    engine: Annotated[
        str,
        typer.Option(metavar="ENGINE", help="duckdb: this machine; spark: a cluster that sees all files alike."),
    ] = "duckdb",
    master: Annotated[str, typer.Option(metavar="URL", help="Of Spark, as spark://HOST:7077.")] = "local[*]",
    again: Annotated[bool, typer.Option("--again", help="Forget what an earlier run left in DIR.")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the tables of the steps in DIR/work.")] = False,
    as_json: JsonOption = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no summary.")] = False,
) -> None:
    """Cut a corpus into sets of similar pages by the method of Huang 2008, all pages at once.

    The online rules judge each page against those before it, as a scan does, and make stars. A run that was stopped
    goes on when it is called again.
    """
    rule = rule_values("--method", method, METHODS)
    if sets is not None and sets not in KINDS:
        raise WrongUsage(f"--sets {sets}: there is {', '.join(KINDS)}")

    if engine not in ENGINES or (engine == "spark" and rule):
        told = "online rules judge in order, on one machine"
        raise WrongUsage(f"--engine {engine}: there is {', '.join(ENGINES)}; {told}")

    from rich.console import Console

    from neardup.partition.parameters import Parameters, with_numbers
    from streams.batch.online import partition_online
    from streams.batch.partition import PartitionOptions, partition_command
    from streams.batch.workers import Stopped
    from streams.commands.partition_terminal import summary
    from streams.commands.terminal import bar
    from streams.files.fetching import fetched, forget, inputs_of
    from streams.formats.documents import Fields

    must_exist(given_paths)
    given = dict(text.partition("=")[::2] for text in numbers or [])
    if rule and (given or sets == "transitive"):
        raise WrongUsage(f"--method {method} makes stars, with its usual numbers")
    parameters = with_numbers(Parameters(method="tlcs" if rule else method), given)  # type: ignore[arg-type]
    announce_compiler(quiet=quiet)
    if again:
        forget(out)
    paths = fetched(given_paths, inputs_of(out))
    options = PartitionOptions(
        out=out,
        kind=sets or "transitive",
        workers=workers,
        memory_mb=memory,
        again=again,
        keep=keep,
        master=master if engine == "spark" else "",
        follow_links=follow_links,
        fields=Fields(text_field, id_field),
    )
    with bar(shown=not (quiet or as_json)) as shown:
        try:
            if rule:
                made = partition_online(paths, rule, options, base_url=base_url, progress=shown.phase)
            else:
                made = partition_command(paths, parameters, options, base_url=base_url, progress=shown.phase)
        except Stopped:
            complain("interrupted; the same command goes on from here")
            raise typer.Exit(130) from None
    if not keep:
        forget(out)
    if as_json:
        print_json(made.to_json())
    elif not quiet:
        summary(Console(), made, out)
    if made.problems_total or made.refused:
        raise typer.Exit(3)
