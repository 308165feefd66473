"""Every metric of the stream, in one place. README and dashboards use these names: they never change.

A process has one `Metrics`, with its own registry. Labels have only the values of the tuples below, so no page can add
a time series; an unknown value is a KeyError.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, ProcessCollector, generate_latest
from prometheus_client.core import HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from neardup.index.column_families import Family
from neardup.verdict import FOUND_BY, Disagreement, Kind

#: Steps of each role, in their order.
STEPS: Final[Mapping[str, tuple[str, ...]]] = {
    "sketch": ("poll", "decode", "sketch", "produce", "acknowledge", "commit"),
    "match": ("poll", "judge", "produce", "commit", "write", "flush"),
}
#: Reasons for which a role restarts at its committed position in the same process.
RESTARTS: Final = (("sketch", "rebalance"), ("match", "abort"), ("run", "watchdog"))
#: Reasons for which a role stopped and needs an operator: a restart would not help.
STOPS: Final = ("source_gap", "corrupt_record", "wrong_scheme", "position_lost", "topic", "state")
#: Classes of rejection reasons, each with its pattern. The first pattern that matches counts.
REASONS: Final[Mapping[str, str]] = {
    "defect": r"\Athe (decoder|sketcher) failed with\b",
    "no_page": r"\A(a warc record that holds no page|answer to|body (cut off|missing))\b",
    "unreadable": r"\Acannot read\b",  # first: a path follows, without quotes
    "url": r"\burl\b",
    "status": r"\bstatus\b",
    "body_ref": r"\bbody.ref\b|\bprefix\b",
    "size": r"\b(larger|longer|more than|too (large|long)|over)\b",
    "record": r"\b(json|warc|header|field|record|codec|base64|line)\b",
    "other": "",
}
FAMILIES: Final = tuple(family.name.lower() for family in Family)

_LATENCY = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 300, 1800, 7200, 86400)
_STEP = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
_PAGES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
_CANDIDATES = (0, 1, 2, 4, 8, 16, 32, 64)


def reason_class(reason: str) -> str:
    """The class in REASONS of a rejected page's reason."""
    # Reasons quote the page's URL and similar data, which must not select the class.
    plain = re.sub(r"""(['"]).*\1""", "", reason[:1000].lower())
    return next(name for name, words in REASONS.items() if re.search(words, plain))


class BatchHistogram(Collector):
    """A histogram that takes the observations of a batch in one call: a call per page would cost more than its look-up.

    It has no labels, and one thread writes it. A scrape may see the sum of a batch before its counts.
    """

    def __init__(self, name: str, text: str, bounds: tuple[float, ...], registry: CollectorRegistry) -> None:
        self._name, self._text = name, text
        self._bounds = np.array(bounds, np.float64)
        self._labels = [*map(str, map(float, bounds)), "+Inf"]
        self._counts = np.zeros(len(bounds) + 1, np.int64)
        self._sum = 0.0
        registry.register(self)

    def observe_many(self, values: npt.ArrayLike) -> None:
        """values: numbers[any]; a value on a bound counts below it, as in Prometheus."""
        array = np.asarray(values, np.float64)
        self._sum += float(array.sum())
        places = np.searchsorted(self._bounds, array, side="left")
        self._counts = self._counts + np.bincount(places, minlength=len(self._counts))

    def collect(self) -> Iterator[Metric]:
        totals = np.cumsum(self._counts).tolist()
        yield HistogramMetricFamily(self._name, self._text, list(zip(self._labels, totals, strict=True)), self._sum)

    def describe(self) -> Iterator[Metric]:
        yield HistogramMetricFamily(self._name, self._text)


