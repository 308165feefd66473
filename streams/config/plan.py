"""`neardup plan`: the needs of a crawl of a given size, computed from measured figures.

Every figure is a product of those in `streams.config.plan_figures`. Assumptions are arguments, or constants that state
them. For an index larger than any measured one, the growth of the last measured step is continued, and the plan states
this.
"""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from neardup.limits import MESSAGE_PAGES_MAX
from streams.config import plan_figures
from streams.config.settings import BATCH_BYTES, FETCHED_KB_MAX, Settings

DAY_S = 86_400
#: Planned load of a processor at the peak, as a share of its time.
BUSY = 0.7
#: Least number of partitions: of pages, it cannot be made smaller and should not be made larger later.
PARTITIONS_MIN = 8
#: Disk of the index, as a multiple of its size: RocksDB compacts into new files. The alert on the disk fires when half
#: of the index's size is left.
CLAIM = 2.0
#: Further memory of a sketcher with lag: records fetched in advance, and batches without acknowledgement.
_BUFFERS = 1024 * FETCHED_KB_MAX + Settings.inflight_batches * BATCH_BYTES


@dataclass(frozen=True, slots=True)
class Crawl:
    """The crawl to plan. Times in days. page_kb: body of a mean page. peak: pages/s at the peak over the mean.

    retention: how far back the index reaches. The other times are those of the topics. shards: 0 for one matcher.
    """

    pages_per_day: int
    retention: float
    page_kb: float
    peak: float
    replicas: int
    pages_retention: float
    sketches_retention: float
    verdicts_retention: float
    shards: int = 0
    checkpoint_messages: int = Settings.checkpoint_messages
    checkpoints_kept: int = Settings.checkpoints_kept


@dataclass(frozen=True, slots=True)
class Plan:
    """The needs of a crawl, in bytes, pages/s, seconds and processors; Kafka's bytes with all replicas.

    With shards, the matcher's cores are the judge's; memory and index are those of the judge and all shards.
    shard_cores: of each shard. kafka_between_bytes: of candidates and effects. log_read_bytes_per_second: at the peak.
    """

    index_pages: int
    pages_per_second: float
    peak_pages_per_second: float
    peak_bytes_per_second: float
    sketcher_cores: float
    sketchers: int
    sketcher_memory_bytes: int
    partitions: int
    matcher_cores: float
    matcher_memory_bytes: int
    index_bytes: int
    claim_bytes: int
    broker_cores: float
    kafka_pages_bytes: int
    kafka_sketches_bytes: int
    kafka_verdicts_bytes: int
    kafka_bytes: int
    checkpoints_bytes: int
    checkpoint_seconds: float
    fold_checkpoint_seconds: float
    fold_all_seconds: float
    shard_cores: float = 0.0
    kafka_between_bytes: int = 0
    log_read_bytes_per_second: float = 0.0
    notes: tuple[str, ...] = field(default=())


def match_us(pages: float) -> float:
    """Processor microseconds of the matcher for a further page, with `pages` in the index."""
    points = list(plan_figures.MATCH_US)
    (low, low_us), (high, high_us) = next(
        (pair for pair in pairwise(points) if pages <= pair[1][0]), (points[-2], points[-1])
    )
    share = math.log(max(pages, points[0][0]) / low) / math.log(high / low)
    return plan_figures.MATCH_STREAM_US.value + low_us + share * (high_us - low_us)


def shard_share(shards: int) -> float:
    """Time of each of `shards` for a page, against that of one matcher; between measured points the larger one."""
    return next(share for number, share in reversed(plan_figures.SHARD_SHARE) if number <= shards)


