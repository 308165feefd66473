import os
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import click

from neardup.decider import ONLINE_RULES
from neardup.scheme import Scheme
from streams.commands.options import Opt, command
from streams.commands.output import announce_compiler, bar, complain, print_json
from streams.commands.shared import (
    RULES,
    STATE,
    THREADS,
    Documents,
    Numbers,
    Pages,
    Quiet,
    Writes,
    decider_of,
    must_be_folder,
)
from streams.config.settings import OPTIONS
from streams.errors import WrongUsage


class Options(Documents, Quiet):
    paths: Pages
    state: Annotated[
        Path, Opt("State directory; made if missing.", metavar="DIR", env="NEARDUP_STATE", check=must_be_folder)
    ] = STATE
    memory: Annotated[bool, Opt("Keep the state in memory, and discard it.")] = False
    rule: Annotated[
        str | None, Opt(f"One of {RULES}; by default verified.", metavar="RULE", completes=ONLINE_RULES)
    ] = None
    numbers: Numbers = ()
    sites: Annotated[Path | None, Opt("Numbers of single sites, as TOML or JSON.", metavar="FILE")] = None
    new_decider: Annotated[bool, Opt("From here on, judge by these rule and numbers, not the state's.")] = False
    merge: Annotated[bool, Opt("Read all sources side by side, and judge pages in the order of their fetch times.")] = (
        False
    )
    out: Annotated[str | None, Writes("Write the verdicts as JSON lines; - for standard output.")] = None
    report: Annotated[Path | None, Writes("Write the HTML report.")] = None
    audit: Annotated[
        Path | None, Writes("Append pairs for people to check, and counts, to this file as JSON lines.")
    ] = None
    audit_rate: Annotated[float, Opt("Share of the pages from which pairs are drawn.", metavar="SHARE")] = 0.1
    shadow: Annotated[
        str | None,
        Opt("Rule that decides nothing; its disagreements are counted.", metavar="RULE", completes=ONLINE_RULES),
    ] = None
    shadow_numbers: Annotated[
        tuple[str, ...], Opt("A number of the shadow rule; may be repeated.", "--shadow-set", metavar="NAME=NUMBER")
    ] = ()
    as_json: Annotated[bool, Opt("Print the summary as JSON; --out has the verdicts.", "--json")] = False
    again: Annotated[bool, Opt("Also scan sources that an earlier scan has finished.")] = False
    threads: Annotated[int, Opt("Threads of the kernels; with --merge, processes that read.", low=1, high=256)] = (
        THREADS
    )
    shard_processes: Annotated[
        int,
        Opt(
            "Processes that find and compare candidates, beside this one; 0: this one does. A state keeps its shards.",
            low=0,
            high=256,
        ),
    ] = 0


@command(
    "scan",
    "neardup scan crawl.warc.gz",
    "neardup scan more.warc.gz --state DIR --report report.html",
    "neardup scan site/ --base-url https://a.example/ --memory --out -",
    "neardup scan s3://bucket/texts/*.parquet --id-field doc_id --text-field text",
    codes="Exit codes: 0 done, 1 an error, 2 wrong usage, 3 done but some input could not be read, 130 interrupted "
    "(the same command continues from there).",
)
def scan(options: Options) -> int:
    """Judge the pages of files, each against all pages before it.

    The state directory keeps the index: a scan of other files finds duplicates of the first ones, and the same command
    continues a scan that was stopped. The secret seed of a new state is drawn at random, or taken from NEARDUP_SEED.
    """
    if options.out == "-" and options.as_json:
        raise WrongUsage("--json and --out - both write to standard output; choose one")
    outputs = [Path(one) for one in (options.report, options.audit, options.out) if one not in (None, "-")]
    if twice := [one for i, one in enumerate(outputs) if one.absolute() in map(Path.absolute, outputs[:i])]:
        raise WrongUsage(f"{twice[0]} is named twice; each output needs a file of its own")
    scheme, decider = _scheme(), decider_of(options.rule, options.numbers, options.sites)

    from rich.console import Console

    from streams.commands.scan_summary import sizes, state_line, summary
    from streams.files.report import write_report
    from streams.files.scan import scan as run
    from streams.files.state import State
    from streams.pipeline.audit import open_audit, shadow_numbers
    from streams.process.open_files import raise_open_files

    raise_open_files()
    numbers = shadow_numbers(options.shadow_numbers)
    announce_compiler("sketching", "judging", *(("sharding",) if options.shard_processes else ()), quiet=options.quiet)
    quiet = options.quiet or options.as_json or options.out == "-"
    where = None if options.memory else options.state
    with State.open(
        where, scheme=scheme, decider=decider, new_decider=options.new_decider, shards=options.shard_processes
    ) as opened:
        for message in opened.messages:
            complain(message)
        audit = open_audit(
            opened.decider,
            file=options.audit,
            rate=options.audit_rate,
            shadow=options.shadow,
            numbers=numbers,
            warn=complain,
        )
        with audit or nullcontext(), bar(shown=not quiet) as shown:
            result = run(
                options.paths,
                opened,
                reading=options.reading(),
                merge=options.merge,
                out=options.out,
                written=outputs,
                again=options.again,
                threads=options.threads,
                progress=shown.update,
                audit=audit,
            )
        if options.report is not None:
            write_report(opened, options.report)
        if options.as_json:
            print_json({**asdict(result), "state_bytes": None if options.memory else sizes(opened.path)})
        elif not quiet:
            pages = sum(source.pages for source in opened.sources.values())
            summary(Console(), result, "" if options.memory else state_line(options.state, pages))
            if options.report is not None:
                click.echo(f"report: {options.report}")
    if result.interrupted:
        complain("interrupted" if options.memory else "interrupted; the same command continues from here")
        return 130
    if result.pages and result.counts.get("rejected") == result.pages:
        complain(f"no page could be read: {', '.join(list(result.reasons)[:3])}")
        return 3
    return 3 if result.problems_total else 0


def _scheme() -> Scheme | None:
    seed = os.environ.get("NEARDUP_SEED")
    if not seed:
        return None
    try:
        return Scheme(seed=OPTIONS["seed"].kind.parse(seed))
    except ValueError:
        raise WrongUsage("NEARDUP_SEED is not a number of 64 bits (as 12345 or 0x1f)") from None
