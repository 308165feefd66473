from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import click

from streams.commands.options import Flags, command
from streams.commands.output import complain, print_json
from streams.commands.paths import must_exist
from streams.commands.shared import Json
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
