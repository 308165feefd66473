from pathlib import Path
from typing import Annotated

from neardup.canonical import CRITERIA, policy_of
from neardup.errors import BadInput
from neardup.wording import counted
from streams.commands.options import Opt, command
from streams.commands.output import bar, complain, complain_of
from streams.commands.shared import StateOption, Writes, must_be_scan
from streams.errors import WrongUsage


class Options(StateOption):
    out: Annotated[Path, Writes("The file to write; its name ends in .warc, .warc.gz, .jsonl or .parquet.")]
    only: Annotated[
        tuple[str, ...], Opt("Write the pages of this source alone; may be repeated.", "--only", metavar="PATH")
    ] = ()
    keep: Annotated[
        str | None,
        Opt(f"The page of a cluster to keep, by criteria of {', '.join(CRITERIA)}, longest.", metavar="POLICY"),
    ] = None
    drop_clusters: Annotated[bool, Opt("Leave out all pages of clusters of two or more.")] = False


@command(
    "copy",
    "neardup copy neardup-state --out kept.warc.gz",
    "neardup copy neardup-state --out kept.jsonl --keep score,longest,first-seen",
    "neardup scan a.jsonl b.jsonl && neardup copy neardup-state --only b.jsonl --out new.jsonl",
    codes="Exit codes: 0 done, 1 an error, 2 wrong usage, 3 done but a source whose scan has not ended is not copied.",
)
def copy(options: Options) -> int:
    """Write the pages of a scan without duplicates to one file.

    Pages are copied as they are in their sources. In WARC, a page with the bytes of an earlier one becomes a revisit
    record. A .jsonl file takes pages of all kinds of sources. --only writes one source without the pages that repeat
    another one. `neardup export` writes the reasons, a row for each URL.
    """
    must_be_scan(options.state)
    if options.keep is not None and options.drop_clusters:
        raise WrongUsage("--keep and --drop-clusters exclude each other; choose one")

    from streams.files.state import State
    from streams.history.copying import KEPT_BY, Selection, copy_command

    try:
        policy = policy_of(options.keep or "", KEPT_BY)
    except BadInput as error:
        raise WrongUsage(f"--keep: {error}") from None
    selection = Selection(options.only, policy, options.drop_clusters)
    with State.open(options.state) as opened, bar(shown=True) as shown:
        done = copy_command(opened, options.out, selection, shown.phase)
    complain(
        f"{counted(done.kept, 'page')} kept, {counted(done.revisits, 'revisit record')}, {done.left_out:,} left out"
    )
    unfinished = [] if options.only else done.unfinished
    complain_of([f"{path}: not copied: its scan has not ended; run it again" for path in unfinished])
    return 3 if unfinished else 0
