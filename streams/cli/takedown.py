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
    from streams.files.state import State

    takedown = _takedown_of(url, site, prefix)
    told: dict[str, Any]
    pages: int | None
    promoted: int | None
    if scan is not None and not (scan / "log").is_dir():
        raise WrongUsage(f"{scan} is no scan's state directory; without --scan it is the stream's log")
    if scan is not None:
        with State.open(scan) as state:
            done = state.forget(takedown)
        told, pages, promoted, said = done.to_json(), done.pages, done.promoted, ""
    else:
        from streams.roles.takedowns import forget_stream

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


def _takedown_of(url: str | None, site: str | None, prefix: str | None):  # type: ignore[no-untyped-def]
    """Raises WrongUsage unless it is one of them."""
    from neardup.sketch.takedown import of_prefix, of_site, of_url

    if sum(value is not None for value in (url, site, prefix)) != 1:
        raise WrongUsage("name one: a URL, --site or --prefix")
    if url is not None:
        return of_url(url)
    return of_site(site) if site is not None else of_prefix(prefix or "")


def unreached(settings: Settings, scan: Path | None) -> list[str]:
    """Where the pages still are, and what to do there."""
    if scan is not None:
        return [
            f"the files that were scanned, and the bytes of {scan / 'log'} and {scan / 'verdicts'}: reports, exports "
            "and views leave the pages out, a replay of what was said before does not; for good they go with the "
            "directory: scan what is left of the sources into another one, and delete this one",
            "what was written elsewhere: --out files, reports, exports, checkpoints of before (the next "
            "`neardup checkpoint` removes those)",
        ]
    names = settings.topics
    return [
        f"topics {names.pages} and {names.rejected}, which hold the pages themselves, until their retention "
        "(or kafka-delete-records): a sketcher that reads them again brings the pages back",
        f"the bytes of topic {names.sketches}, until its retention; who folds it forgets them at this place",
        f"former verdicts in topic {names.verdicts}, with their URLs and titles, until its retention; where it is "
        "compacted, the verdict `gone` replaces them, and names the URL alone: a null record with the URL as its key "
        "deletes that too, once all indexes have read it. Lists of the views may name a page until newer pages push it "
        "out: `neardup views --rebuild` behind that",
        "texts that an index keeps: its client hides a page whose verdict is `gone`; delete the text where its reason "
        "is `taken down`",
        "checkpoints of before: they are removed when the next one is made",
    ]
