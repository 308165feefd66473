"""A standby of the matcher on Kafka: it folds what is committed, and takes over when the active matcher is gone."""

from collections.abc import Callable, Iterator

from neardup.errors import StateError
from streams.errors import PositionLost
from streams.kafka.assignment import Assignment
from streams.pipeline.follow import Batch, follow
from streams.pipeline.matcher import FOLD_BYTES_MAX, Matcher, folded_to
from streams.ports import Committed, SketchLog
from streams.process import logs
from streams.roles.match_role import new_matcher
from streams.roles.match_start_checks import (
    MatcherPorts,
    StartOptions,
    bind,
    check_generation,
    decider_changes,
    refusal,
)
from streams.roles.runtime import WAIT_SECONDS, Runtime, Silence
from streams.state.matcher_directory import MatcherDirectory, log_names

_log = logs.get("match")

#: Messages of one poll.
_MESSAGES = 16

#: Seconds between two checks of the topics' ids.
_TOPICS_SECONDS = 5.0


def stand_by(
    ports: MatcherPorts,
    directory: MatcherDirectory,
    options: StartOptions,
    runtime: Runtime,
    leader: Assignment,
    committed: Callable[[], Committed | None],
) -> None:
    """Folds committed messages without emitting. Returns when this matcher leads, or is stopped.

    In a loop, a standby (1) asks for the committed offset; (2) folds the log up to it, and no further, because later
    messages are not decided yet; (3) asks whether it leads now. Once it leads, it starts like any matcher: it fences
    the other one and folds the few messages that it lacks. After a crash it folds its index forward from the log. The
    transactional id is what prevents two active matchers: one that was only slow is fenced at its next commit, and
    ends.

    A standby is ready only if it could start. In each round it checks what `start_matcher` would refuse; health names
    the reason. It folds on meanwhile, because an operator may repair the cause at the active matcher.

    committed: returns the committed offset without waiting, possibly an older one. Raises StateError for an index of
    other topics or another decider, TopicError if a topic was recreated, PositionLost if retention has overtaken the
    index, and what folding raises.
    """
    health, stop = runtime.health.role("match"), runtime.stop
    check_generation(directory.store, runtime.settings.generation, str(directory.path))
    matcher: Matcher | None = None
    silence, checked = Silence(_log), runtime.steady_s()
    warned = ""
    while not stop.is_set() and not leader.look(WAIT_SECONDS):  # (3)
        health.turned()
        known = committed()  # (1)
        if runtime.steady_s() - checked >= _TOPICS_SECONDS:
            silence.check(ports.log.check, ports.verdicts.check)
            checked = runtime.steady_s()
        why = silence.reason or _not_to_take_over(ports, directory, options, runtime, known, matcher)
        if why:
            health.not_ready(why)
        else:
            health.ready(f"stands by: folded to offset {folded_to(directory.store)}")
        if why and why != warned:
            _log.warning("could not take over", reason=why)
        warned = why
        if (
            known is None
            or known.topic_ids != ports.verdicts.topic_ids
            or known.offset < max(1, folded_to(directory.store))
        ):
            continue
        try:
            if matcher is None:
                matcher = _standby_matcher(ports, directory, options, runtime, known)
                _log.info("stands by", store=matcher.next_offset, committed=known.offset)
            batches = batches_before(ports.log, known.offset, lambda: stop.is_set() or leader.look())
            for _ in follow(batches, matcher):  # (2)
                health.turned()
        except PositionLost as error:
            raise PositionLost(
                f"topic {runtime.settings.topics.sketches} no longer holds offset {folded_to(directory.store)}, which "
                f"the index in {directory.path} needs: retention has overtaken this standby; start it again: it takes "
                "a newer checkpoint of the active matcher"
            ) from error
    if not stop.is_set():
        _log.info("takes over", store=folded_to(directory.store))


def _not_to_take_over(
    ports: MatcherPorts,
    directory: MatcherDirectory,
    options: StartOptions,
    runtime: Runtime,
    known: Committed | None,
    matcher: Matcher | None,
) -> str:
    """Why this matcher could not start now; "" if nothing is known before the active one is fenced."""
    ids, topics, store = ports.verdicts.topic_ids, runtime.settings.topics, folded_to(directory.store)
    if known is not None and known.topic_ids is not None and known.offset and known.topic_ids != ids:
        held = known.topic_ids
        topic, was, now = (
            (topics.verdicts, held.sink, ids.sink)
            if held.source == ids.source
            else (topics.sketches, held.source, ids.source)
        )
        return (
            f"verdicts are committed for topic {topic} of id {was.hex()}, and it has {now.hex()}: it was recreated; "
            "the log of the active matcher names what to do"
        )
    if known is not None and known.topic_ids == ids and store > known.offset:
        return (
            f"the index in {directory.path} was folded up to offset {store} of topic {topics.sketches}, and verdicts "
            f"are committed up to {known.offset} only: offsets were reset; the log of the active matcher names what to "
            "do"
        )
    return "" if matcher is None else refusal(options, matcher.decider, runtime.settings)


def _standby_matcher(
    ports: MatcherPorts, directory: MatcherDirectory, options: StartOptions, runtime: Runtime, known: Committed
) -> Matcher:
    store, settings, ids = directory.store, runtime.settings, ports.verdicts.topic_ids
    held = log_names(store)
    # A recreated verdicts' topic is no obstacle: the active matcher has settled that, as its offset shows.
    if folded_to(store) and (held is None or held.topic_id != ids.source.hex()):
        raise StateError(f"the index in {directory.path} is of another log: name another directory")
    changes = decider_changes(ports, store, settings)
    first = directory.first_decider(changes[0][1].before if changes else options.decider)
    if known.first != first.digest and folded_to(store):
        raise StateError(
            f"the index in {directory.path} was folded by decider {first.digest} from the log's start on, and topic "
            f"{settings.topics.sketches} is decided by {known.first}: the index is of another history: name another "
            "directory"
        )
    if known.first != first.digest:
        raise StateError(
            f"topic {settings.topics.sketches} is decided by {known.first} from its start on, and this matcher was to "
            f"stand by with {first.digest}: give it the rule and numbers of the active one"
        )
    bind(ports, store, settings.generation)
    matcher = new_matcher(settings, store, first, ports.messages_from, ids.source)
    matcher.heartbeat = runtime.health.role("match").turned
    ports.log.follow(matcher.next_offset)
    return matcher


def batches_before(log: SketchLog, upto: int, over: Callable[[], bool]) -> Iterator[Batch]:
    """Yields the log's messages before an offset, until `over` is true. Their verdicts are committed."""
    while log.position() < upto and not over():
        found = log.poll(_MESSAGES, bytes_max=FOLD_BYTES_MAX, wait_s=WAIT_SECONDS)
        before = [message for message in found if message[0] < upto]
        if len(before) < len(found):
            log.follow(found[len(before)][0])  # the verdicts of the rest are not committed yet
        yield Batch(before, emit=False)
