from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from neardup.wording import counted
from streams.commands.options import Flags, Given, Opt, command
from streams.commands.output import bar, complain, print_json
from streams.commands.shared import Json, must_be_folder, must_be_state, must_exist
from streams.config.settings import Settings
from streams.errors import WrongUsage

if TYPE_CHECKING:
    from streams.state.checkpoint_store import CheckpointStore


class Options(Json):
    settings: Annotated[Settings, Flags(("checkpoints",))]


def store_of(settings: Settings, check: Callable[[str], None] = must_exist) -> "CheckpointStore":
    """The checkpoints that the settings name. check: of a local folder. Raises WrongUsage."""
    from streams.state.checkpoint_store import CheckpointStore

    if not settings.checkpoints:
        raise WrongUsage("no checkpoints: name their folder or URL by --checkpoints or NEARDUP_CHECKPOINTS")
    if "://" not in settings.checkpoints:
        check(settings.checkpoints)
    return CheckpointStore(settings.checkpoints)


@command("checkpoints", "neardup checkpoints --checkpoints s3://bucket/neardup")
def checkpoints(options: Options) -> None:
    """List the checkpoints, newest first: offset of the log, log time, size, scheme and decider."""
    from streams.state.manifest import describe

    rows = describe(list(store_of(options.settings).usable(complain)))
    if options.as_json:
        print_json(rows)
        return
    for row in rows:
        when = datetime.fromtimestamp(row["log_time"] / 1000, UTC).strftime("%Y-%m-%d %H:%M")
        stale = "  stale: holds pages that were taken down later" if row["stale"] else ""
        click.echo(f"{row['name']}  offset {row['offset']:,}  log time {when}  {row['bytes']:,} bytes{stale}")


class MakeOptions(Given):
    settings: Annotated[Settings, Flags(("state", "checkpoints", "checkpoints_kept"), argument="state")]


@command("checkpoint", "neardup checkpoint DIR --checkpoints s3://bucket/neardup")
def checkpoint(options: MakeOptions) -> None:
    """Make a checkpoint of the state directory of a scan, or of a stopped matcher, and remove old ones.

    A running matcher makes checkpoints itself if NEARDUP_CHECKPOINTS is set. Files of earlier checkpoints are not
    copied again. A checkpoint does not hold the secret seed: keep it separately.
    """
    from streams.history.checkpoints import make

    state, keep = Path(options.settings.state), options.settings.checkpoints_kept
    must_be_state(state)
    store = store_of(options.settings, must_be_folder)
    with bar(shown=True) as shown:
        done = make(state, store, keep=keep, progress=partial(shown.phase, "copying"))
    click.echo(
        f"{done.checkpoint}: {done.bytes:,} bytes copied of {done.of_bytes:,}, {counted(done.files, 'new file')}"
    )


class RestoreOptions(Given):
    checkpoint: Annotated[str, Opt("Name of the checkpoint; by default the newest good one.", metavar="NAME")] = ""
    settings: Annotated[Settings, Flags(("state", "checkpoints"), argument="state")]


@command(
    "restore",
    "NEARDUP_SEED_FILE=seed neardup restore DIR --checkpoints s3://bucket/neardup",
    "neardup restore DIR --checkpoints /backup --checkpoint NAME",
)
def restore(options: RestoreOptions) -> None:
    """Make a state directory from the newest good checkpoint; every file is verified.

    A matcher that finds no index does this itself, from the checkpoints that NEARDUP_CHECKPOINTS names.
    """
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
            progress=partial(shown.phase, "restoring"),
        )
    click.echo(f"{settings.state}: {found.name} is restored, {found.manifest.size:,} bytes")
