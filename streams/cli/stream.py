"""The commands of the stream: topics, the roles, both of a crawler's and an indexer's sides, settings."""

import dataclasses
import os
import secrets
import sys
from pathlib import Path
from typing import Annotated

import typer

from neardup.errors import BadInput
from neardup.scheme import Scheme
from streams.cli import options
from streams.cli.options import JsonOption, print_json, takes_settings
from streams.config.settings import OPTIONS, Settings
from streams.errors import WrongUsage
from streams.process.logs import printable

app = typer.Typer(rich_markup_mode=None)
topics = typer.Typer(rich_markup_mode=None, no_args_is_help=True, help="Kafka: make the topics, or check them.")
app.add_typer(topics, name="topics")

_ALL = (*options.CONNECTION, *options.TOPICS)
_SKETCH = (*_ALL, *options.PAGES, *options.BATCHES, *options.SKETCHES, *options.WATCHING, *options.TRACING)
_JUDGING = (*options.MATCHING, *options.CHECKPOINTS, *options.DECIDER, *options.AUDITING)
_MATCH = (*_ALL, *options.SKETCHES, *_JUDGING, *options.WATCHING, *options.TRACING)
BOTH = tuple(dict.fromkeys((*_SKETCH, *_MATCH)))

NewDeciderOption = Annotated[
    bool, typer.Option("--new-decider", help="Let rule and numbers decide from here on, where others did so far.")
]
AcceptLostOption = Annotated[
    bool,
    typer.Option("--accept-lost-verdicts", help="Go on although verdicts that were told are gone from their topic."),
]
StandbyOption = Annotated[
    bool,
    typer.Option("--standby", help="Fold in silence while another matcher with this is at work; then take over."),
]
OffsetArgument = Annotated[int, typer.Argument(metavar="OFFSET", min=0, help="Of the message in the sketch log.")]


@topics.command(
    "create",
    short_help="Make the topics that are missing.",
    epilog=options.examples("neardup topics create --bootstrap 127.0.0.1:9092 --partitions 8"),
)
@takes_settings(_ALL, greets="topics")
def create(
    settings: Settings,
    *,
    partitions: Annotated[int, typer.Option(min=1, max=10_000, help="Of pages and verdicts.")] = 8,
    replicas: Annotated[int, typer.Option(min=1, max=9, help="Of every topic; three or more outlive a broker.")] = 1,
    compact_verdicts: Annotated[
        bool, typer.Option("--compact-verdicts", help="Keep each URL's newest verdict for ever, and no older one.")
    ] = False,
) -> None:
    """Make the topics that are missing, with the settings that exactly-once rests on.

    Topics that exist are checked, never altered.
    """
    from streams.kafka.topics import Sizes
    from streams.kafka.topics import create as make
    from streams.roles.generations import control_topic

    sizes = Sizes(partitions=partitions, replicas=replicas, compact_verdicts=compact_verdicts)
    made = make(_admin(settings), settings.topics, sizes)
    for name in filter(None, settings.topics):
        typer.echo(f"{name}: {'made' if name in made else 'as it should be'}")
    control = control_topic(settings, "topics")
    typer.echo(f"{control.name}: {'made' if control.create(replicas) else 'as it should be'}")
    _tell_compacted(settings)


@topics.command(
    "check",
    short_help="Say what is wrong with the topics.",
    epilog=options.examples("neardup topics check --bootstrap 127.0.0.1:9092"),
)
@takes_settings(_ALL, greets="topics")
def check(settings: Settings) -> None:
    """Say what is wrong with the topics, and why it matters; exit code 1 if anything is."""
    from streams.kafka.topics import check as problems_of
    from streams.roles.generations import control_topic

    problems = [str(each) for each in problems_of(_admin(settings), settings.topics)]
    problems += filter(None, [control_topic(settings, "topics").problem()])
    for problem in problems:
        typer.echo(problem)
    if problems:
        raise typer.Exit(1)
    typer.echo("all topics are as they should be")
    _tell_compacted(settings)


