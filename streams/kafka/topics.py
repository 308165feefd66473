"""The topics: the settings that each needs, with the reasons; their creation and checks."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from neardup.limits import DAY_MS, LOG_RECORD_BYTES_MIN, PAGE_RECORD_BYTES_MAX, REJECTED_EXTRA_BYTES
from streams.config.settings import PAGES_MS, SKETCHES_MS, VERDICTS_MS, Topics
from streams.errors import TopicError
from streams.kafka import Admin, KafkaTopic
from streams.kafka.admin import BROKER_TIME

VERDICT_BYTES_MIN = 262_144


@dataclass(frozen=True, slots=True)
class Sizes:
    """Settings of topics that differ between deployments; times in ms, -1: for ever.

    sketches_retention_ms: must cover three intervals between checkpoints, from which an index is rebuilt.
    replicas: number of replicas of new topics; with three, a write is acknowledged once two replicas have it.
    compact_verdicts: whether a new topic of verdicts keeps the newest verdict of each URL for ever, and no other
        verdict (see COMPACTED).
    """

    partitions: int = 8
    replicas: int = 1
    page_bytes_max: int = PAGE_RECORD_BYTES_MAX
    pages_retention_ms: int = PAGES_MS
    sketches_retention_ms: int = SKETCHES_MS
    verdicts_retention_ms: int = VERDICTS_MS
    compact_verdicts: bool = False


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of a topic. found, needed: values as text. reason: the consequence."""

    topic: str
    setting: str
    found: str
    needed: str
    reason: str

    def __str__(self) -> str:
        return f"topic {self.topic}: {self.setting} is {self.found}, needed: {self.needed}; {self.reason}"


@dataclass(frozen=True, slots=True)
class _Need:
    """A needed setting.

    value: value for a new topic. suits: function that tells whether the value of an existing topic is sufficient.
    """

    setting: str
    value: str
    needed: str
    suits: Callable[[str], bool]
    reason: str


def _exactly(setting: str, value: str, reason: str) -> _Need:
    return _Need(setting, value, value, lambda found: found == value, reason)


def _bytes(value: int, smallest: int, reason: str) -> _Need:
    fits: Callable[[str], bool] = lambda found: int(found) >= smallest  # noqa: E731
    return _Need("max.message.bytes", str(value), f"{smallest} or more", fits, reason)


def _retention(value: int, smallest: int, reason: str) -> _Need:
    suits: Callable[[str], bool] = lambda found: int(found) == -1 or 0 <= smallest <= int(found)  # noqa: E731
    needed = "-1" if smallest < 0 else f"{smallest} or more, or -1"
    return _Need("retention.ms", str(value), needed, suits, reason)


_NO_COMPACTION = _exactly(
    "cleanup.policy", "delete", "compaction would take away records whose offsets others still count on"
)
#: The consequences of a compacted topic of verdicts.
COMPACTED = (
    "compacted: each URL's newest verdict stays, and older ones go. Where a URL stands is the same, but for a title "
    "that only an older verdict had; exports of `verdicts`, `neardup diff`, and recreated views lack verdicts from "
    "before. A page that was taken down stays in it by URL and title, unless cleanup.policy is compact,delete"
)


_NO_UNCLEAN = _exactly(
    "unclean.leader.election.enable", "false", "a replica that lags could become leader and lose what was acknowledged"
)


#: The need of all topics except `pages`, which has its own reason.
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
    """A topic to create. fixed: why the number of partitions must be this one; "" if any number will do."""

    name: str
    partitions: int
    fixed: str
    needs: Sequence[_Need]


