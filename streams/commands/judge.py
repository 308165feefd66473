from typing import Annotated

from streams.commands.options import MATCH, Flags, Given, Opt, command, values
from streams.config.settings import Settings
from streams.errors import WrongUsage


class Options(Given):
    accept_lost_verdicts: Annotated[bool, Opt("Continue although emitted verdicts are missing from their topic.")] = (
        False
    )
    standby: Annotated[bool, Opt("Follow the log while another judge with this option is active; then take over.")] = (
        False
    )
    settings: Annotated[Settings, Flags(MATCH, role="match")]


@command("judge", "NEARDUP_SEED_FILE=seed neardup judge --shards 16 --state DIR")
def judge(options: Options) -> None:
    """Run the judge of shards: the log and the shards' answers in, verdicts out, exactly once.

    It takes the place of `neardup match` in a generation with shards, and waits until all of them have answered. With
    --standby, one judge is active and the others follow it, each with a state directory of its own.
    """
    from streams.roles import run_matcher

    if not options.settings.is_sharded:
        raise WrongUsage("the generation has no shards to judge for: name their number by --shards or NEARDUP_SHARDS")
    run_matcher(options.settings, **values(options, "settings"))
