"""Commands on files: find duplicates, explain them, write what is left."""

import os
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from neardup.canonical import CRITERIA, policy_of
from neardup.errors import BadInput
from neardup.scheme import Scheme
from neardup.wording import counted
from streams.commands.app import FILES, command
from streams.commands.options import (
    CPUS,
    READ_AS_USUAL,
    RULES,
    STATE,
    THREADS,
    AsJson,
    Documents,
    Folder,
    Many,
    Number,
    Numbers,
    Opt,
    Quiet,
    RequiredPages,
    State,
    Workers,
    Writes,
    decider_of,
    must_be_folder,
    must_be_scan,
    rule_values,
)
from streams.commands.output import (
    PROBLEMS_SHOWN,
    announce_compiler,
    bar,
    complain,
    complain_of,
    echo,
    print_json,
)
from streams.config.load import load
from streams.config.settings import OPTIONS
from streams.errors import WrongUsage

if TYPE_CHECKING:
    from streams.partition.partition_results import Summary
    from streams.scan.scan_result import ScanResult

#: Methods of Huang 2008, for `neardup partition`.
METHODS = ("tlcs", "cosine")


@command(
    FILES,
    "neardup scan crawl.warc.gz",
    "neardup scan more.warc.gz --state DIR --report report.html",
    "neardup scan site/ --base-url https://a.example/ --memory --out -",
    "neardup scan s3://bucket/texts/*.parquet --id-field doc_id --text-field text",
    codes="Exit codes: 0 done, 1 an error, 2 wrong usage, 3 done but some input could not be read, 130 interrupted "
    "(the same command continues from there).",
)
def scan(
    *paths: RequiredPages,
    state: Annotated[
        Path, Opt("State directory; made if missing.", metavar="DIR", env_var="NEARDUP_STATE", check=must_be_folder)
    ] = STATE,
    memory: Annotated[bool, Opt("Keep the state in memory, and discard it.")] = False,
    documents: Documents = READ_AS_USUAL,
    rule: Annotated[str | None, Opt(f"One of {RULES}; by default verified.", metavar="RULE")] = None,
    numbers: Numbers = (),
    sites: Annotated[Path | None, Opt("Numbers of single sites, as TOML or JSON.", metavar="FILE")] = None,
    new_decider: Annotated[bool, Opt("From here on, judge by these rule and numbers, not the state's.")] = False,
    merge: Annotated[
        bool, Opt("Read all sources side by side, and judge pages in the order of their fetch times.")
    ] = False,
    out: Annotated[str | None, Writes("Write the verdicts as JSON lines; - for standard output.")] = None,
    report: Annotated[Path | None, Writes("Write the HTML report.")] = None,
    audit: Annotated[
        Path | None, Writes("Append pairs for people to check, and counts, to this file as JSON lines.")
    ] = None,
    audit_rate: Annotated[float, Opt("Share of the pages from which pairs are drawn.", metavar="SHARE")] = 0.1,
    shadow: Annotated[
        str | None, Opt("Rule that decides nothing; its disagreements are counted.", metavar="RULE")
    ] = None,
    shadow_numbers: Annotated[
        tuple[str, ...], Many("A number of the shadow rule.", "--shadow-set", metavar="NAME=NUMBER")
    ] = (),
    as_json: Annotated[bool, Opt("Print the summary as JSON; --out has the verdicts.", "--json")] = False,
    again: Annotated[bool, Opt("Also scan sources that an earlier scan has finished.")] = False,
    threads: Annotated[
        int,
        Number(
            "Processes that read and sketch, beside the one that judges; each takes up to 600 MB, of Parquet 1,600.",
            "--threads",
            low=1,
            high=256,
        ),
    ] = THREADS,
    quiet: Quiet = False,
) -> int:
    """Judge the pages of files, each against all before it.

    The state directory keeps the index: a scan of other files finds duplicates of the first ones, and the same command
    continues a scan that was stopped. The secret seed of a new state is drawn at random, or taken from NEARDUP_SEED or
    NEARDUP_SEED_FILE.
    """
    outputs = _outputs(out, report, audit, as_json)
    scheme, decider = _scheme(), decider_of(rule, numbers, sites)

    from streams.commands.scan_summary import sizes, state_line, summary
    from streams.pipeline.audit import open_audit
    from streams.pipeline.audit import shadow_numbers as numbers_of
    from streams.process.resource_limits import raise_open_files
    from streams.scan.scan import scan as run
    from streams.scan.sketch_processes import SketchProcesses
    from streams.state.scan_directory import ScanDirectory

    raise_open_files()
    shadowed = numbers_of(shadow_numbers)
    announce_compiler("sketching", "judging", quiet=quiet)
    silent = quiet or as_json or out == "-"
    with (
        SketchProcesses(threads) as processes,  # first: they must not inherit what belongs to the state
        ScanDirectory.open(
            None if memory else state, scheme=scheme, decider=decider, new_decider=new_decider
        ) as opened,
    ):
        for message in opened.messages:
            complain(message)
        audited = open_audit(
            opened.decider, file=audit, rate=audit_rate, shadow=shadow, numbers=shadowed, warn=complain
        )
        with audited or nullcontext(), bar(shown=not silent) as shown:
            result = run(
                paths,
                opened,
                reading=documents.reading(),
                merge=merge,
                out=out,
                written=outputs,
                again=again,
                threads=threads,
                progress=shown.update,
                audit=audited,
                processes=processes,
            )
        if report is not None:
            from streams.scan.scan_report import write_report

            with bar(shown=not silent, counts=True) as shown:
                write_report(opened, report, shown.phase)
        if as_json:
            print_json({**asdict(result), "state_bytes": None if memory else sizes(opened.path)})
        elif not silent:
            from rich.console import Console

            pages = sum(source.pages for source in opened.sources.values())
            summary(Console(), result, "" if memory else state_line(state, pages))
            if report is not None:
                echo(f"report: {report}")
    return _code_of(result, memory)


