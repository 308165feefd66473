"""What a start of a matcher reads and compares: the offset at which it continues, or why it must not start.

Offsets are of the sketch log, always of the next message: `begin <= store <= committed <= end` if all is well. Messages
from store to committed are folded without emitting, because their verdicts are committed. Later messages are judged
live.

Each offset belongs to two topics, named by their ids (`TopicIds`). An offset of another log is rejected, in whatever
directory or group it is found. An offset committed for a deleted verdicts' topic says nothing of the recreated one. An
offset without topic ids was set by hand, and is valid.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

from neardup.decider import Decider
from neardup.errors import CorruptRecord, OtherVersion, StateError
from neardup.index.column_families import Store
from neardup.limits import PLACE_BITS
from streams.config.settings import Settings
from streams.errors import LOG_LOST, NEW_GENERATION, PositionLost, SourceGap, TopicError, WrongScheme
from streams.formats.verdict_records import decode_verdict
from streams.kafka import KafkaVerdicts
from streams.kafka.reader import TopicReader
from streams.pipeline.control_records import (
    DeciderChanges,
    LogFrom,
    decider_at,
    decider_changes_in,
    describe_change,
    incompatibility,
)
from streams.pipeline.matcher import Matcher, folded_to
from streams.ports import Committed, Record, SketchLog, TopicIds
from streams.roles.runtime import Runtime, connect
from streams.state.matcher_directory import LogNames, keep_log_names, log_names

#: The flag of `neardup match` that continues without them.
ACCEPT_LOST = "--accept-lost-verdicts"


@dataclass(frozen=True, slots=True)
class LastVerdict:
    """The last committed verdict: the offset after its message, the log of that message, and the digests in it."""

    next_offset: int
    log: str
    scheme: str
    decider: str


@dataclass(frozen=True, slots=True)
class VerdictsEnd:
    """The end of the verdicts' topic.

    last: the newest verdict. logs: named by the newest verdict of each partition. emptied: newer verdicts may have been
    removed from a partition: by retention, which left none, or by an operator's null record behind the last one, where
    compaction removes the verdict that the null record deletes.
    """

    last: LastVerdict | None = None
    logs: frozenset[str] = frozenset()
    emptied: bool = False


@dataclass(frozen=True, slots=True)
class MatcherPorts:
    """The matcher's connections.

    messages_from: yields the log's messages from an offset to its present end. newest_verdicts: reads the end of the
    verdicts' topic, or all of it. write_control: appends a control record to the log and returns its offset.
    """

    log: SketchLog
    messages_from: LogFrom
    verdicts: KafkaVerdicts
    newest_verdicts: Callable[[bool], VerdictsEnd]
    write_control: Callable[[bytes], int]


@dataclass(frozen=True, slots=True)
class StartOptions:
    """Decisions of the operator for one start.

    decider: decider of the settings.
    new_decider: whether `decider` replaces the decider of the log from here on.
    accept_lost: whether to continue although emitted verdicts are missing from their topic.
    """

    decider: Decider
    new_decider: bool = False
    accept_lost: bool = False


def newest_verdicts(settings: Settings, runtime: Runtime | None = None, *, whole: bool = False) -> VerdictsEnd:
    """Reads the end of the verdicts' topic. Raises BrokerError, TopicError, or CorruptRecord if it is no verdict.

    whole: read all verdicts. A replay writes verdicts of earlier messages behind later ones, so the last record of a
    partition need not be the verdict of its last page.
    """
    topic = settings.topics.verdicts
    nulls: dict[int, int] = {}  # offset of the newest null record, by partition

    def is_verdict(record: Record) -> bool:
        if record.value() is None:
            nulls[record.partition()] = max(record.offset(), nulls.get(record.partition(), -1))
        return record.value() is not None

    newest: dict[int, Mapping[str, Any]] = {}
    try:
        with closing(TopicReader(connect(settings, "match", runtime, reading=True), topic, committed_only=True)) as end:
            found, begins = end.last(is_verdict), end.first_offsets()
            for record in end.to_end() if whole else found.values():
                if record.value() is None:
                    continue
                partition = record.partition()
                verdict = decode_verdict(record.value(), topic, partition, record.offset(), ("scheme", "decider"))
                if partition not in newest or int(verdict["page_id"]) >= int(newest[partition]["page_id"]):
                    newest[partition] = verdict
    except CorruptRecord as error:
        raise CorruptRecord(f"{error}; the last verdict behind it cannot be known: {NEW_GENERATION}") from error
    deleted = any(partition not in found or offset > found[partition].offset() for partition, offset in nulls.items())
    return verdicts_end(newest, begins, deleted)


def verdicts_end(
    verdicts: Mapping[int, Mapping[str, Any]], begins: Mapping[int, int], deleted: bool = False
) -> VerdictsEnd:
    """Summarises the end of the verdicts' topic.

    verdicts: that of the last page, for each partition that has one. begins: first offset of every partition. deleted:
    a partition ends with a null record.
    """
    emptied = deleted or any(begin and partition not in verdicts for partition, begin in begins.items())
    if not verdicts:
        return VerdictsEnd(emptied=emptied)
    last = max(verdicts.values(), key=lambda verdict: int(verdict["page_id"]))
    log, offset = str(last.get("log", "")), int(last["page_id"]) >> PLACE_BITS
    logs = frozenset(str(verdict.get("log", "")) for verdict in verdicts.values())
    return VerdictsEnd(LastVerdict(offset + 1, log, last["scheme"], last["decider"]), logs, emptied)


@dataclass(frozen=True, slots=True)
class StartState:
    """Index, log and verdicts at a start.

    log, verdicts, state: names of the topics and of the directory.
    topic_ids: present ids of the topics.
    store: next offset of the index; 0 for a new index.
    store_emitted: offset after the last message in the index that had verdicts.
    store_topic_ids: ids of the topics to which the index belongs; None for a new index.
    committed: committed position; None if no position was committed, or if it has expired.
    begin, end: first offset of the log, and offset after its last message.
    newest: end of the topic of verdicts.
    """

    log: str
    verdicts: str
    state: str
    topic_ids: TopicIds
    store: int
    store_emitted: int
    store_topic_ids: TopicIds | None
    committed: Committed | None
    begin: int
    end: int
    newest: VerdictsEnd


def resume_at(found: StartState, *, scheme: str, first: str, decider: str, accept_lost: bool = False) -> int:
    """Return the offset before which all verdicts are committed. Raises StateError, TopicError or PositionLost.

    Args:
        found: index, log and verdicts at the start.
        scheme: digest of this run's scheme.
        first, decider: digests of this run's decider at the start of the log, and at the last verdict.
        accept_lost: whether the operator accepts that emitted verdicts are missing.
    """
    _check_log(found)
    if found.store < found.begin:  # before the other checks: control records may be gone, too
        why = f"topic {found.log} begins at offset {found.begin}, and the index in {found.state} needs {found.store}"
        raise PositionLost(f"{why}: retention has overtaken it; {LOG_LOST}")
    known = found.committed
    if known is not None and known.first not in ("", first) and known.offset:
        what = f"verdicts on topic {found.log} were committed with decider {known.first} from the log's start on, and "
        if found.store:
            raise StateError(
                f"{what}the index in {found.state} was folded with {first}: it is another one's; name the `state` "
                f"folder that belongs to them, or {NEW_GENERATION}"
            )
        raise StateError(
            f"{what}{first} is set: another index would come of it; set the former one, or {NEW_GENERATION}"
        )
    committed = _committed(found, accept_lost)
    if found.store > committed:
        if not accept_lost:
            raise StateError(
                f"the index in {found.state} was folded up to offset {found.store} of topic {found.log}, and verdicts "
                f"are committed up to {committed} only: offsets were reset, or lost with their broker; "
                + _advice(found, committed, found.store)
            )
        committed = found.store
    if committed > found.end:
        raise PositionLost(
            f"topic {found.log} ends at offset {found.end}, and verdicts are committed up to {committed}: messages are "
            f"lost; {NEW_GENERATION}"
        )
    last = found.newest.last
    if last is not None and found.store < last.next_offset:
        for what, held, required in (("scheme", last.scheme, scheme), ("decider", last.decider, decider)):
            if held != required:
                raise StateError(
                    f"the last verdict in topic {found.verdicts} was made with {what} {held}, and {required} is set: "
                    f"folding offsets {found.store} to {last.next_offset - 1} again would build another index; "
                    f"set the former one, or {NEW_GENERATION}"
                )
    return committed


def _check_log(found: StartState) -> None:
    """Raises StateError if index, commit or verdicts belong to another log."""
    now = found.topic_ids.source.hex()
    where: list[tuple[str, str]] = []
    if found.store_topic_ids is not None and found.store:
        where.append((f"the index in {found.state} was folded from", found.store_topic_ids.source.hex()))
    if found.committed is not None and found.committed.topic_ids is not None and found.committed.offset:
        where.append(("verdicts were committed for", found.committed.topic_ids.source.hex()))
    where += [(f"topic {found.verdicts} has verdicts on", log or "(none named)") for log in sorted(found.newest.logs)]
    for what, held in where:
        if held != now:
            raise StateError(
                f"{what} the log of topic id {held}, and topic {found.log} has {now}: it was deleted and recreated, or "
                f"a name is set that is another's; set what belongs together, or {NEW_GENERATION}"
            )


def _committed(found: StartState, accept_lost: bool) -> int:
    """The offset before which all verdicts are in the present verdicts' topic."""
    known = found.committed
    if known is None:
        return _recovered(found, accept_lost)
    if known.topic_ids is None:
        return known.offset
    if known.topic_ids.sink == found.topic_ids.sink:
        # Only a replay emits behind the committed offset: the one that an operator made before this start.
        last = found.newest.last if accept_lost else None
        return max(known.offset, last.next_offset if last else 0)
    return _of_recreated_topic(found, known.topic_ids, known.offset, accept_lost)


