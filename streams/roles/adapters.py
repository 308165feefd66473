"""Connects the roles to Kafka. No other module chooses the adapters of a role."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

from neardup.decider import Decider
from neardup.errors import BadInput, CorruptRecord, StateError
from streams.config.settings import Settings
from streams.errors import EFFECTS_GONE, NEW_GENERATION, Fenced, Stopped, Unsettled
from streams.formats.pieces import decode_piece
from streams.formats.verdict_records import decode_verdict
from streams.kafka import Admin, Connection, KafkaLog, KafkaPages, KafkaTopic, KafkaVerdicts, Writer
from streams.kafka.assignment import Assignment
from streams.kafka.reader import TopicReader
from streams.kafka.shard_answers import KafkaAnswers, ShardBeats
from streams.kafka.topics import Sizes, require
from streams.pipeline.audit import Audit, open_audit, shadow_numbers
from streams.pipeline.shard_answers import AnsweredLog
from streams.ports import Record, SketchLog, TopicIds
from streams.process import logs
from streams.process.shutdown import now_ms
from streams.roles.matcher_start import HeldEffects, MatcherPorts, StartOptions, start_matcher
from streams.roles.own_generation import generation_served
from streams.roles.runtime import STOP_SECONDS_MAX, Runtime, connect
from streams.roles.sketch import SketchRole, check_scheme
from streams.roles.standby import stand_by
from streams.roles.start_offset import VerdictsEnd, verdicts_end
from streams.state.checkpoint_make import identity
from streams.state.checkpoint_restore import Restoring
from streams.state.checkpoint_role import RoleCheckpoints
from streams.state.directory import MatcherDirectory

_log = logs.get("match")


#: Starts of a matcher in a row, after failed transactions, without a commit. The process ends at the last one.
FAILED_STARTS_MAX = 4

#: Makes the reader of `pages` from the connection and the sketch log.
MakePages = Callable[[Connection, KafkaTopic], KafkaPages]


def run_sketcher(settings: Settings, runtime: Runtime, *, reader: MakePages | None = None) -> None:
    """Read pages and write sketches until the runtime is stopped. Restarting is always safe.

    Args:
        settings: settings of the role.
        runtime: stop request, health and metrics of the process.
        reader: function that makes the reader of pages; by default a member of the consumer group.

    Raises:
        TopicError: if a topic is missing or misconfigured.
        WrongScheme: if the log is of another scheme.
        BadInput: if the generation judges the sketches of another generation.
        StateError: if the generation has other settings.
        NeardupError: the errors of SketchRole.run.
    """
    if settings.judges_anew:
        raise BadInput(
            f"generation {settings.generation!r} judges the sketches of {settings.sketches_of!r}: it has no "
            "sketchers of its own; run `neardup match` alone, or leave sketches_of out"
        )
    scheme = settings.scheme()
    names = settings.topics
    connection = connect(settings, "sketch", runtime)
    admin = Admin(connection)
    require(admin, names, names.pages, names.rejected, names.sketches)
    with ExitStack() as held:
        known = held.enter_context(generation_served(settings, "sketch", runtime))
        if known is not None and known.filling and reader is None:
            raise StateError(
                f"generation {known.name} is still being filled by a backfill, which reads pages in the order of their "
                f"fetch times and repeats all takedowns; continue it: neardup backfill --generation {known.name}, with "
                "the options that it was begun with"
            )
        sketches = KafkaLog(connection, names.sketches)
        with closing(sketches):
            newest, empty = sketches.last().get(0), not sketches.end()
        last = None if newest is None else (newest.offset(), newest.value() or b"")
        check_scheme(names.sketches, last, scheme)
        log = Writer(
            connection,
            names.sketches,
            message_bytes_max=settings.message_bytes_max,
            gapless=True,
            linger_ms=0,  # a message is a batch of pages already
        )
        held.callback(log.close)
        limit = int(admin.settings(names.rejected)["max.message.bytes"])
        rejected = Writer(connection, names.rejected, message_bytes_max=limit)
        held.callback(rejected.close)
        reading = connect(settings, "sketch", runtime, reading=True)
        make = reader or (lambda reading, log: KafkaPages(reading, names.pages, settings.group_of("sketch"), log))
        pages = make(reading, sketches.topic)
        held.callback(pages.close)
        SketchRole(pages, log, rejected, scheme, runtime, first=empty).run()


def run_matcher(
    settings: Settings,
    runtime: Runtime,
    *,
    new_decider: bool = False,
    accept_lost_verdicts: bool = False,
    standby: bool = False,
) -> None:
    """Judges the sketch log until it is stopped.

    Args:
        new_decider: replace the log's decider by that of the settings.
        accept_lost_verdicts: continue although emitted verdicts are missing from their topic.
        standby: wait while another matcher with this option is active.

    Raises what MatchRole.run raises, TopicError if its topics are missing or misconfigured, WrongScheme for a log of
    another scheme, and StateError or PositionLost if state, log and verdicts contradict each other.
    """
    failed = 0  # starts in a row that committed nothing
    while True:
        try:
            return _match(settings, runtime, new_decider, accept_lost_verdicts, standby)
        except (Fenced, Unsettled) as error:
            # A silent broker may cause both: it also forgets the members of the standbys' group. A fenced matcher
            # without standbys ends: a restart would fence the matcher that has taken over.
            if isinstance(error, Fenced) and not standby:
                raise
            if runtime.stop.is_set():
                raise Stopped(f"stopped in a transaction: {error}") from error
            if isinstance(error, Unsettled):
                failed = 0 if error.commits else failed + 1
                if failed >= FAILED_STARTS_MAX:
                    raise Unsettled(
                        f"{error}; {failed} starts in a row committed nothing: ending the process"
                    ) from error
                runtime.metrics.restarts["match", "abort"].inc()
            _log.warning("starts again", reason=str(error))
            new_decider = accept_lost_verdicts = False  # an operator's decision is for one start


def _match(settings: Settings, runtime: Runtime, new_decider: bool, accept_lost_verdicts: bool, standby: bool) -> None:
    """Runs a matcher from one start until it is stopped or fenced."""
    scheme = settings.scheme()
    options = StartOptions(settings.decider(scheme), new_decider, accept_lost_verdicts)
    names = settings.topics
    with ExitStack() as held:
        held.enter_context(generation_served(settings, "match", runtime))
        audit = _audit_of(settings, options.decider)
        if audit is not None:
            held.callback(audit.close)
        admin = Admin(connect(settings, "match", runtime))
        between = (names.candidates, names.effects)
        required = filter(None, (names.sketches, names.verdicts, names.audit, *between))
        require(admin, names, *required, sizes=Sizes(shards=options.decider.shards))
        log = KafkaLog(connect(settings, "match", runtime, reading=True), names.sketches)
        held.callback(log.close)
        # Checked first: another seed also makes another decider and another index, and the directory keeps them. The
        # first message counts: the fold reports a later one of another scheme when it reaches it.
        check_scheme(names.sketches, log.first(), scheme)
        if runtime.traces is not None:
            log.hear = runtime.traces.hear
        leaders = f"{settings.group_of('match')}:lead"
        restoring = Restoring(
            settings,
            log,
            options.decider,
            runtime.stop,
            runtime.health.role("match"),
            lambda: standby and bool(admin.members(leaders)),
            begin=lambda: (begin_of_window(log.first_offset(), options.decider.epoch), names.sketches),
        )
        directory = MatcherDirectory(
            Path(settings.state), scheme, restore=restoring.restore, outlived=restoring.outlived
        )
        held.callback(directory.close)
        verdicts = KafkaVerdicts(
            connect(settings, "match", runtime),
            names.verdicts,
            log_topic=names.sketches,
            audit_topic=names.audit,
            effects_topic=names.effects,
            group=settings.group_of("match"),
            transactional_id=settings.transactional_id,
            topic_ids=TopicIds(log.topic.id, admin.topic(names.verdicts).id),
            transaction_timeout_ms=settings.transaction_timeout_ms,
            deadline_s=settings.transaction_deadline_ms / 1000,
            message_bytes_max=settings.message_bytes_max,
        )
        held.callback(verdicts.close)
        checkpoints = None
        if settings.checkpoints:
            checkpoints = RoleCheckpoints(settings, directory.path, identity(log), now_ms)
            held.callback(checkpoints.close, STOP_SECONDS_MAX / 2)
        followed: SketchLog = log
        if settings.is_sharded:
            answers = KafkaAnswers(connect(settings, "match", runtime, reading=True), names.candidates)
            held.callback(answers.close)
            beats = ShardBeats(connect(settings, "match", reading=True), answers.topic, settings.group_of("shard"))
            held.callback(beats.close)
            followed = AnsweredLog(log, answers, answers.topic.id, directory.store, options.decider, beats)
        ports = MatcherPorts(
            log=followed,
            messages_from=lambda start: messages_from(settings, start, runtime),
            verdicts=verdicts,
            newest_verdicts=lambda: newest_verdicts(settings, runtime),
            write_control=lambda record: write_control(settings, names.sketches, [record]),
            effects=lambda: held_effects(settings, runtime),
        )
        leader = None
        if standby:
            leader = Assignment(connect(settings, "match", runtime), names.sketches, leaders)
            held.callback(leader.close)
            committed = partial(admin.committed, settings.group_of("match"), names.sketches, 0)
            stand_by(ports, directory, options, runtime, leader, committed)
            if runtime.stop.is_set():
                return
        start_matcher(ports, directory, options, runtime, audit=audit, checkpoints=checkpoints, leader=leader).run()


def _audit_of(settings: Settings, decider: Decider) -> Audit | None:
    return open_audit(
        decider,
        topic=settings.audit_topic,
        rate=settings.audit_rate,
        shadow=settings.shadow or None,
        numbers=shadow_numbers([text for text in settings.shadow_set.split(",") if text.strip()]),
        warn=lambda text: _log.warning(text),
    )


def begin_of_window(begin: int, epoch: int) -> int:
    """Return the first offset from which an index can be continued.

    A judge reads the log again from two epochs before its offset.

    Args:
        begin: first offset of the log.
        epoch: number of messages of an epoch; 0 for a matcher.
    """
    return begin + 2 * epoch if begin else 0


def newest_verdicts(settings: Settings, runtime: Runtime | None = None) -> VerdictsEnd:
    """Reads the end of the verdicts' topic. Raises BrokerError, TopicError, or CorruptRecord if it is no verdict."""
    topic = settings.topics.verdicts
    nulls: dict[int, int] = {}  # offset of the newest null record, by partition

    def is_verdict(record: Record) -> bool:
        if record.value() is None:
            nulls[record.partition()] = max(record.offset(), nulls.get(record.partition(), -1))
        return record.value() is not None

    with closing(TopicReader(connect(settings, "match", runtime, reading=True), topic, committed_only=True)) as end:
        found, begins = end.last(is_verdict), end.first_offsets()
    try:
        newest = {
            partition: decode_verdict(record.value(), topic, partition, record.offset(), ("scheme", "decider"))
            for partition, record in found.items()
        }
    except CorruptRecord as error:
        raise CorruptRecord(f"{error}; the last verdict behind it cannot be known: {NEW_GENERATION}") from error
    deleted = any(partition not in found or offset > found[partition].offset() for partition, offset in nulls.items())
    return verdicts_end(newest, begins, deleted)


