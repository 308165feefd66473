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
    """Send a page through the stream, wait for its verdict, and publish its tombstone.

    The verdict is that of the live generation, which clients read; --generation names another one.
    """
    from streams.roles.ping import ping as send

    settings = options.settings
    named = settings.origins.get("generation", "").startswith("flag")
    pong = send(settings, timeout_s=options.timeout, generation=settings.generation if named else None)
    if options.as_json:
        print_json(asdict(pong))
    else:
        of = f", of generation {pong.generation}" if pong.generation else ""
        click.echo(f"{pong.verdict}, page id {pong.page_id}{of}, after {pong.seconds:.2f} s")
