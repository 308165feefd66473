"""`neardup skip-record`."""

import click

from streams.commands.accept_gap import Options
from streams.commands.options import command


@command("skip-record", "neardup skip-record 1234")
def skip_record(options: Options) -> None:
    """Leave out what cannot be read of the message at OFFSET. The decision goes into the log."""
    from streams.roles import skip_record as skip

    click.echo(f"written at offset {skip(options.settings, options.offset)}; start the matcher again")
