"""Starts a matcher on Kafka, and starts it again after a failed transaction.

A start has these steps, in this order, each with its function below:

1. `_match` checks the topics, opens the state directory (or restores it from a checkpoint), and connects the ports.
2. `stand_by` of a standby (`standby`): folds committed messages without emitting, until the active matcher is gone.
3. `start_matcher` fences other matchers, compares index, log and verdicts (`match_start_checks`), and returns the role
   that continues at the offset found (`match_role`).
"""

from contextlib import ExitStack
from functools import partial
from pathlib import Path

from neardup.decider import Decider
from neardup.errors import StateError
from streams.config.settings import Settings
from streams.errors import Fenced, Stopped, Unsettled
from streams.formats.message import NewDecider, encode_control
from streams.kafka import Admin, KafkaLog, KafkaVerdicts
from streams.kafka.assignment import Assignment
from streams.kafka.topics import require
from streams.pipeline.audit import Audit, open_audit, shadow_numbers
from streams.pipeline.control_records import decider_at, describe_change
from streams.pipeline.matcher import Matcher
from streams.ports import Committed, TopicIds
from streams.process import logs
from streams.process.shutdown import now_ms
from streams.roles.match_role import MatchRole
from streams.roles.match_start_checks import (
    MatcherPorts,
    StartOptions,
    StartState,
    VerdictsEnd,
    bind,
    check_generation,
    decider_changes,
    newest_verdicts,
    refusal,
    resume_at,
)
from streams.roles.own_generation import generation_served
from streams.roles.runtime import (
    STOP_SECONDS_MAX,
    Runtime,
    connect,
    messages_from,
    write_control,
)
from streams.roles.sketch_role import check_scheme
from streams.roles.standby import stand_by
from streams.state.checkpoint_make import identity
from streams.state.checkpoint_restore import Restoring
from streams.state.checkpoint_role import RoleCheckpoints
from streams.state.matcher_directory import MatcherDirectory, log_names

_log = logs.get("match")

#: Starts of a matcher in a row, after failed transactions, without a commit. The process ends at the last one.
FAILED_STARTS_MAX = 4


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
        require(admin, names, *filter(None, (names.sketches, names.verdicts, names.audit)))
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
        ports = MatcherPorts(
            log=log,
            messages_from=lambda start: messages_from(settings, start, runtime),
            verdicts=verdicts,
            newest_verdicts=lambda whole: newest_verdicts(settings, runtime, whole=whole),
            write_control=lambda record: write_control(settings, names.sketches, [record]),
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
    commit the offset with the topic ids, if it is not committed so; (5) write the topic ids into the index.
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
    lost = options.accept_lost
    newest = VerdictsEnd() if is_vouched and not lost else ports.newest_verdicts(lost)
    names = log_names(store)
    found = StartState(
        log=topics.sketches,
        verdicts=topics.verdicts,
        state=str(directory.path),
        topic_ids=topic_ids,
        store=matcher.next_offset,
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
    if found.store_topic_ids != topic_ids:
        bind(ports, store, generation)  # (5)
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
    )
    _settle_decider(options, decider_at(role.matcher.decider, changes, log.end()), runtime.settings, ports)
    log.follow(role.matcher.next_offset)
    return role


def _settle_decider(options: StartOptions, held: Decider, settings: Settings, ports: MatcherPorts) -> None:
    """Writes the change to the given decider to the log. Raises StateError if the change is refused."""
    if refused := refusal(options, held, settings):
        raise StateError(refused)
    if options.decider.digest != held.digest:
        offset = ports.write_control(encode_control(NewDecider(held, options.decider)))
        _log.info("a new decider is written into the log", offset=offset, change=describe_change(held, options.decider))