def plan(crawl: Crawl) -> Plan:
    """Computes the needs of a crawl."""
    pages = round(crawl.pages_per_day * crawl.retention)
    rate = crawl.pages_per_day / DAY_S
    peak = rate * crawl.peak
    size = crawl.page_kb * 1000
    sketcher_cores = peak * plan_figures.SKETCH_US.value * size / plan_figures.PAGE_BYTES.value / 1e6 / BUSY
    sketchers = max(2, math.ceil(sketcher_cores))
    index = pages * plan_figures.INDEX_BYTES.value
    days = crawl.pages_per_day * crawl.replicas
    kafka = {
        "pages": days * crawl.pages_retention * size * plan_figures.PAGES_RATIO.value,
        "sketches": days * crawl.sketches_retention * plan_figures.SKETCHES_BYTES.value,
        "verdicts": days * crawl.verdicts_retention * plan_figures.VERDICTS_BYTES.value,
    }
    between = plan_figures.CANDIDATES_BYTES.value + plan_figures.EFFECTS_BYTES.value if crawl.shards else 0
    kafka["between"] = days * crawl.sketches_retention * between
    stream_us = plan_figures.MATCH_STREAM_US.value
    judging_us = match_us(pages) - stream_us
    shard_us = stream_us + judging_us * shard_share(crawl.shards) if crawl.shards else 0
    matcher_us = stream_us + judging_us * (plan_figures.JUDGE_SHARE.value if crawl.shards else 1)
    interval = crawl.checkpoint_messages * MESSAGE_PAGES_MAX
    return Plan(
        index_pages=pages,
        pages_per_second=rate,
        peak_pages_per_second=peak,
        peak_bytes_per_second=peak * size,
        sketcher_cores=sketcher_cores,
        sketchers=sketchers,
        sketcher_memory_bytes=round(plan_figures.SKETCHER_MEMORY.value) + _BUFFERS,
        partitions=max(PARTITIONS_MIN, 2 * sketchers),
        matcher_cores=peak * matcher_us / 1e6 / BUSY,
        matcher_memory_bytes=round(
            (1 + crawl.shards) * plan_figures.MATCHER_MEMORY.value + pages * plan_figures.INDEX_MEMORY.value
        ),
        index_bytes=round(index),
        claim_bytes=round(index * CLAIM),
        broker_cores=peak * plan_figures.BROKER_US.value * crawl.replicas / 1e6 / BUSY,
        kafka_pages_bytes=round(kafka["pages"]),
        kafka_sketches_bytes=round(kafka["sketches"]),
        kafka_verdicts_bytes=round(kafka["verdicts"]),
        kafka_bytes=round(sum(kafka.values())),
        checkpoints_bytes=round(index * crawl.checkpoints_kept),
        checkpoint_seconds=interval / rate,
        fold_checkpoint_seconds=min(interval, pages) / plan_figures.FOLD_RATE.value,
        fold_all_seconds=pages / plan_figures.FOLD_RATE.value,
        shard_cores=peak * shard_us / 1e6 / BUSY,
        kafka_between_bytes=round(kafka["between"]),
        log_read_bytes_per_second=peak * plan_figures.SKETCHES_BYTES.value * (1 + crawl.shards),
        notes=tuple(_notes(crawl, pages, peak, interval / rate)),
    )


def _notes(crawl: Crawl, pages: int, peak: float, interval_s: float) -> Iterator[str]:
    largest = plan_figures.MATCH_US[-1][0]
    if pages > largest:
        yield (
            f"The matcher was measured with up to {largest:,} pages; beyond them its processor's time is drawn on "
            "from there, and reads go to a disk whose speed counts: local NVMe."
        )
    if peak > plan_figures.MATCH_RATE.value:
        yield (
            f"At its peak the crawl is faster than the {plan_figures.MATCH_RATE.value:,.0f} pages/s that one matcher "
            "was seen to take: pages wait in Kafka until it is over, or the crawl is cut into lines by site, each with "
            f"topics of its own. A judge of shards takes {plan_figures.JUDGE_SHARE.value:g} of a matcher's time."
        )
    elif peak > plan_figures.MATCH_RATE.value / 2:
        yield "At its peak the crawl takes more than half of what one matcher was seen to do: latency rises with it."
    if crawl.retention > crawl.sketches_retention:
        yield (
            f"The log reaches back {crawl.sketches_retention:g} days and the index {crawl.retention:g}: without a "
            "checkpoint a lost index cannot be folded again. Keep checkpoints, or the log for as long (retention.ms)."
        )
    if 3 * interval_s > crawl.sketches_retention * DAY_S:
        fits = int(crawl.sketches_retention * crawl.pages_per_day / 3 / MESSAGE_PAGES_MAX)
        yield (
            "With full messages three checkpoints are further apart than the log reaches back: "
            f"checkpoint_messages={max(1, fits)} or less."
        )
    if crawl.shards:
        yield (
            "Measured was the time of judge and shards without Kafka: its part is counted as a matcher's for each. How "
            "the index divides between judge and shards was not measured."
        )
    most = plan_figures.SHARD_SHARE[-1][0]
    if crawl.shards > most:
        yield f"More than {most} shards were not measured: each is counted as one of {most}."
    if crawl.replicas < 3:
        yield "Fewer than three replicas: what a broker has acknowledged may be lost with its disk."


