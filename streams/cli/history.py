"""The commands of a crawl's history: what was said, said again."""

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from neardup.errors import BadInput
from streams.cli import options
from streams.cli.options import JsonOption, announce_compiler, complain, print_json, takes_settings
from streams.config.settings import Settings
from streams.errors import WrongUsage

app = typer.Typer(rich_markup_mode=None)

_REPLAY = (
    *(*options.CONNECTION, *options.TOPICS, "state", "checkpoints", *options.SKETCHES, "threads"),
    *options.DECIDER,
)


@app.command(
    short_help="Say again what was said of a stretch of the crawl.",
    epilog=options.examples(
        "neardup replay --scan DIR --from 120 --to 180 --out verdicts.jsonl",
        "neardup replay --scan DIR --rule tape --out tape.jsonl && neardup diff DIR tape.jsonl",
        "neardup replay --since 2026-01-31T12:00 --until 2026-01-31T18:00 --to-topic verdicts.again",
        codes="Exit codes: 0 done, 1 an error or other verdicts than those that are kept, 2 wrong usage.",
    ),
)
@takes_settings(_REPLAY)
def replay(
    settings: Settings,
    *,
    scan: Annotated[
        Path | None,
        typer.Option("--scan", metavar="DIR", help="A scan's directory; by default the stream's log."),
    ] = None,
    start: Annotated[int, typer.Option("--from", metavar="OFFSET", min=0, help="First message of the sketch log.")] = 0,
    stop: Annotated[
        int | None, typer.Option("--to", metavar="OFFSET", min=0, help="Message behind the last one.")
    ] = None,
    since: Annotated[
        str | None, typer.Option(metavar="WHEN", help="First log time, as 2h (ago) or 2026-01-31T12:00.")
    ] = None,
    until: Annotated[str | None, typer.Option(metavar="WHEN", help="Log time behind the last one.")] = None,
    out: Annotated[
        str | None, typer.Option(metavar="FILE", help="The verdicts as JSON lines; - for standard output (default).")
    ] = None,
    to_topic: Annotated[
        str | None, typer.Option("--to-topic", metavar="TOPIC", help="Kafka: write them there, keyed by URL.")
    ] = None,
) -> None:
    """Say again what was said of a stretch of the sketch log, word for word: nothing is read but the log.

    The log is folded up to there in an index of its own, from the newest checkpoint before it, or from the log's begin;
    nothing that runs is touched. With --scan the
    verdicts are compared with those that are kept; or, where a rule or numbers are named, they are what these would
    have said (see: neardup diff).
    """
    if to_topic is not None and (scan is not None or out is not None):
        raise WrongUsage("--to-topic is the stream's, and goes without --out: choose one")
    from streams.commands.terminal import bar
    from streams.history.replay import Stretch, replay_scan

    stretch = Stretch(start, stop, _instant(since), _instant(until))
    if scan is not None and not (scan / "log").is_dir():
        raise WrongUsage(f"{scan} is no scan's state directory; make one with: neardup scan")
    announce_compiler()
    with _output(out) as file, bar(shown=out not in (None, "-") or to_topic is not None) as shown:
        if scan is not None:
            from streams.files.state import State

            with State.open(scan) as state:
                other = settings.decider(state.scheme) if settings.decider_values else None
                done = replay_scan(state, stretch, file, shown.folded, decider=other)
        else:
            from streams.roles.replay import replay_stream

            done = replay_stream(
                settings,
                stretch,
                out=None if to_topic else file,
                topic=to_topic or "",
                progress=shown.folded,
            )
    compared = scan is not None and not settings.decider_values
    kept = f"; {done.told:,} of them are kept, {done.otherwise:,} otherwise" if compared else ""
    begun = f" of a log that neardup {done.program} began" if done.program else ""
    held = f"; {done.present:,} more are in the topic already" if done.present else ""
    complain(f"{done.verdicts:,} verdicts{begun}{kept}{held}")
    if done.otherwise:
        raise typer.Exit(1)


