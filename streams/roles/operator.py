"""An operator's word on a message that stops the line, written into the log so that every later fold repeats it."""

from contextlib import closing

from neardup.errors import BadInput
from streams.config.settings import Settings
from streams.formats.message import Control, Decision, encode_control
from streams.kafka import KafkaLog, Writer
from streams.roles.runtime import connect


def accept_gap(settings: Settings, offset: int) -> int:
    """Lets the line go on over what the message at `offset` of the sketch log leaves out.

    Returns the offset of the word itself. The matcher finds it at its next start. Raises BadInput, BrokerError.
    """
    return _decide(settings, Decision.ACCEPT_GAP, offset)


def skip_record(settings: Settings, offset: int) -> int:
    """Leaves out what of the message at `offset` of the sketch log cannot be read: those pages get no verdict.

    Returns the offset of the word itself. The matcher finds it at its next start. Raises BadInput, BrokerError.
    """
    return _decide(settings, Decision.SKIP_RECORD, offset)


def _decide(settings: Settings, decision: Decision, offset: int) -> int:
    connection = connect(settings, "match")
    with closing(KafkaLog(connection, settings.topics.sketches)) as log:
        begin, end = log.begin(), log.end()
    if not begin <= offset < end:
        raise BadInput(f"topic {settings.topics.sketches} holds offsets {begin} to {end - 1}, and not {offset}")
    with closing(Writer(connection, settings.topics.sketches)) as writer:
        writer.send(encode_control(Control(bytes.fromhex(settings.scheme().digest), decision, offset)))
        writer.flush()
        return writer.last_offset
