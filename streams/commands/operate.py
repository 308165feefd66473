"""Commands by which an operator looks after the stream: topics, generations, checkpoints, decisions, replays."""

import sys
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, BinaryIO

from neardup.wording import counted
from streams.commands.app import OPERATE, command, family
from streams.commands.options import (
    STATE,
    AsJson,
    CheckpointFlags,
    CheckTopicFlags,
    ConnectionFlags,
    DecisionFlags,
    GenerationFlags,
    MakeCheckpointFlags,
    Number,
    Opt,
    RemoveFlags,
    ReplayFlags,
    Writes,
    must_be_folder,
    must_be_state,
    must_exist,
    parse_start,
)
from streams.commands.output import announce_compiler, bar, complain, echo, print_json, print_rows
from streams.config.settings import Settings
from streams.errors import WrongUsage

if TYPE_CHECKING:
    from streams.kafka import Admin
    from streams.state.checkpoint_store import CheckpointStore

family(OPERATE, "topics", "Create and check the topics.")
family(OPERATE, "accept", "Let a stopped matcher continue: past a gap, or a record that it cannot read.")
family(OPERATE, "generation", "List generations, choose the live one, remove one.")
family(OPERATE, "checkpoint", "Make, list and restore checkpoints of an index.")


@command(OPERATE, "neardup topics create --bootstrap 127.0.0.1:9092 --partitions 8", name="topics create")
def create_topics(
    *,
    partitions: Annotated[
        int, Number("Partitions of the topics of pages and verdicts.", "--partitions", low=1, high=10_000)
    ] = 8,
    replicas: Annotated[
        int,
        Number("Replicas of every topic; three or more survive the loss of a broker.", "--replicas", low=1, high=9),
    ] = 1,
    compact_verdicts: Annotated[
        bool, Opt("Keep the newest verdict of each URL for ever, instead of all verdicts for a time.")
    ] = False,
    settings: CheckTopicFlags = CheckTopicFlags.NONE,
) -> None:
    """Create the topics that are missing.

    They get the settings that exactly-once depends on. Topics that exist are checked, never altered.
    """
    given = settings.read(connects="topics")

    from streams.kafka.topics import Sizes, create
    from streams.roles.own_generation import control_topic

    sizes = Sizes(partitions=partitions, replicas=replicas, compact_verdicts=compact_verdicts)
    made = create(_admin(given), given.topics, sizes)
    control = control_topic(given, "topics")
    if control.create(replicas):
        made = [*made, control.name]
    for name in filter(None, (*given.topics, control.name)):
        echo(f"{name}: {'created' if name in made else 'as it should be'}")
    _print_compacted(given)


@command(
    OPERATE,
    "neardup topics check --bootstrap 127.0.0.1:9092",
    "neardup topics check --page",
    name="topics check",
    codes="Exit codes: 0 all is as it should be, 1 something is not, no verdict came, or an error, 2 wrong usage.",
)
def check_topics(
    *,
    page: Annotated[
        bool, Opt("Send a page through the stream, wait for its verdict, and publish its tombstone.")
    ] = False,
    timeout: Annotated[
        float, Number("With --page: seconds to wait for the verdict.", "--timeout", low=0.1, high=3600)
    ] = 60.0,
    as_json: Annotated[bool, Opt("With --page: print the verdict as JSON.", "--json")] = False,
    settings: CheckTopicFlags = CheckTopicFlags.NONE,
) -> int:
    """Print what is wrong with the topics, and why it matters.

    With --page, a page goes through the whole stream. Its verdict is that of the live generation, which clients read;
    --generation names another one.
    """
    given = settings.read(connects="publish" if page else "topics")
    if page:
        _send_page(given, timeout, as_json)
        return 0

    from streams.kafka.topics import check
    from streams.roles.own_generation import control_topic

    problems = [str(each) for each in check(_admin(given), given.topics)]
    problems += filter(None, [control_topic(given, "topics").problem()])
    for problem in problems:
        echo(problem)
    if problems:
        return 1
    echo("all topics are as they should be")
    _print_compacted(given)
    return 0


