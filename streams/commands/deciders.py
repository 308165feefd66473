"""Deciders that options describe."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from neardup.decider import ONLINE_RULES, Decider
from neardup.errors import BadInput
from neardup.scheme import Scheme
from streams.config.load import decider_numbers
from streams.config.sites import sites_of
from streams.errors import WrongUsage

RULES = ", ".join(ONLINE_RULES)


def rule_values(flag: str, name: str | None, others: Sequence[str] = ()) -> dict[str, Any]:
    """The decider's fields that select a rule by its name; none for one of `others`. Raises WrongUsage."""
    if not name or name in others:
        return {}
    if name not in ONLINE_RULES:
        raise WrongUsage(f"{flag} {name}: must be one of {', '.join([*others, *ONLINE_RULES])}")
    return {"rule": name}


def decider_of(
    rule: str | None = None, numbers: Sequence[str] = (), sites: Path | None = None
) -> Callable[[Scheme], Decider] | None:
    """What options require; None: what the state directory has. Raises WrongUsage."""
    if rule is None and not numbers and sites is None:
        return None
    values = {**rule_values("--rule", rule), **decider_numbers(numbers)}
    if sites is not None:
        try:
            values["sites"] = sites_of(sites)
        except BadInput as error:
            raise WrongUsage(f"--sites {error}") from None
    return lambda scheme: Decider(scheme=scheme.digest, **values)
