"""The command that makes rendered bodies."""

from pathlib import Path
from typing import Annotated

import typer

from streams.cli.options import complain, examples, must_exist
from streams.errors import WrongUsage

app = typer.Typer(rich_markup_mode=None)

NETWORKS = ("none", "site")
PROBLEMS_SHOWN = 10


@app.command(
    short_help="Let a browser make rendered bodies of results.",
    epilog=examples(
        "neardup render results.jsonl --world crawl.warc.gz --out rendered.jsonl",
        "neardup render results.jsonl --network site --tabs 4 --out rendered.jsonl",
        codes="Exit codes: 0 done, 1 an error, 2 wrong usage, 3 done but some pages could not be rendered or read, "
        "130 interrupted.",
    ),
)
def render(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH...", help="Results as JSON lines; or pages, as for scan.")
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The same results, each with its rendered body.")] = Path(
        "rendered.jsonl"
    ),
    world: Annotated[
        list[Path] | None,
        typer.Option(metavar="PATH", help="Archives that answer what pages load; may be repeated."),
    ] = None,
    network: Annotated[
        str, typer.Option(metavar="none|site", help="site: pages also load from servers of their own site.")
    ] = "none",
    private: Annotated[
        bool, typer.Option("--private", help="Servers need not have a public address: for the pages of an intranet.")
    ] = False,
    tabs: Annotated[int, typer.Option(min=1, max=64, help="Pages at a time.")] = 2,
    page_seconds: Annotated[float, typer.Option(min=1, max=600, help="For a page to come to rest.")] = 10,
    browser: Annotated[str, typer.Option(metavar="PROGRAM", help="Chromium, if it is not on the path.")] = "",
    no_sandbox: Annotated[
        bool, typer.Option("--no-sandbox", help="Without Chromium's sandbox: only in a container of its own.")
    ] = False,
    base_url: Annotated[
        str | None, typer.Option(metavar="URL", help="What the file names of folders are appended to.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no summary.")] = False,
) -> None:
    """Let Chromium run the scripts of results, graft their frames in and follow their refreshes.

    Pages reach nothing but what --world and --network give them.
    """
    if network not in NETWORKS:
        raise WrongUsage(f"--network {network}: there is {', '.join(NETWORKS)}")
    if private and network != "site":
        raise WrongUsage("--private is for --network site")
    must_exist([*paths, *(world or ())])
    from streams.commands.terminal import bar
    from streams.rendering.results import Asked, render_command, shown

    asked = Asked(
        out=out,
        world=tuple(world or ()),
        site=network == "site",
        private=private,
        tabs=tabs,
        page_seconds=page_seconds,
        browser=browser,
        sandbox=not no_sandbox,
    )
    with bar(shown=not quiet) as drawn:
        tally = render_command(paths, asked, base_url=base_url, progress=drawn.phase)
    if not quiet:
        told = f"{tally.results:,} results: {tally.rendered:,} rendered, {tally.failed:,} not, {tally.others:,} left"
        typer.echo(f"{told} as they were; {out}")
    for problem in shown(tally.problems, PROBLEMS_SHOWN):
        complain(problem)
    if tally.problems:
        raise typer.Exit(3)