def _tell_compacted(settings: Settings) -> None:
    from streams.kafka.topics import COMPACTED, compacted

    if compacted(_admin(settings), settings.topics.verdicts):
        typer.echo(f"{settings.topics.verdicts}: {COMPACTED}")


@app.command(
    cls=options.Grouped,
    short_help="Kafka: pages in, sketches to the log.",
    epilog=options.examples("NEARDUP_SEED_FILE=seed neardup sketch --bootstrap 127.0.0.1:9092"),
)
@takes_settings(_SKETCH, role="sketch")
def sketch(settings: Settings) -> None:
    """Run a sketcher: pages in, sketches to the log. Any number of them share the work.

    The secret seed comes from NEARDUP_SEED or NEARDUP_SEED_FILE, the same for all sketchers and the matcher.
    """
    from streams.roles import run_sketcher

    run_sketcher(settings)


@app.command(
    cls=options.Grouped,
    short_help="Kafka: the log in, verdicts out, exactly once.",
    epilog=options.examples("NEARDUP_SEED_FILE=seed neardup match --bootstrap 127.0.0.1:9092 --state DIR"),
)
@takes_settings(_MATCH, role="match")
def match(
    settings: Settings,
    *,
    new_decider: NewDeciderOption = False,
    accept_lost_verdicts: AcceptLostOption = False,
    standby: StandbyOption = False,
) -> None:
    """Run the matcher: the log in, verdicts out, exactly once. One at a time: a second one takes over from the first.

    With --standby, each with a directory of its own, one is at work and the others follow it; when it dies, the next
    takes over within seconds. It stops after its batch on SIGTERM, at once on a second one.
    """
    from streams.roles import run_matcher

    run_matcher(settings, new_decider=new_decider, accept_lost_verdicts=accept_lost_verdicts, standby=standby)


@app.command(
    cls=options.Grouped,
    short_help="Kafka: sketcher and matcher in one process.",
    epilog=options.examples("neardup run --bootstrap 127.0.0.1:9092 --state DIR"),
)
@takes_settings(BOTH)
def run(
    settings: Settings, *, new_decider: NewDeciderOption = False, accept_lost_verdicts: AcceptLostOption = False
) -> None:
    """Run sketcher and matcher in one process: for trying the stream, and for small deployments.

    Without NEARDUP_SEED the seed is that of the state directory, drawn at random where there is none yet.
    """
    from streams.roles import run_both

    run_both(_with_seed(settings), new_decider=new_decider, accept_lost_verdicts=accept_lost_verdicts)


@app.command(
    short_help="Draw a secret seed, and write it to a file.",
    epilog=options.examples("neardup seed /etc/neardup/seed && export NEARDUP_SEED_FILE=/etc/neardup/seed"),
)
def seed(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Made for its owner alone; never written over.")],
) -> None:
    """Draw a secret seed at random, and write it to a file for NEARDUP_SEED_FILE.

    All sketchers and the matcher of one crawl have the same seed. Keep it as long as the crawl: with another one, an
    index finds nothing again; who knows it can build pages that collide with others.
    """
    try:
        with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as out:
            out.write(f"0x{secrets.randbits(64):016x}\n")
    except FileExistsError:
        raise BadInput(f"{file} is there already; a seed that is in use must stay") from None
    except OSError as error:
        raise BadInput(f"cannot write {file}: {error.strerror}") from error
    typer.echo(f"{file}: a secret; NEARDUP_SEED_FILE={file} gives it to every role")


