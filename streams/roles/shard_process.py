"""Connects shards to Kafka, any number of them in one process."""

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from neardup.errors import NeardupError, StateError
from neardup.index.column_families import Store
from neardup.sharded.epochs import Sharding
from neardup.sharded.messages import Candidates
from neardup.sharded.shard import Shard, applied_to
from streams.config.settings import Settings
from streams.errors import ANSWERS_GONE, EFFECTS_GONE, NEW_GENERATION, InUse, effects_again
from streams.formats.pieces import Collected, decode_piece
from streams.kafka import Admin, Connection, KafkaLog
from streams.kafka.assignment import Assignment
from streams.kafka.connection import TRY_SECONDS_MAX
from streams.kafka.reader import TopicReader, same_topic
from streams.kafka.shard_answers import AnswerWriter, ShardBeats
from streams.kafka.topics import Sizes, require
from streams.pipeline.effects import EffectsReader
from streams.pipeline.shared_log import SharedLog, decode_message
from streams.process import logs
from streams.process.disk import free_bytes
from streams.process.shutdown import now_ms
from streams.roles.own_generation import generation_served
from streams.roles.runtime import STOP_SECONDS_MAX, Runtime, Silence, connect
from streams.roles.shard_role import ShardRole
from streams.roles.sketch_role import check_scheme
from streams.state.checkpoint_make import identity
from streams.state.checkpoint_restore import Restoring, remove_index
from streams.state.checkpoint_role import RoleCheckpoints, report_checkpoints
from streams.state.directory import Directory
from streams.state.matcher_directory import LogNames, MatcherDirectory, keep_log_names, log_names

_log = logs.get("shard")

#: Longest wait for something to do.
_IDLE_SECONDS = 0.02
#: How often the topics are checked, with or without work.
_TOPICS_SECONDS = 1.0
_GAUGES_SECONDS = 5.0
_BEAT_SECONDS = 2.0
#: Between two attempts to open a shard's folder that another process has open: a killed one may still be ending.
_IN_USE_SECONDS = 0.5
#: Between two looks for indexes of shards that run elsewhere, unless a shard of the process makes a checkpoint.
_TIDY_SECONDS = 600.0
#: Messages of the log that are kept for the other shards of the process, at least.
_KEPT_MIN = 64


def shard_state(settings: Settings, number: int) -> Path:
    """The state directory of a shard: beside the judge's, because both may run on one machine."""
    return Path(f"{settings.state}.shards") / str(number)


def shard_checkpoints(settings: Settings, number: int) -> str:
    """The folder or URL of a shard's checkpoints, inside that of the judge's; "" if checkpoints are off."""
    return f"{settings.checkpoints.rstrip('/')}/shards/{number}" if settings.checkpoints else ""


def run_shards(
    settings: Settings,
    runtime: Runtime,
    *,
    shards: Sequence[int] | None = None,
    answer_from: int | None = None,
) -> None:
    """Run some shards, which answer the sketch log, until the runtime is stopped.

    A restart is always safe, also on another machine, with or without the state directory.

    Args:
        settings: settings of the role.
        runtime: stop request, health and metrics of the process.
        shards: numbers of the shards. By default Kafka assigns shards to this process, among all processes that run
            without numbers.
        answer_from: offset of a message whose answer was lost. The shards answer the log again from there. A shard
            whose index is too new for that restores a checkpoint, or builds its index from the start of the log.

    Raises:
        TopicError, StateError: if topics or the state directory do not fit the settings.
        NeardupError: the errors of ShardRole.round.
    """
    names = settings.topics
    with ExitStack() as held:
        held.enter_context(generation_served(settings, "shard", runtime))
        require(
            Admin(connect(settings, "shard", runtime)),
            names,
            *(names.sketches, names.candidates, names.effects),
            sizes=Sizes(shards=settings.shards),
        )
        running = _RunningShards(settings, runtime, answer_from)
        held.callback(running.close)
        held.enter_context(running.beating())
        assignment = None
        if shards is None:
            assignment = Assignment(connect(settings, "shard", runtime), names.candidates, settings.group_of("shard"))
            held.callback(assignment.close)
        for number in shards or ():
            running.add(running.start(number))
        worked = False
        while not runtime.stop.is_set():
            if assignment is not None:
                assignment.look()
                running.adjust(assignment.held)
            worked = running.round(0.0 if worked else _IDLE_SECONDS)
            if not running.count:
                runtime.stop.wait(_IDLE_SECONDS)
        running.flush()