def _recovered(found: StartState, accept_lost: bool) -> int:
    """The committed offset if it has expired. The index never holds messages whose verdicts were not committed.

    Messages that the verdicts' topic has and the index lacks are folded without emitting. If retention removed the
    newest verdicts, the index still knows the offset. If nothing was removed and the topic lacks verdicts that the
    index has emitted, they are lost.
    """
    if found.store and found.store_topic_ids is not None and found.store_topic_ids.sink != found.topic_ids.sink:
        return _of_recreated_topic(found, found.store_topic_ids, found.store, accept_lost)
    newest = found.newest
    emitted = newest.last.next_offset if newest.last else 0
    if found.store_emitted > emitted and not newest.emptied and not accept_lost:
        raise StateError(
            f"topic {found.verdicts} holds verdicts up to offset {emitted} of topic {found.log}, and the index in "
            f"{found.state} has made some up to {found.store_emitted}: they are lost; "
            + _advice(found, emitted, found.store_emitted)
        )
    return max(emitted, found.store)


def _of_recreated_topic(found: StartState, ids: TopicIds, offset: int, accept_lost: bool) -> int:
    """The committed offset if verdicts before `offset` went to a verdicts' topic that was deleted since."""
    last = found.newest.last
    # A matcher that ran meanwhile may have emitted some to the new topic.
    end = max(offset, last.next_offset if last else 0)
    if accept_lost:
        return max(end, found.store)
    if not found.store and last is None:
        return 0  # the whole log is judged again, for the new topic
    if found.store >= end and not found.store_emitted:
        return found.store  # no verdict was emitted yet
    end = max(end, found.store_emitted)  # a copy of the index may be newer
    raise TopicError(
        f"topic {found.verdicts} was deleted and recreated (id {ids.sink.hex()}, now {found.topic_ids.sink.hex()}): "
        f"its verdicts up to offset {end} of topic {found.log} are gone with the old one; {_advice(found, 0, end)}"
    )


