"""The commands of generations: history judged once more beside the live run, and the cut-over to it."""

import dataclasses
from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from streams.cli import options
from streams.cli.options import JsonOption, complain, print_json, takes_settings
from streams.cli.stream import BOTH
from streams.config.settings import Settings
from streams.errors import WrongUsage

app = typer.Typer(rich_markup_mode=None)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Of the generation; '' for the one without a name.")]


@app.command(
    short_help="Kafka: judge history anew, beside the live run.",
    epilog=options.examples(
        "neardup backfill --generation second --rule tape",
        "neardup backfill --generation second --body-bytes-max 1000000 --rate 500 --threads 1 --once",
        "neardup backfill --generation second crawl-2024.warc.gz crawl-2025.warc.gz",
        codes="Exit codes: 0 caught up, 1 an error, 2 wrong usage, 130 stopped before (the same command goes on).",
    ),
)
@takes_settings(BOTH, role="match", greets="match")
def backfill(
    settings: Settings,
    *,
    archives: Annotated[
        list[str] | None, typer.Argument(metavar="[PATH...]", help=f"Read before the pages: {options.INPUTS}")
    ] = None,
    rate: Annotated[float, typer.Option(min=0, metavar="N", help="Pages a second at most; 0: no limit.")] = 0.0,
    once: Annotated[
        bool, typer.Option("--once", help="End when it has caught up, instead of following the live topic.")
    ] = False,
    read_pages: Annotated[
        bool, typer.Option("--read-pages", help="Read the pages even where their sketches could be judged anew.")
    ] = False,
) -> None:
    """Judge history once more, by other settings, into a generation of its own; the live one is not touched.

    Where only rule and numbers are new, the sketches that are there are judged anew. Else the pages are read from the
    begin of their topic on, in the order in which they were fetched: across partitions exactly, within one as they lie
    there. Archives that are named are read before them, side by side by --threads processes, in one order likewise.
    Its state directory is that of --state, or the live one's name with the generation's behind it.

    It may be stopped at any moment, and the same command goes on. When it has caught up it says so, and follows the
    live topic, so that `neardup cutover` loses nothing.
    """
    from streams.commands.terminal import bar
    from streams.roles import run_backfill
    from streams.roles.backfill import Wishes

    if not settings.generation:
        raise WrongUsage("a backfill fills a generation of its own: name it, as --generation second")
    options.must_exist(archives or ())
    wishes = Wishes(rate=rate, once=once, read_pages=read_pages, archives=tuple(archives or ()))
    given = settings.origins
    if not given.get("state", "").startswith("flag"):
        state = Path(settings.state)
        settings = dataclasses.replace(settings, state=str(state.with_name(f"{state.name}.{settings.generation}")))
    if not given.get("checkpoints", "").startswith("flag"):
        settings = dataclasses.replace(settings, checkpoints="")  # those of the live one lie there, and would go
    with bar(shown=True, counts=True) as drawn:
        caught_up = run_backfill(settings, wishes, shown=drawn.backfill if drawn.watched else None)
    if not caught_up:
        complain("stopped before it has caught up; the same command goes on from there")
        raise typer.Exit(130)


@app.command(
    short_help="Kafka: let clients read another generation.",
    epilog=options.examples("neardup cutover second", "neardup cutover ''"),
)
@takes_settings(options.CONNECTION, greets="topics")
def cutover(
    settings: Settings,
    *,
    name: NameArgument,
    force: Annotated[bool, typer.Option("--force", help="Although it has not caught up, or lacks verdicts.")] = False,
) -> None:
    """Make a generation the live one, for all clients at once; the same command leads back to the one before.

    It is one record of the topic of generations. A generation that has not caught up, or whose roles have fallen
    behind, is refused; so is one that was never live and lacks verdicts which retention has removed.
    """
    from streams.roles.cutover import cut_over

    before = cut_over(settings, name, force=force)
    typer.echo(f"generation {quote(name)} is live; back: neardup cutover {quote(before)}")


@app.command(
    "generations",
    short_help="Kafka: list the generations, and which one is live.",
    epilog=options.examples("neardup generations", "neardup generations --json"),
)
@takes_settings((*options.CONNECTION, "pages_topic", "sketches_topic", "verdicts_topic"), greets="topics")
def generations(settings: Settings, *, as_json: JsonOption = False) -> None:
    """List the generations: which one is live, what each was made with, how far it is and how far behind."""
    from rich.console import Console

    from streams.roles.cutover import described, shown_table

    rows = described(settings)
    if as_json:
        print_json(rows)
    else:
        Console().print(shown_table(rows))


@app.command(
    "generations remove",
    short_help="Kafka: delete a generation's topics.",
    epilog=options.examples("neardup generations remove second"),
)
@takes_settings((*options.CONNECTION, "rejected_topic", "sketches_topic", "verdicts_topic"), greets="topics")
def remove(settings: Settings, *, name: NameArgument) -> None:
    """Delete a generation's topics and offsets, and the word about it. The live one stays, and so does one whose
    sketches another one judges. Stop its roles before; its state directory is yours to delete.
    """
    from streams.roles.cutover import removed

    gone = removed(settings, name)
    typer.echo(f"generation {quote(name)} is removed: {', '.join(gone)}")
