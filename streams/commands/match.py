from dataclasses import replace
from pathlib import Path
from typing import Annotated

from neardup.scheme import Scheme
from streams.commands.options import MATCH, SKETCH, Flags, Given, Opt, command, values
from streams.commands.shared import ShardProcesses
from streams.config.settings import Settings
from streams.errors import WrongUsage


class AcceptLost(Given):
    accept_lost_verdicts: Annotated[bool, Opt("Continue although emitted verdicts are missing from their topic.")] = (
        False
    )


class Decisions(AcceptLost):
    """Decisions of the operator for one start of a matcher."""

    new_decider: Annotated[bool, Opt("From here on, judge by these rule and numbers, not the log's.")] = False


class Options(Decisions):
    standby: Annotated[
        bool, Opt("Follow the log while another matcher with this option is active; then take over.")
    ] = False
    settings: Annotated[Settings, Flags(MATCH, role="match")]


@command("match", "NEARDUP_SEED_FILE=seed neardup match --bootstrap 127.0.0.1:9092 --state DIR")
def match(options: Options) -> None:
    """Run the matcher: the log in, verdicts out, exactly once. A second matcher takes over from the first.

    With --standby, one matcher is active and the others follow it, each with a state directory of its own. If the
    active one dies, another takes over within seconds. SIGTERM stops a matcher after its batch, a second SIGTERM at
    once.
    """
    if options.settings.is_sharded:
        raise WrongUsage(
            f"the generation has {options.settings.shards} shards: run `neardup judge` with the same options, beside "
            "`neardup shard`; or set shards to 0, for a generation of one matcher"
        )
    _judge(options)


class JudgeOptions(AcceptLost):
    standby: Annotated[bool, Opt("Follow the log while another judge with this option is active; then take over.")] = (
        False
    )
    settings: Annotated[Settings, Flags(MATCH, role="match")]


@command("judge", "NEARDUP_SEED_FILE=seed neardup judge --shards 16 --state DIR")
def judge(options: JudgeOptions) -> None:
    """Run the judge of shards: the log and the shards' answers in, verdicts out, exactly once.

    It takes the place of `neardup match` in a generation with shards, and waits until all of them have answered. With
    --standby, one judge is active and the others follow it, each with a state directory of its own.
    """
    if not options.settings.is_sharded:
        raise WrongUsage("the generation has no shards to judge for: name their number by --shards or NEARDUP_SHARDS")
    _judge(options)


def _judge(options: Options | JudgeOptions) -> None:
    from streams.roles.adapters import run_matcher
    from streams.roles.runtime import serving

    with serving(options.settings, "match") as runtime:
        run_matcher(options.settings, runtime, **values(options, "settings"))


class RunOptions(Decisions):
    shard_processes: ShardProcesses = None
    settings: Annotated[Settings, Flags(tuple(dict.fromkeys((*SKETCH, *MATCH))))]


@command("run", "neardup run --bootstrap 127.0.0.1:9092 --state DIR")
def run(options: RunOptions) -> None:
    """Run sketcher and matcher in one process: for trying the stream, and for small deployments.

    With --shards N, the matcher is the judge of N shards, which run in processes beside this one. It starts again by
    itself after a call to Kafka that hangs, or a long silence of Kafka; any other error ends it. Without
    NEARDUP_SEED, the seed of a new state directory is drawn at random and kept there.
    """
    from streams.roles.runtime import serving
    from streams.roles.single_process import run_and_start_again

    settings = _with_seed(options.settings)
    with serving(settings, "run") as runtime:
        run_and_start_again(settings, runtime, **values(options, "settings"))


def _with_seed(settings: Settings) -> Settings:
    if settings.seed is not None:
        return settings
    from streams.state.directory import kept_scheme

    held = kept_scheme(Path(settings.state))
    return replace(settings, seed=(held or Scheme.new()).seed)
