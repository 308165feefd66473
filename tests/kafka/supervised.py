"""Roles that are restarted whenever they end, a consumer of their verdicts, and the expected verdicts.

Made for many pages: of each page, sketch and verdict only a digest is kept.
"""

import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import Any

import orjson
from broker import eventually
from confluent_kafka import Consumer, KafkaException, TopicPartition
from corpus import Event
from line import Line
from roles import How, Role
from xxhash import xxh3_128_digest

from neardup.fold import fold
from neardup.index.memory import MemoryStore
from neardup.sketch.header import Header
from neardup.sketch.make_sketches import sketch_pages
from neardup.verdict import Coordinates
from streams.client import VerdictConsumer
from streams.formats.bodies import Bodies
from streams.formats.codecs import Codec
from streams.formats.message import page_id
from streams.kafka import Writer
from streams.kafka.reader import TopicReader
from streams.ports import Record
from tests.crash.driver import die

#: (partition, offset) of the pages topic.
Place = tuple[int, int]
_SOURCE_BATCH = 2_000
#: A role that ends so often with the same error, while no other role ends, will not recover.
REFUSALS_MAX = 6


def digest_of(key: bytes | None, value: bytes | None, headers: Sequence[tuple[str, bytes | None]] | None) -> bytes:
    """What a record of the pages topic says, in 16 bytes."""
    parts = [key or b"", value, *[part for name, text in headers or () for part in (name.encode(), text)]]
    return xxh3_128_digest(b"".join(b"-" if part is None else b"%d:" % len(part) + part for part in parts))


class Publisher:
    """Writes events into the pages topic; `digests` has each partition's records in their order."""

    def __init__(self, line: Line) -> None:
        self._writer = Writer(line.connection, line.names.pages, message_bytes_max=line.sizes.page_bytes_max)
        self.digests: list[list[bytes]] = [[] for _ in range(line.sizes.partitions)]

    @property
    def pages(self) -> int:
        return sum(map(len, self.digests))

    def send(self, event: Event) -> None:
        place = sum(event.key) % len(self.digests)
        self._writer.send(event.value, key=event.key, headers=event.headers, partition=place)
        self.digests[place].append(digest_of(event.key, event.value, event.headers))

    def wait(self, seconds: float) -> None:
        """Takes acknowledgements in; waits for some if any are due."""
        self._writer.poll(seconds)

    def flush(self) -> None:
        self._writer.flush()


class Watch:
    """An indexer: takes each verdict once, as long as it lives. Its crashes are part of the story, see `crash`."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self.found: dict[tuple[int, int], bytes] = {}
        self.kinds: dict[str, int] = {}
        self.twice: list[tuple[int, int]] = []
        self.crashes = 0
        self.pages = 0
        self._positions: dict[str, int] = {}
        self._news = threading.Event()
        self._crash = threading.Event()
        self._end = threading.Event()
        self._failed: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def load(self) -> Mapping[str, int]:
        """The client's `PositionStore`."""
        return dict(self._positions)

    def crash(self) -> None:
        """Forgets all but what it has stored, and goes on from there."""
        self._crash.set()

    def wait(self, seconds: float) -> None:
        """Until there are new verdicts, or so long."""
        self._news.wait(seconds)
        self._news.clear()

    def alive(self) -> None:
        if self._failed is not None:
            raise AssertionError("the reader of the verdicts has died") from self._failed

    def close(self) -> None:
        self._end.set()
        self._thread.join(60)
        self.alive()

    def _run(self) -> None:
        try:
            while not self._end.is_set():
                with VerdictConsumer(self._line.bootstrap, self, self._line.names.verdicts) as consumer:
                    self._read(consumer)
                self.crashes += 1
        except BaseException as error:  # noqa: BLE001 - raised again by `alive`
            self._failed = error

    def _read(self, consumer: VerdictConsumer) -> None:
        self._crash.clear()
        while not (self._end.is_set() or self._crash.is_set()):
            for batch in consumer.batches(wait_s=0.1):
                if self._crash.is_set():
                    return  # with verdicts in hand that are stored nowhere
                for verdict in batch.verdicts:
                    self._take(verdict)
                self._positions |= batch.positions
                self._news.set()

    def _take(self, verdict: dict[str, Any]) -> None:
        name = (verdict["page_id"], verdict["n"])
        if name in self.found:
            self.twice.append(name)
        self.found[name] = xxh3_128_digest(orjson.dumps(verdict))
        self.pages += verdict["n"] == 0
        self.kinds[verdict["verdict"]] = self.kinds.get(verdict["verdict"], 0) + 1