class _Running(NamedTuple):
    """held: closes what the role uses."""

    role: ShardRole
    held: ExitStack


class _RunningShards:
    """The shards of this process. One starts at a time, in a thread: restoring a checkpoint may take hours."""

    def __init__(self, settings: Settings, runtime: Runtime, answer_from: int | None) -> None:
        self._settings, self._runtime, self._answer_from = settings, runtime, answer_from
        self._decider = settings.decider(settings.scheme())
        self._sharding = Sharding.of(self._decider)
        self._shards: dict[int, _Running] = {}
        self._threads = ThreadPoolExecutor(1, "neardup-shard")
        self._starting: tuple[int, Future[_Running]] | None = None
        self._in_use: dict[int, str] = {}  # by shard, why it cannot start yet
        self._retry_s = self._tidied = self._checked = runtime.steady_s()
        self._gauged = -math.inf  # the first round already says how full the disk is
        self._silence = Silence(_log)
        self._admin = Admin(connect(settings, "shard", runtime))
        names = settings.topics
        advice = {names.sketches: NEW_GENERATION, names.effects: EFFECTS_GONE, names.candidates: ANSWERS_GONE}
        self._topics = [(self._admin.topic(name), gone) for name, gone in advice.items()]
        self._tidying: Future[None] | None = None
        self._newest = 0  # checkpoint of the shards of this process
        with closing(self._reader()) as log:
            check_scheme(log.topic.name, log.first(), settings.scheme())
            log_id = log.topic.id
        kept = max(_KEPT_MIN, 3 * self._decider.epoch)
        decode = partial(decode_message, scheme=self._decider.scheme, log_id=log_id)
        self._log = SharedLog(self._reader, decode, kept)

    def _reader(self) -> KafkaLog:
        return KafkaLog(connect(self._settings, "shard", self._runtime, reading=True), self._settings.topics.sketches)

    @contextmanager
    def beating(self) -> Iterator[None]:
        """Sends heartbeats of the shards in a thread: a long round is not taken for the end of the process."""
        topic = self._admin.topic(self._settings.topics.candidates)
        beats = ShardBeats(connect(self._settings, "shard"), topic, self._settings.group_of("shard"))
        over = threading.Event()

        def beat() -> None:
            while not over.wait(_BEAT_SECONDS):
                roles = [running.role for running in list(self._shards.values())]
                beats.send({role.number: role.answered_to for role in roles})
            beats.close()

        threading.Thread(target=beat, name="neardup-beats", daemon=True).start()
        try:
            yield
        finally:
            over.set()

    @property
    def count(self) -> int:
        """The number of shards at work."""
        return len(self._shards)

    def start(self, number: int) -> _Running:
        """Opens or restores one shard's rows, and connects it from their position on."""
        with ExitStack() as held, closing(self._reader()) as log:
            directory = self._directory(number, log)
            held.callback(directory.close)
            _bind(directory.store, log, self._settings, str(directory.path))
            shard = Shard(number, directory.store, self._decider, threads=self._settings.threads)
            directory.first_decider(self._decider)  # part of each checkpoint
            checkpoints = None
            if url := shard_checkpoints(self._settings, number):
                checkpoints = RoleCheckpoints(self._settings, directory.path, identity(log), now_ms, url=url)
                held.callback(checkpoints.close, STOP_SECONDS_MAX / 2)
            effects = self._effects()
            held.callback(effects.close)
            answers = AnswerWriter(
                connect(self._settings, "shard", self._runtime),
                self._settings.topics.candidates,
                number,
                self.check_topics,
                message_bytes_max=self._settings.message_bytes_max,
            )
            held.callback(answers.close)
            view = self._log.view(shard.effects_position)
            held.callback(view.close)
            at = shard.effects_position
            _log.info("shard starts", shard=number, of=self._sharding.shards, effects=at, log_end=log.end())
            role = ShardRole(
                number,
                shard,
                directory.store,
                self._sharding,
                view,
                EffectsReader(effects, directory.store),
                answers,
                self._runtime,
                checkpoints=checkpoints,
            )
            return _Running(role, held.pop_all())

    def _directory(self, number: int, log: KafkaLog) -> MatcherDirectory:
        """Opens the directory of a shard; its index may be that of a checkpoint, or one to be built from the log."""
        newest = None
        if self._answer_from is not None and not self._is_answered(number, self._answer_from):
            newest = self._sharding.stable_to(self._answer_from)
        restoring = self._restoring(number, log, newest)

        def fill(state: Path) -> None:
            if restoring.restore(state) or newest is None or not (state / "index").exists():
                return
            first, topic = self._begin(log)
            if first:
                url = shard_checkpoints(self._settings, number) or "(none set)"
                raise StateError(
                    f"shard {number} is to answer message {self._answer_from}, its index in {state} is newer, topic "
                    f"{topic} begins at message {first}, and no checkpoint at {url} fits; {self._advice(log, topic, 0)}"
                )
            _log.warning("removes an index that is too new, and builds it from the log", shard=number, state=str(state))
            remove_index(state)

        state = shard_state(self._settings, number)
        return MatcherDirectory(state, self._settings.scheme(), restore=fill, outlived=restoring.outlived)

    def _is_answered(self, number: int, message: int) -> bool:
        """Whether the topic has the answer that the operator wants again: then the option is done for this shard.

        Otherwise a shard that starts again, or moves here, would lose an index that is good.
        """
        connection = connect(self._settings, "shard", self._runtime, reading=True)
        digest, names = self._decider.digest, self._settings.topics
        found = _is_answered(
            connection, names.candidates, number, message, lambda payload: Candidates.decode(payload).decider == digest
        )
        if found:
            _log.info("the answer is there: --answer-from has no effect", shard=number, message=message)
        return found

    def _restoring(self, number: int, log: KafkaLog, newest: int | None = None) -> Restoring:
        """newest: greatest offset of an index that serves; None: any."""
        settings = self._settings
        return Restoring(
            settings,
            log,
            self._decider,
            self._runtime.stop,
            self._runtime.health.role("shard"),
            url=shard_checkpoints(settings, number),
            position=applied_to,
            begin=partial(self._begin, log),
            newest=newest,
            behind_max=settings.checkpoint_messages,
            advice=partial(self._advice, log),
        )

    def _advice(self, log: KafkaLog, topic: str, newest: int) -> str:
        """What to do where a topic begins behind the newest checkpoint of a shard; newest: its end, 0 without any."""
        begin = log.first_offset()
        if topic != self._settings.topics.effects or newest < begin:
            return NEW_GENERATION
        return effects_again(newest, begin)

    def _begin(self, log: KafkaLog) -> tuple[int, str]:
        """Finds the first message with sketches and effects, and the topic that limits it."""
        names, begin = self._settings.topics, log.first_offset()
        with closing(self._effects()) as effects:
            first = effects.first()
        if first is None:
            return begin, names.sketches
        piece = decode_piece(first[1], f"the first record of topic {names.effects}")
        whole = piece.offset + bool(piece.number)
        return (whole, names.effects) if whole > begin else (begin, names.sketches)

    def _effects(self) -> KafkaLog:
        """A reader of the topic of effects."""
        return KafkaLog(
            connect(self._settings, "shard", self._runtime, reading=True),
            self._settings.topics.effects,
            committed_only=True,
            gone=EFFECTS_GONE,
            lost="start this shard again: it says which effects it lacks, and what to do",
        )

    def check_topics(self, at_once: bool = False) -> None:
        """Raises TopicError if the log, the effects or the answers were deleted or recreated.

        at_once: whether to check now; by default the topics are checked once a second.
        """
        if at_once or self._runtime.steady_s() - self._checked >= _TOPICS_SECONDS:
            self._silence.check(self._must_be_the_same)
            self._checked = self._runtime.steady_s()

    def _must_be_the_same(self) -> None:
        for known, gone in self._topics:
            same_topic(self._admin, known, gone, TRY_SECONDS_MAX)

    def add(self, running: _Running) -> None:
        self._shards[running.role.number] = running

    def adjust(self, assigned: frozenset[int]) -> None:
        """Ends shards that are assigned to other processes, and starts assigned ones. Raises like `start`."""
        for number in self._shards.keys() - assigned:
            _log.info(
                "shard is assigned to another process", shard=number, folder=str(shard_state(self._settings, number))
            )
            self._end(number)
        self._in_use = {number: reason for number, reason in self._in_use.items() if number in assigned}
        if self._starting is not None and self._starting[1].done():
            (number, started), self._starting = self._starting, None
            self._take_over(number, started)
        due = assigned - self._shards.keys()
        if self._runtime.steady_s() < self._retry_s:
            due -= self._in_use.keys()
        if due and self._starting is None:
            number = min(due - self._in_use.keys() or due)
            self._starting = number, self._threads.submit(self.start, number)
        self._tidy(assigned)

    def _tidy(self, assigned: frozenset[int]) -> None:
        """Lets the thread remove indexes of other processes' shards that a start would replace by a checkpoint."""
        if not self._settings.checkpoints or (self._tidying is not None and not self._tidying.done()):
            return
        if self._tidying is not None:
            self._tidying.result()  # raises what is no failure of Kafka or of a disk
        made = [running.role.checkpoints.newest for running in self._shards.values() if running.role.checkpoints]
        newest, now = max(made, default=0), self._runtime.steady_s()
        if newest > self._newest or now - self._tidied >= _TIDY_SECONDS:
            self._newest, self._tidied = newest, now
            elsewhere = sorted(set(range(self._settings.shards)) - assigned)
            self._tidying = self._threads.submit(self._remove_outdated, elsewhere)

    def _remove_outdated(self, numbers: Sequence[int]) -> None:
        """Removes the indexes of these shards that lag far behind the newest checkpoint, and that no process has open.

        A failure stops nothing: the next look tries again.
        """
        try:
            with closing(self._reader()) as log:
                for number in numbers:
                    state = shard_state(self._settings, number)
                    restoring = self._restoring(number, log)
                    if (state / "index").exists():
                        with suppress(InUse):
                            _remove_if_outdated(state, restoring)
        except NeardupError as error:
            _log.warning("cannot look for indexes of shards that run elsewhere", reason=str(error))

    def _take_over(self, number: int, started: "Future[_Running]") -> None:
        try:
            self.add(started.result())
        except InUse as error:  # of a process that has just been killed, or is frozen
            if number not in self._in_use:
                _log.warning("waits for the folder of a shard", shard=number, reason=str(error))
            self._in_use[number] = str(error)
            self._retry_s = self._runtime.steady_s() + _IN_USE_SECONDS
        else:
            self._in_use.pop(number, None)

    def round(self, wait_s: float = 0.0) -> bool:
        """One round of each shard; False if no shard had anything to do. Reports health and metrics.

        No shard waits for the acknowledgements of another shard.

        wait_s: longest wait of the first shard for something to do, seconds.
        """
        self.check_topics()
        health, metrics = self._runtime.health.role("shard"), self._runtime.metrics
        roles = [running.role for _, running in sorted(self._shards.items())]
        worked = False
        for role in roles:
            health.turned()
            role.answer(wait_s)
            wait_s = 0.0
        for role in roles:
            health.turned()
            worked = role.settle() or worked
        health.turned()
        awaits = [self._silence.reason, *(role.awaits() for role in roles)]
        reasons = [*self._in_use.values(), *filter(None, awaits)]
        if self._starting is not None:
            reasons.append(f"shard {self._starting[0]} starts")
        numbers = ", ".join(str(role.number) for role in roles)
        if reasons:
            health.not_ready("; ".join(reasons))
        else:
            health.ready(f"answers for shards {numbers}" if roles else "stands by: other processes run all shards")
        lags = {role.number: role.lag() for role in roles}
        metrics.lag["shard"].set(max(lags.values(), default=0))
        for number, lag in lags.items():
            metrics.shard_lag.labels(str(number)).set(lag)
        if roles and self._runtime.steady_s() - self._gauged >= _GAUGES_SECONDS:
            self._gauged = self._runtime.steady_s()
            report_checkpoints(metrics, [role.checkpoints for role in roles if role.checkpoints is not None])
            metrics.state_free.set(min(free_bytes(shard_state(self._settings, role.number)) for role in roles))
        return worked

    def flush(self) -> None:
        """Flushes the rows of all shards, once their answers are acknowledged."""
        for running in self._shards.values():
            running.role.close()

    def _end(self, number: int) -> None:
        running = self._shards.pop(number)
        running.role.close()
        running.held.close()
        self._runtime.metrics.shard_lag.remove(str(number))

    def close(self) -> None:
        """Closes all shards; rows that were not flushed are written again by the next start."""
        self._threads.shutdown()
        if self._starting is not None:
            with suppress(NeardupError):
                self._starting[1].result().held.close()
        for running in self._shards.values():
            running.held.close()
        self._log.close()