def _advice(found: StartState, start: int, stop: int) -> str:
    """How to emit the missing verdicts of these messages again, and how to continue without them."""
    again = (
        f"emit them again: neardup replay --from {start} --to {stop} --to-topic {found.verdicts}"
        if not found.begin
        else NEW_GENERATION
    )
    return f"to restore them, {again}; then, or to continue without them, start once with {ACCEPT_LOST}"


def decider_changes(ports: MatcherPorts, store: Store, settings: Settings) -> DeciderChanges:
    """Changes of the decider in the part of the log that the index lacks.

    A generation that judges another one's sketches has one decider: it ignores them.
    """
    if settings.judges_anew:
        return ()
    return decider_changes_in(ports.messages_from(max(folded_to(store), ports.log.first_offset())))


def check_generation(store: Store, generation: str, state: str) -> None:
    """Raises StateError for an index of another generation."""
    held = log_names(store)
    if held is not None and held.generation != generation:
        raise StateError(
            f"the index in {state} is of generation {held.generation or '(unnamed)'}, and {generation or '(unnamed)'} "
            "is set: each has a `state` folder of its own; name that of this one",
        )


def bind(ports: MatcherPorts, store: Store, generation: str) -> None:
    """Write the topics of an index into the index."""
    ids = ports.verdicts.topic_ids
    keep_log_names(store, LogNames(ports.log.cluster_id, ids.source.hex(), generation, ids.sink.hex()))


