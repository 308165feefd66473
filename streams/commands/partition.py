from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from neardup.errors import BadInput
from neardup.wording import counted
from streams.commands.options import Opt, command
from streams.commands.output import PROBLEMS_SHOWN, announce_compiler, bar, complain, print_json
from streams.commands.shared import CPUS, RULES, Documents, Folder, Json, Pages, Quiet, Workers, rule_values
from streams.errors import WrongUsage

if TYPE_CHECKING:
    from streams.batch.partition_results import Summary

METHODS = ("tlcs", "cosine")


def _rule(method: str) -> dict[str, Any]:
    """The decider's fields for --method; none for the methods of the paper. Raises WrongUsage."""
    name, _, model = method.partition(":")
    if name != "signals":
        return rule_values("--method", method, (*METHODS, "signals:MODEL"))
    if not model:
        raise WrongUsage("--method signals needs a model: signals:FILE; `neardup train --signals sketches` makes one")
    from neardup.signals.model import read_model
    from neardup.signals.of_sketches import online_text

    try:
        return {"rule": name, "model": online_text(read_model(Path(model)), model)}
    except BadInput as error:
        raise WrongUsage(f"--method {error}") from error


class Options(Documents, Json, Quiet):
    paths: Pages
    out: Annotated[Path, Folder("Folder for the sets, their tables and the report.")] = Path("partition")
    method: Annotated[str, Opt(f"One of {', '.join(METHODS)}, {RULES}, signals:MODEL.", metavar="METHOD")] = "tlcs"
    numbers: Annotated[
        tuple[str, ...], Opt("A number of the method; may be repeated.", "--set", metavar="NAME=NUMBER")
    ] = ()
    sets: Annotated[
        str | None,
        Opt(
            "transitive: connected components; stars: pages that are similar to one representative.",
            choices=("transitive", "stars"),
        ),
    ] = None
    workers: Workers = CPUS
    memory: Annotated[int, Opt("Memory of all processes together.", low=1, metavar="MB")] = 1000 + 500 * CPUS
    engine: Annotated[
        str, Opt("duckdb: on this machine; spark: on a cluster that sees the same files.", choices=("duckdb", "spark"))
    ] = "duckdb"
    master: Annotated[str, Opt("Master of Spark, as spark://HOST:7077.", metavar="URL")] = "local[*]"
    again: Annotated[bool, Opt("Start again: delete the results of an earlier run in DIR.")] = False


@command(
    "partition",
    "neardup partition crawl.warc.gz --out sets",
    "neardup partition site/ --base-url https://a.example/ --out sets --set slope_max=0.08 --sets stars",
    "neardup partition crawl.warc.gz --out sets --method verified",
    "neardup partition crawl.warc.gz --out sets --method signals:model.json",
    codes="Exit codes: 0 done, 1 an error, 2 wrong usage, 3 done but some input could not be read, 130 interrupted "
    "(the same command continues from there).",
)
def partition(options: Options) -> int:
    """Divide a corpus into sets of similar pages, by the method of Huang 2008.

    With --method of an online rule, each page is judged against the pages before it, as by a scan, and sets are stars.
    The same command continues a run that was stopped.
    """
    rule = _rule(options.method)
    if rule and options.engine == "spark":
        raise WrongUsage("--engine spark: online rules judge in order, on one machine")
    if rule and (options.numbers or options.sets == "transitive"):
        raise WrongUsage(f"--method {options.method} makes stars, with its default numbers")

    from neardup.partition.parameters import Parameters, with_numbers
    from streams.batch.online import partition_online
    from streams.batch.partition import PartitionOptions, partition_command
    from streams.batch.workers import WorkStopped
    from streams.files.fetching import fetched, forget, inputs_of
    from streams.files.not_read import NotRead

    numbers = dict(text.partition("=")[::2] for text in options.numbers)
    try:
        parameters = with_numbers(Parameters(method="tlcs" if rule else options.method), numbers)  # type: ignore[arg-type]
    except BadInput as error:
        raise WrongUsage(f"--set {error}") from None
    announce_compiler(quiet=options.quiet)
    if options.again:
        forget(options.out)
    copies, not_read = inputs_of(options.out), NotRead()
    paths = fetched(options.paths, copies, not_read)
    given = PartitionOptions(
        out=options.out,
        kind=options.sets or "transitive",
        workers=options.workers,
        memory_mb=options.memory,
        again=options.again,
        master=options.master if options.engine == "spark" else "",
        reading=replace(options.reading(), copies=copies),
        not_read=not_read,
    )
    with bar(shown=not (options.quiet or options.as_json)) as shown:
        try:
            if rule:
                made = partition_online(paths, rule, given, progress=shown.phase)
            else:
                made = partition_command(paths, parameters, given, progress=shown.phase)
        except WorkStopped:
            complain("interrupted; the same command continues from here")
            return 130
    forget(options.out)
    if options.as_json:
        print_json(made.to_json())
    elif not options.quiet:
        _print_summary(made, options.out)
    return 3 if made.problems_total or made.refused else 0


def _print_summary(made: "Summary", out: Path) -> None:
    """Prints counts, the largest sets and problems."""
    from rich.console import Console

    from neardup.report.partition import unsigned
    from neardup.urls import name_of
    from streams.process.terminal import safe, table_of

    console, counts = Console(highlight=False), made.counts
    console.print(
        f"{counted(counts.documents, 'document')} in {made.seconds:,.1f} s: {counted(made.sets, 'set')} of two or "
        f"more with {counted(made.in_sets, 'document')}; equal texts of others: {counts.repeats:,}"
    )
    compared, similar = (sum(one[i] for one in counts.rounds) for i in (0, 1))
    console.print(
        f"{counted(counts.signatures, 'signature')}, {counts.dropped_signatures:,} dropped as template or spam; "
        f"{counted(counts.sets, 'perhaps-similar set')}; {counted(compared, 'pair')} compared in "
        f"{counted(len(counts.rounds), 'round')}, "
        f"{similar:,} similar"
    )
    console.print(f"left uncompared in a set: {counts.uncompared:,}")
    if advice := unsigned(asdict(counts)):
        console.print(advice)
    table = table_of("largest sets", ">documents")
    for url, size in made.largest[:PROBLEMS_SHOWN]:
        table.add_row(safe(name_of(url), 100), f"{size:,}")
    if made.largest:
        console.print(table)
    for field in made.fields_taken:
        console.print(safe(field), soft_wrap=True)
    for reason, many in list(made.reasons.items())[:PROBLEMS_SHOWN]:
        console.print(f"refused: {safe(reason)} ({many:,})", soft_wrap=True)
    if made.passed_over:
        console.print(f"passed over, by their names: {safe(made.passed_over)}", soft_wrap=True)
    for problem in made.problems[:PROBLEMS_SHOWN]:
        console.print("problem: ", safe(problem, 400), soft_wrap=True)
    console.print(f"sets: {out / 'sets.jsonl'}", soft_wrap=True, markup=False)
