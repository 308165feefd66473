"""History judged once more, into a generation of its own beside the live run."""

import heapq
import io
import json
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from broker import eventually
from confluent_kafka import Producer
from line import REPLACING, Line, Make, story

from neardup.errors import BadInput
from neardup.limits import DAY_MS
from neardup.page import Page
from neardup.sketch.header import Header
from neardup.sketch.takedown_hashes import of_url
from streams.config.settings import Topics
from streams.files.not_read import NotRead
from streams.files.sources import open_sources
from streams.formats.codecs import fetch_time
from streams.kafka import ControlTopic, KafkaPages, MergedPages, Stage, topics
from streams.operate.cut_over import cut_over
from streams.operate.operator_decisions import forget
from streams.state import index_rows as look
from streams.verdicts.diff import diff
from streams.verdicts.replay import Stretch
from streams.verdicts.replay_stream import replay_stream
from tests.streams.archives import crawl, write_warc


def live(make: Make, pages: list[Page], partitions: int = 2) -> Line:
    """A line that has judged some pages, and is at rest."""
    line: Line = make(partitions=partitions)
    line.judge(pages)
    line.settle()
    line.stop()
    return line


def beside(line: Line, name: str = "second", **settings: object) -> Line:
    """The stream with the settings of another generation."""
    made = replace(line.settings, generation=name, state=f"{line.settings.state}.{name}", **settings)  # type: ignore[arg-type]
    other = object.__new__(Line)
    other.__dict__.update(line.__dict__, settings=made, names=Topics(*made.topics))
    return other


def control(line: Line) -> ControlTopic:
    return ControlTopic(line.connection, line.settings.generations_topic)


def merged(line: Line) -> list[tuple[int, int]]:
    """(partition, offset) of all pages that were published, by fetch time, each partition in its own order."""

    def times(partition: int, pages: list[Page]) -> list[tuple[int, int, int]]:
        return [(page.fetched_at or 0, partition, offset) for offset, page in enumerate(pages)]

    streams = {partition: times(partition, pages) for (_, partition), pages in line.published.items()}
    heads = [(items[0], partition) for partition, items in streams.items()]
    heapq.heapify(heads)
    found = []
    while heads:
        (_, partition, offset), _ = heapq.heappop(heads)
        found.append((partition, offset))
        if offset + 1 < len(streams[partition]):
            heapq.heappush(heads, (streams[partition][offset + 1], partition))
    return found


def places(line: Line) -> list[tuple[str, int, int]]:
    """(source, partition, offset) as the log has them, those that came again left out."""
    found: dict[tuple[str, int, int], None] = {}
    for _, message in line.messages():
        for record in message.records:
            header = Header(record)
            found.setdefault((header.source.hex(), header.partition, header.offset))
    return list(found)


def in_log(line: Line) -> list[tuple[int, int]]:
    """Of one source."""
    return [place[1:] for place in places(line)]


def test_backfill_with_equal_scheme_and_order_emits_the_live_verdicts(make: Make) -> None:
    line = live(make, story(), partitions=1)
    other = beside(line)
    assert other.start("backfill", once=True, read_pages=True).wait() == 0
    first, second = line.verdicts(), other.verdicts()
    assert diff(lambda: first, lambda: second).to_json()["changes"] == []
    assert [v["coordinates"] for v in first if not v["n"]] == [v["coordinates"] for v in second if not v["n"]]
    assert second == other.expected()
    again = io.BytesIO()
    replay_stream(replace(other.settings, sketches_of=None), Stretch(), out=again)
    assert [json.loads(text) for text in again.getvalue().splitlines()] == second
    assert control(line).read().known["second"].stage is Stage.CAUGHT_UP


def spread(line: Line, pages: list[Page]) -> None:
    """By fetch time over all partitions but the last, unevenly; each partition's broker time is of no use."""
    places: dict[int, list[Page]] = {}
    for number, page in enumerate(sorted(pages, key=lambda page: page.fetched_at or 0)):
        places.setdefault(number * number % 3 % (line.sizes.partitions - 1), []).append(page)
    for partition, own in places.items():
        line.publish(own, partition)


@pytest.mark.whole
def test_partitions_read_at_other_speeds_give_the_same_order(make: Make) -> None:
    line: Line = make(partitions=3)
    spread(line, story(30))
    other = beside(line)
    role = other.start("backfill", step="reads at other speeds", call=1, once=True)
    assert role.wait() == 0
    assert in_log(other) == merged(line)
    assert other.verdicts() == other.expected()


