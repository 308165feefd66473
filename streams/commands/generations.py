"""`neardup generations` and `neardup generations remove`."""

from shlex import quote
from typing import Annotated

import click

from streams.commands.options import CONNECTION, Arg, Flags, Given, command
from streams.commands.output import print_json, print_rich
from streams.commands.shared import Json
from streams.config.settings import Settings


class Named(Given):
    name: Annotated[str, Arg("NAME", "Of the generation; '' for the one without a name.")]


class Options(Json):
    settings: Annotated[
        Settings, Flags((*CONNECTION, "pages_topic", "sketches_topic", "verdicts_topic"), connects="topics")
    ]


class Remove(Named):
    settings: Annotated[
        Settings, Flags((*CONNECTION, "rejected_topic", "sketches_topic", "verdicts_topic"), connects="topics")
    ]


@command("generations", "neardup generations", "neardup generations --json")
def generations(options: Options) -> None:
    """List the generations: which one is live, scheme and decider of each, how far it is and how far behind."""
    from streams.roles.cutover import described, shown_table

    rows = described(options.settings)
    if options.as_json:
        print_json(rows)
    else:
        print_rich(shown_table(rows))


@command("generations remove", "neardup generations remove second")
def remove(options: Remove) -> None:
    """Delete a generation's topics and offsets, and the record of it. The live one stays, and so does one whose
    sketches another one judges. Stop its roles before; its state directory is yours to delete.
    """
    from streams.roles.cutover import removed

    gone = removed(options.settings, options.name)
    click.echo(f"generation {quote(options.name)} is removed: {', '.join(gone)}")
