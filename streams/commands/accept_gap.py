from typing import Annotated

import click

from streams.commands.options import TOPICS, Arg, Flags, Given, command
from streams.config.settings import Settings


class Options(Given):
    offset: Annotated[int, Arg("OFFSET", "Offset of the message in the sketch log.", low=0)]
    settings: Annotated[Settings, Flags(TOPICS, role="match", connects="match")]


@command("accept-gap", "neardup accept-gap 1234")
def accept_gap(options: Options) -> None:
    """Let the matcher continue past the pages that are missing before the message at OFFSET.

    The error of the matcher names OFFSET. The decision becomes a record of the log. Start the matcher again.
    """
    _decide(options, "accept_gap")


@command("skip-record", "neardup skip-record 1234")
def skip_record(options: Options) -> None:
    """Skip the unreadable part of the message at OFFSET: its pages get no verdict.

    The error of the matcher names OFFSET. The decision becomes a record of the log. Start the matcher again.
    """
    _decide(options, "skip_record")


def _decide(options: Options, decision: str) -> None:
    from streams.formats.message import Decision
    from streams.roles.operator import decide

    at = decide(options.settings, Decision(decision), options.offset)
    click.echo(f"written at offset {at}; start the matcher again")
