"""Errors of the wiring. Each class says what the operator does about it; each text names topic, partition, offset."""

from neardup.errors import BadInput, NeardupError, StateError

#: What to do where sketches of another scheme are.
SET_THE_SCHEME = "set the seed, body_bytes_max and article_tape_bytes_max (0 for what an older version began)"
#: What to do where page ids, or positions, are those of a topic that is no more. Nothing that was told gets lost by it.
NEW_GENERATION = (
    "begin another generation: give all roles another `generation` and a new `state` folder, make its topics with "
    "`neardup topics create`, and the pages that are left are judged anew"
)
#: Where the sketch log no longer holds what an index needs.
LOG_LOST = (
    "restore a checkpoint that the log still covers into a new `state` folder (neardup checkpoints, neardup restore), "
    f"or {NEW_GENERATION}"
)


def how_to_install(extra: str) -> str:
    """The command that installs an optional dependency, for messages."""
    return f"pip install 'neardup[{extra}]', or in a clone pip install '.[{extra}]'"


class WrongUsage(BadInput):
    """What a command was asked for makes no sense, or names what is not there; nothing was begun. Exit code 2."""


class BrokerError(NeardupError):
    """Kafka could not be reached in time or refused. Mend what the text names; starting again is safe."""


class NoAnswer(BrokerError):
    """Kafka did not answer in time. It has refused nothing: the same request may be made again."""


class Unsettled(BrokerError):
    """A transaction failed, or its outcome is not known. Starting again is safe, and the only way to settle it.

    A start makes a new producer. That aborts the transaction if it is open, and the broker refuses records of it that
    are still on their way. commits: transactions that the same producer had committed before.
    """

    def __init__(self, text: str, /, *, commits: int = 0) -> None:
        super().__init__(text)
        self.commits = commits


class Interrupted(NeardupError):
    """A signal ended the work. Exit code 130."""


class Stopped(NeardupError):
    """The process was told to stop while it waited for Kafka. Nothing is lost: the next start goes on from there."""


class TopicError(NeardupError):
    """A topic is missing, recreated, or set up so that verdicts could get lost or change.

    Create it with `neardup topics create`, or change the settings that the text names.
    """

    @classmethod
    def anew(cls, topic: str, known: bytes, now: bytes | None, advice: str) -> "TopicError":
        """known, now: ids; None: there is no such topic now."""
        became = "" if now is None else f" and made anew (now {now.hex()})"
        return cls(f"topic {topic} (id {known.hex()}) was deleted{became}: {advice}")


class PositionLost(NeardupError):
    """Records at the position to read next are no longer (or not yet) in the topic.

    Reading on would skip them silently, so nothing is read. The text says what is left and what to do.
    """

    @classmethod
    def of(cls, topic: str, partition: int, wanted: int, held: range, advice: str) -> "PositionLost":
        """held: the offsets that are there."""
        if wanted < held.start:
            why = f"records {wanted} to {held.start - 1} were deleted (retention, or by hand) before they were read"
        else:
            why = "it ends before that, so records were lost with a broker"
        return cls(
            f"topic {topic}, partition {partition}: offset {wanted} is to be read, and the topic holds {held.start} to "
            f"{held.stop - 1}: {why}; {advice}"
        )


class RecordTooLarge(NeardupError):
    """One record is over the limit of client or topic. Raise `max.message.bytes`, or send the body by reference."""


class BodiesAway(NeardupError):
    """A store of bodies does not answer. The sketcher waits and asks again; mend the store: no page is given up.

    A body that fails while its store answers for other objects is rejected after some tries. store: the allowed prefix
    that the body is under, without credentials.
    """

    def __init__(self, text: str, /, *, store: str) -> None:
        super().__init__(text)
        self.store = store


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


def pages_lost(bootstrap: str, group: str, topic: str, partition: int, wanted: int, held: range) -> str:
    """What to do where `wanted` is not held."""
    if wanted > held.stop:
        # What is written there next has offsets that are known: it would be dropped as sent twice.
        return NEW_GENERATION
    return (
        "to go on behind them, stop all sketchers and set the group's offset: kafka-consumer-groups.sh "
        f"--bootstrap-server {bootstrap} --group {group} --topic {topic}:{partition} --reset-offsets --to-offset "
        f"{held.start} --execute; the matcher then names what is missing"
    )


def verdicts_gone(topic: str, known: bytes, now: bytes | None) -> TopicError:
    """What a matcher says that runs when its verdicts' topic goes."""
    advice = (
        "the verdicts that it held are gone with it; make it with `neardup topics create` if it is missing, and start "
        "the matcher: it says what is gone and how it is told again"
    )
    return TopicError.anew(topic, known, now, advice)
