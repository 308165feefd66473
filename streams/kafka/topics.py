"""The topics: what each needs and why, making them, and checking that they still are so."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from neardup.limits import DAY_MS, LOG_RECORD_BYTES_MIN, PAGE_RECORD_BYTES_MAX, REJECTED_EXTRA_BYTES
from streams.config.retention import PAGES_MS, SKETCHES_MS, VERDICTS_MS
from streams.config.settings import Topics
from streams.errors import TopicError
from streams.kafka import Admin, Topic
from streams.kafka.admin import BROKER_TIME

VERDICT_BYTES_MIN = 262_144


@dataclass(frozen=True, slots=True)
class Sizes:
    """What differs from one deployment to the next; times in ms, -1 = for ever.

    sketches_retention_ms must cover three intervals between checkpoints of the index: it is rebuilt from there.
    replicas: of new topics; with three, a write is acknowledged once two have it. compact_verdicts: whether a new topic
    of verdicts keeps each URL's newest one for ever, and no other (see COMPACTED). shards: number of virtual shards.
    """

    partitions: int = 8
    shards: int = 1
    replicas: int = 1
    page_bytes_max: int = PAGE_RECORD_BYTES_MAX
    pages_retention_ms: int = PAGES_MS
    sketches_retention_ms: int = SKETCHES_MS
    verdicts_retention_ms: int = VERDICTS_MS
    compact_verdicts: bool = False


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a topic. found and needed: values as text; reason: what would go wrong."""

    topic: str
    setting: str
    found: str
    needed: str
    reason: str

    def __str__(self) -> str:
        return f"topic {self.topic}: {self.setting} is {self.found}, needed: {self.needed}; {self.reason}"


@dataclass(frozen=True, slots=True)
class _Need:
    """value: what a new topic gets; suits: whether what an old one has will do."""

    setting: str
    value: str
    needed: str
    suits: Callable[[str], bool]
    reason: str


def _exactly(setting: str, value: str, reason: str) -> _Need:
    return _Need(setting, value, value, lambda found: found == value, reason)


def _at_least(setting: str, value: int, smallest: int, reason: str) -> _Need:
    return _Need(setting, str(value), f"{smallest} or more", lambda found: int(found) >= smallest, reason)


def _retention(value: int, smallest: int, reason: str) -> _Need:
    suits: Callable[[str], bool] = lambda found: int(found) == -1 or 0 <= smallest <= int(found)  # noqa: E731
    needed = "-1" if smallest < 0 else f"{smallest} or more, or -1"
    return _Need("retention.ms", str(value), needed, suits, reason)


_NO_COMPACTION = _exactly(
    "cleanup.policy", "delete", "compaction would take away records whose offsets others still count on"
)
#: What a compacted topic of verdicts means.
COMPACTED = (
    "compacted: each URL's newest verdict stays, and older ones go. Where a URL stands is the same, but for a title "
    "that only an older one told; exports of `verdicts`, `neardup diff`, and views made anew lack what was said "
    "before. A page that was taken down stays in it by URL and title, unless cleanup.policy is compact,delete"
)


def _of_new(setting: str, value: str) -> _Need:
    """An old topic may have it otherwise."""
    return _Need(setting, value, value, lambda found: True, "")


_NO_UNCLEAN = _exactly(
    "unclean.leader.election.enable", "false", "a replica that lags could become leader and lose what was acknowledged"
)


#: Of all topics but `pages`, which has a reason of its own.
_BROKER_TIME = _exactly(
    *BROKER_TIME,
    "with CreateTime brokers refuse the records of a machine whose clock is ahead, and retention soon removes those of "
    "one whose clock is behind",
)
_NO_LIMIT_IN_BYTES = _exactly(
    "retention.bytes", "-1", "a limit in bytes can delete records that are needed for a rebuild"
)


@dataclass(frozen=True, slots=True)
class _Plan:
    """fixed: why the number of partitions must be this one; "" if it is free."""

    name: str
    partitions: int
    fixed: str
    needs: Sequence[_Need]


def _plans(names: Topics, sizes: Sizes, log_retention_ms: int) -> tuple[_Plan, ...]:
    """log_retention_ms: of the sketch log as it is."""
    page_bytes = sizes.page_bytes_max
    audit = _Plan(
        names.audit,
        1,
        "",
        (
            _BROKER_TIME,
            _retention(sizes.verdicts_retention_ms, DAY_MS, "pairs could go before anybody has looked at them"),
            _NO_COMPACTION,
            _NO_UNCLEAN,
        ),
    )
    kept_as_sketches = _retention(
        log_retention_ms,
        log_retention_ms,
        "it must be kept as long as the sketch log, or shards and judge cannot be restored from their checkpoints",
    )
    of_shards = [_BROKER_TIME, _NO_LIMIT_IN_BYTES, _NO_COMPACTION, _NO_UNCLEAN]
    record_bytes = _at_least("max.message.bytes", 1_048_588, LOG_RECORD_BYTES_MIN, "a full record would not fit")
    return (
        *([audit] if names.audit else []),
        *_sharded(names, sizes, (record_bytes, kept_as_sketches, *of_shards)),
        _Plan(
            names.pages,
            sizes.partitions,
            "",
            (
                _exactly(
                    *BROKER_TIME,
                    "it is the log time, and with CreateTime a producer with a wrong clock could write the future",
                ),
                _at_least("max.message.bytes", page_bytes, page_bytes, "the broker would refuse large pages"),
                _retention(sizes.pages_retention_ms, DAY_MS, "pages could go before a stopped sketcher is back"),
                _NO_COMPACTION,
                _NO_UNCLEAN,
            ),
        ),
        _Plan(
            names.rejected,
            sizes.partitions,
            "",
            (
                _BROKER_TIME,
                _at_least(
                    "max.message.bytes",
                    page_bytes + REJECTED_EXTRA_BYTES,
                    page_bytes + REJECTED_EXTRA_BYTES,
                    "a rejected page of full size, with its reason, would not fit and would stop the sketcher",
                ),
                _NO_COMPACTION,
                _NO_UNCLEAN,
            ),
        ),
        _Plan(
            names.sketches,
            1,
            "its one partition is the order of the crawl, and page ids are its offsets",
            (
                _BROKER_TIME,
                _at_least(
                    "max.message.bytes", 1_048_588, LOG_RECORD_BYTES_MIN, "a full message of sketches would not fit"
                ),
                _retention(
                    sizes.sketches_retention_ms,
                    sizes.sketches_retention_ms,
                    "it must cover three intervals between checkpoints, or a lost index cannot be rebuilt",
                ),
                _NO_LIMIT_IN_BYTES,
                _NO_COMPACTION,
                _NO_UNCLEAN,
            ),
        ),
        _Plan(
            names.verdicts,
            sizes.partitions,
            "",
            (
                _BROKER_TIME,
                _at_least("max.message.bytes", 1_048_588, VERDICT_BYTES_MIN, "a verdict with its evidence may not fit"),
                _retention(sizes.verdicts_retention_ms, DAY_MS, "verdicts could go before a stopped indexer is back"),
                # The newest verdict of a partition, which a matcher starts by, is never compacted away.
                _of_new("cleanup.policy", "compact" if sizes.compact_verdicts else "delete"),
                _NO_UNCLEAN,
            ),
        ),
    )