def _outputs(out: str | None, report: Path | None, audit: Path | None, as_json: bool) -> list[Path]:
    """The files that a scan writes. Raises WrongUsage for a file that is named twice."""
    if out == "-" and as_json:
        raise WrongUsage("--json and --out - both write to standard output; choose one")
    outputs = [Path(one) for one in (report, audit, out) if one not in (None, "-")]
    if twice := [one for i, one in enumerate(outputs) if one.absolute() in map(Path.absolute, outputs[:i])]:
        raise WrongUsage(f"{twice[0]} is named twice; each output needs a file of its own")
    return outputs


def _code_of(result: "ScanResult", memory: bool) -> int:
    if result.interrupted:
        complain("interrupted" if memory else "interrupted; the same command continues from here")
        return 130
    if result.pages and result.counts.get("rejected") == result.pages:
        complain(f"no page could be read: {', '.join(list(result.reasons)[:3])}")
        return 3
    return 3 if result.problems_total else 0


def _scheme() -> Scheme | None:
    """The scheme with the seed that the environment gives. Raises WrongUsage."""
    names = (OPTIONS["seed"].env, OPTIONS["seed"].env + "_FILE")
    # A scan has no other setting of the stream, so it does not check them.
    seed = load({name: os.environ[name] for name in names if name in os.environ}).seed
    return None if seed is None else Scheme(seed=seed)


