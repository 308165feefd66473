from typing import Annotated

import click

from streams.commands.options import Flags, command
from streams.commands.output import print_json
from streams.commands.shared import Json
from streams.config.settings import OPTIONS, Settings
from streams.process.logs import printable

_NAMES = tuple(name for name, option in OPTIONS.items() if not option.kind.secret and not option.flag.endswith("="))


class Options(Json):
    settings: Annotated[Settings, Flags((*_NAMES, "set"))]


@command("config", "neardup config --config neardup.toml")
def config(options: Options) -> None:
    """Print every setting in force, its source, and the values that it admits. Secrets are not shown."""
    rows = options.settings.describe()
    if options.as_json:
        print_json([row._asdict() for row in rows])
        return
    for row in rows:
        secret = row.setting in OPTIONS and OPTIONS[row.setting].kind.secret
        names = ", ".join(filter(None, (row.flag, row.env, f"{row.env}_FILE" if secret else "")))
        click.echo(printable(f"{row.setting} = {row.value}  ({row.origin})"))
        click.echo(f"    {row.help} [{names}]" + (f"; {row.allowed}" if row.allowed else ""))