def _send_page(settings: Settings, timeout: float, as_json: bool) -> None:
    from streams.operate.ping import ping

    named = settings.origins.get("generation", "").startswith("flag")
    pong = ping(settings, timeout_s=timeout, generation=settings.generation if named else None)
    if as_json:
        print_json(asdict(pong))
    else:
        of = f", of generation {pong.generation}" if pong.generation else ""
        echo(f"{pong.verdict}, page id {pong.page_id}{of}, after {pong.seconds:.2f} s")


def _print_compacted(settings: Settings) -> None:
    from streams.kafka.topics import COMPACTED, compacted

    if compacted(_admin(settings), settings.topics.verdicts):
        echo(f"{settings.topics.verdicts}: {COMPACTED}")


def _admin(settings: Settings) -> "Admin":
    from streams.kafka import Admin
    from streams.roles.runtime import connect

    return Admin(connect(settings, "topics"))


Offset = Annotated[int, Number("Offset of the message in the sketch log.", "OFFSET", low=0)]


@command(OPERATE, "neardup accept gap 1234", name="accept gap")
def accept_gap(offset: Offset, /, *, settings: DecisionFlags = DecisionFlags.NONE) -> None:
    """Continue past pages that are missing.

    The matcher continues past the pages that are missing before the message at OFFSET.
    The error of the matcher names OFFSET. The decision becomes a record of the log. Start the matcher again.
    """
    _decide("accept_gap", offset, settings.read("match", "match"))


@command(OPERATE, "neardup accept record 1234", name="accept record")
def accept_record(offset: Offset, /, *, settings: DecisionFlags = DecisionFlags.NONE) -> None:
    """Leave out what cannot be read.

    The unreadable part of the message at OFFSET is skipped: its pages get no verdict.
    The error of the matcher names OFFSET. The decision becomes a record of the log. Start the matcher again.
    """
    _decide("skip_record", offset, settings.read("match", "match"))


def _decide(decision: str, offset: int, settings: Settings) -> None:
    from streams.formats.message import Decision
    from streams.operate.operator_decisions import decide

    at = decide(settings, Decision(decision), offset)
    echo(f"written at offset {at}; start the matcher again")


