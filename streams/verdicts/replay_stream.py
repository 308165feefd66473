"""Replays a part of the stream's sketch log to a file or a topic."""

import tempfile
import time
from collections.abc import Iterable
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from neardup.errors import CorruptRecord, StateError
from neardup.verdict import Verdict
from streams.config.settings import Settings
from streams.errors import PositionLost, TopicError
from streams.formats.verdict_records import decode_verdict
from streams.pipeline.control_records import decider_changes_in
from streams.pipeline.matcher import folded_to
from streams.process import logs
from streams.state.checkpoint_manifest import Checkpoint
from streams.state.checkpoint_store import CheckpointStore
from streams.state.directory import kept_decider, temporary_index
from streams.verdicts.replay import Present, Replayed, ReplayProgress, Stretch, replayed

if TYPE_CHECKING:
    from streams.kafka import KafkaLog, Writer

_log = logs.get("replay")

#: Longest wait for the end of the matchers that write to a topic.
MATCHER_SECONDS_MAX = 10.0


def replay_stream(
    settings: Settings,
    stretch: Stretch,
    *,
    out: BinaryIO | None = None,
    topic: str = "",
    progress: ReplayProgress = lambda done, total: None,
) -> Replayed:
    """Writes the verdicts of the stretch to a file, or to a topic keyed by URL, in the log's order.

    A topic gets only verdicts that are newer than all of their URL in it, so its verdicts of a URL stay in order, and a
    replay may be repeated. Two replays at the same time may both write a verdict. A topic to which a matcher writes is
    refused, and one with verdicts of another generation.

    The decider at the log's start is that of the matcher's state directory if it is on this machine, else that of the
    settings. The index is folded from the newest checkpoint before the stretch, else from the log's start. Raises
    PositionLost if neither exists, naming the offsets that can be replayed; StateError if the settings name another
    scheme or decider than the log, or a matcher writes to the topic; TopicError, BrokerError, RecordTooLarge.
    """
    from streams.kafka import Admin, KafkaLog, Writer  # a scan's replay needs no Kafka client
    from streams.roles.match_role import new_matcher
    from streams.roles.match_start_checks import check_replay, log_advice, newest_verdicts
    from streams.roles.own_generation import control_topic, settings_of
    from streams.roles.runtime import connect, greet, messages_from

    greet(settings, "match")
    settings = settings_of(settings, control_topic(settings, "match").read(), settings.generation)
    done = Replayed()
    scheme = settings.scheme()
    with ExitStack() as held:
        connection = connect(settings, "match", reading=True)
        if topic and not Admin(connection).topics([topic]):
            raise TopicError(
                f"there is no topic {topic}: create it first: neardup topics create --verdicts-topic {topic}"
            )
        log = held.enter_context(closing(KafkaLog(connection, settings.topics.sketches)))
        later = partial(messages_from, settings)
        state = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="neardup-replay-"))) / "state"
        before = _before(settings, log, stretch, state)
        store = held.enter_context(temporary_index(state))
        # A generation that judges another one's sketches has one decider: it ignores changes in the log.
        changes = () if settings.judges_anew else decider_changes_in(later(max(folded_to(store), log.first_offset())))
        if before is not None:
            first = kept_decider(state) or settings.decider(scheme)
        else:
            first = changes[0][1].before if changes else kept_decider(Path(settings.state)) or settings.decider(scheme)
        name, end = log.topic.id.hex(), log.end()
        matcher = new_matcher(settings, store, first, later, log.topic.id)
        log.follow(matcher.next_offset)  # raises PositionLost before any other error
        known = Admin(connection).committed(settings.group_of("match"), settings.topics.sketches, 0)
        check_replay(name, first, matcher, changes, newest_verdicts(settings), known)
        present = _present(settings, topic, name) if topic else None
        writer = held.enter_context(closing(Writer(connect(settings, "match"), topic))) if topic else None
        held.enter_context(log_advice(matcher))
        for verdicts in replayed(
            log.messages(matcher.next_offset), matcher, stretch, lambda offset: progress(offset, end)
        ):
            lacking = verdicts if present is None else present.missing(verdicts)
            _write(lacking, out, writer)
            done.verdicts += len(lacking)
            done.present += len(verdicts) - len(lacking)
        done.program = matcher.log_program
        if writer is not None:
            writer.flush()
        if out is not None:
            out.flush()
    return done