def _is_answered(connection: Connection, topic: str, shard: int, message: int, is_own: Callable[[bytes], bool]) -> bool:
    """Whether the topic holds a shard's complete answer to a message of the log. Reads the shard's partition.

    is_own: whether an answer is one of the judge's shards, which have the same decider.
    """
    collected = Collected()
    reader = TopicReader(connection, topic, committed_only=False, gone=ANSWERS_GONE)
    with closing(reader):
        ends = {shard: reader.ends()[shard]}
        reader.assign({shard: reader.first_offsets()[shard]})
        for record in reader.read_to(ends):
            connection.go_on()
            where = f"topic {topic}, partition {shard}, offset {record.offset()}"
            piece = decode_piece(record.value() or b"", where)
            if piece.offset != message:
                continue
            payload = collected.add(piece, where)
            if payload is not None:
                if is_own(payload):
                    return True
                collected = Collected()
    return False


def _remove_if_outdated(state: Path, restoring: Restoring) -> None:
    """Raises StateError, InUse."""
    with ExitStack() as held:
        with closing(Directory(state, held).open_index()) as store:
            outdated = restoring.lags(applied_to(store))
        if outdated:
            remove_index(state)
            _log.info("removed the index of a shard that runs elsewhere", shard=int(state.name), folder=str(state))


def _bind(store: Store, log: KafkaLog, settings: Settings, state: str) -> None:
    """Notes in the rows which log they belong to. Raises StateError for rows of another log or generation."""
    required, held = LogNames(log.cluster_id, log.topic.id.hex(), settings.generation), log_names(store)
    if held is None:
        keep_log_names(store, required)
        return
    for what, was, now in zip(LogNames._fields, held, required, strict=True):
        if was != now:
            raise StateError(
                f"the index in {state} was folded from a log of {what} {was or '(unnamed)'}, and topic "
                f"{log.topic.name} has {now or '(unnamed)'}: the log was deleted and recreated, or a name is set that "
                f"is another's; set what belongs together, or {NEW_GENERATION}"
            )
