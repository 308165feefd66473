"""Connects shards to Kafka: a process with any number of them."""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from neardup.errors import BadInput
from neardup.sharded.epochs import Sharding
from neardup.sharded.shard import Shard
from streams.config.settings import Settings
from streams.kafka import Admin, KafkaLog, Writer
from streams.kafka.topics import Sizes, require
from streams.pipeline.effects import EffectsReader
from streams.process import logs
from streams.roles.runtime import Runtime, connect, serving
from streams.roles.shard import ShardRole
from streams.roles.sketch import check_scheme
from streams.state.directory import MatcherDirectory

_log = logs.get("shard")


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
    """The state directory of a shard; beside that of the judge, which may run on the same machine."""
    return Path(f"{settings.state}.shards") / str(number)


def run_shards(settings: Settings, runtime: Runtime | None = None, *, shards: Sequence[int]) -> None:
    """Answers the sketch log for some shards until it is stopped.

    Raises BadInput for a decider without shards or a number that is none of them, TopicError, StateError, and what
    ShardRole.round raises. Restarting is always safe, also on another machine, with or without the state directory.
    """
    if runtime is None:
        with serving(settings, "shard") as made:
            run_shards(settings, made, shards=shards)
        return
    scheme = settings.scheme()
    decider = settings.decider(scheme)
    if not decider.epoch or not all(0 <= number < decider.shards for number in shards):
        known = f"shards 0 to {decider.shards - 1}" if decider.epoch else "no shards (epoch is 0)"
        raise BadInput(f"shards {', '.join(map(str, shards))} are to run, and the decider has {known}")
    names = settings.topics
    require(
        Admin(connect(settings, "shard", runtime)),
        names,
        *(names.sketches, names.candidates, names.effects),
        sizes=Sizes(shards=decider.shards),
    )
    health, metrics = runtime.health.role("shard"), runtime.metrics
    with ExitStack() as held:
        roles = [_start(settings, runtime, number, held) for number in shards]
        while not runtime.stop.is_set():
            health.turned()
            worked = [role.round() for role in roles]
            reasons = [reason for role in roles if (reason := role.awaits())]
            if reasons:
                health.not_ready("; ".join(reasons))
            else:
                health.ready(f"answers for shards {', '.join(map(str, shards))}")
            metrics.lag["shard"].set(max(role.lag() for role in roles))
            if not any(worked):
                runtime.stop.wait(_IDLE_SECONDS)
        for role in roles:
            role.close()


#: Between two rounds in which no shard had anything to do.
_IDLE_SECONDS = 0.02


def _start(settings: Settings, runtime: Runtime, number: int, held: ExitStack) -> ShardRole:
    """One shard, which continues where its rows and the log allow."""
    scheme = settings.scheme()
    decider = settings.decider(scheme)
    names, sharding = settings.topics, Sharding.of(decider)
    log = KafkaLog(connect(settings, "shard", runtime, reading=True), names.sketches)
    held.callback(log.close)
    check_scheme(names.sketches, log.first(), scheme)
    effects = KafkaLog(connect(settings, "shard", runtime, reading=True), names.effects, committed_only=True)
    held.callback(effects.close)
    directory = MatcherDirectory(shard_state(settings, number), scheme)
    held.callback(directory.close)
    shard = Shard(number, directory.store, decider, threads=settings.threads)
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
    )
