"""Connects shards to Kafka, any number of them in one process."""

from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path

from neardup.errors import BadInput, StateError
from neardup.index.rocks import RocksStore
from neardup.sharded.epochs import Sharding
from neardup.sharded.shard import Shard, applied_to
from streams.config.settings import Settings
from streams.errors import NEW_GENERATION
from streams.formats.pieces import decode_piece
from streams.kafka import Admin, KafkaLog, Writer
from streams.kafka.topics import Sizes, require
from streams.pipeline.effects import EffectsReader
from streams.process import logs
from streams.process.shutdown import now_ms
from streams.roles import checkpoint
from streams.roles.checkpoint import Begin, Restoring, RoleCheckpoints, identity
from streams.roles.generations import generation_served
from streams.roles.runtime import STOP_SECONDS_MAX, Runtime, connect, serving
from streams.roles.shard import ShardRole
from streams.roles.sketch import check_scheme
from streams.state.checkpointer import remove_index
from streams.state.directory import MatcherDirectory
from streams.state.locked_folder import free_bytes
from streams.state.log_names import LogNames, keep_log_names, log_names

_log = logs.get("shard")

#: Pause after a round in which no shard had anything to do.
_IDLE_SECONDS = 0.02
_GAUGES_SECONDS = 5.0


class PartitionWriter(Writer):
    """Writes the answers of one shard, to its partition."""

    shard = 0

    def send(
        self,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Sequence[tuple[str, bytes]] = (),
        partition: int = -1,
    ) -> None:
        super().send(value, key=key, headers=headers, partition=self.shard)


def shard_state(settings: Settings, number: int) -> Path:
    """The state directory of a shard: beside the judge's, because both may run on one machine."""
    return Path(f"{settings.state}.shards") / str(number)


def shard_checkpoints(settings: Settings, number: int) -> str:
    """The folder or URL of a shard's checkpoints, inside that of the judge's; "" if checkpoints are off."""
    return f"{settings.checkpoints.rstrip('/')}/shards/{number}" if settings.checkpoints else ""


def run_shards(
    settings: Settings, runtime: Runtime | None = None, *, shards: Sequence[int], answer_from: int | None = None
) -> None:
    """Runs some shards, which answer the sketch log, until the runtime is stopped.

    A restart is always safe, also on another machine, with or without the state directory.

    Raises BadInput if the generation has no such shards, TopicError, StateError, and what ShardRole.round raises.

    Args:
        shards: their numbers.
        answer_from: offset of a message whose answer was lost, set by the operator, to answer the log from there again.
            A shard whose index is too new for that restores a checkpoint, or builds its index from the log's start.
    """
    if not settings.is_sharded:
        raise BadInput("the generation has no shards: name their number by --of or NEARDUP_SHARDS")
    if not shards or not all(0 <= number < settings.shards for number in shards):
        named = ", ".join(map(str, shards)) or "none"
        raise BadInput(f"shards {named} are to run, and the generation has shards 0 to {settings.shards - 1}")
    if runtime is None:
        with serving(settings, "shard") as made:
            run_shards(settings, made, shards=shards, answer_from=answer_from)
        return
    names = settings.topics
    with ExitStack() as held:
        held.enter_context(generation_served(settings, "shard", runtime))
        require(
            Admin(connect(settings, "shard", runtime)),
            names,
            *(names.sketches, names.candidates, names.effects),
            sizes=Sizes(shards=settings.shards),
        )
        roles = [_start(settings, runtime, number, answer_from, held) for number in shards]
        _run(settings, runtime, roles)
        for role in roles:
            role.close()


