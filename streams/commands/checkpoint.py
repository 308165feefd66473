from pathlib import Path
from typing import Annotated

import click

from neardup.wording import counted
from streams.commands.checkpoints import store_of
from streams.commands.options import Flags, Given, command
from streams.commands.paths import must_be_folder, must_be_state
from streams.config.settings import Settings


class Options(Given):
    settings: Annotated[Settings, Flags(("state", "checkpoints", "checkpoints_kept"), argument="state")]


@command("checkpoint", "neardup checkpoint DIR --checkpoints s3://bucket/neardup")
def checkpoint(options: Options) -> None:
    """Make a checkpoint of the state directory of a scan, or of a stopped matcher, and remove old ones.

    A running matcher makes checkpoints itself if NEARDUP_CHECKPOINTS is set. Files of earlier checkpoints are not
    copied again. A checkpoint does not hold the secret seed: keep it separately.
    """
    from streams.commands.terminal import bar
    from streams.history.checkpoints import make

    settings = options.settings
    must_be_state(Path(settings.state))
    store = store_of(settings, must_be_folder)
    with bar(shown=True) as shown:
        done = make(
            Path(settings.state),
            store,
            keep=settings.checkpoints_kept,
            progress=lambda now, total: shown.phase("copying", now, total),
        )
    click.echo(
        f"{done.checkpoint}: {done.bytes:,} bytes copied of {done.of_bytes:,}, {counted(done.files, 'new file')}"
    )