def _present(settings: Settings, topic: str, log: str) -> Present:
    """The verdicts in the topic. Raises StateError, TopicError; CorruptRecord for a record that is no verdict."""
    from streams.kafka.reader import TopicReader
    from streams.roles.runtime import connect

    _must_be_at_rest(settings, topic)
    found = Present(log, settings.generation)
    with closing(TopicReader(connect(settings, "match", reading=True), topic, committed_only=True)) as reader:
        for record in reader.to_end():
            if record.value() is None:
                continue
            verdict = decode_verdict(record.value(), topic, record.partition(), record.offset())
            if (other := str(verdict.get("generation") or "")) != settings.generation:
                raise TopicError(
                    f"topic {topic} holds verdicts of generation {other or '(unnamed)'}, whose page ids mean other "
                    "verdicts; name another topic (neardup topics create --verdicts-topic NAME)"
                )
            found.add(verdict)
    return found


def _must_be_at_rest(settings: Settings, topic: str) -> None:
    """Waits until no matcher writes to the topic: a replayed verdict could come behind a newer one. Raises StateError.

    A killed matcher counts until its session ends.
    """
    from streams.kafka import Admin
    from streams.roles.own_generation import presence_of, shown
    from streams.roles.runtime import connect

    if topic != settings.topics.verdicts:
        return
    admin, until = Admin(connect(settings, "match")), time.monotonic() + MATCHER_SECONDS_MAX
    while members := admin.members(presence_of(settings, "match")):
        if time.monotonic() > until:
            hosts = ", ".join(sorted({member.host.lstrip("/") for member in members}))
            raise StateError(
                f"a matcher of generation {shown(settings.generation)} runs (on {hosts}) and writes to topic {topic}: "
                "stop it and its standbys, replay, and start it again; or name another topic"
            )
        time.sleep(0.2)


def _write(verdicts: Iterable[Verdict], out: BinaryIO | None, writer: "Writer | None") -> None:
    for verdict in verdicts:
        line = verdict.to_json()
        if out is not None:
            out.write(line + b"\n")
        if writer is not None:
            writer.send(line, key=verdict.url.encode("utf-8", "replace"))


def _before(settings: Settings, log: "KafkaLog", stretch: Stretch, state: Path) -> Checkpoint | None:
    """Restores the newest good checkpoint before the stretch into `state`; returns None if there is none.

    Raises PositionLost if there is none, and the log's first messages are gone.
    """
    if not settings.checkpoints:
        return None
    from streams.state.checkpoint_make import identity

    store, required = (
        CheckpointStore(settings.checkpoints),
        (settings.generation, identity(log), settings.scheme().digest),
    )
    begin = log.first_offset()
    held = [one for one in store.usable(_log.warning) if one.manifest.line == required]
    held = [one for one in held if begin <= one.manifest.offset]
    for one in held:
        if not stretch.begins_behind(one.manifest.offset, one.manifest.log_time):
            continue
        try:
            store.restore(one, state)
        except CorruptRecord as error:
            _log.warning(f"{error}; trying an older one")
            continue
        return one
    if not begin:
        return None
    left = f"topic {settings.topics.sketches} holds offsets {begin} to {log.end() - 1}"
    serves = (
        f"checkpoint {held[-1].name} serves for stretches from offset {held[-1].manifest.offset} on"
        if held
        else "none of its checkpoints lies among these"
    )
    raise PositionLost(f"{left}, and no checkpoint at {settings.checkpoints} lies before the stretch: {serves}")
