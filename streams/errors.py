"""Errors of the wiring. Each class says what the operator does about it; each text names topic, partition, offset."""

from neardup.errors import NeardupError, StateError


class BrokerError(NeardupError):
    """Kafka could not be reached in time or refused. Mend what the text names; starting again is safe."""


class TopicError(NeardupError):
    """A topic is missing, recreated, or set up so that verdicts could get lost or change.

    Create it with `neardup topics create`, or change the settings that the text names.
    """


class PositionLost(NeardupError):
    """Records at the position to read next are no longer (or not yet) in the topic.

    Reading on would skip them silently, so nothing is read. The text says what is left and what to do.
    """


class RecordTooLarge(NeardupError):
    """One record is over the limit of client or topic. Raise `max.message.bytes`, or send the body by reference."""


class BodiesAway(NeardupError):
    """A store of bodies does not answer. The sketcher waits and asks again; mend the store: no page is given up."""


class NotCommitted(NeardupError):
    """A transaction was aborted each time it was tried: none of its verdicts can be read. The text has the cause."""


class Fenced(NeardupError):
    """Another matcher with the same transactional id has taken over (or the broker gave this one up).

    Nothing to do while the other one runs; this process must end without writing its batch.
    """


class SourceGap(NeardupError):
    """The sketch log leaves out records of a source: they would never be judged, so nothing after them is.

    If they are lost for good (retention took them before a sketcher read them), accept the gap that the text names.
    """


class WrongScheme(StateError):
    """Sketches of another scheme, in the log or about to be written to it: they would never meet the others.

    Set the seed and the limits that the log was begun with, or begin another generation.
    """


class NoVerdict(NeardupError):
    """A page was published and its verdict did not come in time. Look at the roles: the text says where."""
