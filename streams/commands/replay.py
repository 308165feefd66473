import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated, BinaryIO

from neardup.wording import counted
from streams.commands.options import DECIDER, SHARDS, SKETCHES, TOPICS, Flags, Given, Opt, command
from streams.commands.output import announce_compiler, bar, complain
from streams.commands.shared import Writes, must_be_state, parse_start
from streams.config.settings import Settings
from streams.errors import WrongUsage
from streams.process.shutdown import now_ms


def _instant(text: str) -> int:
    """Milliseconds since the epoch. Raises BadInput."""
    when = parse_start(text, now_ms())
    if isinstance(when, str):
        raise WrongUsage(f"{when!r} is no time; name one, as 2h or 2026-01-31T12:00, or leave the option out")
    return when


class Options(Given):
    start: Annotated[int, Opt("First message of the sketch log.", "--from", metavar="OFFSET", low=0)] = 0
    stop: Annotated[int | None, Opt("Message after the last one.", "--to", metavar="OFFSET", low=0)] = None
    since: Annotated[
        int | None, Opt("First log time, as 2h (ago) or 2026-01-31T12:00.", metavar="WHEN", parse=_instant)
    ] = None
    until: Annotated[int | None, Opt("Log time after the last one.", metavar="WHEN", parse=_instant)] = None
    out: Annotated[str | None, Writes("Write the verdicts as JSON lines; - for standard output (default).")] = None
    to_topic: Annotated[str | None, Opt("Stream: write the verdicts to a topic, keyed by URL.", metavar="TOPIC")] = None
    settings: Annotated[
        Settings,
        Flags(("state", *TOPICS, "checkpoints", *SKETCHES, "threads", *DECIDER, *SHARDS[:2]), argument="state"),
    ]


@command(
    "replay",
    "neardup replay DIR --from 120 --to 180 --out verdicts.jsonl",
    "neardup replay DIR --rule tape --out tape.jsonl && neardup diff DIR tape.jsonl",
    "neardup replay --since 2026-01-31T12:00 --until 2026-01-31T18:00 --to-topic verdicts.again",
    codes="Exit codes: 0 done, 1 an error, or verdicts that differ from the kept ones, 2 wrong usage.",
)
def replay(options: Options) -> int:
    """Emit the verdicts of a part of the sketch log again, byte for byte, from the log alone.

    The log is that of the scan in DIR; without DIR, that of the stream. The part is folded in a temporary index, from
    the newest checkpoint before it or from the start of the log. Running processes are not touched. Verdicts of a scan
    are compared with the kept ones. With another rule or other numbers, the verdicts are those that these would have
    given; compare them by `neardup diff`.

    A topic gets only verdicts that are newer than all of their URL in it, so a replay may be repeated. The topic of a
    generation is written only while no matcher of it runs.
    """
    settings, to_topic = options.settings, options.to_topic
    given = settings.origins.get("state", "").startswith("flag")
    if given:
        must_be_state(Path(settings.state))
    scan = Path(settings.state) if given and (Path(settings.state) / "log").is_dir() else None
    if to_topic is not None and (scan is not None or options.out is not None):
        raise WrongUsage("--to-topic is for the stream, and excludes --out: choose one")

    from streams.history.replay import Stretch, replay_scan

    stretch = Stretch(options.start, options.stop, options.since, options.until)
    announce_compiler("sketching", "judging")
    piped = options.out in (None, "-") and to_topic is None
    with _output(options.out) as file, bar(shown=not piped) as shown:
        if scan is not None:
            from streams.files.scan_reader import read_scan

            with read_scan(scan) as state:
                other = settings.decider(state.scheme) if settings.decider_values else None
                done = replay_scan(state, stretch, file, shown.folded, decider=other)
        else:
            from streams.roles.replay import replay_stream

            out = None if to_topic else file
            done = replay_stream(settings, stretch, out=out, topic=to_topic or "", progress=shown.folded)
    compared = scan is not None and not settings.decider_values
    kept = f"; equal to those kept: {done.kept:,}, different: {done.differing:,}" if compared else ""
    begun = f" of a log that neardup {done.program} began" if done.program else ""
    held = f"; not written, the topic has them or newer ones of their URLs: {done.present:,}" if done.present else ""
    complain(f"{counted(done.verdicts, 'verdict')}{begun}{kept}{held}")
    return 1 if done.differing else 0


def _output(out: str | None) -> AbstractContextManager[BinaryIO]:
    if out is None or out == "-":
        return nullcontext(sys.stdout.buffer)
    return open(out, "wb")
