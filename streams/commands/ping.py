from dataclasses import asdict
from typing import Annotated

import click

from streams.commands.options import CONNECTION, Flags, Opt, command
from streams.commands.output import print_json
from streams.commands.shared import Json
from streams.config.settings import Settings


class Options(Json):
    timeout: Annotated[float, Opt("Time to wait for the verdict.", low=0.1, high=3600, metavar="SECONDS")] = 60.0
    settings: Annotated[Settings, Flags((*CONNECTION, "pages_topic", "verdicts_topic", "codec"), connects="publish")]


@command(
    "ping",
    "neardup ping --bootstrap 127.0.0.1:9092",
    codes="Exit codes: 0 the verdict came, 1 it did not, or Kafka refused, 2 wrong usage.",
)
def ping(options: Options) -> None:
    """Send a page through the stream, wait for its verdict, and publish its tombstone."""
    from streams.roles.ping import ping as send

    pong = send(options.settings, timeout_s=options.timeout)
    if options.as_json:
        print_json(asdict(pong))
    else:
        click.echo(f"{pong.verdict}, page id {pong.page_id}, after {pong.seconds:.2f} s")
