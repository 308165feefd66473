"""Commands that run the stream on Kafka, or fill it."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

from neardup.scheme import Scheme
from neardup.wording import counted
from streams.commands.app import OPERATE, STREAM, command
from streams.commands.options import (
    INPUTS,
    READ_AS_USUAL,
    AsJson,
    Documents,
    MatchFlags,
    Number,
    Opt,
    PublishFlags,
    RequiredPages,
    RunFlags,
    SketchFlags,
    inputs,
    must_exist,
)
from streams.commands.output import bar, complain, echo, print_json
from streams.config.settings import Settings
from streams.errors import WrongUsage

Standby = Annotated[bool, Opt("Follow the log while another one with this option is active; then take over.")]
AcceptLost = Annotated[
    bool, Opt("Continue although emitted verdicts are missing from their topic.", "--accept-lost-verdicts")
]
NewDecider = Annotated[bool, Opt("From here on, judge by these rule and numbers, not the log's.", "--new-decider")]


@command(STREAM, "NEARDUP_SEED_FILE=seed neardup sketch --bootstrap 127.0.0.1:9092")
def sketch(*, settings: SketchFlags = SketchFlags.NONE) -> None:
    """Run a sketcher: pages in, sketches to the log.

    Run a sketcher: pages in, sketches to the log. Any number of them share the work.

    The secret seed comes from NEARDUP_SEED or NEARDUP_SEED_FILE, the same for all sketchers and the matcher.
    """
    given = settings.read("sketch")

    from streams.roles.runtime import serving
    from streams.roles.sketch_role import run_sketcher

    with serving(given, "sketch") as runtime:
        run_sketcher(given, runtime)


@command(STREAM, "NEARDUP_SEED_FILE=seed neardup match --bootstrap 127.0.0.1:9092 --state DIR")
def match(
    *,
    standby: Standby = False,
    new_decider: NewDecider = False,
    accept_lost_verdicts: AcceptLost = False,
    settings: MatchFlags = MatchFlags.NONE,
) -> None:
    """Run the matcher: the log in, verdicts out, exactly once.

    Run the matcher: the log in, verdicts out, exactly once. A second matcher takes over from the first.

    With --standby, one matcher is active and the others follow it, each with a state directory of its own. If the
    active one dies, another takes over within seconds. SIGTERM stops a matcher after its batch, a second SIGTERM at
    once.
    """
    given = settings.read("match")

    from streams.roles.match_start import run_matcher
    from streams.roles.runtime import serving

    with serving(given, "match") as runtime:
        run_matcher(given, runtime, standby=standby, new_decider=new_decider, accept_lost_verdicts=accept_lost_verdicts)


@command(STREAM, "neardup run --bootstrap 127.0.0.1:9092 --state DIR")
def run(
    *,
    new_decider: NewDecider = False,
    accept_lost_verdicts: AcceptLost = False,
    settings: RunFlags = RunFlags.NONE,
) -> None:
    """Run sketcher and matcher in one process.

    Run sketcher and matcher in one process: for trying the stream, and for small deployments.

    It starts again by itself after a call to Kafka that hangs, or a long silence of Kafka; any other error ends it.
    Without NEARDUP_SEED, the seed of a new state directory is drawn at random and kept there.
    """
    given = _with_seed(settings.read())

    from streams.roles.runtime import serving
    from streams.roles.single_process import run_and_start_again

    with serving(given, "run") as runtime:
        run_and_start_again(given, runtime, new_decider=new_decider, accept_lost_verdicts=accept_lost_verdicts)


def _with_seed(settings: Settings) -> Settings:
    if settings.seed is not None:
        return settings
    from streams.state.directory import kept_scheme

    held = kept_scheme(Path(settings.state))
    return replace(settings, seed=(held or Scheme.new()).seed)


@command(
    STREAM,
    "neardup publish crawl.warc.gz --bootstrap 127.0.0.1:9092",
    codes="Exit codes: 0 done, 1 an error, 2 wrong usage, 3 done but some input could not be read or published, "
    "130 interrupted.",
)
def publish(
    *paths: RequiredPages,
    bodies: Annotated[
        Path | None,
        Opt("Folder for bodies that are too large for a record (body-ref).", metavar="DIR", check=must_exist),
    ] = None,
    documents: Documents = READ_AS_USUAL,
    as_json: AsJson = False,
    settings: PublishFlags = PublishFlags.NONE,
) -> int:
    """Publish the pages of files, as a crawler would.

    Publish the pages of some files, as a crawler would: for backfills, and for trying the stream.
    """
    given = settings.read(connects="publish")

    from neardup.report.page_templates import visible
    from streams.files.sources import left_out_text
    from streams.operate.publish import publish as put

    with inputs(paths) as files, bar(shown=not as_json) as shown:
        done = put(
            files.paths,
            given,
            reading=replace(documents.reading(), copies=files.copies),
            not_read=files.not_read,
            bodies=bodies,
            progress=shown.update,
        )
    if as_json:
        print_json(asdict(done))
    else:
        rate = f", {(done.pages + done.gone) / done.seconds:,.0f}/s" if done.seconds else ""
        echo(
            f"published {counted(done.pages, 'page')} and {counted(done.gone, 'tombstone')} "
            f"in {done.seconds:,.1f} s{rate}"
        )
        for field in done.fields_taken:
            echo(visible(field))
        if done.passed_over:
            echo(f"passed over, by their names: {visible(done.passed_over)}")
        if done.left_out:
            echo(left_out_text(done.left_out))
        for problem in done.problems:
            echo(f"problem: {visible(problem)}", err=True)
    if done.interrupted:
        return 130
    return 3 if done.problems_total else 0


@command(
    OPERATE,
    "neardup backfill --generation second --rule tape",
    "neardup backfill --generation second --body-bytes-max 1000000 --rate 500 --threads 1 --once",
    "neardup backfill --generation second crawl-2024.warc.gz crawl-2025.warc.gz",
    codes="Exit codes: 0 caught up, 1 an error, 2 wrong usage, 130 stopped before (the same command continues).",
)
def backfill(
    *archives: Annotated[
        str,
        Opt(f"Archives to read before the pages: {INPUTS}", "PATH", check=must_exist, allow_leading_hyphen=True),
    ],
    rate: Annotated[float, Number("Most pages a second; 0: no limit.", "--rate", low=0)] = 0.0,
    once: Annotated[bool, Opt("End when it has caught up, instead of following the live topic.")] = False,
    read_pages: Annotated[bool, Opt("Read the pages, even if the existing sketches fit.")] = False,
    settings: RunFlags = RunFlags.NONE,
) -> int:
    """Judge history again, beside the live run.

    Judge history again with other settings, into a generation of its own, beside the live one.

    If only the rule and numbers are new, and the log of sketches is complete, the existing sketches are judged again.
    Else, or with --read-pages or archives, the pages are read from the start of their topic, in the order of their
    fetch times; pages of one partition keep their order. Archives are read before them, side by side in --threads
    processes, in the same order. The state directory is that of --state; by default the live one's name with the
    generation appended. Only the option --checkpoints makes checkpoints: NEARDUP_CHECKPOINTS is the live generation's.

    It may be stopped at any moment, and the same command continues. Once it has caught up, it prints so and follows the
    live topic, so that `neardup generation cutover` loses nothing.
    """
    given = settings.read("match")

    from streams.roles.backfill import BackfillOptions, run_backfill
    from streams.roles.runtime import greet, serving

    if once:  # else it serves, and waits for Kafka as roles do
        greet(given, "match")
    if not given.generation:
        raise WrongUsage("a backfill fills a generation of its own: name it, as --generation second")
    chosen = BackfillOptions(archives=archives, rate=rate, once=once, read_pages=read_pages)
    if not given.origins.get("state", "").startswith("flag"):
        state = Path(given.state)
        given = replace(given, state=str(state.with_name(f"{state.name}.{given.generation}")))
    if not given.origins.get("checkpoints", "").startswith("flag"):
        given = replace(given, checkpoints="")  # those of the live one are there, and would be removed
    caught_up = False
    with bar(shown=True, counts=True) as shown, serving(given, "backfill") as runtime:
        caught_up = run_backfill(given, chosen, runtime, shown=shown.backfill if shown.watched else None)
    if not caught_up:  # also if it was stopped while it waited for Kafka
        complain("stopped before it has caught up; the same command continues from there")
        return 130
    return 0
