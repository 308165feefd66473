from pathlib import Path
from typing import Annotated

import click

from streams.commands.options import Opt, command
from streams.commands.output import bar, complain_of
from streams.commands.shared import BaseUrl, Quiet, Results, Writes, must_exist
from streams.errors import WrongUsage


class Options(BaseUrl, Quiet):
    paths: Results
    out: Annotated[Path, Writes("File for the results with their rendered bodies.")] = Path("rendered.jsonl")
    world: Annotated[
        tuple[Path, ...],
        Opt("Archives that answer requests of pages; may be repeated.", metavar="PATH", check=must_exist),
    ] = ()
    network: Annotated[str, Opt("site: pages also load from servers of their own site.", choices=("none", "site"))] = (
        "none"
    )
    private: Annotated[bool, Opt("Admit servers without a public address: for pages of an intranet.")] = False
    tabs: Annotated[int, Opt("Number of pages at a time.", low=1, high=64)] = 2
    page_seconds: Annotated[float, Opt("Time for a page to become idle.", low=1, high=600)] = 10
    browser: Annotated[str, Opt("Chromium, if it is not on the path.", metavar="PROGRAM")] = ""
    no_sandbox: Annotated[bool, Opt("Run without Chromium's sandbox: only in a container of its own.")] = False


@command(
    "render",
    "neardup render results.jsonl --world crawl.warc.gz --out rendered.jsonl",
    "neardup render results.jsonl --network site --tabs 4 --out rendered.jsonl",
    codes="Exit codes: 0 done, 1 an error, 2 wrong usage, 3 done but some pages could not be rendered or read, "
    "130 interrupted.",
)
def render(options: Options) -> int:
    """Let Chromium run the scripts of results, graft their frames in and follow their refreshes.

    Pages reach only what --world and --network give them.
    """
    if options.private and options.network != "site":
        raise WrongUsage("--private is for --network site")

    from streams.rendering.network import Network
    from streams.rendering.render_results import render_command

    with bar(shown=not options.quiet) as shown:
        tally = render_command(
            options.paths,
            options.out,
            world=options.world,
            network=Network(private=options.private) if options.network == "site" else None,
            tabs=options.tabs,
            base_url=options.base_url,
            progress=shown.phase,
            program=options.browser,
            sandbox=not options.no_sandbox,
            page_seconds=options.page_seconds,
        )
    if not options.quiet:
        text = f"{tally.results:,} results: {tally.rendered:,} rendered, {tally.failed:,} not, {tally.others:,} left"
        click.echo(f"{text} as they were; {options.out}")
    complain_of(tally.problems)
    return 3 if tally.problems else 0
