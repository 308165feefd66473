"""A consumer of verdicts, with the package's client, on a scripted broker."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from streams.client import LOST, VerdictConsumer
from streams.errors import PositionLost
from tests.streams.scripted import Broker, ScriptedTopic


@dataclass
class Indexer:
    """Positions and table are stored together. taken: verdicts by the id of their topic, in the order they came.

    cleared: topics of which it has not read all from the start on: it came late, or had to clear its positions.
    """

    broker: Broker
    positions: dict[str, int] = field(default_factory=dict)
    table: dict[str, tuple[str, int, int, str]] = field(default_factory=dict)
    taken: dict[bytes, list[dict[str, Any]]] = field(default_factory=dict)
    cleared: set[bytes] = field(default_factory=set)

    def load(self) -> Mapping[str, int]:
        """The client's `PositionStore`."""
        return dict(self.positions)

    def read(self, topic: str, count: int, batches: int, *, crash: bool) -> None:
        """Some batches, until there are no more. crash: with the last one in hand, stored nowhere."""
        with Client(self.broker, self, topic) as client:
            if not self.positions and any(held.begin for held in self.broker.topic(topic).partitions):
                self.cleared.add(client.topic_id)  # some were deleted before it was there
            for number, batch in enumerate(client.batches(follow=False, count=count), 1):
                if crash and number == batches:
                    return
                self._take(client.topic_id, batch.verdicts, batch.positions)
                if number == batches:
                    return

    def clear(self, topic: str) -> None:
        """What the client asks for where positions are void."""
        self.positions = {}
        self.cleared.add(self.broker.topic(topic).id)

    def _take(self, topic: bytes, verdicts: Sequence[dict[str, Any]], positions: Mapping[str, int]) -> None:
        """What the example of streams/client.py does in its transaction."""
        for verdict in verdicts:
            row = (verdict["log"], verdict["page_id"], verdict["n"], verdict["verdict"])
            held = self.table.get(verdict["url"])
            if held is None or held[0] != row[0] or row[1:3] > held[1:3]:
                self.table[verdict["url"]] = row
        self.taken.setdefault(topic, []).extend(verdicts)
        self.positions = dict(positions)


class Client(VerdictConsumer):
    def __init__(self, broker: Broker, store: Indexer, topic: str) -> None:
        self._broker = broker
        super().__init__("broker:9092", store, topic)

    @property
    def topic_id(self) -> bytes:
        return self._reader.topic.id

    def _open(self, topic: str) -> Any:
        return _Reader(self._broker, topic)


@dataclass
class _Described:
    held: ScriptedTopic

    @property
    def name(self) -> str:
        return self.held.name

    @property
    def id(self) -> bytes:
        return self.held.id

    @property
    def partitions(self) -> int:
        return len(self.held.partitions)


class _Reader:
    """Takes the place of `streams.kafka.Reader`."""

    def __init__(self, broker: Broker, name: str) -> None:
        self._broker, self.topic = broker, _Described(broker.topic(name))
        self._at: dict[int, int] = {}

    def first_offsets(self) -> dict[int, int]:
        return {number: held.begin for number, held in enumerate(self.topic.held.partitions)}

    def ends(self) -> dict[int, int]:
        return {number: held.end for number, held in enumerate(self.topic.held.partitions)}

    def positions(self) -> dict[int, int]:
        return dict(self._at)

    def assign(self, starts: Mapping[int, int]) -> None:
        self._at = dict(starts)
        for partition in self._at:
            self._must_hold(partition)

    def _must_hold(self, partition: int) -> None:
        held, at = self.topic.held.partitions[partition].held, self._at[partition]
        if not held.start <= at <= held.stop:
            raise PositionLost.of(self.topic.name, partition, at, held, LOST)

    def read(self, count: int, *, bytes_max: int, wait_s: float) -> list["_Record"]:
        self._broker.same(self.topic.held, "once it is there, start again to read the new one")
        found: list[_Record] = []
        for partition, start in self._at.items():
            self._must_hold(partition)
            held = self.topic.held.partitions[partition]
            stop = min(held.end, start + count - len(found))
            found += [
                _Record(self.topic.held.name, partition, at, held.records[at])
                for at in range(start, stop)
                if held.records[at]
            ]
            self._at[partition] = stop
        return found

    def close(self) -> None:
        """Nothing is held."""


@dataclass
class _Record:
    name: str
    number: int
    at: int
    pair: Any

    def topic(self) -> str:
        return self.name

    def partition(self) -> int:
        return self.number

    def offset(self) -> int:
        return self.at

    def value(self) -> bytes:
        return bytes(self.pair[1])
