from pathlib import Path
from typing import Annotated

from streams.commands.options import Arg, Opt, command, values
from streams.commands.output import announce_compiler, bar, show_evaluation
from streams.commands.shared import THREADS, Folder, Json, Labels, Links, Truth, Workers, must_exist


class Options(Truth, Links, Json):
    paths: Annotated[
        tuple[Path, ...], Arg("PATH...", "WARC files, folders of HTML, JSON lines, as for scan.", check=must_exist)
    ]
    out: Annotated[Path, Folder("Folder for the report, its data, and the partitions.")] = Path("evaluation-tlcs")
    pairs: Annotated[int, Opt("Number of near-duplicates, and of other pairs, to measure.", low=1, high=100_000)] = 500
    labels: Labels = ()
    workers: Workers = THREADS


@command("evaluate tlcs", "neardup evaluate tlcs crawl.warc.gz --releases '[0-9.]+' --out evaluation")
def evaluate_tlcs(options: Options) -> int:
    """Measure trustable LCS as Huang 2008 did: signatures, windows, slopes, steps, three systems, kinds of errors."""
    from streams.evaluation.tlcs import evaluate_tlcs as run

    announce_compiler()
    with bar(shown=not options.as_json) as shown:
        given = values(options, "paths", "natural", "releases", "items", "as_json")
        made = run(options.paths, editions=options.editions(), progress=shown.phase, **given)
    return show_evaluation(made, options.out, as_json=options.as_json)
