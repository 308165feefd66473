"""What must hold in the end, by what was published and what topics hold; shares no code with what keeps account."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import orjson

from neardup.decider import Decider
from neardup.errors import CorruptRecord
from neardup.index.column_families import Family
from neardup.index.layered import Layered
from neardup.index.memory import MemoryStore
from neardup.sketch.header import Header
from neardup.urls import host_of, site_of
from neardup.verdict import Coordinates, Kind, Verdict
from streams.formats.message import Control, Decision, Forget, Message, NewDecider, decode_entry, page_id
from streams.pipeline import batch_fold, sketching
from streams.pipeline.matcher import folded_to
from streams.state.matcher_directory import log_names
from tests.streams.scripted import ScriptedTopic
from tests.streams.simulation.ground import DECIDERS, Wrong
from tests.streams.simulation.ledger import SCHEME
from tests.streams.simulation.world import World

#: (source, partition, offset) of a page.
Place = tuple[bytes, int, int]


@dataclass
class Folded:
    """One log, page after page: verdicts by their ids, in order; the rows that they lead to; what was taken.

    live: URLs with a page behind their last takedown, down: those without.
    """

    verdicts: dict[tuple[int, int], dict[str, Any]] = field(default_factory=dict)
    store: MemoryStore = field(default_factory=MemoryStore)
    seen: set[Place] = field(default_factory=set)
    given_up: set[Place] = field(default_factory=set)
    live: set[str] = field(default_factory=set)
    down: set[str] = field(default_factory=set)

    def keep(self, topic: ScriptedTopic, verdicts: list[Verdict]) -> None:
        for verdict in verdicts:
            verdict.log, verdict.generation = topic.id.hex(), topic.name.partition(".")[2] or None
            self.verdicts[verdict.page_id, verdict.n] = orjson.loads(verdict.to_json())


def folded(world: World, topic: ScriptedTopic, first: Decider) -> Folded:
    """Of all that the log ever held."""
    found, marks, decider = Folded(), dict[tuple[bytes, int], int](), first
    entries = []
    for offset, data in enumerate(topic.partitions[0].records):
        try:
            entries.append(decode_entry(data, offset))  # type: ignore[arg-type]
        except CorruptRecord:
            entries.append(None)  # left out on an operator's word, or the line stands before it
    accepted = {each.offset for each in entries if isinstance(each, Control) and each.decision is Decision.ACCEPT_GAP}
    for offset, entry in enumerate(entries):
        if isinstance(entry, NewDecider) and entry.before == decider:
            decider = entry.after
        if isinstance(entry, Forget):
            _take_down(found, topic, entry, offset, decider)
        if not isinstance(entry, Message) or not entry.meant_for(topic.id):
            continue
        before = dict(marks)
        for span in entry.ranges:
            mark = marks.setdefault((span.source, span.partition), span.start)
            before.setdefault((span.source, span.partition), span.start)
            if span.start > mark:
                if offset not in accepted:
                    return found  # the line stands here
                found.given_up |= {(span.source, span.partition, at) for at in range(mark, span.start)}
            marks[span.source, span.partition] = max(mark, span.stop)
        _judge(world, found, topic, entry, offset, before, decider)
        for span in entry.ranges:
            key = (span.source, span.partition)
            for place in ((*key, at) for at in range(max(before[key], span.start), span.stop)):
                if place in world.pages and place not in found.seen | found.given_up:
                    raise Wrong(f"the log accounts for page {place} at offset {offset}, and has no sketch of it")
    return found


def _judge(
    world: World,
    found: Folded,
    topic: ScriptedTopic,
    entry: Message,
    offset: int,
    before: dict[tuple[bytes, int], int],
    decider: Decider,
) -> None:
    for number, held in enumerate(entry.records):
        header = Header(held)
        place = (header.source, header.partition, header.offset)
        if header.offset < before[header.source, header.partition] or place in found.given_up:
            continue
        if place in found.seen:
            raise Wrong(f"page {place} is taken twice from {topic.name}")
        found.seen.add(place)
        at = Coordinates(header.source.hex(), header.partition, header.offset)
        (record,) = sketching.sketch_pages([world.pages[place]], SCHEME, coordinates=[at], log_times=[header.log_time])
        if record != held:
            raise Wrong(f"the sketch of page {place} is not that of the page that was published")
        outcome = batch_fold.fold([(page_id(offset, number), record)], found.store, decider)
        found.store.write(outcome.writes)
        found.keep(topic, outcome.verdicts)
        found.live.add(header.url)
        found.down.discard(header.url)


def _take_down(found: Folded, topic: ScriptedTopic, entry: Forget, offset: int, decider: Decider) -> None:
    index = Layered(found.store)
    removed = batch_fold.take_down(entry.takedown, index, decider, cause=page_id(offset, 0))
    found.store.write(index.changes)
    found.keep(topic, removed.verdicts)
    named = {url for url in found.live if entry.takedown.names(url, site_of(host_of(url)))}
    found.live -= named
    found.down |= named


def check(world: World) -> None:
    """All of it. Raises Wrong."""
    topics = sorted([*world.broker.deleted, *world.broker.topics.values()], key=lambda each: each.id)
    by_id = {each.id: each for each in topics}
    log, sink = (world.broker.topics[name].id for name in (world.names.sketches, world.names.verdicts))
    folds: dict[bytes, Folded] = {}
    for each in topics:
        if each.name.startswith("verdicts"):
            _check_emitted(world, each, by_id, folds, log if each.id == sink else None)
    fold = folds.get(log) or folded(world, by_id[log], world.folder.kept or world.decider)
    _check_pages(world, fold)
    _check_index(world.folder.store, fold)
    if world.standby is not None and folded_to(world.standby.store) == world.log.end:
        held = log_names(world.standby.store)
        if held is not None and held.topic_id == log.hex():  # it names another log's only once it could follow this one
            _check_index(world.standby.store, fold)
    _check_taken_down(fold)
    _check_indexer(world)


def _check_emitted(
    world: World,
    topic: ScriptedTopic,
    by_id: dict[bytes, ScriptedTopic],
    folds: dict[bytes, Folded],
    current: bytes | None,
) -> None:
    """Each verdict once, as the fold has it, and none missing.

    current: the log, for the topic in use. folds: by log, as in the topics before it.
    """
    emitted, held = _verdicts(topic), _verdicts(topic, held=True)
    logs = {bytes.fromhex(verdict["log"]) for verdict in held}
    if len(logs) > 1 or (current is not None and logs - {current}):
        raise Wrong(f"topic {topic.name} has verdicts on several logs: {logs}")
    # Of another log than this one all are deleted by now, or one of them would be among the newest ones.
    log = current or next((bytes.fromhex(verdict["log"]) for verdict in held or emitted), None)
    emitted = [verdict for verdict in emitted if log is not None and verdict["log"] == log.hex()]
    # Where nothing was left to say what had been told, all of it was told again, maybe by another decider: the last of
    # an id counts, also where retention took that one, too.
    left = _ids(held)
    trimmed = {(verdict["page_id"], verdict["n"]): verdict for verdict in emitted}
    emitted = held + [verdict for name, verdict in trimmed.items() if name not in left]
    if log is None or not (emitted or log in folds):
        return
    if emitted:
        # What decides from the log's start on is not in the log. It shows where a topic is told all from there on; it
        # may be another one than before only then.
        first = min(emitted, key=lambda verdict: (verdict["page_id"], verdict["n"]))
        (decider,) = [each for each in DECIDERS if each.digest == first["decider"]]
        fold = folded(world, by_id[log], decider)
        if log not in folds or (first["page_id"], first["n"]) == min(fold.verdicts, default=None):
            folds[log] = fold
    wanted = folds[log].verdicts
    for verdict in emitted:
        name = (verdict["page_id"], verdict["n"])
        if wanted.get(name) != verdict:
            was = name not in left and bool(left) and name > min(left) and name in wanted
            if was and wanted[name]["decider"] != verdict["decider"]:
                continue  # retention took it, and not all has been emitted again by the other decider
            raise Wrong(f"topic {topic.name}: verdict {name} is not the fold's: {verdict} / {wanted.get(name)}")
    found, strays = _ids(emitted), world.strays.get(topic.id, Counter())
    # Verdicts that retention removed may have been emitted again.
    twice = [name for name, count in (_ids(held) - strays).items() if count > 1 + _asked_again(world, topic, name)]
    if twice:
        raise Wrong(f"topic {topic.name}: verdicts that are there twice: {twice[:3]}")
    owed = [name for name in wanted if name[0] >> 12 >= world.accepted.get(topic.id, 0)]
    if current is None:  # from where it was begun, up to where it went
        own = found - strays
        owed = [name for name in owed if own and min(own) <= name <= max(own)]
    # A replay writes no verdict behind a newer one of its URL, whose `standing` says what the older one said.
    newest = {wanted[name]["url"]: name for name in sorted(found)} if topic.id in world.replayed else {}
    missing = [name for name in owed if name not in found and newest.get(wanted[name]["url"], name) <= name]
    if missing:
        raise Wrong(f"topic {topic.name}: {len(missing)} verdicts of {len(owed)} are missing: {missing[:3]}")


def _asked_again(world: World, topic: ScriptedTopic, name: tuple[int, int]) -> int:
    return sum(name[0] >> 12 in offsets for offsets in world.asked_again.get(topic.id, []))


def _check_pages(world: World, found: Folded) -> None:
    """Every page that is still held is judged."""
    topic = world.broker.topics[world.names.pages]
    for partition, held in enumerate(topic.partitions):
        for offset in held.held:
            if (topic.id, partition, offset) not in found.seen:
                raise Wrong(f"page {offset} of partition {partition} was never judged")


def _check_index(store: MemoryStore, found: Folded) -> None:
    """The index is that of the fold, page by page."""
    for family in Family:
        if family is not Family.META and list(store.scan(family)) != list(found.store.scan(family)):
            raise Wrong(f"the index differs from the fold's in {family.name}")
    for key, value in found.store.scan(Family.META):
        if store.get_many(Family.META, [key]) != [value]:
            raise Wrong(f"the index differs from the fold's in {key!r}")


def _check_taken_down(found: Folded) -> None:
    """The last word about a URL that was taken down is that it is gone."""
    last = {}
    for verdict in found.verdicts.values():
        if verdict["verdict"] not in (Kind.STALE, Kind.REJECTED):
            last[verdict["url"]] = verdict["verdict"]
    if shown := [url for url in found.down if last.get(url, Kind.GONE) != Kind.GONE]:
        raise Wrong(f"the verdicts show URLs that were taken down: {sorted(shown)}")


def _check_indexer(world: World) -> None:
    """The consumer has taken each verdict as often as it is in the topic, and has the last one of each URL."""
    topic = world.broker.topics[world.names.verdicts]
    log = world.broker.topics[world.names.sketches].id.hex()
    taken = [verdict for verdict in world.indexer.taken.get(topic.id, []) if verdict["log"] == log]
    emitted = [verdict for verdict in _verdicts(topic) if verdict["log"] == log]
    if topic.id not in world.indexer.cleared and _ids(taken) != _ids(emitted):
        raise Wrong(f"{len(taken)} verdicts were taken, and {len(emitted)} emitted")
    last: dict[str, tuple[int, int]] = {}
    for verdict in taken:
        last[verdict["url"]] = max(last.get(verdict["url"], (-1, 0)), (verdict["page_id"], verdict["n"]))
    for url, name in last.items():
        if world.indexer.table[url][1:3] < name:  # later, if its topic was recreated and filled from some position on
            raise Wrong(f"{url}: the indexer has {world.indexer.table[url]}, and the last verdict is {name}")


def _verdicts(topic: ScriptedTopic, *, held: bool = False) -> list[dict[str, Any]]:
    """All that were ever in it, or those that retention has left."""
    pairs: list[Any] = []
    for each in topic.partitions:
        pairs += each.records[each.begin if held else 0 :]
    return [orjson.loads(pair[1]) for pair in pairs if pair]


def _ids(verdicts: list[dict[str, Any]]) -> Counter[tuple[int, int]]:
    return Counter((verdict["page_id"], verdict["n"]) for verdict in verdicts)