@dataclass(slots=True)
class _Kept:
    begin: Callable[[], Role]
    role: Role


@dataclass(frozen=True, slots=True)
class Ended:
    """A role that ended without a request. last_line: of its output."""

    name: str
    code: int
    last_line: str


@dataclass
class Keeper:
    """Starts roles again that have ended, as a process manager does. ended: those that ended by themselves."""

    line: Line
    ended: list[Ended] = field(default_factory=list)
    _kept: dict[str, _Kept] = field(default_factory=dict)

    def start(
        self, name: str, *, member: str = "", settings: Mapping[str, Any] | None = None, step: str = "", how: How = die
    ) -> Role:
        """name: `sketch`, `match`, or one of them with a suffix. step: of its first start only."""
        role = name.partition("-")[0]

        def begin(**first: Any) -> Role:
            return self.line.start(role, member=member, settings=settings, **first)

        self._kept[name] = _Kept(begin, begin(step=step, how=how) if step else begin())
        return self._kept[name].role

    def names(self) -> list[str]:
        return sorted(self._kept)

    def role(self, name: str) -> Role:
        return self._kept[name].role

    def kill(self, name: str) -> None:
        """SIGKILL; it begins again at the next `look`."""
        self.role(name).kill()

    def stop(self, name: str) -> None:
        """SIGTERM; it must end by itself, well."""
        self.role(name).stop()

    def look(self) -> None:
        for name, kept in self._kept.items():
            if kept.role.running:
                continue
            code = kept.role.wait()
            if code not in (0, -signal.SIGKILL):
                self.ended.append(Ended(name, code, (kept.role.output().splitlines() or [""])[-1]))
                last = {(ended.name, ended.last_line[:30]) for ended in self.ended[-REFUSALS_MAX:]}
                assert len(self.ended) < REFUSALS_MAX or len(last) > 1, f"again and again: {self.ended[-1]}"
            kept.role = kept.begin()

    def where(self) -> str:
        """The output of each running role, and the stacks of its threads."""
        for name in self.names():
            role = self.role(name)
            if role.running and role.output():  # before its first word it would die of the signal
                role.signal(signal.SIGUSR1)
                eventually(lambda role=role: "hread 0x" in role.output() or not role.running, "the stacks")
        return "\n".join(f"--- {name}\n{self.role(name).output()[-3_000:]}" for name in self.names())

    def end(self) -> None:
        """SIGTERM for all; they end well."""
        for name in self.names():
            if self.role(name).running:
                self.stop(name)
        self._kept.clear()

    def kill_all(self) -> None:
        for name in self.names():
            if self.role(name).running:
                self.role(name).signal(signal.SIGCONT)
            self.kill(name)
        self._kept.clear()


def judged_all(keeper: Keeper, publisher: Publisher, watch: Watch) -> None:
    """Waits until each published page has a verdict and the matcher's place is behind all sketches.

    However long that takes on this machine: it fails only when nothing moves for PATIENCE_SECONDS.
    """
    line = keeper.line
    settings = {"bootstrap.servers": line.bootstrap, "group.id": line.settings.group_of("match")}
    place = -1
    with closing(Consumer(settings)) as asker:

        def done() -> bool:
            nonlocal place
            keeper.look()
            watch.alive()
            if watch.pages < publisher.pages:
                return False
            with suppress(KafkaException):
                place = asker.committed([TopicPartition(line.names.sketches, 0)], 5)[0].offset
            return place == line.ends(line.names.sketches)[0]

        while not done():
            before = (watch.pages, place)
            try:
                eventually(lambda before=before: done() or (watch.pages, place) != before, "a verdict more")
            except AssertionError as error:
                text = f"{watch.pages} of {publisher.pages} pages judged, place {place}; ended: {keeper.ended[-5:]}"
                raise AssertionError(f"{text}\n{keeper.where()}") from error


@dataclass
class _Logged:
    """What the log holds of one page, where it is there first."""

    sketch: bytes
    log_time: int


