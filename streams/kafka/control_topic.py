"""The control topic: generations with their stages, the live generation, takedowns, and the policy of canonical pages.

The topic has one partition and is compacted. Values are JSON; a null value removes a key. There are four kinds of keys:

* `live` names the generation that clients read. A cut-over is this one record, so all clients switch, or none does.
* `generation/NAME` describes a generation.
* `takedown/WHAT/HASH/LENGTH` keeps a takedown by its hash. It outlives the sketch logs: backfills repeat it from here,
  because archives and `pages` reach further back than a log.
* `canonical` is the policy by which all generations choose canonical pages (`neardup.canonical`).

Without the topic, or without a record of a kind, the generation without a name is live, and `canonical` of a verdict
holds.
"""

import dataclasses
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any

import orjson
from msgspec import Struct

from neardup.errors import CorruptRecord
from neardup.sketch.takedown_hashes import Named, Takedown
from neardup.typed_json import decode, typed
from streams.errors import TopicError
from streams.kafka.admin import BROKER_TIME, Admin
from streams.kafka.connection import Connection
from streams.kafka.reader import TopicReader
from streams.kafka.writer import Writer
from streams.process.shutdown import now_ms

_LIVE = b"live"
_PREFIX = b"generation/"
_CANONICAL = b"canonical"
_TAKEDOWN = b"takedown/"
_FORMAT = 1


class Stage(StrEnum):
    """The stage of a generation. Persisted: values never change."""

    MADE = "made"  # its topics exist
    FILLING = "filling"
    CAUGHT_UP = "caught up"  # its backfill has read everything, and follows the live topic
    RETIRED = "retired"  # it was live


@dataclass(frozen=True, slots=True)
class Generation:
    """A generation.

    scheme, decider: digests of scheme and decider.
    sketches_of: generation whose sketches are judged; None: the generation's own sketches.
    archives: files that the backfill read before `pages`.
    created_ms, staged_ms: times of the creation and of the stage, ms since 1970.
    version: version of the program that made the generation.
    takedowns_at: offset of the generation's log after the takedowns that its backfill has repeated; None: not yet.
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

    def in_stage(self, stage: Stage) -> "Generation":
        """Returns the generation at a new stage, from now on."""
        return replace(self, stage=stage, staged_ms=now_ms())


@dataclass(frozen=True, slots=True)
class Generations:
    """The content of the topic. live: name of the live generation, "" without a record. before: the one before; None:
    there was no cut-over.

    since_ms: time of the cut-over; 0: there was none. canonical: the policy of canonical pages, as `policy_of` reads
    it. takedowns: the takedowns of all generations, each once.
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


