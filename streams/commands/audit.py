import sys
from typing import Annotated

from streams.commands.options import CONNECTION, Flags, command
from streams.commands.verdicts import Tail
from streams.config.instants import parse_start
from streams.config.settings import Settings
from streams.errors import WrongUsage
from streams.process.shutdown import now_ms


class Options(Tail):
    settings: Annotated[Settings, Flags((*CONNECTION, "audit_topic"))]


@command(
    "audit",
    "neardup audit --audit-topic audit --no-follow > audit.jsonl",
    "neardup evaluate crawl.warc.gz --audit audit.jsonl --labels labels.jsonl",
)
def audit(options: Options) -> None:
    """Print the audit topic as JSON lines: pairs near the threshold, and disagreements of a shadow rule."""
    settings = options.settings
    if not settings.topics.audit:
        raise WrongUsage("no audit topic: set NEARDUP_AUDIT_TOPIC or --audit-topic, as for the matcher")

    from rich.console import Console

    from streams.roles.runtime import greet
    from streams.roles.tail import show

    start = parse_start(options.start, now_ms())
    greet(settings, "verdicts")
    out = sys.stdout.buffer
    show(settings, Console(), json_out=out, topic=settings.topics.audit, start=start, follow=options.follow)
