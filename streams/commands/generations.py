from shlex import quote
from typing import Annotated

import click

from streams.commands.options import CONNECTION, SHARDS, Arg, Flags, Given, command
from streams.commands.output import print_json, print_rich
from streams.commands.shared import Json
from streams.config.settings import Settings


class NamedOptions(Given):
    name: Annotated[str, Arg("NAME", "Name of the generation; '' for the one without a name.")]


class Options(Json):
    settings: Annotated[
        Settings, Flags((*CONNECTION, "pages_topic", "sketches_topic", "verdicts_topic"), connects="topics")
    ]


class Remove(NamedOptions):
    settings: Annotated[
        Settings,
        Flags((*CONNECTION, "rejected_topic", "sketches_topic", "verdicts_topic", *SHARDS[2:]), connects="topics"),
    ]


@command("generations", "neardup generations", "neardup generations --json")
def generations(options: Options) -> None:
    """List the generations: stage, lag, scheme and decider of each, and which one is live."""
    from streams.roles.cutover import described, shown_table

    rows = described(options.settings)
    if options.as_json:
        print_json(rows)
    else:
        print_rich(shown_table(rows))


@command("generations remove", "neardup generations remove second")
def remove(options: Remove) -> None:
    """Delete a generation's topics, offsets and record.

    Stop its roles first, and delete its state directory afterwards. The command refuses the live generation, and one
    whose sketches another one judges.
    """
    from streams.roles.cutover import removed

    gone = removed(options.settings, options.name)
    click.echo(f"generation {quote(options.name)} is removed: {', '.join(gone)}")