class ControlTopic:
    """Reads and writes the topic. Each change is one record, so a crash leaves no half of a change."""

    def __init__(self, connection: Connection, name: str) -> None:
        self.name = name
        self._connection = connection
        self._admin = Admin(connection)

    def exists(self, within_s: float | None = None) -> bool:
        """Raises BrokerError."""
        return bool(self._admin.topics([self.name], within_s))

    def create(self, replicas: int = 1) -> bool:
        """Creates the topic; False if it exists. Raises TopicError if it is not compacted, BrokerError."""
        settings = dict([("cleanup.policy", "compact"), ("unclean.leader.election.enable", "false"), BROKER_TIME])
        if replicas >= 3:
            settings["min.insync.replicas"] = "2"
        if self._admin.create(self.name, 1, replicas, settings):
            return True
        if problem := self.problem():
            raise TopicError(problem)
        return False

    def problem(self) -> str:
        """The problem of the topic; empty if there is none. A missing topic is valid: it counts as an empty one."""
        if not self.exists():
            return ""
        found = self._admin.settings(self.name)["cleanup.policy"]
        if found == "compact":
            return ""
        return f"topic {self.name}: cleanup.policy is {found}, needed: compact; what it says would go with time"

    def read(self) -> Generations:
        """Reads the topic; empty if it does not exist. Raises BrokerError, CorruptRecord."""
        if not self.exists():
            return Generations()
        with closing(ControlReader(self._connection, self.name)) as reader:
            return reader.look()

    def follow(self) -> "ControlReader":
        """Raises TopicError without the topic, BrokerError."""
        return ControlReader(self._connection, self.name)

    def describe(self, generation: Generation) -> None:
        """Writes the description of a generation. Raises BrokerError."""
        self._say(_PREFIX + generation.name.encode(), _encoded(asdict(generation)))

    def forget(self, name: str) -> None:
        """Removes the description of a generation. Raises BrokerError."""
        self._say(_PREFIX + name.encode(), None)

    def cut_over(self, name: str, before: str) -> None:
        """Makes a generation the live one, for all clients at once. Raises BrokerError."""
        self._say(_LIVE, _encoded({"generation": name, "before": before, "since_ms": now_ms()}))

    def keep_takedown(self, takedown: Takedown) -> None:
        """Stores a takedown, for all later backfills. Raises BrokerError."""
        what, digest, length = takedown.what.value, takedown.hash.hex(), takedown.length
        value = {"what": what, "hash": digest, "length": length, "since_ms": now_ms()}
        self._say(_TAKEDOWN + f"{what}/{digest}/{length}".encode(), _encoded(value))

    def choose_canonical(self, policy: str) -> None:
        """Sets the policy of canonical pages for all consumers at once. Empty: `canonical` of each verdict holds.

        Raises BrokerError.
        """
        self._say(_CANONICAL, _encoded({"policy": policy, "since_ms": now_ms()}) if policy else None)

    def _say(self, key: bytes, value: bytes | None) -> None:
        with closing(Writer(self._connection, self.name, linger_ms=0)) as writer:
            writer.send(value, key=key)
            writer.flush()


class ControlReader(TopicReader):
    """Follows the topic: `look` reads new records. Not thread-safe."""

    def __init__(self, connection: Connection, name: str) -> None:
        """Raises TopicError without the topic, BrokerError."""
        super().__init__(connection, name, committed_only=False)
        self._values: dict[bytes, bytes] = {}
        self.assign(self.first_offsets())

    def look(self, within_s: float | None = None) -> Generations:
        """The content of the topic by now. within_s: time limit. Raises BrokerError, TopicError, CorruptRecord."""
        for record in self.read_to(self.ends(within_s)):
            key, value = record.key() or b"", record.value()
            if value is None:
                self._values.pop(key, None)
            else:
                self._values[key] = value
        return _content_of(self._values, self.topic.name)


def _encoded(value: Mapping[str, Any]) -> bytes:
    return orjson.dumps({"format": _FORMAT, **value})


class _Live(Struct):
    generation: str
    before: str | None
    since_ms: int


class _Policy(Struct):
    policy: str


class _Takedown(Struct):
    what: Named
    hash: str
    length: int


def _content_of(values: Mapping[bytes, bytes], topic: str) -> Generations:
    live, known, canonical, takedowns = _Live("", None, 0), {}, "", []
    for key, value in values.items():
        try:
            fields = decode(value, dict[str, Any])
            if fields.pop("format", None) != _FORMAT:
                raise ValueError("this program does not know its form")
            if key == _LIVE:
                live = typed(fields, _Live)
            elif key == _CANONICAL:
                canonical = typed(fields, _Policy).policy
            elif key.startswith(_TAKEDOWN):
                given = typed(fields, _Takedown)
                takedowns.append(Takedown(given.what, bytes.fromhex(given.hash), given.length))
            elif key.startswith(_PREFIX):
                if unknown := sorted(fields.keys() - {each.name for each in dataclasses.fields(Generation)}):
                    raise ValueError(f"{', '.join(unknown)}: no known field")
                described = typed(fields, Generation)
                known[described.name] = described
        except ValueError as error:
            name = key.decode("utf-8", "replace")
            raise CorruptRecord(f"topic {topic}: the record {name!r} cannot be read: {error}") from error
    return Generations(live.generation, live.before, live.since_ms, known, canonical, tuple(takedowns))