class Metrics:
    """All metrics of a process, for all roles. Attributes are objects of prometheus-client."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)  # memory, CPU, and process_start_time_seconds: restarts of the process
        counter, gauge = partial(Counter, registry=registry), partial(Gauge, registry=registry)
        histogram = partial(Histogram, registry=registry)
        roles = tuple(STEPS)

        # Content of the crawl.
        pages = counter("neardup_pages", "Pages read (sketch) or judged (match)", ["role"])
        size = counter("neardup_read_bytes", "Bytes of page bodies (sketch) or of sketches (match) read", ["role"])
        verdicts = counter("neardup_verdicts", "Committed verdicts", ["verdict"])
        rejected = counter("neardup_rejected", "Pages that could not be read", ["reason"])
        self.pages = {role: pages.labels(role) for role in roles}
        self.bytes = {role: size.labels(role) for role in roles}
        self.verdicts = {kind: verdicts.labels(kind.value) for kind in Kind}
        self.rejections = {reason: rejected.labels(reason) for reason in REASONS}

        # Speed.
        self.latency = BatchHistogram(
            "neardup_verdict_latency_seconds", "From a page's log time to the commit of its verdict", _LATENCY, registry
        )
        batch = histogram("neardup_batch_pages", "Pages in a batch", ["role"], buckets=_PAGES)
        step = histogram("neardup_step_seconds", "Duration of a step, per batch", ["role", "step"], buckets=_STEP)
        lag = gauge("neardup_lag_records", "Records behind the end, all partitions together", ["role"])
        self.batch_pages = {role: batch.labels(role) for role in roles}
        self.steps = {(role, name): step.labels(role, name) for role in roles for name in STEPS[role]}
        self.lag = {role: lag.labels(role) for role in (*roles, "views")}

        # Index.
        self.candidates = BatchHistogram(
            "neardup_candidates", "Candidates that a page was verified against", _CANDIDATES, registry
        )
        self.candidates_cut = counter("neardup_candidates_cut", "Pages with more than may be verified")
        candidates = counter("neardup_candidates_found", "Candidates by the indexes that found them", ["index"])
        repeats = counter("neardup_repeats_found", "Near-duplicates and same contents by these indexes", ["index"])
        self.candidates_found = {name: candidates.labels(name) for name in FOUND_BY}
        self.repeats_found = {name: repeats.labels(name) for name in FOUND_BY}
        self.hot_keys = counter("neardup_hot_keys", "Index keys that turned hot")

        # Shadow rule, and pairs sampled for labelling.
        disagreed = counter("neardup_shadow_disagreements", "Pages the shadow rule judges otherwise", ["kind"])
        self.disagreements = {kind: disagreed.labels(kind.value) for kind in Disagreement}
        self.audit_pairs = counter("neardup_audit_pairs", "Pairs drawn for audit")

        # Failures that were detected.
        self.source_gaps = counter("neardup_source_gaps", "Gaps in what the log says of a source")
        self.duplicate_ranges = counter(
            "neardup_duplicate_ranges", "Source ranges dropped because the log had them already"
        )
        restarts = counter(
            "neardup_restarts", "Returns to the committed position without a new process", ["role", "cause"]
        )
        self.restarts = {(role, cause): restarts.labels(role, cause) for role, cause in RESTARTS}

        # Only for roles of this process: 0 means that the role is not ready.
        self.ready = gauge("neardup_ready", "1 while the role is ready, as /ready says", ["role"])
        self.generation_live = gauge(
            "neardup_generation_live", "1 while the generation that this process serves is live"
        )
        stopped = gauge("neardup_stopped", "1 once the role has stopped for good, until it ends", ["cause"])
        self.stopped = {cause: stopped.labels(cause) for cause in STOPS}

        # RocksDB, and the disk that it is on.
        self.state_free = gauge("neardup_state_free_bytes", "Free bytes of the file system with the state directory")
        stored = gauge("neardup_rocksdb_bytes", "Table files of a column family", ["family"])
        self.rocksdb_bytes = {family: stored.labels(family) for family in FAMILIES}
        self.rocksdb_pending = gauge("neardup_rocksdb_pending_compaction_bytes", "Bytes that wait for compaction")
        self.rocksdb_stopped = gauge("neardup_rocksdb_write_stopped", "1 while RocksDB takes no writes")
        self.rocksdb_stall_seconds = counter("neardup_rocksdb_stall_seconds", "Time that writes waited for RocksDB")

        # Checkpoints.
        self.checkpoint_offset = gauge(
            "neardup_checkpoint_offset", "Offset of the sketch log in the newest checkpoint made"
        )
        self.checkpoint_time = gauge(
            "neardup_checkpoint_timestamp_seconds", "When it was made, since the epoch; 0: none yet"
        )
        self.checkpoint_bytes = counter("neardup_checkpoint_bytes", "Bytes copied to the store of checkpoints")
        self.checkpoint_failed = gauge(
            "neardup_checkpoint_failed", "1 while the last try to make a checkpoint has failed"
        )
        self.checkpoint_behind = gauge(
            "neardup_checkpoint_behind_ratio",
            "Messages that the newest checkpoint lacks, in intervals of checkpoint_messages; 0 where none are made",
        )

        self._info = Info("neardup", "What this process runs", registry=registry)

    def info(self, *, version: str, role: str, scheme: str = "", decider: str = "", generation: str = "") -> None:
        self._info.info(
            {"version": version, "role": role, "scheme": scheme, "decider": decider, "generation": generation}
        )

    def rejected(self, reason: str) -> None:
        """Counts one page by the class of its reason."""
        self.rejections[reason_class(reason)].inc()

    def step(self, role: str, name: str) -> AbstractContextManager[object]:
        """Measures the time of the block."""
        return self.steps[role, name].time()

    def render(self) -> bytes:
        """Prometheus' text format."""
        return generate_latest(self.registry)
