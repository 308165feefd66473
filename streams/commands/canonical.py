from pathlib import Path
from typing import Annotated

import click

from neardup.canonical import CRITERIA, policy_of
from neardup.errors import BadInput
from streams.commands.options import CONNECTION, Arg, Flags, Opt, command
from streams.commands.output import print_json
from streams.commands.shared import Json, must_be_scan
from streams.config.settings import Settings
from streams.errors import WrongUsage


class Options(Json):
    policy: Annotated[str | None, Arg("[POLICY]", f"Criteria in order, of {', '.join(CRITERIA)}.")] = None
    none: Annotated[bool, Opt("Remove the policy: the canonical page of the verdicts holds.")] = False
    state: Annotated[
        Path | None, Opt("The state directory of a scan; by default the stream.", metavar="DIR", check=must_be_scan)
    ] = None
    settings: Annotated[Settings, Flags(CONNECTION)]


@command(
    "canonical",
    "neardup canonical rel-canonical,https,score,shorter-url,first-seen",
    "neardup canonical --state neardup-state https,first-seen",
    "neardup canonical --none",
    "neardup canonical",
)
def canonical(options: Options) -> None:
    """Set the policy that chooses the canonical page of each cluster; without an argument, print it.

    Each criterion keeps the best of the members that the one before has left. rel-canonical follows the links of the
    pages; score is given by the crawler. On the stream, a policy is a record of the control topic: views and clients
    choose again, and no verdict is emitted again. Without a policy, the `canonical` of a verdict holds.
    """
    if options.none and options.policy is not None:
        raise WrongUsage("a policy and --none exclude each other; choose one")
    text = "" if options.none else options.policy
    try:
        required = None if text is None else policy_of(text)
    except BadInput as error:
        raise WrongUsage(str(error)) from None
    if options.state is None:
        from streams.roles.generations import hold_stream

        held = hold_stream(options.settings, text)
    else:
        from streams.state.directory import keep_policy, kept_policy

        if required is not None:
            keep_policy(options.state, required)
        held = kept_policy(options.state)
    if options.as_json:
        print_json({"policy": list(held)})
    else:
        click.echo(", then ".join(held) or "no policy: the canonical page of the verdicts holds")
