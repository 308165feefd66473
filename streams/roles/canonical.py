"""Reads or sets the stream's policy of canonical pages."""

from neardup.canonical import policy_of, policy_text
from streams.config.settings import Settings
from streams.roles.generations import control_topic
from streams.roles.runtime import greet


def hold_stream(settings: Settings, text: str | None) -> tuple[str, ...]:
    """Returns the stream's policy. text: a new policy to set first, as a record of the control topic; None: none.

    Raises BadInput, BrokerError, CorruptRecord.
    """
    required = None if text is None else policy_of(text)
    greet(settings, "topics")
    control = control_topic(settings, "topics")
    if required is not None:
        control.create()
        control.choose_canonical(policy_text(required))
    return policy_of(control.read().canonical)
