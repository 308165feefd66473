from pathlib import Path
from typing import Annotated

import click

from streams.commands.options import command
from streams.commands.output import announce_compiler
from streams.commands.shared import StateOption, Writes


class Options(StateOption):
    out: Annotated[Path, Writes("The file to write.")] = Path("report.html")


@command("report", "neardup report DIR --out report.html")
def report(options: Options) -> None:
    """Write a report of a scan as one HTML file: verdicts, charts, and samples with their evidence."""
    from streams.files.report import write_report
    from streams.files.scan_reader import read_scan

    announce_compiler("sketching")
    with read_scan(options.state) as opened:
        write_report(opened, options.out)
    click.echo(f"report: {options.out}")