@app.command(
    short_help="Kafka: publish the pages of some files.",
    epilog=options.examples("neardup publish crawl.warc.gz --bootstrap 127.0.0.1:9092"),
)
@takes_settings((*options.CONNECTION, "pages_topic", *options.PAGES, *options.TRACING), greets="publish")
def publish(
    settings: Settings,
    *,
    paths: Annotated[list[str], typer.Argument(metavar="PATH...", help=options.INPUTS)],
    base_url: Annotated[
        str | None, typer.Option(metavar="URL", help="What the file names of folders are appended to.")
    ] = None,
    follow_links: options.FollowLinksOption = False,
    id_field: options.IdFieldOption = None,
    text_field: options.TextFieldOption = None,
    bodies: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where bodies go that no record can hold (body-ref).")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Publish the pages of some files, as a crawler would: for backfills, and for trying the stream.

    Exit codes: 0 done, 3 done but some input could not be read or published, 130 interrupted.
    """
    from neardup.report import visible
    from streams.commands.terminal import bar
    from streams.formats.documents import Fields
    from streams.roles.publish import publish as put

    with options.inputs(paths) as files, bar(shown=not as_json) as shown:
        done = put(
            files,
            settings,
            base_url=base_url,
            follow_links=follow_links,
            fields=Fields(text_field, id_field),
            bodies=bodies,
            progress=shown.update,
        )
    if as_json:
        print_json(dataclasses.asdict(done))
    else:
        rate = f", {(done.pages + done.gone) / done.seconds:,.0f}/s" if done.seconds else ""
        typer.echo(f"{done.pages:,} pages and {done.gone:,} tombstones published in {done.seconds:,.1f} s{rate}")
        for taken in done.fields_taken:
            typer.echo(visible(taken))
        for problem in done.problems:
            typer.echo(f"problem: {visible(problem)}", err=True)
    if done.interrupted:
        raise typer.Exit(130)
    if done.problems_total:
        raise typer.Exit(3)


@app.command(
    short_help="Kafka: show verdicts as they come.",
    epilog=options.examples("neardup verdicts --kind unique --site a.example", "neardup verdicts --no-follow --json"),
)
@takes_settings((*options.CONNECTION, "verdicts_topic"), greets="verdicts")
def verdicts(
    settings: Settings,
    *,
    sites: Annotated[
        list[str] | None,
        typer.Option("--site", metavar="SITE", help="Only this site and all below it; may be repeated."),
    ] = None,
    kinds: Annotated[
        list[str] | None, typer.Option("--kind", metavar="KIND", help="Only this verdict; may be repeated.")
    ] = None,
    start: Annotated[
        str, typer.Option("--from", metavar="WHEN", help="beginning, end, 15m ago as 15m, or 2026-01-31T12:00.")
    ] = "beginning",
    follow: Annotated[bool, typer.Option("--follow/--no-follow", help="Wait for more, or end with the newest.")] = True,
    columns: Annotated[
        str, typer.Option(metavar="NAME,NAME...", help="Of page_id, verdict, score, url, because.")
    ] = "page_id,verdict,score,url,because",
    as_json: Annotated[bool, typer.Option("--json", help="JSON lines instead of a table.")] = False,
) -> None:
    """Show verdicts as they come, committed ones only: a table, or in a pipe lines with tabs between."""
    from rich.console import Console

    from streams.config.instants import parse_start
    from streams.process.shutdown import SystemClock
    from streams.roles.tail import Wanted, parse_columns, show

    wanted, chosen = Wanted.of(sites or (), kinds or ()), parse_columns(columns)
    began = parse_start(start, SystemClock().now_ms())
    out = sys.stdout.buffer if as_json else None
    show(settings, Console(), json_out=out, start=began, wanted=wanted, columns=chosen, follow=follow)


@app.command(
    short_help="Kafka: show what the matcher drew for audit.",
    epilog=options.examples(
        "neardup audit --audit-topic audit --no-follow > audit.jsonl",
        "neardup evaluate crawl.warc.gz --audit audit.jsonl --labels labels.jsonl",
    ),
)
@takes_settings((*options.CONNECTION, "audit_topic"))
def audit(
    settings: Settings,
    *,
    start: Annotated[
        str, typer.Option("--from", metavar="WHEN", help="beginning, end, 15m ago as 15m, or 2026-01-31T12:00.")
    ] = "beginning",
    follow: Annotated[bool, typer.Option("--follow/--no-follow", help="Wait for more, or end with the newest.")] = True,
) -> None:
    """Show the audit topic as JSON lines: pairs around the threshold, and what a shadow rule disagrees about."""
    from rich.console import Console

    from streams.config.instants import parse_start
    from streams.process.shutdown import SystemClock
    from streams.roles.runtime import greet
    from streams.roles.tail import show

    if not settings.topics.audit:
        raise WrongUsage("no audit topic: set NEARDUP_AUDIT_TOPIC or --audit-topic, as for the matcher")
    began = parse_start(start, SystemClock().now_ms())
    greet(settings, "verdicts")
    show(settings, Console(), json_out=sys.stdout.buffer, topic=settings.topics.audit, start=began, follow=follow)


@app.command(
    short_help="Kafka: send a page through the line.",
    epilog=options.examples("neardup ping --bootstrap 127.0.0.1:9092"),
)
@takes_settings((*options.CONNECTION, "pages_topic", "verdicts_topic", "codec"), greets="publish")
def ping(
    settings: Settings,
    *,
    timeout: Annotated[float, typer.Option(min=0.1, max=3600, metavar="SECONDS", help="To wait for it.")] = 60.0,
    as_json: JsonOption = False,
) -> None:
    """Send a page through the line, wait for its verdict, and take the page back: does the line stand?

    Exit codes: 0 the verdict came, 1 it did not, or Kafka refused.
    """
    from streams.roles.ping import ping as send

    pong = send(settings, timeout_s=timeout)
    if as_json:
        print_json(dataclasses.asdict(pong))
    else:
        typer.echo(f"{pong.verdict}, page id {pong.page_id}, after {pong.seconds:.2f} s")


@app.command(
    "accept-gap",
    short_help="Kafka: go on over pages that are missing.",
    epilog=options.examples("neardup accept-gap 1234"),
)
@takes_settings(_ALL, role="match", greets="match")
def accept_gap(settings: Settings, *, offset: OffsetArgument) -> None:
    """Let the line go on over pages that the message at OFFSET leaves out. The decision goes into the log."""
    from streams.roles import accept_gap as accept

    typer.echo(f"written at offset {accept(settings, offset)}; start the matcher again")


@app.command(
    "skip-record",
    short_help="Kafka: leave out what cannot be read.",
    epilog=options.examples("neardup skip-record 1234"),
)
@takes_settings(_ALL, role="match", greets="match")
def skip_record(settings: Settings, *, offset: OffsetArgument) -> None:
    """Leave out what of the message at OFFSET cannot be read. The decision goes into the log."""
    from streams.roles import skip_record as skip

    typer.echo(f"written at offset {skip(settings, offset)}; start the matcher again")


@app.command(
    cls=options.Grouped,
    short_help="Show every setting, and where it comes from.",
    epilog=options.examples("neardup config --config neardup.toml"),
)
@takes_settings(tuple(name for name, option in OPTIONS.items() if not option.kind.secret and name != "decider.sites"))
def config(settings: Settings, *, as_json: JsonOption = False) -> None:
    """Show every setting in force, and where it comes from. Secrets are not shown."""
    rows = settings.describe()
    if as_json:
        print_json([row._asdict() for row in rows])
        return
    for row in rows:
        secret = row.setting in OPTIONS and OPTIONS[row.setting].kind.secret
        names = ", ".join(filter(None, (row.flag, row.env, f"{row.env}_FILE" if secret else "")))
        typer.echo(printable(f"{row.setting} = {row.value}  ({row.origin})"))
        typer.echo(f"    {row.help} [{names}]")


def _admin(settings: Settings):  # type: ignore[no-untyped-def]  # its module loads confluent_kafka
    from streams.kafka import Admin
    from streams.roles.runtime import connect

    return Admin(connect(settings, "topics"))


def _with_seed(settings: Settings) -> Settings:
    if settings.seed is not None:
        return settings
    held = Path(settings.state) / "scheme.json"
    if not held.exists():
        return dataclasses.replace(settings, seed=Scheme.new().seed)
    try:
        scheme = Scheme.from_json(held.read_text(), str(held))
    except (OSError, ValueError, TypeError) as error:
        raise BadInput(f"{held} cannot be read: {error}") from error
    return dataclasses.replace(settings, seed=scheme.seed, article_tape_bytes_max=scheme.article_tape_bytes_max)
