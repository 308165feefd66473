from typing import TYPE_CHECKING, Annotated

import click

from streams.commands.options import SHARDS, TOPICS, Flags, Given, Opt, command
from streams.config.settings import Settings

if TYPE_CHECKING:
    from streams.kafka import Admin


class CheckOptions(Given):
    settings: Annotated[Settings, Flags((*TOPICS, *SHARDS), connects="topics")]


class Create(CheckOptions):
    partitions: Annotated[int, Opt("Partitions of the topics of pages and verdicts.", low=1, high=10_000)] = 8
    replicas: Annotated[
        int, Opt("Replicas of every topic; three or more survive the loss of a broker.", low=1, high=9)
    ] = 1
    compact_verdicts: Annotated[
        bool, Opt("Keep the newest verdict of each URL for ever, instead of all verdicts for a time.")
    ] = False


@command("topics create", "neardup topics create --bootstrap 127.0.0.1:9092 --partitions 8")
def create(options: Create) -> None:
    """Create the topics that are missing, with the settings that exactly-once depends on.

    Topics that exist are checked, never altered.
    """
    from streams.kafka.topics import Sizes
    from streams.kafka.topics import create as make
    from streams.roles.generations import control_topic

    settings = options.settings
    sizes = Sizes(
        partitions=options.partitions,
        shards=max(1, settings.shards),
        replicas=options.replicas,
        compact_verdicts=options.compact_verdicts,
    )
    made = make(_admin(settings), settings.topics, sizes)
    control = control_topic(settings, "topics")
    if control.create(options.replicas):
        made = [*made, control.name]
    for name in filter(None, (*settings.topics, control.name)):
        click.echo(f"{name}: {'created' if name in made else 'as it should be'}")
    _print_compacted(settings)


@command(
    "topics check",
    "neardup topics check --bootstrap 127.0.0.1:9092",
    codes="Exit codes: 0 all is as it should be, 1 something is not, or an error, 2 wrong usage.",
)
def check(options: CheckOptions) -> int:
    """Print what is wrong with the topics, and why it matters."""
    from streams.kafka.topics import Sizes
    from streams.kafka.topics import check as problems_of
    from streams.roles.generations import control_topic

    settings = options.settings
    problems = [
        str(each) for each in problems_of(_admin(settings), settings.topics, Sizes(shards=max(1, settings.shards)))
    ]
    problems += filter(None, [control_topic(settings, "topics").problem()])
    for problem in problems:
        click.echo(problem)
    if problems:
        return 1
    click.echo("all topics are as they should be")
    _print_compacted(settings)
    return 0


def _print_compacted(settings: Settings) -> None:
    from streams.kafka.topics import COMPACTED, compacted

    if compacted(_admin(settings), settings.topics.verdicts):
        click.echo(f"{settings.topics.verdicts}: {COMPACTED}")


def _admin(settings: Settings) -> "Admin":
    from streams.kafka import Admin
    from streams.roles.runtime import connect

    return Admin(connect(settings, "topics"))