@command(
    FILES,
    "neardup copy neardup-state --out kept.warc.gz",
    "neardup copy neardup-state --out kept.jsonl --keep score,longest,first-seen",
    "neardup scan a.jsonl b.jsonl && neardup copy neardup-state --only b.jsonl --out new.jsonl",
    codes="Exit codes: 0 done, 1 an error, 2 wrong usage, 3 done but a source whose scan has not ended is not copied.",
)
def copy(
    state: State = STATE,
    *,
    out: Annotated[Path, Writes("The file to write; its name ends in .warc, .warc.gz, .jsonl or .parquet.")],
    only: Annotated[tuple[str, ...], Many("Write the pages of this source alone.", "--only", metavar="PATH")] = (),
    keep: Annotated[
        str | None,
        Opt(f"The page of a cluster to keep, by criteria of {', '.join(CRITERIA)}, longest.", metavar="POLICY"),
    ] = None,
    drop_clusters: Annotated[bool, Opt("Leave out all pages of clusters of two or more.")] = False,
) -> int:
    """Write the pages of a scan without duplicates.

    Pages are copied as they are in their sources. In WARC, a page with the bytes of an earlier one becomes a revisit
    record. A .jsonl file takes pages of all kinds of sources. --only writes one source without the pages that repeat
    another one. `neardup export` writes the reasons, a row for each URL.
    Takes up to 200 bytes of memory for each verdict.
    """
    must_be_scan(state)
    if keep is not None and drop_clusters:
        raise WrongUsage("--keep and --drop-clusters exclude each other; choose one")

    from streams.state.scan_directory import ScanDirectory
    from streams.verdicts.copy_selection import KEPT_BY
    from streams.verdicts.copying import Selection, copy_command

    try:
        policy = policy_of(keep or "", KEPT_BY)
    except BadInput as error:
        raise WrongUsage(f"--keep: {error}") from None
    selection = Selection(only, policy, drop_clusters)
    with ScanDirectory.open(state) as opened, bar(shown=True) as shown:
        done = copy_command(opened, out, selection, shown.phase)
    complain(
        f"{counted(done.kept, 'page')} kept, {counted(done.revisits, 'revisit record')}, {done.left_out:,} left out"
    )
    unfinished = [] if only else done.unfinished
    complain_of([f"{path}: not copied: its scan has not ended; run it again" for path in unfinished])
    return 3 if unfinished else 0


