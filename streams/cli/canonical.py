"""The command that says by which policy canonical pages are chosen."""

from pathlib import Path
from typing import Annotated

import typer

from neardup.canonical import CRITERIA, policy_of
from neardup.errors import BadInput
from streams.cli import options
from streams.cli.options import JsonOption, print_json, takes_settings
from streams.config.settings import Settings
from streams.errors import WrongUsage
from streams.state.canonical import keep_policy, kept_policy

app = typer.Typer(rich_markup_mode=None)

_ALL = ",".join(CRITERIA)


@app.command(
    short_help="Choose by what a cluster's canonical page is chosen.",
    epilog=options.examples(
        f"neardup canonical {_ALL}",
        "neardup canonical --scan neardup-state https,first-seen",
        "neardup canonical --none",
        "neardup canonical",
    ),
)
@takes_settings(options.CONNECTION)
def canonical(
    settings: Settings,
    *,
    policy: Annotated[
        str | None, typer.Argument(metavar="[POLICY]", help=f"Criteria in their order, of {', '.join(CRITERIA)}.")
    ] = None,
    none: Annotated[bool, typer.Option("--none", help="No policy: what verdicts say holds.")] = False,
    scan: Annotated[
        Path | None, typer.Option("--scan", metavar="DIR", help="A scan's directory; by default the stream's topic.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Say by which policy the page of a cluster is chosen that an index should show; without an argument, which holds.

    Each criterion keeps the best of the members that the one before has left: rel-canonical is honoured both ways,
    score is what the crawler gave. On the stream a policy is one record of the topic of generations: views and clients
    choose anew by what verdicts have told them, and no verdict is said again. Without a policy, a verdict's
    `canonical` holds.
    """
    if none and policy is not None:
        raise WrongUsage("a policy and --none say two things; choose one")
    if scan is not None and not (scan / "verdicts").is_dir():
        raise WrongUsage(f"{scan} is no scan's state directory; without --scan it is the stream's topic")
    wanted = "" if none else policy
    try:
        if wanted is not None:
            policy_of(wanted)
    except BadInput as error:
        raise WrongUsage(str(error)) from None
    if scan is None:
        from streams.roles.canonical import hold_stream

        held = hold_stream(settings, wanted)
    else:
        if wanted is not None:
            keep_policy(scan, policy_of(wanted))
        held = kept_policy(scan)
    if as_json:
        print_json({"policy": list(held)})
    else:
        typer.echo(", then ".join(held) or "no policy: what verdicts say holds")
