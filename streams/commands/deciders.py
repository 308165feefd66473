"""Deciders that options describe."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from neardup.decider import RULE_NAMES, Decider
from neardup.errors import BadInput
from neardup.scheme import Scheme
from streams.config.load import decider_numbers
from streams.config.settings import OPTIONS
from streams.config.sites import sites_of
from streams.errors import WrongUsage

RULES = f"{', '.join(RULE_NAMES)}:MODEL"


def rule_values(flag: str, text: str | None, others: Sequence[str] = ()) -> dict[str, Any]:
    """The decider's fields that select a rule: its name, or `signals:MODEL`; none for one of `others`.

    Raises WrongUsage.
    """
    name, _, model = (text or "").partition(":")
    if not name or text in others:
        return {}
    if name not in RULE_NAMES or (model and name != "signals"):
        raise WrongUsage(f"{flag} {text}: must be one of {', '.join([*others, *RULE_NAMES[:-1]])}, signals:MODEL")
    if name != "signals":
        return {"rule": name}
    if not model:
        raise WrongUsage(f"{flag} signals needs a model: signals:FILE; `neardup train --signals sketches` makes one")
    try:
        return {"rule": name, "model": OPTIONS["decider.model"].kind.parse(model)}
    except BadInput as error:
        raise WrongUsage(f"{flag} {error}") from error


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
