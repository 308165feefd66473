import sys
from typing import Annotated

from streams.commands.options import CONNECTION, Flags, Given, Opt, command
from streams.commands.shared import parse_start
from streams.config.settings import Settings
from streams.errors import WrongUsage
from streams.process.shutdown import now_ms

_COLUMNS = "page_id,verdict,score,url,because"


class Tail(Given):
    """Records of a topic from a point in time on."""

    start: Annotated[
        str, Opt("Start: beginning, end, 15m (15 minutes ago), or 2026-01-31T12:00.", "--from", metavar="WHEN")
    ] = "beginning"
    follow: Annotated[bool, Opt("Wait for new verdicts, or end with the newest.", "--follow/--no-follow")] = True


class Options(Tail):
    sites: Annotated[
        tuple[str, ...], Opt("Only this site with its subdomains; may be repeated.", "--site", metavar="SITE")
    ] = ()
    kinds: Annotated[tuple[str, ...], Opt("Only this kind of verdict; may be repeated.", "--kind", metavar="KIND")] = ()
    columns: Annotated[str, Opt(f"Columns, of {_COLUMNS}.", metavar="NAME,NAME...")] = _COLUMNS
    as_json: Annotated[bool, Opt("Print JSON lines instead of a table.", "--json")] = False
    settings: Annotated[Settings, Flags((*CONNECTION, "verdicts_topic"), connects="verdicts")]


@command(
    "verdicts",
    "neardup verdicts --kind unique --site a.example",
    "neardup verdicts --no-follow --json",
    instead="This command reads a topic of Kafka. For those of a scan: neardup export DIR --table verdicts --out "
    "verdicts.csv",
)
def verdicts(options: Options) -> None:
    """Print verdicts as they come, committed ones only: a table, or in a pipe lines with tabs between."""
    from rich.console import Console

    from streams.roles.print_verdicts import VerdictFilter, parse_columns, show

    show(
        options.settings,
        Console(),
        json_out=sys.stdout.buffer if options.as_json else None,
        start=parse_start(options.start, now_ms()),
        verdict_filter=VerdictFilter.of(options.sites, options.kinds),
        columns=parse_columns(options.columns),
        follow=options.follow,
    )


class AuditOptions(Tail):
    settings: Annotated[Settings, Flags((*CONNECTION, "audit_topic"))]


@command(
    "audit",
    "neardup audit --audit-topic audit --no-follow > audit.jsonl",
    "neardup evaluate crawl.warc.gz --audit audit.jsonl --labels labels.jsonl",
)
def audit(options: AuditOptions) -> None:
    """Print the audit topic as JSON lines: pairs near the threshold, and disagreements of a shadow rule."""
    settings = options.settings
    if not settings.topics.audit:
        raise WrongUsage("no audit topic: set NEARDUP_AUDIT_TOPIC or --audit-topic, as for the matcher")

    from rich.console import Console

    from streams.roles.print_verdicts import show
    from streams.roles.runtime import greet

    start = parse_start(options.start, now_ms())
    greet(settings, "verdicts")
    out = sys.stdout.buffer
    show(settings, Console(), json_out=out, topic=settings.topics.audit, start=start, follow=options.follow)
