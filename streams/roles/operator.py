"""An operator's words, written into the log so that every later fold repeats them."""

from contextlib import closing

from neardup.errors import BadInput
from neardup.sketch.takedown import Takedown
from streams.config.settings import Settings
from streams.formats.message import Control, Decision, Forget, Word, encode_control
from streams.kafka import KafkaLog, Writer
from streams.roles.runtime import connect
from streams.roles.sketch import check_scheme


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
    return _say(settings, Control(bytes.fromhex(settings.scheme().digest), decision, offset))


def forget(settings: Settings, takedown: Takedown) -> int:
    """Takes pages down: whoever folds the log drops what the index holds of them, from the place of this word on.

    Returns the offset of the word. Raises BrokerError, TopicError, WrongScheme where the log is another seed's: the
    word would stop the line.
    """
    scheme, name = settings.scheme(), settings.topics.sketches
    with closing(KafkaLog(connect(settings, "match"), name)) as log:
        newest = log.last().get(0)
    check_scheme(name, None if newest is None else (newest.offset(), newest.value() or b""), scheme)
    return _say(settings, Forget(bytes.fromhex(scheme.digest), takedown))


def _say(settings: Settings, word: Word) -> int:
    with closing(Writer(connect(settings, "match"), settings.topics.sketches)) as writer:
        writer.send(encode_control(word))
        writer.flush()
        return writer.last_offset
