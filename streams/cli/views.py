"""The command that shows what was said, as web pages."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from neardup.errors import BadInput
from streams.cli import options
from streams.cli.options import takes_settings
from streams.config.settings import Settings
from streams.errors import WrongUsage
from streams.process.open_files import raise_open_files

app = typer.Typer(rich_markup_mode=None)

_TOPICS = (
    "verdicts_topic",
    "audit_topic",
    "sketches_of",
    "sketches_topic",
    "pages_topic",
    "codec",
    "body_ref_prefixes",
)
_WATCHING = tuple(name for name in options.WATCHING if name != "hold_ms")


@app.command(
    short_help="Show what was said, as web pages.",
    epilog=options.examples("neardup views --scan neardup-state", "neardup views --bootstrap 127.0.0.1:9092"),
)
@takes_settings((*options.CONNECTION, *_TOPICS, "views_state", "views_metrics", *options.DECIDER, *_WATCHING))
def views(
    settings: Settings,
    *,
    scan: Annotated[
        Path | None,
        typer.Option("--scan", metavar="DIR", help="A scan's directory as it is now; by default the stream's topic."),
    ] = None,
    host: Annotated[str, typer.Option(metavar="HOST", help="Address to serve at; a public one needs a token.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port; 0: any free one.")] = 8379,
    names: Annotated[
        list[str] | None,
        typer.Option("--name", metavar="HOST[:PORT]", help="A name that a proxy in front answers to; may be repeated."),
    ] = None,
    address: Annotated[
        str | None,
        typer.Option("--address", metavar="URL", help="Stream: how other workers reach this one; by default --host."),
    ] = None,
    audit: Annotated[
        Path | None, typer.Option("--audit", metavar="FILE", help="Of a scan: the pairs that it drew for people.")
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option("--labels", metavar="FILE", help="Let who has the token label these pairs: what is said, there."),
    ] = None,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Stream: make the tables anew from the topic.")] = False,
) -> None:
    """Show what was said as web pages: counts, a URL's verdict with its evidence and history, a cluster, a site, and
    two pages side by side with what each rule says of them.

    On the stream it follows the topic of verdicts and keeps its tables in a folder. Several of one group, each with a
    folder of its own, share the topic's partitions, and each answers for all. Name the
    matcher's rule and numbers, where they are not the default, to see the evidence in words. Every page has a twin for
    programs: url.json?url=... and so on. NEARDUP_VIEWS_TOKEN(_FILE): what requests must bear; a browser asks for it
    as a password, of any user.
    """
    if scan is not None and rebuild:
        raise BadInput("--rebuild is the stream's: a scan's directory is read anew at every start")
    if scan is None and audit is not None:
        raise WrongUsage("--audit is a scan's; the stream's pairs are in its topic: --audit-topic, as for the matcher")
    if labels is not None and settings.views_token is None:
        raise WrongUsage("--labels: only who has a token may label; set NEARDUP_VIEWS_TOKEN(_FILE)")
    from streams.evaluation.label import LabelFile
    from streams.process import logs
    from streams.views import web

    if scan is not None:
        from streams.views.audits import audits_of
        from streams.views.source import ScanSource

        if not (scan / "verdicts").is_dir():
            raise BadInput(f"{scan} is no scan's state directory; make one with: neardup scan")
        source = ScanSource(scan, None if audit is None else audits_of(audit))
    raise_open_files()
    file = None if labels is None else LabelFile(labels)
    sock = web.listen(host, port, settings.views_token)
    try:
        with logs.configured(settings.log_level, settings.log_format, secrets=settings.secrets()):
            if scan is not None:
                token = settings.views_token
                serving = web.serve(
                    source, source.decider, sock, names=names or (), token=token, labels=file, ready=_ready
                )
            else:
                from streams.views.application import run

                serving = run(
                    settings, sock, rebuild=rebuild, names=names or (), address=address, labels=file, ready=_ready
                )
            asyncio.run(serving)
    finally:
        sock.close()
        if file is not None:
            file.close()


def _ready(url: str) -> None:
    typer.echo(f"neardup: serving {url}, end with Ctrl-C", err=True)
