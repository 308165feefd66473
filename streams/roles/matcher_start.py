"""Starts a matcher: compares its index, the sketch log and the verdicts, and finds the offset to continue from."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from neardup.decider import Decider
from neardup.errors import StateError
from neardup.index.column_families import Store
from neardup.sharded.epochs import Sharding
from neardup.sharded.window import Window
from streams.config.settings import Settings
from streams.errors import NEW_GENERATION
from streams.formats.message import NewDecider, encode_control
from streams.formats.pieces import pieces_of
from streams.kafka import KafkaVerdicts
from streams.kafka.assignment import Assignment
from streams.pipeline.audit import Audit
from streams.pipeline.control_records import (
    DeciderChanges,
    LogFrom,
    decider_at,
    decider_changes_in,
    describe_change,
    incompatibility,
)
from streams.pipeline.matcher import Matcher, folded_to
from streams.ports import Committed, SketchLog, TopicIds
from streams.process import logs
from streams.roles.match import MatchRole
from streams.roles.runtime import Runtime
from streams.roles.start_offset import StartState, VerdictsEnd, resume_at
from streams.state.checkpoint_role import RoleCheckpoints
from streams.state.directory import LogNames, MatcherDirectory, keep_log_names, log_names

_log = logs.get("match")


@dataclass(frozen=True, slots=True)
class MatcherPorts:
    """The matcher's connections.

    messages_from: yields the log's messages from an offset to its present end. newest_verdicts: reads the end of the
    verdicts' topic. write_control: appends a control record to the log and returns its offset. effects: looks at the
    topic of effects, for a judge.
    """

    log: SketchLog
    messages_from: LogFrom
    verdicts: KafkaVerdicts
    newest_verdicts: Callable[[], VerdictsEnd]
    write_control: Callable[[bytes], int]
    effects: Callable[[], "HeldEffects"] = lambda: HeldEffects()


class HeldEffects(NamedTuple):
    """The topic of effects. first: message of its first record. end: offset behind the message of its last one."""

    topic_id: str = ""
    first: int = 0
    end: int = 0


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


def start_matcher(
    ports: MatcherPorts,
    directory: MatcherDirectory,
    options: StartOptions,
    runtime: Runtime,
    *,
    audit: Audit | None = None,
    checkpoints: RoleCheckpoints | None = None,
    leader: Assignment | None = None,
) -> MatchRole:
    """Returns a matcher that continues where index and log allow. Raises as run_matcher.

    (1) Fence other matchers; (2) read changes of the decider from the log; (3) compare index, log and verdicts; (4)
    commit the offset with the topic ids, if it is not committed so; (5) write the topic ids into the index; (6) of a
    judge: write effects that their topic has lost, and the topic's id into the index.
    """
    log, verdicts, store, topic_ids = ports.log, ports.verdicts, directory.store, ports.verdicts.topic_ids
    topics, generation = runtime.settings.topics, runtime.settings.generation
    check_generation(store, generation, str(directory.path))
    verdicts.init()  # (1)
    changes = decider_changes(ports, store, runtime.settings)  # (2)
    first = directory.first_decider(changes[0][1].before if changes else options.decider)
    verdicts.first = first.digest
    matcher = Matcher(store, first)
    known = verdicts.committed()
    is_vouched = known is not None and known.topic_ids is not None and matcher.next_offset >= known.offset > 0
    newest = VerdictsEnd() if is_vouched else ports.newest_verdicts()
    names = log_names(store)
    found = StartState(
        log=topics.sketches,
        verdicts=topics.verdicts,
        state=str(directory.path),
        topic_ids=topic_ids,
        store=matcher.next_offset,
        needed=matcher.next_offset if matcher.window is None else matcher.window.restore_from,
        store_emitted=matcher.emitted_to,
        store_topic_ids=TopicIds.of(names.topic_id, names.verdicts_id) if names else None,
        committed=known,
        begin=log.first_offset(),
        end=log.end(),
        newest=newest,
    )
    then = decider_at(matcher.decider, changes, newest.last.next_offset if newest.last else 0)
    at = resume_at(  # (3)
        found, scheme=first.scheme, first=first.digest, decider=then.digest, accept_lost=options.accept_lost
    )
    _log.info("resumes", store=found.store, committed=at, log_begin=found.begin, log_end=found.end)
    if known != Committed(at, topic_ids, first.digest):
        verdicts.commit([], at)  # (4)
    effects_id = names.effects_id if names else ""
    if found.store_topic_ids != topic_ids:
        bind(ports, store, generation, effects_id)  # (5)
    effects_to = 0
    if matcher.window is not None:
        held = ports.effects()
        needed = Sharding.of(matcher.decider).stable_to(max(0, at - 1))
        _must_begin_early(held, effects_id, needed, topics.effects)
        effects_to = held.end
        if effects_to < matcher.next_offset:
            effects_to = _write_lost_effects(ports, matcher, matcher.window, effects_to, at, topics.effects)  # (6)
        if held.topic_id != effects_id:
            bind(ports, store, generation, held.topic_id)
    role = MatchRole(
        log,
        ports.messages_from,
        verdicts,
        store,
        first,
        at,
        runtime,
        audit=audit,
        checkpoints=checkpoints,
        leader=leader,
        effects_to=effects_to,
    )
    _settle_decider(options, decider_at(role.matcher.decider, changes, log.end()), runtime.settings, ports)
    log.follow(role.matcher.next_offset)
    return role


def _must_begin_early(held: HeldEffects, known_id: str, needed: int, topic: str) -> None:
    """Raises StateError if the topic was recreated while a judge ran, which has written effects into it since.

    Then the topic lacks earlier effects, which each shard needs at its next start.

    Args:
        held: effects that the topic has.
        known_id: id of the topic at the last start of the judge; empty if it is unknown.
        needed: offset of the message from which on a judge keeps effects.
        topic: name of the topic.
    """
    if known_id not in ("", held.topic_id) and held.end and held.first > needed:
        raise StateError(
            f"topic {topic} was deleted and recreated while the judge ran: it begins with the effects of message "
            f"{held.first}, and shards need those from message {needed} on. {_AGAIN}"
        )


#: Advice where effects cannot be appended to their topic.
_AGAIN = (
    "Stop judge and shards, delete the topic and create it again (neardup topics create), and start them: the judge "
    "writes the effects that it keeps, and a shard that needs earlier ones says what to do"
)


def _write_lost_effects(
    ports: MatcherPorts, matcher: Matcher, window: Window, effects_to: int, committed: int, topic: str
) -> int:
    """Writes the effects of judged messages that their topic has lost, as far as the judge keeps them.

    The judge keeps those of two epochs. A shard that has answered the last judged message needs no earlier ones; one
    with older rows stops, and says what to do. Returns the offset behind the last message whose effects are in the
    topic. Raises StateError if effects would be missing in its middle.
    """
    kept = window.kept_effects(effects_to)
    if effects_to and (not kept or kept[0].offset > effects_to):
        raise StateError(
            f"topic {topic} has the effects of messages before {effects_to}, and the judge has judged those before "
            f"{matcher.next_offset}: those between are lost. {_AGAIN}"
        )
    _log.warning("writes lost effects again", topic=topic, messages=len(kept), before=matcher.next_offset)
    ports.verdicts.commit(
        (), committed, effects=[piece for each in kept for piece in pieces_of(each.offset, each.encode())]
    )
    return matcher.next_offset


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


def bind(ports: MatcherPorts, store: Store, generation: str, effects_id: str = "") -> None:
    """Write the topics of an index into the index. effects_id: topic id of a judge's effects; empty if unknown."""
    ids = ports.verdicts.topic_ids
    keep_log_names(store, LogNames(ports.log.cluster_id, ids.source.hex(), generation, ids.sink.hex(), effects_id))


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


def _settle_decider(options: StartOptions, held: Decider, settings: Settings, ports: MatcherPorts) -> None:
    """Writes the change to the given decider to the log. Raises StateError if the change is refused."""
    if refused := refusal(options, held, settings):
        raise StateError(refused)
    if options.decider.digest != held.digest:
        offset = ports.write_control(encode_control(NewDecider(held, options.decider)))
        _log.info("a new decider is written into the log", offset=offset, change=describe_change(held, options.decider))
