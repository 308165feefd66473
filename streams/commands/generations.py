from datetime import UTC, datetime
from shlex import quote
from typing import Annotated

import click

from streams.commands.options import CONNECTION, SHARDS, Arg, Flags, Given, Opt, command
from streams.commands.output import complain, print_json, print_rich
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
    from streams.process.terminal import table_of
    from streams.roles.generations import described, shown

    rows = described(options.settings)
    if options.as_json:
        print_json(rows)
        return
    table = table_of("generation", "stage", "since", "behind", "sketches of", "scheme", "decider")
    for row in rows:
        since = datetime.fromtimestamp(row.staged_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M") if row.staged_ms else ""
        pages, messages = ("-" if count is None else f"{count:,}" for count in (row.pages_behind, row.messages_behind))
        behind = f"{pages} pages, {messages} messages"
        sketches_of = "" if row.sketches_of is None else shown(row.sketches_of)
        stage = row.stage or "(not recorded)"
        table.add_row(shown(row.name), stage, since, behind, sketches_of, row.scheme[:12], row.decider[:12])
    print_rich(table)


@command("generations remove", "neardup generations remove second")
def remove(options: Remove) -> None:
    """Delete a generation's topics, offsets and record.

    Stop its roles first, and delete its state directory afterwards. The command refuses the live generation, and one
    whose sketches another one judges.
    """
    from streams.roles.generations import removed

    gone = removed(options.settings, options.name)
    click.echo(f"generation {quote(options.name)} is removed: {', '.join(gone)}")


class CutoverOptions(NamedOptions):
    force: Annotated[
        bool, Opt("Cut over although the generation has not caught up, lacks verdicts, or no matcher of it runs.")
    ] = False
    settings: Annotated[Settings, Flags(CONNECTION, connects="topics")]


@command("cutover", "neardup cutover second", "neardup cutover ''")
def cutover(options: CutoverOptions) -> None:
    """Make a generation the live one, for all clients at once; the same command returns to the earlier one.

    It writes one record of the control topic. It refuses a generation that has not caught up, one whose roles have
    fallen behind, one whose matcher does not run, and one that was never live and lost verdicts to retention.
    """
    from streams.roles.cut_over import cut_over

    before = cut_over(
        options.settings, options.name, force=options.force, warn=lambda text: complain(f"warning: {text}")
    )
    click.echo(f"generation {quote(options.name)} is live; back: neardup cutover {quote(before)}")