def refusal(options: StartOptions, held: Decider, settings: Settings) -> str:
    """Why the matcher must not start at a log whose newest decider is `held`, with advice; "" if it may."""
    required = options.decider
    if required.digest == held.digest:
        return ""
    reason = incompatibility(held, required)
    if settings.judges_anew:
        reason = "this generation judges another one's sketches by one rule from their start on"
    if options.new_decider and not reason:
        return ""
    advice = f"{reason}: {NEW_GENERATION}" if reason else "add --new-decider: it decides from here on"
    return (
        f"topic {settings.topics.sketches} is decided by rule {held.rule} (decider {held.digest}), and {required.rule} "
        f"({required.digest}) is set ({describe_change(held, required)}); set the former one, or {advice}"
    )


def check_replay(
    log: str, first: Decider, matcher: Matcher, changes: DeciderChanges, newest: VerdictsEnd, known: Committed | None
) -> None:
    """Raises StateError unless a replay with this log and decider repeats the committed verdicts.

    Args:
        log: topic id of the log.
        first: decider at the start of the log.
        matcher: matcher before it folds; the matcher of a checkpoint has the decider of its offset.
        changes: changes of the decider from that offset on; retention may have removed earlier changes.
        newest: end of the topic of verdicts.
        known: committed position, if there is one.
    """
    logs = set(newest.logs)
    held = []
    if known is not None and known.topic_ids is not None and known.offset:
        logs.add(known.topic_ids.source.hex())
        held.append(("decider", known.first, first.digest))
    if logs - {log}:
        raise StateError(
            f"the committed verdicts are of the log of topic id {min(logs - {log})}, and it has {log}: it was deleted "
            f"and recreated, and holds none of their pages; {NEW_GENERATION}"
        )
    if newest.last is not None and newest.last.next_offset >= matcher.next_offset:
        then = decider_at(matcher.decider, changes, newest.last.next_offset)
        held += [("scheme", newest.last.scheme, then.scheme), ("decider", newest.last.decider, then.digest)]
    for what, was, now in held:
        if was != now:
            raise StateError(
                f"the committed verdicts were made with {what} {was}, and {now} is set; set the former one: a replay "
                "repeats the committed verdicts"
            )


@contextmanager
def log_advice(matcher: Matcher) -> Iterator[None]:
    """Adds to an error about a message of the log the command by which an operator continues behind it."""
    try:
        yield
    except SourceGap as error:
        advice = f"if they are lost for good, accept it: neardup accept gap {matcher.position}"
        raise SourceGap(f"{error}; {advice}") from error
    except OtherVersion:
        raise
    except (CorruptRecord, WrongScheme) as error:
        advice = f"restore the topic, or leave it out: neardup accept record {matcher.position}"
        raise type(error)(f"{error}; {advice}") from error
