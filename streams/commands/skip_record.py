import click

from streams.commands.accept_gap import Options
from streams.commands.options import command


@command("skip-record", "neardup skip-record 1234")
def skip_record(options: Options) -> None:
    """Skip the unreadable part of the message at OFFSET: its pages get no verdict.

    The error of the matcher names OFFSET. The decision becomes a record of the log. Start the matcher again.
    """
    from streams.roles import skip_record as skip

    click.echo(f"written at offset {skip(options.settings, options.offset)}; start the matcher again")
