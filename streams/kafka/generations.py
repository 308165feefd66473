"""The control topic: which generations there are, what each was made with, how far it is, and which one is live; what
was taken down; and which page of a cluster an index should show.

One partition, compacted, with four kinds of keys. `live` names the generation that clients read: a cut-over is this
one record, so that it happens at once for everybody, or not at all. `generation/NAME` describes one.
`takedown/WHAT/HASH/LENGTH` keeps a takedown, by its hash: it outlives the sketch logs, and backfills repeat it from
here, since archives and `pages` reach further back. `canonical` is the policy by which everybody chooses
canonical pages (`neardup.canonical`), of all generations. Values are JSON; a null value removes. Where there is no such
topic, or no word about it, the generation without a name is live, and a verdict's own `canonical` holds.
"""

import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any

import orjson

from neardup.errors import CorruptRecord
from neardup.sketch.takedown import Named, Takedown
from streams.errors import TopicError
from streams.kafka.admin import BROKER_TIME, Admin
from streams.kafka.connection import Connection
from streams.kafka.reader import Reader
from streams.kafka.writer import Writer

_LIVE = b"live"
_PREFIX = b"generation/"
_CANONICAL = b"canonical"
_TAKEDOWN = b"takedown/"
_FORMAT = 1


class Stage(StrEnum):
    """How far a generation is. Persisted: values never change."""

    MADE = "made"  # its topics are
    FILLING = "filling"
    CAUGHT_UP = "caught up"  # it had read everything, and goes on with the live topic
    RETIRED = "retired"  # it was live


@dataclass(frozen=True, slots=True)
class Generation:
    """One generation. scheme, decider: digests. sketches_of: the generation whose sketches it judges; None: its own.

    archives: what it read before `pages`. created_ms, staged_ms: when it was made, and came to its stage, in ms since
    the epoch. version: of the program that made it. takedowns_at: offset of its own log behind the takedowns that its
    backfill has repeated there; None: not yet.
    """

    name: str
    scheme: str
    decider: str
    sketches_of: str | None = None
    archives: tuple[str, ...] = ()
    stage: Stage = Stage.MADE
    created_ms: int = 0
    staged_ms: int = 0
    version: str = ""
    takedowns_at: int | None = None

    @property
    def filling(self) -> bool:
        """Whether its backfill has not caught up yet."""
        return self.stage in (Stage.MADE, Stage.FILLING)

    def at(self, stage: Stage) -> "Generation":
        """The same, come to a stage now."""
        return replace(self, stage=stage, staged_ms=now_ms())


@dataclass(frozen=True, slots=True)
class Generations:
    """What the topic says. live: a name, "" where nothing was said. before: who was live before; None: nobody said.

    since_ms: of the cut-over; 0: there was none. canonical: the policy of canonical pages, as `policy_of` reads it.
    takedowns: all of all generations, each once.
    """

    live: str = ""
    before: str | None = None
    since_ms: int = 0
    known: Mapping[str, Generation] = field(default_factory=dict)
    canonical: str = ""
    takedowns: tuple[Takedown, ...] = ()

    def log_of(self, name: str) -> str:
        """The generation whose sketch log this one judges: itself, unless it judges another one's sketches."""
        known = self.known.get(name)
        return name if known is None or known.sketches_of is None else known.sketches_of


def now_ms() -> int:
    """Ms since the epoch; for people, nothing is ordered by it."""
    return time.time_ns() // 1_000_000