@pytest.mark.whole
def test_a_merge_waits_for_partitions_that_a_member_before_it_holds(make: Make) -> None:
    """One that was killed, for instance, until its session ends: the group hands its partitions on one by one."""
    line: Line = make(partitions=3)
    spread(line, story(12))
    pages, group, log = line.names.pages, line.settings.group_of("sketch"), line.admin.topic(line.names.sketches)
    how = {"bytes_max": 1 << 20, "linger_s": 0.0, "wait_s": 0.1}
    with closing(KafkaPages(line.connection, pages, group, log)) as before:

        def whole() -> bool:
            before.read(1, **how)
            return len(before.assigned()) == 3

        eventually(whole, "it holds all partitions")
        time_of = partial(fetch_time, codec=line.settings.codec)
        reader = MergedPages(line.connection, pages, group, log, time_of=time_of, once=True)
        early = []

        def shared() -> bool:
            before.read(1, **how)
            early.append(reader.read(100, **how))
            return 0 < len(reader.assigned()) < 3

        eventually(shared, "it has some of them")
        early += [reader.read(100, **how) for _ in range(5)]
    with closing(reader):
        assert early == [None] * len(early)
        assert not reader.reached
        found: list[tuple[int, int]] = []

        def all_read() -> bool:
            batch = reader.read(100, **how)
            found.extend((record.partition(), record.offset()) for record in (batch.records if batch else []))
            return reader.reached

        eventually(all_read, "the ends")
        waits: list[float] = []
        reader._take_in = waits.append  # type: ignore[method-assign]
        assert reader.read(100, **how) is None
        assert waits == [0.0, how["wait_s"]], "the sketcher would spin until the matcher is done"
    assert found == merged(line)


def test_backfill_that_is_killed_at_each_step_emits_each_verdict_once(make: Make) -> None:
    line: Line = make(partitions=3, flush_ms=1, kafka_values=REPLACING)
    other = beside(line)
    steps = ("sketch 4 half sent", "match 3 committed", "sketch 5 acknowledged", "match 4 written")
    for day, step in enumerate(steps):
        # Each time enough that is new: the sketcher may have been done with all pages before the matcher died.
        spread(line, [replace(page, fetched_at=(page.fetched_at or 0) + day * DAY_MS) for page in story(12)])
        other.start("backfill", step=step, call=2).dead()
    assert other.start("backfill", once=True).wait() == 0
    assert in_log(other) == merged(line)
    found = other.verdicts()
    assert found == other.expected()
    assert {v["generation"] for v in found} == {"second"}


@pytest.mark.whole
def test_backfill_with_another_rule_judges_and_follows_the_sketches(make: Make) -> None:
    line = live(make, story())
    line.start("sketch")
    line.start("match")
    other = beside(line, sketches_of="", decider_values={"rule": "shingling", "b_min": 6})
    asked = replace(other.settings, sketches_of=None)
    role = other.start("backfill", settings={"sketches_of": None})
    assert asked.topics.sketches not in line.admin.topics([asked.topics.sketches])
    eventually(lambda: control(line).read().known.get("second"), "the word about it")
    eventually(lambda: control(line).read().known["second"].stage is Stage.CAUGHT_UP, "caught up")
    assert "reuses sketches" in role.output()
    line.publish(story(8))
    line.settle()
    wanted = line.ends(line.names.sketches)
    eventually(lambda: other.committed("match", line.names.sketches, 1) == wanted, "the new pages are judged, too")
    line.stop()
    first, second = line.verdicts(), other.verdicts()
    assert second == other.expected() != first
    assert [v["page_id"] for v in first if not v["n"]] == [v["page_id"] for v in second if not v["n"]]
    assert diff(lambda: first, lambda: second).changed > 0
    # Live by now, it is started again by a supervisor, by the same command: it serves on.
    cut_over(line.settings, "second", force=True)
    assert other.start("backfill", once=True, settings={"sketches_of": None}).wait() == 0
    line.start("sketch")
    other.start("backfill", settings={"sketches_of": None})
    line.publish(story(3))
    line.settle(judged=False)
    wanted = line.ends(line.names.sketches)
    eventually(lambda: other.committed("match", line.names.sketches, 1) == wanted, "judged by the live generation")
    line.stop()
    assert other.verdicts() == other.expected()


