import asyncio
from pathlib import Path
from typing import Annotated

from streams.commands.options import CONNECTION, DECIDER, MONITORING, Arg, Flags, Given, Opt, command
from streams.commands.output import announce_serving
from streams.commands.shared import Reads, must_be_scan
from streams.config.settings import VIEWS_PORT, Settings
from streams.errors import WrongUsage

_SETTINGS = (
    *("views_state", "views_metrics", "verdicts_topic", "audit_topic", "sketches_of", "sketches_topic", "pages_topic"),
    *("codec", "body_ref_prefixes"),
)


class Options(Given):
    scan: Annotated[
        Path | None,
        Arg("[DIR]", "The state directory of a scan; by default the stream.", "--state", check=must_be_scan),
    ] = None
    host: Annotated[str, Opt("Address to serve at; a public one needs a token.", metavar="HOST")] = "127.0.0.1"
    port: Annotated[int, Opt("Port; 0: any free one.", low=0, high=65_535)] = VIEWS_PORT
    names: Annotated[
        tuple[str, ...],
        Opt("Host name of a proxy in front; may be repeated.", "--name", metavar="HOST[:PORT]"),
    ] = ()
    address: Annotated[
        str | None, Opt("Stream: address of this worker for the others; by default --host.", metavar="URL")
    ] = None
    audit: Annotated[Path | None, Reads("File of pairs that a scan drew by --audit.")] = None
    labels: Annotated[Path | None, Opt("File for labels: users with the token label the pairs.", metavar="FILE")] = None
    rebuild: Annotated[bool, Opt("Stream: rebuild the tables from the topic.")] = False
    settings: Annotated[
        Settings, Flags((*CONNECTION, *_SETTINGS, *DECIDER, *(name for name in MONITORING if name != "hold_ms")))
    ]


@command("views", "neardup views neardup-state", "neardup views --bootstrap 127.0.0.1:9092")
def views(options: Options) -> None:
    """Serve web pages about verdicts: an overview, pages with evidence and history, clusters, sites, comparisons.

    Without DIR, the views follow the topic of verdicts and keep tables in a folder. Several workers of one group, each
    with a folder of its own, share the topic's partitions, and each serves all pages. Give the views the rule and
    numbers of the matcher if they are not the default; the evidence is explained by them. Every page has a JSON form,
    as url.json?url=... If NEARDUP_VIEWS_TOKEN or NEARDUP_VIEWS_TOKEN_FILE is set, requests need this token; a browser
    asks for it as a password, with any user name.
    """
    scan, settings = options.scan, options.settings
    if scan is not None and options.rebuild:
        raise WrongUsage("--rebuild is for the stream: a scan's directory is read again at every start")
    if scan is None and options.audit is not None:
        raise WrongUsage("--audit is for a scan; the stream's pairs are in a topic: --audit-topic, as for the matcher")
    if options.labels is not None and settings.views_token is None:
        raise WrongUsage("--labels: labelling needs a token; set NEARDUP_VIEWS_TOKEN(_FILE)")

    from streams.evaluation.label import LabelFile
    from streams.process import logs
    from streams.process.open_files import raise_open_files
    from streams.process.web_server import listen
    from streams.views import web

    if scan is not None:
        from streams.views.audits import audits_of
        from streams.views.source import ScanSource

        source = ScanSource(scan, None if options.audit is None else audits_of(options.audit))
    raise_open_files()
    file = None if options.labels is None else LabelFile(options.labels)
    sock = listen(options.host, options.port, settings.views_token)
    names = options.names
    try:
        with logs.configured(settings.log_level, settings.log_format, secrets=settings.secrets()):
            if scan is not None:
                token = settings.views_token
                serving = web.serve(
                    source, source.decider, sock, names=names, token=token, labels=file, ready=announce_serving
                )
            else:
                from streams.views.stream_source import run

                serving = run(
                    settings,
                    sock,
                    rebuild=options.rebuild,
                    names=names,
                    address=options.address,
                    labels=file,
                    ready=announce_serving,
                )
            asyncio.run(serving)
    finally:
        sock.close()
        if file is not None:
            file.close()