def size_of(value: float) -> str:
    """Bytes with a decimal unit."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if value < 1000 or unit == "TB":
            return f"{value:.0f} {unit}" if value >= 100 or unit == "B" else f"{value:.2g} {unit}"
        value /= 1000
    raise AssertionError("unreachable")


def time_of(seconds: float) -> str:
    for unit, length in (("days", DAY_S), ("h", 3600), ("min", 60)):
        if seconds >= 1.95 * length:
            return f"{seconds / length:.0f} {unit}" if seconds >= 10 * length else f"{seconds / length:.2g} {unit}"
    return f"{max(1, seconds):.0f} s"


def _cores(value: float) -> str:
    return f"{value:.0f}" if value >= 9.5 else f"{max(value, 0.1):.1f}"


def rows(asked: Crawl, found: Plan) -> Iterator[tuple[str, str, str]]:
    """Rows of the plan: name, amount, assumption."""
    busy = f"{BUSY:.0%} busy at the peak"
    yield "pages in the index", f"{found.index_pages:,}", "at most: a page that is fetched again is one"
    peak = f"{found.peak_pages_per_second:,.1f}/s, {size_of(found.peak_bytes_per_second)}/s"
    yield "pages at the peak", peak, f"{asked.peak:g} times the mean of {found.pages_per_second:,.1f}/s"
    yield "sketchers", str(found.sketchers), f"{_cores(found.sketcher_cores)} processors together, {busy}; two at least"
    yield "- memory of each", size_of(found.sketcher_memory_bytes), "buffers full; each with one thread"
    yield "partitions of pages", str(found.partitions), "twice the sketchers: more of them later"
    together = "; judge and shards together" if asked.shards else ""
    yield "judge, processors" if asked.shards else "matcher, processors", _cores(found.matcher_cores), busy
    if asked.shards:
        yield f"each of {asked.shards} shards, processors", _cores(found.shard_cores), busy
        yield "- log read by all", f"{size_of(found.log_read_bytes_per_second)}/s", "at the peak: each reads all of it"
    yield "- memory", size_of(found.matcher_memory_bytes), f"more is cache{together}"
    yield "- index on disk", size_of(found.index_bytes), f"{plan_figures.INDEX_BYTES.value:,.0f} bytes a page{together}"
    yield "- claim", size_of(found.claim_bytes), f"twice the index: compaction{together}"
    yield "brokers, processors", _cores(found.broker_cores), f"all replicas, {busy}"
    for name, days in (
        ("pages", asked.pages_retention),
        ("sketches", asked.sketches_retention),
        ("verdicts", asked.verdicts_retention),
    ):
        amount = size_of(getattr(found, f"kafka_{name}_bytes"))
        yield f"Kafka: {name}", amount, f"{days:g} days, {asked.replicas} replicas"
    if asked.shards:
        kept = f"{asked.sketches_retention:g} days, {asked.replicas} replicas"
        yield "Kafka: candidates, effects", size_of(found.kafka_between_bytes), kept
    yield "Kafka: disk", size_of(found.kafka_bytes), "all brokers together"
    kept = f"{asked.checkpoints_kept} of them; they share what did not change"
    yield "checkpoints, at most", size_of(found.checkpoints_bytes), kept
    between = f"{asked.checkpoint_messages:,} messages, when they are full; else more often"
    yield "- one each", time_of(found.checkpoint_seconds), between
    yield "a lost index is back after", time_of(found.fold_checkpoint_seconds), "and the copy, from a checkpoint"
    yield "- without one", time_of(found.fold_all_seconds), "if the log reaches back so far"


class Shown:
    """A plan for a terminal. `to_json` returns crawl, plan and measured figures."""

    def __init__(self, asked: Crawl) -> None:
        self.asked, self.found = asked, plan(asked)

    def __rich__(self) -> Group:
        table = Table(box=None, pad_edge=False)
        for name in ("", "", "counting on"):
            table.add_column(name, justify="left", overflow="fold")
        for row in rows(self.asked, self.found):
            table.add_row(*map(Text, row))
        notes = [Text(f"* {note}") for note in self.found.notes]
        return Group(table, *([Text(""), *notes] if notes else []))

    def to_json(self) -> dict[str, Any]:
        figures = {name.lower(): asdict(figure) for name, figure in plan_figures.figures().items()}
        points = [{"pages": pages, "us": us} for pages, us in plan_figures.MATCH_US]
        figures["match_us"] = {"points": points, "unit": "us", **plan_figures.MATCH_US_OF}
        shares = [{"shards": shards, "share": share} for shards, share in plan_figures.SHARD_SHARE]
        figures["shard_share"] = {"points": shares, "unit": "", **plan_figures.SHARD_SHARE_OF}
        return {"asked": asdict(self.asked), "plan": asdict(self.found), "measured": figures}
