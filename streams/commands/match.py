"""`neardup match`."""

from typing import Annotated

from streams.commands.options import MATCH, Flags, Given, Opt, command, values
from streams.config.settings import Settings


class Decisions(Given):
    """What an operator decides for one start of a matcher."""

    new_decider: Annotated[bool, Opt("Let rule and numbers decide from here on, instead of earlier ones.")] = False
    accept_lost_verdicts: Annotated[bool, Opt("Continue although emitted verdicts are missing from their topic.")] = (
        False
    )


class Options(Decisions):
    standby: Annotated[
        bool, Opt("Follow the log while another matcher with this option is active; then take over.")
    ] = False
    settings: Annotated[Settings, Flags(MATCH, role="match")]


@command("match", "NEARDUP_SEED_FILE=seed neardup match --bootstrap 127.0.0.1:9092 --state DIR")
def match(options: Options) -> None:
    """Run the matcher: the log in, verdicts out, exactly once. One at a time: a second one takes over from the first.

    With --standby, each with a directory of its own, one is active and the others follow it; when it dies, the next
    takes over within seconds. It stops after its batch on SIGTERM, at once on a second one.
    """
    from streams.roles import run_matcher

    run_matcher(options.settings, **values(options, "settings"))
