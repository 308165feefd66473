"""`neardup canonical`: the policy of canonical pages, of a scan or of the stream, told or set."""

from pathlib import Path

from neardup.canonical import policy_of, policy_text
from neardup.errors import BadInput
from streams.config.settings import Settings
from streams.errors import WrongUsage
from streams.state.canonical import keep_policy, kept_policy


def hold_scan(path: Path, text: str | None) -> tuple[str, ...]:
    """The policy of a scan's directory, after it was set to `text`; None: as it is. Raises BadInput, StateError."""
    if text is not None:
        keep_policy(path, _wanted(text))
    return kept_policy(path)


def hold_stream(settings: Settings, text: str | None) -> tuple[str, ...]:
    """The same of the stream, by one record of its control topic. Raises BadInput, BrokerError, CorruptRecord."""
    wanted = None if text is None else _wanted(text)

    from streams.roles.generations import control_topic
    from streams.roles.runtime import greet

    greet(settings, "topics")
    control = control_topic(settings, "topics")
    if wanted is not None:
        control.create()
        control.choose_canonical(policy_text(wanted))
    return policy_of(control.read().canonical)


def _wanted(text: str) -> tuple[str, ...]:
    try:
        return policy_of(text)
    except BadInput as error:
        raise WrongUsage(str(error)) from None
