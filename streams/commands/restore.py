from pathlib import Path
from typing import Annotated

import click

from streams.commands.checkpoints import store_of
from streams.commands.options import Flags, Given, Opt, command
from streams.commands.output import complain
from streams.commands.paths import must_be_folder
from streams.config.settings import Settings


class Options(Given):
    checkpoint: Annotated[str, Opt("Name of the checkpoint; by default the newest good one.", metavar="NAME")] = ""
    settings: Annotated[Settings, Flags(("state", "checkpoints"), argument="state")]


@command(
    "restore",
    "NEARDUP_SEED_FILE=seed neardup restore DIR --checkpoints s3://bucket/neardup",
    "neardup restore DIR --checkpoints /backup --checkpoint NAME",
)
def restore(options: Options) -> None:
    """Make a state directory from the newest good checkpoint; every file is verified.

    A matcher that finds no index does this itself, from the checkpoints that NEARDUP_CHECKPOINTS names.
    """
    from streams.commands.terminal import bar
    from streams.history.checkpoints import bring_back

    settings = options.settings
    must_be_folder(settings.state)
    store = store_of(settings)
    with bar(shown=True) as shown:
        found = bring_back(
            Path(settings.state),
            store,
            name=options.checkpoint,
            seed=settings.seed,
            warn=complain,
            progress=lambda now, total: shown.phase("restoring", now, total),
        )
    click.echo(f"{settings.state}: {found.name} is restored, {found.manifest.size:,} bytes")
