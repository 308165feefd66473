from dataclasses import replace
from pathlib import Path
from typing import Annotated

from neardup.scheme import Scheme
from streams.commands.match import Decisions
from streams.commands.options import MATCH, SKETCH, Flags, command, values
from streams.commands.shared import ShardProcesses
from streams.config.settings import Settings


class Options(Decisions):
    shard_processes: ShardProcesses = None
    settings: Annotated[Settings, Flags(tuple(dict.fromkeys((*SKETCH, *MATCH))))]


@command("run", "neardup run --bootstrap 127.0.0.1:9092 --state DIR")
def run(options: Options) -> None:
    """Run sketcher and matcher in one process: for trying the stream, and for small deployments.

    With --shards N, the matcher is the judge of N shards, which run in processes beside this one. Without
    NEARDUP_SEED, the seed of a new state directory is drawn at random and kept there.
    """
    from streams.roles import run_single_process

    run_single_process(_with_seed(options.settings), **values(options, "settings"))


def _with_seed(settings: Settings) -> Settings:
    if settings.seed is not None:
        return settings
    from streams.state.directory import kept_scheme

    held = kept_scheme(Path(settings.state))
    return replace(settings, seed=(held or Scheme.new()).seed)
