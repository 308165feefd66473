"""A whole line on a real broker: topics, pages, roles, and what must come out."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from signal import SIGUSR1
from typing import Any, ClassVar

from broker import alter, eventually
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from roles import How, Role

from neardup.fold import fold
from neardup.index.layered import Layered
from neardup.index.memory import MemoryStore
from neardup.matching.takedown_and_expiry import take_down
from neardup.page import Page
from neardup.sketch.header import Header
from neardup.sketch.make_sketches import sketch_pages
from neardup.verdict import Coordinates
from streams.config.settings import Settings, Topics
from streams.formats.message import Forget, Message, NewDecider, decode_entry, page_id
from streams.kafka import Admin, Connection, KafkaLog, Writer, topics
from streams.kafka.connection import PASSING, Cause, repeat
from streams.kafka.reader import TopicReader
from streams.kafka.topics import Sizes
from streams.process.watchdog import EXIT_CODE
from tests.crash.driver import die
from tests.streams.archives import crawl

#: Settings of all sketchers: a dead one is noticed soon.
SOON = {"sketch.session.timeout.ms": "6000", "sketch.heartbeat.interval.ms": "200"}
#: Settings of roles that replace killed ones, without a standby: a group assigns no partition, and no member leaves it,
#: until the session of a dead member has ended.
REPLACING = {**SOON, "sketch.session.timeout.ms": "2000", "match.session.timeout.ms": "1500"}


def story(count: int = 24) -> list[Page]:
    """Fetches for all kinds of verdicts: copies, edits, fetches again, tombstones, what cannot be read."""
    pages: list[Page] = []
    for number, sample in enumerate(crawl(count)):
        url = f"http://site{number % 3}.example/{sample.path}"
        pages.append(Page(url, sample.body, "text/html", sample.ms))
        if number % 5 == 2:
            pages.append(Page(url, sample.body, "text/html", sample.ms + 50_000))  # unchanged
        if number % 7 == 3:
            pages.append(Page(url, sample.body.replace(b"<p>", b"<p>news "), "text/html", sample.ms + 60_000))
        if number % 9 == 4:
            pages.append(Page(url, None, fetched_at=sample.ms + 70_000))
        if number % 11 == 5:
            pages.append(Page(url, b"oops", "text/html", sample.ms + 80_000, status=503))
        if number % 13 == 6:
            pages.append(Page("no url at all", sample.body, "text/html", sample.ms))
    return pages


def auditing(names: Topics) -> tuple[Topics, dict[str, Any]]:
    """Topics and settings of a line that draws pairs of all pages, into a topic; its shadow joins next to nothing."""
    names = names._replace(audit=names.verdicts + ".audit")
    strict = "tape_min=0.999,two_sites_tape_min=0.999,short_tape_min=0.999"
    return names, {"audit_topic": names.audit, "audit_rate": 1.0, "shadow_set": strict}


class Line:
    """Topics of one test, with two partitions of pages. `published`: what each record holds, by (source, partition).

    open: lines that are not closed.
    """

    open: ClassVar[list["Line"]] = []

    def __init__(self, bootstrap: str, names: Topics, folder: Path, *, partitions: int = 2, **settings: Any) -> None:
        self.bootstrap, self.folder = bootstrap, folder
        self.connection = Connection(bootstrap)
        self.admin = Admin(self.connection)
        self.names, self.sizes = names, Sizes(partitions=partitions)
        topics.create(self.admin, names, self.sizes)
        self.settings = Settings(
            bootstrap=bootstrap,
            group=names.pages.removesuffix(".pages"),
            pages_topic=names.pages,
            rejected_topic=names.rejected,
            sketches_topic=names.sketches,
            verdicts_topic=names.verdicts,
            state=str(folder / "state"),
            seed=7,
            **{"batch_pages": 5, "batch_ms": 5, "match_messages": 2, "threads": 1, "kafka_values": SOON, **settings},
        )
        self.published: dict[tuple[str, int], list[Page]] = {}
        self._roles: list[Role] = []
        self._left_out: set[int] = set()
        self._lost = 0
        self._client = AdminClient({"bootstrap.servers": bootstrap})
        Line.open.append(self)

    def publish(self, pages: Sequence[Page], partition: int | None = None) -> None:
        """Spreads the pages over the partitions by their URLs, or puts them into one."""
        source = self.admin.topic(self.names.pages).id.hex()
        writer = Writer(self.connection, self.names.pages)
        for page in pages:
            place = partition if partition is not None else sum(page.url.encode()) % self.sizes.partitions
            headers = [("content-type", page.content_type.encode()), ("http-status", b"%d" % page.status)]
            if page.fetched_at is not None:
                headers.append(("fetched-at", b"%d" % page.fetched_at))
            writer.send(page.body, key=page.url.encode(), headers=headers, partition=place)
            self.published.setdefault((source, place), []).append(page)
        writer.flush()

    def start(
        self,
        role: str,
        *,
        step: str = "",
        call: int = 2,
        how: How = die,
        member: str = "",
        settings: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Role:
        """member: a static one of the group, which need not wait for its predecessor's session to end.
        By default members are dynamic, and leave the group when they end by themselves.

        step, call, how: where it dies, at which time, and in which way. settings: what differs from the line's own.
        options: of the role's function.
        """
        settings_ = replace(self.settings, **(settings or {}))
        if role != "match" and member:
            settings_ = replace(settings_, kafka_values={**settings_.kafka_values, "sketch.group.instance.id": member})
        log = self.folder / f"{len(self._roles)}-{role}.log"
        self._roles.append(Role(role, settings_, log, step=step, call=call, how=how, **options))
        return self._roles[-1]

    def judge(self, pages: Sequence[Page]) -> None:
        """Publishes the pages, and starts a sketcher and a matcher."""
        self.publish(pages)
        self.start("sketch")
        self.start("match")

    def total(self) -> int:
        return sum(map(len, self.published.values()))

    def settle(self, *, judged: bool = True, look: Callable[[], object] = lambda: None) -> None:
        """Waits until everything published is read, and everything in the log is judged.

        look: called all the time meanwhile.
        """

        def read() -> bool:
            self._look_after()
            look()
            ends = self.ends(self.names.pages)
            return self.committed("sketch", self.names.pages, len(ends)) == ends

        def all_judged() -> bool:
            self._look_after()
            look()
            return self.committed("match", self.names.sketches, 1) == self.ends(self.names.sketches)

        eventually(read, "all pages read")
        if judged:
            eventually(all_judged, "all sketches judged")

    def _look_after(self) -> None:
        for role in self._roles:
            assert role.running or role.wait() in (0, 1, EXIT_CODE, -9, -15), role.output()

    def committed(self, role: Any, topic: str, partitions: int) -> dict[int, int]:
        """Offsets; -1 where nothing is."""
        found = self.admin.all_committed(self.settings.group_of(role), topic, range(partitions))
        return {partition: -1 if known is None else known.offset for partition, known in found.items()}

    def ends(self, topic: str) -> dict[int, int]:
        return self.admin.offsets(self.admin.topic(topic), "latest")

    def members(self) -> int:
        """Of the sketchers' group, with a partition each."""
        group = self.settings.group_of("sketch")
        ask = self._client.describe_consumer_groups
        described = repeat("members", lambda: ask([group])[group].result(30), Cause(), 60)  # its coordinator may be new
        return sum(bool(member.assignment.topic_partitions) for member in described.members)

    def in_transaction(self) -> bool:
        """Whether the matcher's next offset waits for the end of a transaction."""
        settings = {"bootstrap.servers": self.bootstrap, "isolation.level": "read_committed"}
        asker = Consumer({**settings, "group.id": self.settings.group_of("match")})
        try:
            asker.committed([TopicPartition(self.names.sketches, 0)], 0.5)
        except KafkaException as error:
            if error.args[0].code() not in PASSING:
                raise
            return True
        finally:
            asker.close()
        return False

    def forget(self, role: Any) -> None:
        """Deletes the group with its offsets, as the broker does when they expire."""
        group = self.settings.group_of(role)
        self._client.delete_consumer_groups([group])[group].result(30)

    def reset(self, role: Any, topic: str, offset: int) -> None:
        """What an operator may do to a group whose members are gone."""
        group = self.settings.group_of(role)
        place = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, offset)])

        def alter() -> bool:
            try:
                self._client.alter_consumer_group_offsets([place])[group].result(30)
            except KafkaException as error:  # a static member is remembered for a while
                if error.args[0].code() != KafkaError.UNKNOWN_MEMBER_ID:
                    raise
                return False
            return True

        eventually(alter, "offsets altered")

    def delete(self, topic: str) -> None:
        self._client.delete_topics([topic])[topic].result(30)
        eventually(lambda: not self.admin.topics([topic]), "the topic's end")

    def recreate(self, topic: str) -> None:
        self.delete(topic)
        topics.create(self.admin, self.names, self.sizes)

    def delete_before(self, topic: str, partition: int, offset: int) -> None:
        """What retention does."""
        place = TopicPartition(topic, partition, offset)
        self._client.delete_records([place])[place].result(30)

    def alter(self, topic: str, setting: str, value: str) -> None:
        alter(self.bootstrap, topic, setting, value)

    def append(self, message: bytes) -> int:
        """Writes to the sketch log whatever it is; its offset."""
        with closing(Writer(self.connection, self.names.sketches)) as writer:
            writer.send(message)
            writer.flush()
            return writer.last_offset

    def rejected(self) -> list[Any]:
        with closing(TopicReader(self.connection, self.names.rejected, committed_only=False)) as reader:
            reader.assign(reader.first_offsets())
            found: list[Any] = []
            while len(found) < sum(reader.ends().values()):
                found += reader.read(4096, wait_s=1.0)
        return found

    def leave_out(self, offset: int) -> None:
        """`expected` shall not read the message at this offset of the log."""
        self._left_out.add(offset)

    def lose(self, start: int, stop: int) -> None:
        """Deletes these offsets of partition 0 unread."""
        self._lost += stop - start

    def describe(self) -> str:
        """Ends of all topics of the test and committed offsets of its groups; running roles write their stacks."""
        for role in self._roles:
            if role.running:
                role.signal(SIGUSR1)
        prefix = self.names.pages.removesuffix(".pages")
        names = sorted(name for name in self._client.list_topics(timeout=30).topics if name.startswith(prefix))
        ends = [f"{topic}: {self.ends(topic)}" for topic in names]
        groups = [each.group_id for each in self._client.list_consumer_groups().result(30).valid]
        positions = []
        for group in sorted(group for group in groups if group.startswith(prefix)):
            asked = [ConsumerGroupTopicPartitions(group)]
            found = self._client.list_consumer_group_offsets(asked, require_stable=False)[group].result(30)
            places = [f"{at.topic}/{at.partition} {at.offset}" for at in found.topic_partitions]
            positions.append(f"group {group}: {', '.join(places)}")
        states = [f"{role.log.name}: {'runs' if role.running else 'has ended'}" for role in self._roles]
        return "\n".join([*ends, *positions, *states])

    def close(self) -> None:
        if self in Line.open:
            Line.open.remove(self)
        for role in self._roles:
            role.kill()
            print(f"--- {role.log.name}\n{role.output()}")  # shown if the test fails

    def stop(self) -> None:
        for role in self._roles:
            if role.running:
                role.stop()

    def verdicts(self) -> list[dict[str, Any]]:
        """All committed verdicts, by their ids; twice what is there twice."""
        found = []
        with closing(TopicReader(self.connection, self.names.verdicts, committed_only=True)) as reader:
            ends = reader.ends()
            reader.assign(reader.first_offsets())
            while any(position < ends[partition] for partition, position in reader.positions().items()):
                for record in reader.read(4096, wait_s=0.05):  # the last offset is a marker, which no read returns
                    if (value := record.value()) is None:
                        continue  # an operator's
                    verdict = json.loads(value)
                    assert (record.key() or b"").decode() == verdict["url"]
                    found.append(verdict)
        return sorted(found, key=lambda verdict: (verdict["page_id"], verdict["n"]))

    def messages(self) -> Iterator[tuple[int, Message]]:
        """Of sketches alone."""
        for offset, entry in self._entries():
            if isinstance(entry, Message):
                yield offset, entry

    def takedowns(self) -> list[int]:
        """Offsets of the takedowns in the log."""
        return [offset for offset, entry in self._entries() if isinstance(entry, Forget)]

    def _entries(self) -> Iterator[tuple[int, Any]]:
        with closing(KafkaLog(self.connection, self.names.sketches)) as log:
            for offset, data in log.messages(log.first_offset()):
                if offset not in self._left_out:
                    yield offset, decode_entry(data, offset)

    def expected(self) -> list[dict[str, Any]]:
        """Verdicts of a fold, page by page and in memory, of the pages as they were published, in the log's order.

        A page that is in the log more than once counts where it comes first. Shares no code with what keeps account.
        """
        scheme = self.settings.scheme()
        decider = self.settings.decider(scheme)
        store = MemoryStore()
        fields = {"log": self.admin.topic(self.names.sketches).id.hex()}
        if self.settings.generation:
            fields["generation"] = self.settings.generation
        seen: set[tuple[str, int, int]] = set()
        lines = []
        for offset, entry in self._entries():
            decider = entry.after if isinstance(entry, NewDecider) else decider
            if isinstance(entry, Forget):
                index = Layered(store)
                removed = take_down(entry.takedown, index, decider, cause=page_id(offset, 0))
                store.write(index.changes)
                lines += [{**json.loads(verdict.to_json()), **fields} for verdict in removed.verdicts]
            for place, record in enumerate(entry.records if isinstance(entry, Message) else ()):
                header = Header(record)
                coordinates = Coordinates(header.source.hex(), header.partition, header.offset, header.position)
                name = (coordinates.source, coordinates.partition, coordinates.offset)
                if name in seen:
                    continue
                seen.add(name)
                page = self.published[coordinates.source, coordinates.partition][coordinates.offset]
                (sketch,) = sketch_pages([page], scheme, coordinates=[coordinates], log_times=[header.log_time])
                outcome = fold([(page_id(offset, place), sketch)], store, decider)
                store.write(outcome.writes)
                lines += [{**json.loads(verdict.to_json()), **fields} for verdict in outcome.verdicts]
        missing = self.total() - self._lost - len(seen)
        assert missing == 0, f"{missing} pages never reached the log"
        return lines

    def check(self) -> list[dict[str, Any]]:
        """Everything is read and judged, and each page once, as if nothing had happened."""
        self.settle()
        self.stop()
        found, wanted = self.verdicts(), self.expected()
        there, due = (Counter((v["page_id"], v["n"]) for v in each) for each in (found, wanted))
        assert there == due, f"too many: {sorted((there - due).items())}, missing: {sorted((due - there).items())}"
        for one, other in zip(found, wanted, strict=True):
            assert one == other
        return found


Make = Callable[..., Line]