def held_effects(settings: Settings, runtime: Runtime | None = None) -> HeldEffects:
    """Looks at the topic of effects. Raises BrokerError, TopicError, or CorruptRecord for what is no effect."""
    topic = settings.topics.effects
    connection = connect(settings, "match", runtime, reading=True)
    with closing(KafkaLog(connection, topic, committed_only=True, gone=EFFECTS_GONE)) as log:
        first, newest, topic_id = log.first(), log.last().get(0), log.topic.id.hex()
    if first is None or newest is None:
        return HeldEffects(topic_id)
    began = decode_piece(first[1], f"the first record of topic {topic}")
    end = decode_piece(newest.value() or b"", f"the last record of topic {topic}").offset + 1
    return HeldEffects(topic_id, began.offset + bool(began.number), end)


def messages_from(settings: Settings, start: int, runtime: Runtime | None = None) -> Iterable[tuple[int, bytes]]:
    """Yields the log's messages from an offset to its present end."""
    with closing(KafkaLog(connect(settings, "match", runtime, reading=True), settings.topics.sketches)) as log:
        if start < log.end():
            yield from log.messages(start)


def write_control(settings: Settings, topic: str, records: Sequence[bytes]) -> int:
    """Appends control records to a log. Returns the offset of the last one. Raises BrokerError, TopicError."""
    with closing(Writer(connect(settings, "match"), topic)) as writer:
        for record in records:
            writer.send(record)
        writer.flush()
        return writer.last_offset
