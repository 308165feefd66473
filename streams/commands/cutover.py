from shlex import quote
from typing import Annotated

import click

from streams.commands.generations import NamedOptions
from streams.commands.options import CONNECTION, Flags, Opt, command
from streams.config.settings import Settings


class Options(NamedOptions):
    force: Annotated[bool, Opt("Cut over although the generation has not caught up, or lacks verdicts.")] = False
    settings: Annotated[Settings, Flags(CONNECTION, connects="topics")]


@command("cutover", "neardup cutover second", "neardup cutover ''")
def cutover(options: Options) -> None:
    """Make a generation the live one, for all clients at once; the same command returns to the earlier one.

    It writes one record of the control topic. It refuses a generation that has not caught up, one whose roles have
    fallen behind, and one that was never live and lost verdicts to retention.
    """
    from streams.roles.cutover import cut_over

    before = cut_over(options.settings, options.name, force=options.force)
    click.echo(f"generation {quote(options.name)} is live; back: neardup cutover {quote(before)}")
