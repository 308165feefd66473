"""`neardup copy`."""

from pathlib import Path
from typing import Annotated

from streams.commands.options import command
from streams.commands.output import complain
from streams.commands.paths import must_be_scan
from streams.commands.shared import State, Writes


class Options(State):
    out: Annotated[Path, Writes("Its name ends in .warc, .warc.gz, .jsonl or .parquet.")]


@command(
    "copy",
    "neardup copy neardup-state --out kept.warc.gz",
    "neardup scan docs.parquet --id-field id --text-field text && neardup copy neardup-state --out kept.parquet",
)
def copy(options: Options) -> None:
    """Write the pages that an index would show, of all sources of a scan, to one file, as they are in their sources.

    In WARC a page with the same bytes as an earlier one becomes a revisit record. .jsonl takes the pages of all kinds
    of sources. `neardup export` has the reasons, a row for each URL.
    """
    must_be_scan(options.state)

    from streams.commands.terminal import bar
    from streams.files.state import State
    from streams.history.copying import copy_command

    with State.open(options.state) as opened, bar(shown=True) as shown:
        done = copy_command(opened, options.out, shown.phase)
    complain(f"{done.kept:,} pages kept, {done.revisits:,} revisit records, {done.left_out:,} pages left out")