class ControlTopic:
    """Reads and writes the topic. Every word is one record: whoever dies in between leaves no half of it."""

    def __init__(self, connection: Connection, name: str) -> None:
        self.name = name
        self._connection = connection
        self._admin = Admin(connection)

    def exists(self, within_s: float | None = None) -> bool:
        """Raises BrokerError."""
        return bool(self._admin.topics([self.name], within_s))

    def create(self, replicas: int = 1) -> bool:
        """Makes the topic; False if it is there already. Raises TopicError if it is not compacted, BrokerError."""
        settings = dict([("cleanup.policy", "compact"), ("unclean.leader.election.enable", "false"), BROKER_TIME])
        if replicas >= 3:
            settings["min.insync.replicas"] = "2"
        if self._admin.create(self.name, 1, replicas, settings):
            return True
        if problem := self.problem():
            raise TopicError(problem)
        return False

    def problem(self) -> str:
        """What is wrong with the topic; empty where nothing is, or it is missing, which says the same as no word."""
        if not self.exists():
            return ""
        found = self._admin.settings(self.name)["cleanup.policy"]
        if found == "compact":
            return ""
        return f"topic {self.name}: cleanup.policy is {found}, needed: compact; what it says would go with time"

    def read(self) -> Generations:
        """What it says now; nothing where there is no such topic. Raises BrokerError, CorruptRecord."""
        if not self.exists():
            return Generations()
        with closing(ControlReader(self._connection, self.name)) as reader:
            return reader.look()

    def follow(self) -> "ControlReader":
        """Raises TopicError without the topic, BrokerError."""
        return ControlReader(self._connection, self.name)

    def describe(self, generation: Generation) -> None:
        """Says how a generation is. Raises BrokerError."""
        self._say(_PREFIX + generation.name.encode(), _encoded(asdict(generation)))

    def forget(self, name: str) -> None:
        """Says that there is no such generation any more. Raises BrokerError."""
        self._say(_PREFIX + name.encode(), None)

    def cut_over(self, name: str, before: str) -> None:
        """Makes a generation the live one, for everybody at once. Raises BrokerError."""
        self._say(_LIVE, _encoded({"generation": name, "before": before, "since_ms": now_ms()}))

    def keep_takedown(self, takedown: Takedown) -> None:
        """Keeps a takedown for all backfills to come. Raises BrokerError."""
        what, digest, length = takedown.what.value, takedown.hash.hex(), takedown.length
        value = {"what": what, "hash": digest, "length": length, "since_ms": now_ms()}
        self._say(_TAKEDOWN + f"{what}/{digest}/{length}".encode(), _encoded(value))

    def choose_canonical(self, policy: str) -> None:
        """Says by which policy canonical pages are chosen, for everybody at once; empty: as verdicts have it.

        Raises BrokerError.
        """
        self._say(_CANONICAL, _encoded({"policy": policy, "since_ms": now_ms()}) if policy else None)

    def _say(self, key: bytes, value: bytes | None) -> None:
        with closing(Writer(self._connection, self.name, linger_ms=0)) as writer:
            writer.send(value, key=key)
            writer.flush()


class ControlReader:
    """Follows the topic: `look` takes in what is new. Not thread-safe."""

    def __init__(self, connection: Connection, name: str) -> None:
        """Raises TopicError without the topic, BrokerError."""
        self._reader = Reader(connection, name, committed_only=False)
        self._said: dict[bytes, bytes] = {}
        self._reader.assign(self._reader.begins())

    def look(self, within_s: float | None = None) -> Generations:
        """What the topic says by now. within_s: for Kafka's answer. Raises BrokerError, TopicError, CorruptRecord."""
        for record in self._reader.read_to(self._reader.ends(within_s)):
            key, value = record.key() or b"", record.value()
            if value is None:
                self._said.pop(key, None)
            else:
                self._said[key] = value
        return _told(self._said, self._reader.topic.name)

    def close(self) -> None:
        self._reader.close()


def _encoded(value: Mapping[str, Any]) -> bytes:
    return orjson.dumps({"format": _FORMAT, **value})


def _told(said: Mapping[bytes, bytes], topic: str) -> Generations:
    live: dict[str, Any] = {"generation": "", "before": None, "since_ms": 0}
    known, canonical, takedowns = {}, "", []
    for key, value in said.items():
        try:
            fields = orjson.loads(value)
            if fields.pop("format") != _FORMAT:
                raise ValueError("this program does not know its form")
            if key == _LIVE:
                live = {name: fields[name] for name in live}
            elif key == _CANONICAL:
                canonical = str(fields["policy"])
            elif key.startswith(_TAKEDOWN):
                takedowns.append(Takedown(Named(fields["what"]), bytes.fromhex(fields["hash"]), int(fields["length"])))
            elif key.startswith(_PREFIX):
                fields |= {"archives": tuple(fields["archives"]), "stage": Stage(fields["stage"])}
                known[fields["name"]] = Generation(**fields)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            name = key.decode("utf-8", "replace")
            raise CorruptRecord(f"topic {topic}: what it says of {name!r} cannot be read: {error}") from error
    since_ms = int(live["since_ms"])
    return Generations(str(live["generation"]), live["before"], since_ms, known, canonical, tuple(takedowns))
