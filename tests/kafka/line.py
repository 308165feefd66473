"""A whole line on a real broker: topics, pages, roles, and what must come out."""

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from broker import eventually
from confluent_kafka import Consumer, TopicPartition
from roles import Role

from neardup.index.memory import MemoryStore
from neardup.matching import fold
from neardup.page import Page
from neardup.record import Head
from neardup.sketch import sketch_pages
from neardup.verdict import Coordinates
from streams import topics
from streams.kafka import Admin, Connection, KafkaLog, Writer
from streams.kafka.reader import Reader
from streams.records import Message, decode_entry, page_id
from streams.settings import Settings
from streams.topics import Names, Sizes
from tests.streams.archives import crawl


def story(count: int = 24) -> list[Page]:
    """Fetches with all kinds of verdicts: distinct pages, copies, edits, fetches again, tombstones, what cannot be read."""
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


class Line:
    """Topics of one test, with two partitions of pages. `published`: what each record holds, by (source, partition)."""

    def __init__(self, bootstrap: str, names: Names, folder: Path, *, partitions: int = 2, **settings: Any) -> None:
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
            **{"batch_pages": 5, "batch_ms": 5, "match_messages": 2, "threads": 1, **settings},
        )
        self.published: dict[tuple[str, int], list[Page]] = {}
        self._roles: list[Role] = []

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

    def start(self, role: str, *, step: str = "", call: int = 2, member: str = "", **how: Any) -> Role:
        """member: a static member of the group, which need not wait for its predecessor's session to end."""
        settings = self.settings
        if "settings" in how:
            settings = replace(settings, **how.pop("settings"))
        if role != "match":
            member = member or "only"
            settings = replace(settings, kafka_values={**settings.kafka_values, "sketch.group.instance.id": member})
        log = self.folder / f"{len(self._roles)}-{role}.log"
        self._roles.append(Role(role, settings, log, step=step, call=call, **how))
        return self._roles[-1]

    def total(self) -> int:
        return sum(map(len, self.published.values()))

    def settle(self) -> None:
        """Waits until everything published is read, and everything in the log is judged."""

        def read() -> bool:
            self._look_after()
            ends = self.admin.offsets(self.admin.topic(self.names.pages), "latest")
            return self.committed("sketch", self.names.pages, len(ends)) == ends

        def judged() -> bool:
            self._look_after()
            ends = self.admin.offsets(self.admin.topic(self.names.sketches), "latest")
            return self.committed("match", self.names.sketches, 1) == ends

        eventually(read, "all pages read")
        eventually(judged, "all sketches judged")

    def _look_after(self) -> None:
        for role in self._roles:
            assert role.running or role.wait() in (0, 1, -9), role.said()

    def committed(self, role: Any, topic: str, partitions: int) -> dict[int, int]:
        group = self.settings.group_of(role)
        asker = Consumer({"bootstrap.servers": self.bootstrap, "group.id": group})
        try:
            found = asker.committed([TopicPartition(topic, partition) for partition in range(partitions)], 30)
        finally:
            asker.close()
        return {each.partition: each.offset for each in found}

    def close(self) -> None:
        for role in self._roles:
            role.kill()

    def stop(self) -> None:
        for role in self._roles:
            if role.running:
                role.stop()

    def verdicts(self) -> list[dict[str, Any]]:
        """All committed verdicts, by their ids; twice what is there twice."""
        found = []
        with closing(Reader(self.connection, self.names.verdicts, committed_only=True)) as reader:
            ends = reader.ends()
            reader.assign(reader.begins())
            while any(position < ends[partition] for partition, position in reader.positions().items()):
                for record in reader.read(4096, wait_s=1.0):
                    verdict = json.loads(record.value() or b"")
                    assert (record.key() or b"").decode() == verdict["url"]
                    found.append(verdict)
        return sorted(found, key=lambda verdict: (verdict["page_id"], verdict["n"]))

    def messages(self) -> Iterator[tuple[int, Message]]:
        with closing(KafkaLog(self.connection, self.names.sketches)) as log:
            for offset, data in log.messages(log.begin()):
                entry = decode_entry(data, offset)
                if isinstance(entry, Message):
                    yield offset, entry

    def expected(self) -> list[dict[str, Any]]:
        """Verdicts of a fold, page by page and in memory, of the pages as they were published, in the log's order.

        A page that is in the log more than once counts where it comes first. Shares no code with what keeps account.
        """
        scheme = self.settings.scheme()
        decider = self.settings.decider(scheme)
        store = MemoryStore()
        seen: set[tuple[str, int, int]] = set()
        lines = []
        for offset, message in self.messages():
            for place, record in enumerate(message.records):
                head = Head(record)
                coordinates = Coordinates(head.source.hex(), head.partition, head.offset)
                name = (coordinates.source, coordinates.partition, coordinates.offset)
                if name in seen:
                    continue
                seen.add(name)
                page = self.published[coordinates.source, coordinates.partition][coordinates.offset]
                (sketch,) = sketch_pages([page], scheme, coordinates=[coordinates], log_times=[head.log_time])
                outcome = fold([(page_id(offset, place), sketch)], store, decider)
                store.write(outcome.writes)
                lines += [json.loads(verdict.to_json()) for verdict in outcome.verdicts]
        assert len(seen) == self.total(), f"{self.total() - len(seen)} pages never reached the log"
        return lines

    def check(self) -> list[dict[str, Any]]:
        """Everything is read and judged, and each page once, as if nothing had happened."""
        self.settle()
        self.stop()
        found, wanted = self.verdicts(), self.expected()
        assert [(v["page_id"], v["n"]) for v in found] == [(v["page_id"], v["n"]) for v in wanted]
        for one, other in zip(found, wanted, strict=True):
            assert one == other
        return found
