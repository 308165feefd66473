import re
from collections.abc import Sequence
from typing import Annotated

from streams.commands.options import DECIDER, MONITORING, PANELS, SHARDS, SKETCHES, TOPICS, Flags, Given, Opt, command
from streams.config.settings import SHARDS_MAX, Settings
from streams.errors import WrongUsage

_OF_SHARD = (
    *(*TOPICS, *SKETCHES, "state", "flush_ms", "threads", "message_bytes_max"),
    *(*PANELS["Checkpoints"], *DECIDER, *SHARDS, *MONITORING),
)


def numbers_of(text: str) -> tuple[int, ...]:
    """Numbers of shards, as 0-3 or 0,2,5-7. Raises ValueError."""
    found: set[int] = set()
    for part in text.split(","):
        ends = re.fullmatch(r"\s*([0-9]{1,4})(?:-([0-9]{1,4}))?\s*", part)
        first, last = (int(ends[1]), int(ends[2] or ends[1])) if ends else (1, 0)
        if not first <= last < SHARDS_MAX:
            raise ValueError(f"{text[:40]!r}: numbers of shards from 0 to {SHARDS_MAX - 1}, as 0-3 or 0,2,5-7")
        found.update(range(first, last + 1))
    return tuple(sorted(found))


class Options(Given):
    only: Annotated[
        Sequence[int] | None,
        Opt(
            "Run only these shards, as 0-3 or 0,2,5-7. By default Kafka shares all of them among the processes that "
            "run this command without this option.",
            metavar="LIST",
            parse=numbers_of,
        ),
    ] = None
    answer_from: Annotated[
        int | None,
        Opt(
            "Answer again from this message of the log on, because its answer was lost. Without effect where the "
            "answer is there.",
            low=0,
        ),
    ] = None
    settings: Annotated[Settings, Flags(_OF_SHARD, role="shard")]


@command(
    "shard",
    "NEARDUP_SEED_FILE=seed neardup shard --shards 16 --only 0-3 --state DIR",
    "neardup shard --shards 16 --state DIR --checkpoints s3://bucket/neardup",
    "neardup shard --shards 16 --only 4-7 --state DIR --checkpoints s3://bucket/neardup",
)
def shard(options: Options) -> None:
    """Run some shards: they find and score the candidates that `neardup judge` decides.

    Each shard has an index of its own, in the folder DIR.shards, and checkpoints of its own. A shard may run in any
    process, and in several at once: verdicts do not depend on it. Without --only, the shards of a process that ends
    move to other processes within seconds: each continues from its folder there, or from its newest checkpoint.
    SIGTERM stops the shards after their batch.
    """
    from streams.roles.runtime import serving
    from streams.roles.shard_process import run_shards

    settings, only = options.settings, options.only
    if not settings.is_sharded:
        raise WrongUsage("the number of the generation's shards is not set: name it by --shards or NEARDUP_SHARDS")
    if only and only[-1] >= settings.shards:
        raise WrongUsage(f"shard {only[-1]} is to run, and the generation has shards 0 to {settings.shards - 1}")
    with serving(settings, "shard") as runtime:
        run_shards(settings, runtime, shards=only, answer_from=options.answer_from)