@command(OPERATE, "neardup generation list", "neardup generation list --json", name="generation list")
def list_generations(*, as_json: AsJson = False, settings: GenerationFlags = GenerationFlags.NONE) -> None:
    """List the generations, and which one is live.

    The list has stage, lag, scheme and decider of each. In a pipe the columns have tabs between them.
    """
    from streams.operate.generations import described
    from streams.roles.own_generation import shown

    rows = described(settings.read(connects="topics"))
    if as_json:
        print_json(rows)
        return
    table = []
    for row in rows:
        since = datetime.fromtimestamp(row.staged_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M") if row.staged_ms else ""
        pages, messages = ("-" if count is None else f"{count:,}" for count in (row.pages_behind, row.messages_behind))
        sketches_of = "" if row.sketches_of is None else shown(row.sketches_of)
        table.append(
            {
                "generation": shown(row.name),
                "stage": row.stage or "(not recorded)",
                "since": since,
                "behind": f"{pages} pages, {messages} messages",
                "sketches of": sketches_of,
                "scheme": row.scheme[:12],
                "decider": row.decider[:12],
            }
        )
    print_rows(table)


GenerationName = Annotated[str, Opt("Name of the generation; '' for the one without a name.", "NAME")]


@command(OPERATE, "neardup generation cutover second", "neardup generation cutover ''", name="generation cutover")
def cut_over_generation(
    name: GenerationName,
    /,
    *,
    force: Annotated[
        bool, Opt("Cut over although the generation has not caught up, lacks verdicts, or no matcher of it runs.")
    ] = False,
    settings: ConnectionFlags = ConnectionFlags.NONE,
) -> None:
    """Make another generation the live one.

    All clients follow at once; the same command returns to the earlier one. It writes one record of the control topic.
    It refuses a generation that has not caught up, one whose roles have fallen behind, one whose matcher does not run,
    and one that was never live and lost verdicts to retention.
    """
    from streams.operate.cut_over import cut_over
    from streams.roles.own_generation import shown

    given = settings.read(connects="topics")
    before = cut_over(given, name, force=force, warn=lambda text: complain(f"warning: {text}"))
    echo(f"generation {shown(name)} is live; back: neardup generation cutover {quote(before)}")


@command(OPERATE, "neardup generation remove second", name="generation remove")
def remove_generation(name: GenerationName, /, *, settings: RemoveFlags = RemoveFlags.NONE) -> None:
    """Delete a generation's topics, offsets and record.

    Stop its roles first, and delete its state directory afterwards. The command refuses the live generation, and one
    whose sketches another one judges.
    """
    from streams.operate.generations import removed

    gone = removed(settings.read(connects="topics"), name)
    echo(f"generation {quote(name)} is removed: {', '.join(gone)}")


OfIndex = Annotated[Path, Opt("The state directory.", "--state", metavar="DIR", env_var="NEARDUP_STATE")]


def _store(settings: Settings, *, made: bool = False) -> "CheckpointStore":
    """The checkpoints that the settings name. made: a local folder may be missing. Raises WrongUsage."""
    from streams.state.checkpoint_store import CheckpointStore

    if not settings.checkpoints:
        raise WrongUsage("no checkpoints: name their folder or URL by --checkpoints or NEARDUP_CHECKPOINTS")
    if "://" not in settings.checkpoints:
        (must_be_folder if made else must_exist)(settings.checkpoints)
    return CheckpointStore(settings.checkpoints)


@command(OPERATE, "neardup checkpoint list --checkpoints s3://bucket/neardup", name="checkpoint list")
def list_checkpoints(*, as_json: AsJson = False, settings: CheckpointFlags = CheckpointFlags.NONE) -> None:
    """List the checkpoints, newest first."""
    from streams.state.checkpoint_manifest import describe

    rows = describe(list(_store(settings.read()).usable(complain)))
    if as_json:
        print_json(rows)
        return
    for row in rows:
        when = datetime.fromtimestamp(row["log_time"] / 1000, UTC).strftime("%Y-%m-%d %H:%M")
        stale = "  stale: holds pages that were taken down later" if row["stale"] else ""
        echo(f"{row['name']}  offset {row['offset']:,}  log time {when}  {row['bytes']:,} bytes{stale}")


@command(OPERATE, "neardup checkpoint make DIR --checkpoints s3://bucket/neardup", name="checkpoint make")
def make_checkpoint(state: OfIndex = STATE, *, settings: MakeCheckpointFlags = MakeCheckpointFlags.NONE) -> None:
    """Copy an index to where it can be restored from.

    The checkpoint is of the state directory of a scan, or of a stopped matcher; old ones are removed. A running matcher
    makes checkpoints itself if NEARDUP_CHECKPOINTS is set. Files of earlier checkpoints are not copied again. A
    checkpoint does not hold the secret seed: keep it separately.
    """
    must_be_state(state)
    given = settings.read()
    store = _store(given, made=True)

    from streams.state.checkpoint_make import make

    with bar(shown=True) as shown:
        done = make(state, store, keep=given.checkpoints_kept, progress=partial(shown.phase, "copying"))
    echo(f"{done.checkpoint}: {done.bytes:,} bytes copied of {done.of_bytes:,}, {counted(done.files, 'new file')}")


@command(
    OPERATE,
    "NEARDUP_SEED_FILE=seed neardup checkpoint restore DIR --checkpoints s3://bucket/neardup",
    "neardup checkpoint restore DIR --checkpoints /backup --checkpoint NAME",
    name="checkpoint restore",
)
def restore_checkpoint(
    state: OfIndex = STATE,
    *,
    checkpoint: Annotated[str, Opt("Name of the checkpoint; by default the newest good one.", metavar="NAME")] = "",
    settings: CheckpointFlags = CheckpointFlags.NONE,
) -> None:
    """Make a state directory from a checkpoint.

    By default it is the newest good one; every file is verified. A matcher that finds no index does this itself, from
    the checkpoints that NEARDUP_CHECKPOINTS names.
    """
    must_be_folder(state)
    given = settings.read()
    store = _store(given)

    from streams.state.checkpoint_restore import restore_directory

    with bar(shown=True) as shown:
        found = restore_directory(
            state,
            store,
            name=checkpoint,
            seed=given.seed,
            warn=complain,
            progress=partial(shown.phase, "restoring"),
        )
    echo(f"{state}: {found.name} is restored, {found.manifest.size:,} bytes")


def _instant(text: str | None) -> int | None:
    """Milliseconds since the epoch. Raises WrongUsage."""
    from streams.process.shutdown import now_ms

    when = None if text is None else parse_start(text, now_ms())
    if isinstance(when, str):
        raise WrongUsage(f"{when!r} is no time; name one, as 2h or 2026-01-31T12:00, or leave the option out")
    return when


@command(
    OPERATE,
    "neardup replay DIR --from 120 --to 180 --out verdicts.jsonl",
    "neardup replay DIR --rule tape --out tape.jsonl && neardup diff DIR tape.jsonl",
    "neardup replay --since 2026-01-31T12:00 --until 2026-01-31T18:00 --to-topic verdicts.again",
    codes="Exit codes: 0 done, 1 an error, or verdicts that differ from the kept ones, 2 wrong usage.",
)
def replay(
    state: Annotated[Path | None, Opt("The state directory of a scan.", "--state", metavar="DIR")] = None,
    *,
    start: Annotated[int, Number("First message of the sketch log.", "--from", low=0)] = 0,
    stop: Annotated[int | None, Number("Message after the last one.", "--to", low=0)] = None,
    since: Annotated[str | None, Opt("First log time, as 2h (ago) or 2026-01-31T12:00.", metavar="WHEN")] = None,
    until: Annotated[str | None, Opt("Log time after the last one.", metavar="WHEN")] = None,
    out: Annotated[str | None, Writes("Write the verdicts as JSON lines; - for standard output (default).")] = None,
    to_topic: Annotated[
        str | None, Opt("Stream: write the verdicts to a topic, keyed by URL.", metavar="TOPIC")
    ] = None,
    settings: ReplayFlags = ReplayFlags.NONE,
) -> int:
    """Emit the verdicts of a part of the log again.

    Emit the verdicts of a part of the sketch log again, byte for byte, from the log alone.

    The log is that of the scan in DIR; without DIR, that of the stream. The part is folded in a temporary index, from
    the newest checkpoint before it or from the start of the log. Running processes are not touched. Verdicts of a scan
    are compared with the kept ones. With another rule or other numbers, the verdicts are those that these would have
    given; compare them by `neardup diff`.

    A topic gets only verdicts that are newer than all of their URL in it, so a replay may be repeated. The topic of a
    generation is written only while no matcher of it runs.
    """
    if state is not None:
        must_be_state(state)
    given = settings.read(state=state)
    scan = state if state is not None and (state / "log").is_dir() else None
    if to_topic is not None and (scan is not None or out is not None):
        raise WrongUsage("--to-topic is for the stream, and excludes --out: choose one")
    times = _instant(since), _instant(until)

    from streams.verdicts.replay import Stretch, replay_scan

    stretch = Stretch(start, stop, *times)
    announce_compiler("sketching", "judging")
    piped = out in (None, "-") and to_topic is None
    with _output(out) as file, bar(shown=not piped) as shown:
        if scan is not None:
            from streams.state.scan_snapshot import read_scan

            with read_scan(scan) as opened:
                other = given.decider(opened.scheme) if given.decider_values else None
                done = replay_scan(opened, stretch, file, shown.folded, decider=other)
        else:
            from streams.verdicts.replay_stream import replay_stream

            to_file = None if to_topic else file
            done = replay_stream(given, stretch, out=to_file, topic=to_topic or "", progress=shown.folded)
    compared = scan is not None and not given.decider_values
    kept = f"; equal to those kept: {done.kept:,}, different: {done.differing:,}" if compared else ""
    begun = f" of a log that neardup {done.program} began" if done.program else ""
    held = f"; not written, the topic has them or newer ones of their URLs: {done.present:,}" if done.present else ""
    complain(f"{counted(done.verdicts, 'verdict')}{begun}{kept}{held}")
    return 1 if done.differing else 0


def _output(out: str | None) -> AbstractContextManager[BinaryIO]:
    if out is None or out == "-":
        return nullcontext(sys.stdout.buffer)
    return open(out, "wb")
