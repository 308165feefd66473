"""The command that takes pages down."""

from pathlib import Path
from typing import Annotated, Any

import typer

from streams.cli import options
from streams.cli.options import JsonOption, print_json, takes_settings
from streams.config.settings import Settings
from streams.errors import WrongUsage

app = typer.Typer(rich_markup_mode=None)


@app.command(
    short_help="Take pages down: out of the index, in every fold of the log.",
    epilog=options.examples(
        "neardup forget https://a.example/private.html",
        "neardup forget --prefix https://a.example/people/",
        "neardup forget --scan DIR --site a.example",
    ),
)
@takes_settings((*options.CONNECTION, *options.TOPICS, *options.SKETCHES))
def forget(
    settings: Settings,
    *,
    url: Annotated[str | None, typer.Argument(metavar="URL", help="The page.")] = None,
    site: Annotated[
        str | None, typer.Option("--site", metavar="SITE", help="All pages of this registrable domain.")
    ] = None,
    prefix: Annotated[
        str | None, typer.Option("--prefix", metavar="PREFIX", help="All pages whose URLs begin so.")
    ] = None,
    scan: Annotated[
        Path | None,
        typer.Option("--scan", metavar="DIR", help="A scan's directory; by default the stream's log."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Take a page down, or those of a site, or those whose URLs begin alike: what the index holds of them goes.

    The decision goes into the sketch log as a hash, so that whoever folds the log repeats it; it holds for pages that
    were fetched before it. Each page that goes has a verdict `gone` with the reason `taken down`, so that indexes and
    views drop it; where it stands for others, the next of them takes its place (a verdict `promoted`). It says how many
    pages are taken down, and what it does not reach.
    """
    from streams.commands.forget import forget_scan, forget_stream, takedown_of, unreached

    takedown = takedown_of(url, site, prefix)
    told: dict[str, Any]
    pages: int | None
    promoted: int | None
    if scan is not None and not (scan / "log").is_dir():
        raise WrongUsage(f"{scan} is no scan's state directory; without --scan it is the stream's log")
    if scan is not None:
        done = forget_scan(scan, takedown)
        told, pages, promoted, said = done.to_json(), done.pages, done.promoted, ""
    else:
        written = forget_stream(settings, takedown)
        told = {"offset": written.offset, "pages": written.pages, "promoted": written.promoted}
        pages, promoted, said = written.pages, written.promoted, f"written at offset {written.offset} of the log; "
    if pages is None:
        said += (
            "the matcher takes pages down when it gets there; verdicts `gone` with page id "
            f"{written.cause} then say which"
        )
    elif pages:
        said += f"{pages:,} pages are taken down, {promoted:,} others took their place"
    else:
        said += "no page is taken down: the index holds none of that name; compare the spelling with that in a verdict"
    if as_json:
        print_json({**told, "unreached": unreached(settings, scan)})
        return
    typer.echo(said)
    for line in unreached(settings, scan):
        typer.echo(f"not reached: {line}")
