"""Commands that stand alone: a copy of a crawl without what repeats, and compiling ahead of time."""

from pathlib import Path
from typing import Annotated

import typer

from streams.cli.options import announce_compiler, complain, examples, must_be_writable
from streams.errors import WrongUsage

app = typer.Typer(rich_markup_mode=None)


@app.command(
    short_help="Write what a scan read without what repeats.",
    epilog=examples(
        "neardup copy neardup-state --out kept.warc.gz",
        "neardup scan docs.parquet --id-field id --text-field text && neardup copy neardup-state --out kept.parquet",
    ),
)
def copy(
    state: Annotated[Path, typer.Argument(metavar="DIR", help="A scan's directory.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="Ends in .warc, .warc.gz, .jsonl or .parquet.")],
) -> None:
    """Write the pages that an index would show, of all sources of a scan, to one file, as they stand in their sources.

    In WARC a page of the very bytes of one before it becomes a revisit record. Whatever the sources are, .jsonl takes
    their pages. `neardup export` has the reasons, a row a URL.
    """
    if not (state / "scheme.json").is_file() or not (state / "log").is_dir():
        raise WrongUsage(f"{state} is no scan's state directory; make one with: neardup scan")
    must_be_writable(out)

    from streams.commands.terminal import bar
    from streams.files.state import State
    from streams.history.copying import copy_command

    with State.open(state) as opened, bar(shown=True) as shown:
        done = copy_command(opened, out, shown.phase)
    complain(f"{done.kept:,} pages kept, {done.revisits:,} revisit records, {done.left_out:,} pages left out")


@app.command(short_help="Compile everything ahead of time.", epilog=examples("neardup warm"))
def warm() -> None:
    """Compile all kernels for this processor into the cache, which the first command that needs them does otherwise.

    The cache is ~/.cache/neardup; NUMBA_CACHE_DIR names another place. One that is complete may be read-only then.
    """
    announce_compiler()

    from neardup.warm import is_warm

    complain("all kernels are compiled" if is_warm() else "kernels are compiled by each process for itself")