def _plans(names: Topics, sizes: Sizes) -> tuple[_Plan, ...]:
    """Return the plans of all topics."""

    def plan(name: str, partitions: int, *needs: _Need, fixed: str = "") -> _Plan:
        return _Plan(name, partitions, fixed, (*needs, _NO_UNCLEAN))

    page_bytes, log_ms, verdicts_ms = sizes.page_bytes_max, sizes.sketches_retention_ms, sizes.verdicts_retention_ms
    audit_kept = "pairs could be deleted before a labeller has seen them"
    of_pages = "it is the log time, and with CreateTime a producer with a wrong clock could write the future"
    for_rejected = "a rejected page of full size, with its reason, would not fit and would stop the sketcher"
    log_kept = "it must cover three intervals between checkpoints, or a lost index cannot be rebuilt"
    plans = (
        plan(names.audit, 1, _BROKER_TIME, _retention(verdicts_ms, DAY_MS, audit_kept), _NO_COMPACTION),
        plan(
            names.pages,
            sizes.partitions,
            _exactly(*BROKER_TIME, of_pages),
            _bytes(page_bytes, page_bytes, "the broker would refuse large pages"),
            _retention(sizes.pages_retention_ms, DAY_MS, "pages could go before a stopped sketcher is back"),
            _NO_COMPACTION,
        ),
        plan(
            names.rejected,
            sizes.partitions,
            _BROKER_TIME,
            _bytes(page_bytes + REJECTED_EXTRA_BYTES, page_bytes + REJECTED_EXTRA_BYTES, for_rejected),
            _NO_COMPACTION,
        ),
        plan(
            names.sketches,
            1,
            _BROKER_TIME,
            _bytes(1_048_588, LOG_RECORD_BYTES_MIN, "a full message of sketches would not fit"),
            _retention(log_ms, log_ms, log_kept),
            *(_NO_LIMIT_IN_BYTES, _NO_COMPACTION),
            fixed="its one partition is the order of the crawl, and page ids are its offsets",
        ),
        plan(
            names.verdicts,
            sizes.partitions,
            _BROKER_TIME,
            _bytes(1_048_588, VERDICT_BYTES_MIN, "a verdict with its evidence may not fit"),
            _retention(verdicts_ms, DAY_MS, "verdicts could go before a stopped indexer is back"),
            # Compaction never removes the newest verdict of a partition, which a matcher reads when it starts. An
            # existing topic may have either policy.
            _Need("cleanup.policy", "compact" if sizes.compact_verdicts else "delete", "", lambda found: True, ""),
        ),
    )
    return tuple(each for each in plans if each.name)


def create(admin: Admin, names: Topics | None = None, sizes: Sizes | None = None) -> list[str]:
    """Creates the missing topics and returns their names. Existing topics are checked, never altered.

    Raises TopicError with all problems of existing topics (nothing is created then), BrokerError.
    """
    names, sizes = names or Topics(), sizes or Sizes()
    plans = _plans(names, sizes)
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
    """All problems of the topics, missing ones included; empty if they can be used.

    only: names of the topics to query and check. Except for the sketch log, any number of partitions will do, and
    larger limits will do, too. Raises BrokerError.
    """
    names, sizes = names or Topics(), sizes or Sizes()
    plans = _plans(names, sizes)
    plans = tuple(plan for plan in plans if only is None or plan.name in only)
    return list(_problems(admin, plans, admin.topics([plan.name for plan in plans])))


def compacted(admin: Admin, topic: str) -> bool:
    """Whether the topic is compacted: newer records of a key replace older ones; False if the topic is missing.

    Raises BrokerError.
    """
    return bool(admin.topics([topic])) and "compact" in admin.settings(topic)["cleanup.policy"]


def require(admin: Admin, names: Topics, *only: str, sizes: Sizes | None = None) -> None:
    """Raises TopicError with all problems of these topics. A role calls it before it uses them."""
    problems = check(admin, names, sizes, only=only)
    if problems:
        raise TopicError("\n".join(map(str, problems)))


def _problems(admin: Admin, plans: Sequence[_Plan], present: Mapping[str, KafkaTopic]) -> Iterator[Problem]:
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
        needed = reason = ""
        if in_sync > topic.replicas:
            needed = f"{topic.replicas} or less"
            reason = "with fewer replicas than that no write is ever acknowledged"
        elif topic.replicas >= 3 and in_sync < 2:
            needed, reason = "2 or more", "a write that only one broker has is lost with that broker"
        if needed:
            yield Problem(plan.name, "min.insync.replicas", str(in_sync), needed, reason)