@pytest.mark.whole
def test_generations_never_mix(make: Make) -> None:
    line = live(make, story(6))
    other = beside(line)
    assert "name it, as --generation" in other.start("backfill", settings={"generation": ""}).refused()
    # Another one's folder: its index is of other places, or of other words.
    for wishes in ({}, {"read_pages": True}):
        name = f"third{len(wishes)}"
        wrong = {"generation": name, "state": line.settings.state}
        error = other.start("backfill", settings=wrong, once=True, **wishes).refused()
        assert f"is of generation (unnamed), and {name} is set" in error
    assert other.start("backfill", once=True).wait() == 0
    assert "reads no page, and --read-pages or" in other.start("backfill", read_pages=True).refused()
    for settings, message in (
        ({"decider_values": {"rule": "tape"}}, "was begun with decider"),
        ({"seed": 8}, "was made with scheme"),
    ):
        assert message in other.start("backfill", settings=settings).refused()
    assert "judges the sketches of (unnamed)" in other.start("match", settings={"sketches_of": None}).refused()
    # One that is running although the control topic does not have it; and the live one.
    unknown = {"generation": "unknown", "state": other.settings.state + ".x"}
    topics.create(line.admin, replace(line.settings, **unknown).topics, line.sizes)
    line.start("sketch", settings=unknown)
    names = replace(line.settings, **unknown).topics
    eventually(lambda: line.ends(names.sketches)[0] > 0, "its sketches")
    line.stop()
    assert "has no generation unknown" in other.start("backfill", settings=unknown).refused()
    control(line).cut_over("unknown", "")
    assert "neardup run --generation unknown)" in other.start("backfill", settings=unknown).refused()
    third = beside(line, "unknown")
    third.start("run", settings=unknown)
    eventually(lambda: third.committed("match", names.sketches, 1) == third.ends(names.sketches), "served, as it says")
    line.stop()
    assert line.verdicts() == line.expected()


@pytest.mark.whole
def test_archives_are_read_before_the_pages_and_go_on_after_a_kill(make: Make, tmp_path: Path) -> None:
    line: Line = make(flush_ms=1)
    line.publish(story(6))
    samples = crawl(24)
    paths = [str(write_warc(tmp_path / f"{part}.warc.gz", samples[part::3])) for part in range(3)]
    for part, path in enumerate(paths):
        (source,) = open_sources(Path(path), not_read=NotRead(), body_bytes_max=1_000_000)
        line.published[source.record.id, 0] = [page.page for page in source.read()]
        assert len(line.published[source.record.id, 0]) == len(samples[part::3])
    other = beside(line)
    for step, call in (("sketch 4 half sent", 3), ("match 4 written", 2)):
        other.start("backfill", step=step, call=call, archives=tuple(paths)).dead()
    assert "name the same ones" in other.start("backfill", archives=tuple(paths[:2])).refused()
    assert other.start("backfill", once=True, archives=tuple(paths)).wait() == 0
    order = places(other)
    urls = [line.published[source, partition][offset].url for source, partition, offset in order]
    assert [url.rpartition("/")[2] for url in urls[: len(samples)]] == [sample.path for sample in samples]
    assert {source for source, _, _ in order[len(samples) :]} == {line.admin.topic(line.names.pages).id.hex()}
    assert other.verdicts() == other.expected()
    cut_over(line.settings, "second", force=True)  # as the README does; a supervisor may start it again
    assert other.start("backfill", once=True, archives=tuple(paths)).wait() == 0


@pytest.mark.whole
def test_backfill_catches_up_behind_control_records(make: Make) -> None:
    """Of a partition that holds nothing else, and of one that ends with an aborted transaction: no commit ever comes
    up to their ends."""
    line: Line = make(partitions=3)
    line.publish(story(6), 1)
    producer = Producer({"bootstrap.servers": line.bootstrap, "transactional.id": line.names.pages})
    producer.init_transactions(30)
    producer.begin_transaction()
    for partition in (0, 1):
        producer.produce(line.names.pages, b"never", b"http://aborted.example/", partition)
    producer.flush(30)
    producer.abort_transaction(30)
    eventually(lambda: line.ends(line.names.pages)[0] == 2, "the marker")
    other = beside(line)
    assert other.start("backfill", once=True).wait(60) == 0
    assert control(line).read().known["second"].stage is Stage.CAUGHT_UP
    assert in_log(other) == merged(line)


@pytest.mark.whole
def test_takedowns_hold_in_a_backfill(make: Make) -> None:
    line: Line = make(partitions=1)
    pages = story(12)
    line.judge(pages)
    line.settle()
    forget(line.settings, of_url(pages[0].url))
    line.settle()
    line.stop()
    other = beside(line)
    for step, call in (("match 4 written before takedowns", 2), ("takedowns repeated", 1)):
        other.start("backfill", step=step, call=call, read_pages=True).dead()
    assert control(line).read().known["second"].takedowns_at is None
    repeated = len(other.takedowns())
    assert repeated == 1
    for _ in range(2):
        assert other.start("backfill", once=True, read_pages=True).wait() == 0
        # After the kill once more, and then remembered.
        assert control(line).read().known["second"].takedowns_at == 1 + max(other.takedowns())
        assert len(other.takedowns()) == repeated + 1
    assert other.verdicts() == other.expected()
    with ExitStack() as held:
        opened = look.open_index(Path(other.settings.state), held)
        with pytest.raises(BadInput, match="the index has no row of this URL"):
            look.of_url(opened, pages[0].url)
        assert look.of_url(opened, pages[1].url)