def check(line: Line, publisher: Publisher, watch: Watch) -> dict[str, int]:
    """Compares everything: pages with those published, sketches with those of the pages, verdicts with a fold.

    The fold is in memory, of the log's own sketches, each page once, where it is in the log first; it shares no code
    with what keeps account. Returns what was counted.
    """
    logged: dict[Place, _Logged] = {}
    verdicts: dict[tuple[int, int], bytes] = {}
    rejected: set[Place] = set()
    counts = {"messages": 0, "pages sent twice": 0, "verdicts": 0}
    for lines in _folded(line, logged, counts):
        for text in lines:
            verdict = orjson.loads(text)
            verdicts[verdict["page_id"], verdict["n"]] = xxh3_128_digest(orjson.dumps(verdict))
            if verdict["verdict"] == "rejected":
                place = verdict["coordinates"]
                rejected.add((place["partition"], place["offset"]))
    counts["verdicts"] = len(verdicts)

    assert not watch.twice, f"verdicts that were read twice: {watch.twice[:5]}"
    missing = sorted(verdicts.keys() - watch.found.keys())
    assert not missing, f"{len(missing)} verdicts are missing: {missing[:5]}"
    more = sorted(watch.found.keys() - verdicts.keys())
    assert not more, f"{len(more)} verdicts that no page has: {more[:5]}"
    different = [name for name, digest in verdicts.items() if watch.found[name] != digest]
    assert not different, f"{len(different)} verdicts differ from the fold's: {different[:5]}"

    counts["pages"] = _check_sketches(line, publisher, logged)
    copies = {(int(values["neardup-partition"]), int(values["neardup-offset"])) for values in _rejected(line)}
    assert copies == rejected, f"{len(rejected ^ copies)} rejected pages lack a copy, or the verdict"
    counts["rejected"] = len(rejected)
    return counts


def _folded(line: Line, logged: dict[Place, _Logged], counts: dict[str, int]) -> Iterator[list[bytes]]:
    """The verdicts of each message of the log; fills `logged`."""
    scheme = line.settings.scheme()
    decider = line.settings.decider(scheme)
    store = MemoryStore()
    source = line.admin.topic(line.names.pages).id
    log = line.admin.topic(line.names.sketches).id.hex()
    for offset, message in line.messages():
        counts["messages"] += 1
        batch = []
        for number, record in enumerate(message.records):
            header = Header(record)
            assert header.source == source
            place = (header.partition, header.offset)
            if place in logged:
                counts["pages sent twice"] += 1
                continue
            logged[place] = _Logged(xxh3_128_digest(record), header.log_time)
            batch.append((page_id(offset, number), record))
        outcome = fold(batch, store, decider)
        store.write(outcome.writes)
        for verdict in outcome.verdicts:
            verdict.log = log
        yield [verdict.to_json() for verdict in outcome.verdicts]


def _check_sketches(line: Line, publisher: Publisher, logged: dict[Place, _Logged]) -> int:
    """The pages as Kafka holds them against those published, and the log's sketches against sketches of these."""
    settings, scheme = line.settings, line.settings.scheme()
    codec = Codec(settings.codec, Bodies(settings.body_ref_prefixes, scheme.body_bytes_max), scheme.body_bytes_max)
    source = line.admin.topic(line.names.pages).id.hex()
    count = 0
    for records in all_of(line, line.names.pages):
        places = [(record.partition(), record.offset()) for record in records]
        for (partition, offset), record in zip(places, records, strict=True):
            found = digest_of(record.key(), record.value(), record.headers())
            assert found == publisher.digests[partition][offset], f"page {partition}/{offset} is not the published one"
        absent = [place for place in places if place not in logged]
        assert not absent, f"pages that never reached the log: {absent[:5]}"
        sketches = sketch_pages(
            [codec.page(record) for record in records],
            scheme,
            coordinates=[Coordinates(source, *place) for place in places],
            log_times=[logged[place].log_time for place in places],
        )
        for place, sketch in zip(places, sketches, strict=True):
            assert xxh3_128_digest(sketch) == logged[place].sketch, f"the sketch of page {place} differs"
        count += len(records)
    assert count == publisher.pages == len(logged), f"{publisher.pages} published, {count} kept, {len(logged)} sketched"
    return count


def _rejected(line: Line) -> Iterator[dict[str, bytes]]:
    for records in all_of(line, line.names.rejected):
        for record in records:
            yield {name: text or b"" for name, text in record.headers() or ()}


def all_of(line: Line, topic: str) -> Iterator[list[Record]]:
    """The records that a topic has now, in batches."""
    with closing(TopicReader(line.connection, topic, committed_only=True)) as reader:
        ends = reader.ends()
        reader.assign(reader.first_offsets())
        while any(position < ends[partition] for partition, position in reader.positions().items()):
            yield reader.read(_SOURCE_BATCH, wait_s=5.0)