def _run(settings: Settings, runtime: Runtime, roles: Sequence[ShardRole]) -> None:
    health, metrics = runtime.health.role("shard"), runtime.metrics
    answered = f"answers for shards {', '.join(str(role.number) for role in roles)}"
    checkpoints = [role.checkpoints for role in roles if role.checkpoints is not None]
    gauged = runtime.steady_s()
    while not runtime.stop.is_set():
        worked = False
        for role in roles:
            health.turned()
            worked = role.round() or worked
        reasons = [reason for role in roles if (reason := role.awaits())]
        if reasons:
            health.not_ready("; ".join(reasons))
        else:
            health.ready(answered)
        lags = {role.number: role.lag() for role in roles}
        metrics.lag["shard"].set(max(lags.values()))
        for number, lag in lags.items():
            metrics.shard_lag.labels(str(number)).set(lag)
        if runtime.steady_s() - gauged >= _GAUGES_SECONDS:
            gauged = runtime.steady_s()
            checkpoint.report(metrics, checkpoints)
            metrics.state_free.set(min(free_bytes(shard_state(settings, role.number)) for role in roles))
        if not worked:
            runtime.stop.wait(_IDLE_SECONDS)


def _start(settings: Settings, runtime: Runtime, number: int, answer_from: int | None, held: ExitStack) -> ShardRole:
    """Opens or restores one shard's rows, and connects it from their position on."""
    scheme = settings.scheme()
    decider = settings.decider(scheme)
    names, sharding = settings.topics, Sharding.of(decider)
    log = KafkaLog(connect(settings, "shard", runtime, reading=True), names.sketches)
    held.callback(log.close)
    check_scheme(names.sketches, log.first(), scheme)
    begin = _begin(settings, runtime, log)
    url = shard_checkpoints(settings, number)
    newest = None if answer_from is None else sharding.stable_to(answer_from)
    restoring = Restoring(
        settings, log, decider, runtime, url=url, position=applied_to, begin=begin, newest=newest, role="shard"
    )

    def fill(state: Path) -> None:
        if restoring.restore(state) or newest is None or not (state / "index").exists():
            return
        first, topic = begin()
        if first:
            raise StateError(
                f"shard {number} is to answer message {answer_from}, its index in {state} is newer, topic {topic} "
                f"begins at message {first}, and no checkpoint at {url or '(none set)'} fits; {NEW_GENERATION}"
            )
        _log.warning("removes an index that is too new, and builds it from the log", shard=number, state=str(state))
        remove_index(state)

    directory = MatcherDirectory(shard_state(settings, number), scheme, restore=fill, outlived=restoring.outlived)
    held.callback(directory.close)
    _bind(directory.store, log, settings, str(directory.path))
    shard = Shard(number, directory.store, decider, threads=settings.threads)
    directory.first_decider(decider)  # part of each checkpoint
    checkpoints = None
    if url:
        checkpoints = RoleCheckpoints(settings, directory.path, identity(log), now_ms, url=url)
        held.callback(checkpoints.close, STOP_SECONDS_MAX / 2)
    effects = KafkaLog(connect(settings, "shard", runtime, reading=True), names.effects, committed_only=True)
    held.callback(effects.close)
    answers = PartitionWriter(
        connect(settings, "shard", runtime),
        names.candidates,
        message_bytes_max=settings.message_bytes_max,
        gapless=True,
        linger_ms=0,
    )
    answers.shard = number
    held.callback(answers.close)
    log.follow(shard.effects_position)
    _log.info("shard starts", shard=number, of=sharding.shards, effects=shard.effects_position, log_end=log.end())
    return ShardRole(
        number,
        shard,
        directory.store,
        sharding,
        scheme.digest,
        log,
        EffectsReader(effects, directory.store),
        answers,
        runtime,
        log_id=log.topic.id,
        checkpoints=checkpoints,
    )


def _begin(settings: Settings, runtime: Runtime, log: KafkaLog) -> Begin:
    """Returns a function that finds the first message with sketches and effects, and the topic that limits it."""

    def find() -> tuple[int, str]:
        names, begin = settings.topics, log.begin()
        with closing(
            KafkaLog(connect(settings, "shard", runtime, reading=True), names.effects, committed_only=True)
        ) as effects:
            first = effects.first()
        if first is None:
            return begin, names.sketches
        piece = decode_piece(first[1], f"the first record of topic {names.effects}")
        whole = piece.offset + bool(piece.number)
        return (whole, names.effects) if whole > begin else (begin, names.sketches)

    return find


def _bind(store: RocksStore, log: KafkaLog, settings: Settings, state: str) -> None:
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