@command(
    FILES,
    "neardup partition crawl.warc.gz --out sets",
    "neardup partition texts.parquet --text-field text --out sets --method tape",
    "neardup partition site/ --base-url https://a.example/ --out sets --method tlcs --set slope_max=0.08 --sets stars",
    "neardup partition crawl.warc.gz --out sets --method signals:model.json",
    codes="Exit codes: 0 done, 1 an error, 2 wrong usage, 3 done but some input could not be read, 130 interrupted "
    "(the same command continues from there).",
)
def partition(
    *paths: RequiredPages,
    out: Annotated[Path, Folder("Folder for the sets, their tables and the report.")] = Path("partition"),
    method: Annotated[str, Opt(f"One of {RULES}, {', '.join(METHODS)}, signals:MODEL.", metavar="METHOD")] = "verified",
    numbers: Annotated[tuple[str, ...], Many("A number of tlcs or cosine.", "--set", metavar="NAME=NUMBER")] = (),
    sets: Annotated[
        Literal["transitive", "stars"] | None,
        Opt(
            "transitive: connected components, by default with tlcs and cosine; stars: pages that are similar to one "
            "representative."
        ),
    ] = None,
    documents: Documents = READ_AS_USUAL,
    workers: Workers = CPUS,
    memory: Annotated[int, Number("Memory of all processes together, in MB.", "--memory", low=1)] = 1000 + 500 * CPUS,
    engine: Annotated[
        Literal["duckdb", "spark"], Opt("duckdb: on this machine; spark: on a cluster that sees the same files.")
    ] = "duckdb",
    master: Annotated[str, Opt("Master of Spark, as spark://HOST:7077.", metavar="URL")] = "local[*]",
    again: Annotated[bool, Opt("Start again: delete the results of an earlier run in DIR.")] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Divide a corpus into sets of similar pages.

    Divide a corpus into sets of similar pages, by the default rule of a scan or by another method.

    By a rule of a scan, each page is judged against the pages before it, and sets are stars. tlcs and cosine are the
    methods of Huang 2008: they compare pairs of pages that share a signature, of the whole corpus at once. The same
    command continues a run that was stopped.
    """
    rule = _rule(method)
    if rule and engine == "spark":
        raise WrongUsage(f"--method {method} judges pages in order, on one machine; --engine spark needs --method tlcs")
    if rule and (numbers or sets == "transitive"):
        raise WrongUsage(
            f"--method {method} makes stars, with its default numbers; --set and --sets transitive need --method tlcs"
        )

    from neardup.partition.parameters import Parameters, with_numbers
    from streams.files.fetching import fetched, forget, inputs_of
    from streams.files.not_read import NotRead
    from streams.partition.online import partition_online
    from streams.partition.partition_command import PartitionOptions, partition_command
    from streams.partition.workers import WorkStopped

    try:
        parameters = with_numbers(
            Parameters(method="tlcs" if rule else method),  # type: ignore[arg-type]
            dict(text.partition("=")[::2] for text in numbers),
        )
    except BadInput as error:
        raise WrongUsage(f"--set {error}") from None
    announce_compiler(quiet=quiet)
    if again:
        forget(out)
    copies, not_read = inputs_of(out), NotRead()
    files = fetched(paths, copies, not_read)
    given = PartitionOptions(
        out=out,
        kind=sets or "transitive",
        workers=workers,
        memory_mb=memory,
        again=again,
        master=master if engine == "spark" else "",
        reading=replace(documents.reading(), copies=copies),
        not_read=not_read,
    )
    with bar(shown=not (quiet or as_json)) as shown:
        try:
            if rule:
                made = partition_online(files, rule, given, progress=shown.phase)
            else:
                made = partition_command(files, parameters, given, progress=shown.phase)
        except WorkStopped:
            complain("interrupted; the same command continues from here")
            return 130
    forget(out)
    if as_json:
        print_json(made.to_json())
    elif not quiet:
        _print_summary(made, out)
    if made.rejected and not made.counts.documents:
        complain(f"no page could be read: {', '.join(list(made.reasons)[:3])}")
        return 3
    return 3 if made.problems_total else 0


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


def _print_summary(made: "Summary", out: Path) -> None:
    """Prints counts, the largest sets and problems."""
    from rich.console import Console

    from neardup.report.partition_report import missed
    from neardup.urls import name_of
    from streams.process.terminal import safe, table_of

    console, counts = Console(highlight=False), made.counts
    console.print(
        f"{counted(counts.documents, 'document')} in {made.seconds:,.1f} s: {counted(made.sets, 'set')} of two or "
        f"more with {counted(made.in_sets, 'document')}; equal texts of others: {counts.repeats:,}"
    )
    if not made.plan["parameters"].get("rule"):
        compared, similar = (sum(one[i] for one in counts.rounds) for i in (0, 1))
        console.print(
            f"{counted(counts.signatures, 'signature')}, {counts.dropped_signatures:,} dropped as template or spam; "
            f"{counted(counts.sets, 'perhaps-similar set')}; {counted(compared, 'pair')} compared in "
            f"{counted(len(counts.rounds), 'round')}, "
            f"{similar:,} similar"
        )
    for sentence in missed(made.to_json()):
        console.print(sentence)
    table = table_of("largest sets", ">documents")
    for url, size in made.largest[:PROBLEMS_SHOWN]:
        table.add_row(safe(name_of(url), 100), f"{size:,}")
    if made.largest:
        console.print(table)
    for field in made.fields_taken:
        console.print(safe(field), soft_wrap=True)
    for reason, many in list(made.reasons.items())[:PROBLEMS_SHOWN]:
        console.print(f"rejected: {safe(reason)} ({many:,})", soft_wrap=True)
    if made.passed_over:
        console.print(f"passed over, by their names: {safe(made.passed_over)}", soft_wrap=True)
    for problem in made.problems[:PROBLEMS_SHOWN]:
        console.print("problem: ", safe(problem, 400), soft_wrap=True)
    console.print(f"sets: {out / 'sets.jsonl'}", soft_wrap=True, markup=False)
