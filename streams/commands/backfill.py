from dataclasses import replace
from pathlib import Path
from typing import Annotated

from streams.commands.options import MATCH, SKETCH, Arg, Flags, Given, Opt, command, values
from streams.commands.output import bar, complain
from streams.commands.shared import INPUTS, ShardProcesses, must_exist
from streams.config.settings import Settings
from streams.errors import WrongUsage


class Options(Given):
    archives: Annotated[
        tuple[str, ...], Arg("[PATH]...", f"Archives to read before the pages: {INPUTS}", check=must_exist)
    ] = ()
    rate: Annotated[float, Opt("Most pages a second; 0: no limit.", low=0, metavar="N")] = 0.0
    once: Annotated[bool, Opt("End when it has caught up, instead of following the live topic.")] = False
    read_pages: Annotated[bool, Opt("Read the pages, even if the existing sketches fit.")] = False
    shard_processes: ShardProcesses = None
    settings: Annotated[Settings, Flags(tuple(dict.fromkeys((*SKETCH, *MATCH))), role="match")]


@command(
    "backfill",
    "neardup backfill --generation second --rule tape",
    "neardup backfill --generation second --shards 16 --sketches-of ''",
    "neardup backfill --generation second --body-bytes-max 1000000 --rate 500 --threads 1 --once",
    "neardup backfill --generation second crawl-2024.warc.gz crawl-2025.warc.gz",
    codes="Exit codes: 0 caught up, 1 an error, 2 wrong usage, 130 stopped before (the same command continues).",
)
def backfill(options: Options) -> int:
    """Judge history again with other settings, into a generation of its own, beside the live one.

    If only the rule and numbers are new, and the log of sketches is complete, the existing sketches are judged again.
    Else, or with --read-pages or archives, the pages are read from the start of their topic, in the order of their
    fetch times; pages of one partition keep their order. Archives are read before them, side by side in --threads
    processes, in the same order. The state directory is that of --state; by default the live one's name with the
    generation appended. Only the option --checkpoints makes checkpoints: NEARDUP_CHECKPOINTS is the live generation's.

    It may be stopped at any moment, and the same command continues. Once it has caught up, it prints so and follows the
    live topic, so that `neardup cutover` loses nothing.
    """
    from streams.roles.backfill import BackfillOptions, run_backfill
    from streams.roles.runtime import greet, serving

    settings = options.settings
    if not settings.generation:
        raise WrongUsage("a backfill fills a generation of its own: name it, as --generation second")
    if options.once:  # else it serves, and waits for Kafka as roles do
        greet(settings, "match")
    chosen = BackfillOptions(**values(options, "settings"))
    if not settings.origins.get("state", "").startswith("flag"):
        state = Path(settings.state)
        settings = replace(settings, state=str(state.with_name(f"{state.name}.{settings.generation}")))
    if not settings.origins.get("checkpoints", "").startswith("flag"):
        settings = replace(settings, checkpoints="")  # those of the live one are there, and would be removed
    caught_up = False
    with bar(shown=True, counts=True) as shown, serving(settings, "backfill") as runtime:
        caught_up = run_backfill(settings, chosen, runtime, shown=shown.backfill if shown.watched else None)
    if not caught_up:  # also if it was stopped while it waited for Kafka
        complain("stopped before it has caught up; the same command continues from there")
        return 130
    return 0