def _sharded(names: Topics, sizes: Sizes, needs: Sequence[_Need]) -> Iterator[_Plan]:
    """The topics between shards and judge, if the generation has shards."""
    if names.candidates:
        yield _Plan(names.candidates, sizes.shards, "each virtual shard has a partition of its own", needs)
    if names.effects:
        yield _Plan(names.effects, 1, "its one partition has the log's order", needs)


def create(admin: Admin, names: Topics | None = None, sizes: Sizes | None = None) -> list[str]:
    """Makes the topics that are missing and returns their names; topics that exist are checked, never altered.

    Raises TopicError with every problem of those (nothing is made then), BrokerError.
    """
    names, sizes = names or Topics(), sizes or Sizes()
    plans = _plans(names, sizes, _log_retention_ms(admin, names, sizes))
    present = admin.topics([plan.name for plan in plans])
    problems = list(_problems(admin, [plan for plan in plans if plan.name in present], present))
    if problems:
        raise TopicError("\n".join(map(str, problems)))
    made = []
    for plan in plans:
        settings = {need.setting: need.value for need in plan.needs}
        if sizes.replicas >= 3:
            settings["min.insync.replicas"] = "2"
        if plan.name not in present and admin.create(plan.name, plan.partitions, sizes.replicas, settings):
            made.append(plan.name)
    return made


def check(
    admin: Admin, names: Topics | None = None, sizes: Sizes | None = None, *, only: Collection[str] | None = None
) -> list[Problem]:
    """Everything that is wrong with the topics, missing ones included; empty if they may be used.

    only: of these topics, by their names; others are not even asked about. Partition counts other than that of the
    sketch log are free, and so are larger limits. Raises BrokerError.
    """
    names, sizes = names or Topics(), sizes or Sizes()
    plans = _plans(names, sizes, _log_retention_ms(admin, names, sizes))
    plans = tuple(plan for plan in plans if only is None or plan.name in only)
    return list(_problems(admin, plans, admin.topics([plan.name for plan in plans])))


def _log_retention_ms(admin: Admin, names: Topics, sizes: Sizes) -> int:
    """Of the sketch log where it exists, since topics of shards are kept as long; else what a new one gets."""
    if names.effects and admin.topics([names.sketches]):
        return int(admin.settings(names.sketches)["retention.ms"])
    return sizes.sketches_retention_ms


def compacted(admin: Admin, topic: str) -> bool:
    """Whether records of this topic go once there is a newer one of their key; False where it is missing.

    Raises BrokerError.
    """
    return bool(admin.topics([topic])) and "compact" in admin.settings(topic)["cleanup.policy"]


def require(admin: Admin, names: Topics, *only: str, sizes: Sizes | None = None) -> None:
    """Raises TopicError with everything that is wrong with these topics; for whoever is about to use them."""
    problems = check(admin, names, sizes, only=only)
    if problems:
        raise TopicError("\n".join(map(str, problems)))


def _problems(admin: Admin, plans: Sequence[_Plan], present: Mapping[str, Topic]) -> Iterator[Problem]:
    for plan in plans:
        topic = present.get(plan.name)
        if topic is None:
            yield Problem(plan.name, "the topic", "missing", "present", "create it with `neardup topics create`")
            continue
        if plan.fixed and topic.partitions != plan.partitions:
            found, needed = str(topic.partitions), str(plan.partitions)
            yield Problem(plan.name, "the number of partitions", found, needed, plan.fixed)
        settings = admin.settings(plan.name)
        for need in plan.needs:
            found = settings[need.setting]
            if not need.suits(found):
                yield Problem(plan.name, need.setting, found, need.needed, need.reason)
        in_sync = int(settings["min.insync.replicas"])
        if in_sync > topic.replicas:
            yield Problem(
                plan.name,
                "min.insync.replicas",
                str(in_sync),
                f"{topic.replicas} or less",
                "with fewer replicas than that no write is ever acknowledged",
            )
        elif topic.replicas >= 3 and in_sync < 2:
            yield Problem(
                plan.name,
                "min.insync.replicas",
                str(in_sync),
                "2 or more",
                "a write that only one broker has is lost with that broker",
            )