@app.command(
    short_help="Compare two histories of verdicts.",
    epilog=options.examples(
        "neardup replay --scan DIR --rule tape --out tape.jsonl",
        "neardup diff DIR tape.jsonl --html diff.html",
        "neardup diff topic:verdicts topic:verdicts.second --pages changed.parquet",
    ),
)
@takes_settings(options.CONNECTION)
def diff(
    settings: Settings,
    *,
    before: Annotated[
        str, typer.Argument(metavar="BEFORE", help="A scan's directory, a file of JSON lines, or topic:NAME.")
    ],
    after: Annotated[str, typer.Argument(metavar="AFTER", help="Another one, about the same pages.")],
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a page with samples there.")] = None,
    pages: Annotated[
        str,
        typer.Option(metavar="FILE", help="Write all pages that changed there: ends in .parquet, .csv or .jsonl."),
    ] = "",
    as_json: JsonOption = False,
) -> None:
    """Compare what two runs said of the same pages: counts by kind and site, and samples with both verdicts.

    Pages are joined by where they were read, so generations with other page ids can be compared.
    """

    from rich.console import Console

    from streams.commands.terminal import bar
    from streams.history.comparing import compare, page, shown

    with bar(shown=not as_json) as progress:
        told = lambda read: progress.phase(f"{read:,} verdicts", 0, 0)  # noqa: E731
        found = compare(before, after, _topics(settings), told, pages=pages)
    if html is not None:
        try:
            html.write_text(page(found, before, after), encoding="utf-8")
        except OSError as error:
            raise BadInput(f"--html {html}: {error.strerror}") from error
    if as_json:
        print_json(found.to_json())
    else:
        Console().print(shown(found))


@app.command(
    short_help="Write verdicts as tables: Parquet, CSV, JSON lines.",
    epilog=options.examples(
        "neardup export neardup-state --out urls.parquet",
        "neardup export neardup-state --table clusters --out clusters.csv",
        "neardup export topic:verdicts --out - | jq -r 'select(.shown).url'",
    ),
)
@takes_settings(options.CONNECTION)
def export(
    settings: Settings,
    *,
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="A scan's directory, a file of JSON lines, or topic:NAME.")
    ],
    out: Annotated[
        str, typer.Option(metavar="FILE", help="Ends in .parquet, .csv or .jsonl; - for JSON lines on standard output.")
    ],
    table: Annotated[str, typer.Option(metavar="urls|clusters|verdicts", help="Which table.")] = "urls",
) -> None:
    """Write what verdicts come to as a table: each URL as it stands now, clusters with members, or all verdicts.

    `shown` says whether an index should show a URL. Columns are only ever added.
    """
    from streams.commands.export import export as write
    from streams.commands.terminal import bar
    from streams.history.export import TABLES

    name = next((name for name in TABLES if name == table), None)
    if name is None:
        raise WrongUsage(f"--table {table}: there is {', '.join(TABLES)}")
    options.must_be_writable(out)
    with bar(shown=out != "-") as progress:
        count = write(source, name, out, _topics(settings), lambda read: progress.phase(f"{read:,} verdicts", 0, 0))
    complain(f"{count:,} rows")


_AT = ("state", "checkpoints")


@app.command(
    short_help="Copy an index to where it can be restored from.",
    epilog=options.examples("neardup checkpoint --state DIR --checkpoints s3://bucket/neardup"),
)
@takes_settings((*_AT, "checkpoints_kept"))
def checkpoint(settings: Settings) -> None:
    """Make a checkpoint of a scan's state directory, or of a matcher's that is stopped; old ones go.

    A running matcher makes them itself, where NEARDUP_CHECKPOINTS says so. Files that are there already are not copied
    again. The secret seed is not in it: keep that yourself.
    """
    from streams.commands.terminal import bar
    from streams.history.checkpoints import make

    store = _checkpoints(settings)
    with bar(shown=True) as shown:
        done = make(
            Path(settings.state),
            store,
            keep=settings.checkpoints_kept,
            progress=lambda now, total: shown.phase("copying", now, total),
        )
    typer.echo(f"{done.checkpoint}: {done.bytes:,} bytes copied of {done.of_bytes:,}, {done.files:,} new files")


@app.command(
    short_help="List the checkpoints.",
    epilog=options.examples("neardup checkpoints --checkpoints s3://bucket/neardup"),
)
@takes_settings(("checkpoints",))
def checkpoints(
    settings: Settings,
    *,
    as_json: JsonOption = False,
) -> None:
    """List the checkpoints, newest first: offset of the log, log time, size, scheme and decider."""
    from datetime import UTC, datetime

    from streams.state.checkpoint_store import describe

    rows = describe(list(_checkpoints(settings).usable(complain)))
    if as_json:
        print_json(rows)
        return
    for row in rows:
        when = datetime.fromtimestamp(row["log_time"] / 1000, UTC).strftime("%Y-%m-%d %H:%M")
        stale = "  stale: holds what was taken down since" if row["stale"] else ""
        typer.echo(f"{row['name']}  offset {row['offset']:,}  log time {when}  {row['bytes']:,} bytes{stale}")


