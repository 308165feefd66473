"""The commands of a crawl's history: what was said, said again."""

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from neardup.errors import BadInput
from streams.cli import options
from streams.cli.options import announce_compiler, takes_settings
from streams.config.settings import Settings

app = typer.Typer(rich_markup_mode=None)

_REPLAY = (*options.CONNECTION, *options.TOPICS, "body_bytes_max", "threads", *options.DECIDER)


@app.command(
    short_help="Say again what was said of a stretch of the crawl.",
    epilog=options.examples(
        "neardup replay --scan DIR --from 120 --to 180 --out verdicts.jsonl",
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

    The log is folded from its begin up to there in an index of its own; nothing that runs is touched. With --scan the
    verdicts are compared with those that are kept.
    """
    if to_topic is not None and (scan is not None or out is not None):
        raise BadInput("--to-topic is the stream's, and goes without --out: choose one")
    from streams.commands.replay import replay_scan, replay_stream
    from streams.commands.terminal import bar
    from streams.history.replay import Stretch

    stretch = Stretch(start, stop, _instant(since), _instant(until))
    if scan is not None and not (scan / "log").is_dir():
        raise BadInput(f"{scan} is no scan's state directory; make one with: neardup scan")
    announce_compiler()
    with _output(out) as file, bar(shown=out not in (None, "-") or to_topic is not None) as shown:
        if scan is not None:
            from streams.files.state import State

            with State.open(scan) as state:
                done = replay_scan(state, stretch, file, shown.folded)
        else:
            done = replay_stream(
                settings,
                stretch,
                out=None if to_topic else file,
                topic=to_topic or "",
                progress=shown.folded,
            )
    kept = f"; {done.told:,} of them are kept, {done.otherwise:,} otherwise" if scan is not None else ""
    typer.echo(f"neardup: {done.verdicts:,} verdicts{kept}", err=True)
    if done.otherwise:
        raise typer.Exit(1)


def _instant(text: str | None) -> int | None:
    """Ms since the epoch. Raises BadInput."""
    if text is None:
        return None
    from streams.commands.tail import parse_start
    from streams.process.signals import SystemClock

    when = parse_start(text, SystemClock().now_ms())
    if isinstance(when, str):
        raise BadInput(f"{when!r} is no time; leave the option out, or name one, as 2h or 2026-01-31T12:00")
    return when


def _output(out: str | None):  # type: ignore[no-untyped-def]  # a context of a binary file
    if out in (None, "-"):
        return nullcontext[BinaryIO](sys.stdout.buffer)
    try:
        return open(out, "wb")
    except OSError as error:
        raise BadInput(f"--out {out}: {error.strerror}") from error
