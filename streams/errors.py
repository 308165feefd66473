"""Errors of the stream. Each class states what the operator does; each text names topic, partition, offset."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from neardup.errors import BadInput, NeardupError, StateError

#: Advice for sketches of another scheme.
SET_THE_SCHEME = "set the seed and body_bytes_max, and run the version of neardup,"
#: Advice for page ids or positions of a deleted topic. `--read-pages`: the log may be whole, and lack earlier pages.
NEW_GENERATION = (
    "begin another generation: neardup backfill --generation NAME --read-pages ARCHIVES, with archives of all pages "
    "that are no longer in `pages`; it repeats the takedowns, and says when to cut over"
)
#: Advice for a sketch log that no longer holds the records that an index needs.
LOG_LOST = (
    "restore a checkpoint that the log still covers into a new `state` folder (neardup checkpoint list, neardup "
    "checkpoint restore), "
    f"or {NEW_GENERATION}"
)

#: What stands in texts for a secret.
HIDDEN = "***"
#: User and password before a URL's host; the password may hold an unencoded slash.
_USER = re.compile(r"""(?<=://)(?:[^\s/?#@:,"']*:(?!\d+(?:/|$))[^\s,"']*|[^\s/?#@,"']*)@""")
_QUERY = re.compile(r"""([?&][^=&\s,"']*=)([^&\s,"']+)""")
#: Shorter values of a query are no tokens.
_TOKEN_CHARS_MIN = 8


def without_credentials(text: str, *, queries: bool = False) -> str:
    """Hide user and password in URLs. queries: whether to hide values of queries, too, which may be tokens."""
    text = _USER.sub(f"{HIDDEN}@", text)
    return _QUERY.sub(rf"\1{HIDDEN}", text) if queries else text


def credentials_in(text: str) -> list[str]:
    """The secrets of the URLs in a setting."""
    users = [found[:-1] for found in _USER.findall(text)]
    passwords = [user.partition(":")[2] or user for user in users]
    return passwords + [value for _, value in _QUERY.findall(text) if len(value) >= _TOKEN_CHARS_MIN]


def how_to_install(extra: str) -> str:
    """The command that installs an optional dependency, for messages."""
    return f"pip install '.[{extra}]' in a clone, or pip install 'neardup[{extra}]' if your package index has neardup"


@contextmanager
def bad_input(what: str) -> Iterator[None]:
    """Turns an error of the file system in the block into BadInput. what: failed, as "cannot write FILE"."""
    try:
        yield
    except OSError as error:
        raise BadInput(f"{what}: {error.strerror or error}") from error


class WrongUsage(BadInput):
    """A command's arguments contradict or name something that does not exist; nothing was begun. Exit code 2."""


class BrokerError(NeardupError):
    """Kafka was unreachable or refused a request. Repair what the text names; restarting is safe."""


class NoAnswer(BrokerError):
    """Kafka did not answer in time. It refused nothing: the same request may be repeated."""


class Unsettled(BrokerError):
    """A transaction failed, or its outcome is unknown. Restarting is safe, and the only way to settle it.

    A start makes a new producer, which aborts an open transaction; the broker then refuses its late records. commits:
    transactions that the same producer had committed before.
    """

    def __init__(self, text: str, /, *, commits: int = 0) -> None:
        super().__init__(text)
        self.commits = commits


class Interrupted(NeardupError):
    """A signal ended the work. Exit code 130."""


class Stopped(NeardupError):
    """The process received a signal to stop while it waited for Kafka. Nothing is lost: the next start continues."""


class InUse(StateError):
    """Another process has the state directory open. Stop it, or name another directory."""


class TopicError(NeardupError):
    """A topic is missing, recreated, or configured so that verdicts could get lost or change.

    Create it with `neardup topics create`, or change the settings that the text names.
    """

    @classmethod
    def anew(cls, topic: str, known: bytes, now: bytes | None, advice: str) -> "TopicError":
        """known, now: ids; None: there is no such topic now."""
        became = "" if now is None else f" and recreated (now {now.hex()})"
        return cls(f"topic {topic} (id {known.hex()}) was deleted{became}: {advice}")


class PositionLost(NeardupError):
    """Records at the position to read next are no longer (or not yet) in the topic.

    Continuing would skip them silently, so nothing is read. The text names what is left and what to do.
    """

    @classmethod
    def of(cls, topic: str, partition: int, required: int, held: range, advice: str) -> "PositionLost":
        """held: the offsets that the topic has."""
        if required < held.start:
            why = f"records {required} to {held.start - 1} were deleted (retention, or by hand) before they were read"
        else:
            why = "it ends before that, so records were lost with a broker"
        return cls(
            f"topic {topic}, partition {partition}: offset {required} is to be read, and the topic holds "
            f"{held.start} to {held.stop - 1}: {why}; {advice}"
        )


class RecordTooLarge(NeardupError):
    """One record is over the limit of client or topic. Raise `max.message.bytes`, or send the body by reference."""


class BodiesAway(NeardupError):
    """A store of bodies does not answer. The sketcher waits and tries again; repair the store: no page is lost.

    A body that fails while its store serves other objects is rejected after some tries. store: the allowed prefix of
    the body, without credentials.
    """

    def __init__(self, text: str, /, *, store: str) -> None:
        super().__init__(text)
        self.store = store


class Fenced(NeardupError):
    """Another matcher with the same transactional id has taken over (or the broker gave this one up).

    No action while the other one runs; this process must end without writing its batch.
    """


class SourceGap(NeardupError):
    """The sketch log leaves out records of a source. They would never be judged, so the matcher stops before them.

    If they are lost for good (retention took them before a sketcher read them), accept the gap that the text names.
    """


class WrongScheme(StateError):
    """Sketches of another scheme, in the log or about to be written to it: they cannot be compared with the others.

    Set the seed and the limits that the log was begun with, or begin another generation.
    """


class NoVerdict(NeardupError):
    """A published page got no verdict in time. Check the roles that the text names."""


def pages_lost(bootstrap: str, group: str, topic: str, partition: int, required: int, held: range) -> str:
    """Return the advice for a position that the topic does not hold."""
    if required > held.stop:
        # The next records would get offsets that are accounted for already, and be dropped as duplicates.
        return NEW_GENERATION
    return (
        "to go on behind them, stop all sketchers and set the group's offset: kafka-consumer-groups.sh "
        f"--bootstrap-server {bootstrap} --group {group} --topic {topic}:{partition} --reset-offsets --to-offset "
        f"{held.start} --execute; the matcher then names what is missing"
    )


def verdicts_gone(topic: str, known: bytes, now: bytes | None) -> TopicError:
    """Return the error of a matcher whose topic of verdicts was deleted."""
    advice = (
        "the verdicts that it held are gone with it; make it with `neardup topics create` if it is missing, and start "
        "the matcher: it says what is gone and how to emit it again"
    )
    return TopicError.anew(topic, known, now, advice)