@app.command(
    short_help="Make a state directory of a checkpoint.",
    epilog=options.examples(
        "NEARDUP_SEED_FILE=seed neardup restore --state DIR --checkpoints s3://bucket/neardup",
        "neardup restore --state DIR --checkpoints /backup --checkpoint NAME",
    ),
)
@takes_settings(_AT)
def restore(
    settings: Settings,
    *,
    name: Annotated[
        str, typer.Option("--checkpoint", metavar="NAME", help="Which one; by default the newest good one.")
    ] = "",
) -> None:
    """Make a state directory of the newest good checkpoint; every file is verified.

    A matcher that finds no index does this itself, where NEARDUP_CHECKPOINTS says from where.
    """
    from streams.commands.terminal import bar
    from streams.history.checkpoints import bring_back

    store = _checkpoints(settings)
    with bar(shown=True) as shown:
        found = bring_back(
            Path(settings.state),
            store,
            name=name,
            seed=settings.seed,
            warn=complain,
            progress=lambda now, total: shown.phase("restoring", now, total),
        )
    typer.echo(f"{settings.state}: {found.name} is restored, {found.manifest.size:,} bytes")


@app.command(
    "inspect",
    short_help="Look into an index that nobody has open.",
    epilog=options.examples(
        "neardup inspect --state DIR",
        "neardup inspect --state DIR --url https://a.example/page.html",
        codes="Exit codes: 0 done, 1 an error, or parts that do not fit together, 2 wrong usage.",
    ),
)
@takes_settings(("state",))
def inspect_state(
    settings: Settings,
    *,
    url: Annotated[str | None, typer.Option(metavar="URL", help="What is held of this URL.")] = None,
    cluster: Annotated[int | None, typer.Option(metavar="ID", help="What is held of this cluster.")] = None,
    page: Annotated[int | None, typer.Option(metavar="ID", help="The sketch of this page.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Look into the index of a scan's or a stopped matcher's state directory: sizes, standings, hot keys, the largest
    clusters, and whether all its parts fit together. Or at one URL, cluster or page of it.
    """
    from contextlib import ExitStack

    from rich.console import Console

    from streams.commands.terminal import bar
    from streams.state import contents as look

    with ExitStack() as held:
        opened = look.open_index(Path(settings.state), held)
        if url is None and cluster is None and page is None:
            with bar(shown=not as_json) as progress:
                found, told = look.overview(opened, lambda rows: progress.phase(f"{rows:,} rows", 0, 0))
            if as_json:
                print_json(told)
            else:
                Console().print(look.shown(found, told))
            if found.wrong_total:
                raise typer.Exit(1)
            return
        if url is not None:
            told = look.of_url(opened.store, url)
        elif cluster is not None:
            told = look.of_cluster(opened.store, cluster)
        else:
            told = look.sketch_of(opened.store, page or 0)
    print_json(told)


def _checkpoints(settings: Settings):  # type: ignore[no-untyped-def]  # its module loads fsspec
    from streams.state.checkpoint_store import CheckpointStore

    if not settings.checkpoints:
        raise WrongUsage("where are the checkpoints? Name a folder or a URL: --checkpoints, NEARDUP_CHECKPOINTS")
    return CheckpointStore(settings.checkpoints)


def _topics(settings: Settings):  # type: ignore[no-untyped-def]
    def topics(name: str):  # type: ignore[no-untyped-def]
        from streams.roles.tail import verdicts_of

        return verdicts_of(settings)(name)

    return topics


def _instant(text: str | None) -> int | None:
    """Ms since the epoch. Raises BadInput."""
    if text is None:
        return None
    from streams.config.instants import parse_start
    from streams.process.shutdown import SystemClock

    when = parse_start(text, SystemClock().now_ms())
    if isinstance(when, str):
        raise WrongUsage(f"{when!r} is no time; leave the option out, or name one, as 2h or 2026-01-31T12:00")
    return when


def _output(out: str | None):  # type: ignore[no-untyped-def]  # a context of a binary file
    if out in (None, "-"):
        return nullcontext[BinaryIO](sys.stdout.buffer)
    try:
        return open(out, "wb")
    except OSError as error:
        raise WrongUsage(f"--out {out}: {error.strerror}") from error
