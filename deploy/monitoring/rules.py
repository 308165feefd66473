"""Recording rules and alerts, as Prometheus takes them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from names import INFO, M

from neardup.verdict import Kind

RUNBOOK = "deploy/monitoring/README.md"
_PAGES = [kind.value for kind in Kind if kind is not Kind.PROMOTED]  # `promoted` answers no page
_DUPLICATES = [Kind.EXACT_DUPLICATE.value, Kind.NEAR_DUPLICATE.value]
_ROLES = {"sketch": "sketcher", "match": "matcher"}


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert. name: also its heading in the runbook. holds: duration before it fires. summary: a template."""

    name: str
    expr: str
    holds: str
    severity: str
    summary: str


@dataclass(frozen=True, slots=True)
class RuleDurations:
    """Durations of the rules; tests shorten them.

    window: of rates. long, day: for usual values. wait, patience: before an alert fires. behind_s: tolerated lag of
    sketchers.
    """

    window: str = "5m"
    long: str = "1h"
    day: str = "1d"
    wait: str = "5m"
    patience: str = "15m"
    behind_s: int = 600


def one_of(words: list[str]) -> str:
    return "|".join(words)


def records(pace: RuleDurations) -> dict[str, str]:
    """Return recording rules by name. A division by zero gives no value."""
    rate = pace.window
    verdicts = f'{M.verdicts}{{verdict=~"{one_of(_PAGES)}"}}'
    duplicates = f'{M.verdicts}{{verdict=~"{one_of(_DUPLICATES)}"}}'
    rejected = f'{M.verdicts}{{verdict="{Kind.REJECTED.value}"}}'
    return {
        "neardup:pages:rate": f"sum by (role) (rate({M.pages}[{rate}]))",
        "neardup:lag_records": f"sum by (role) ({M.lag})",
        "neardup:verdicts:rate": f"sum by (verdict) (rate({M.verdicts}[{rate}]))",
        "neardup:duplicate_share": f"sum(rate({duplicates}[{pace.long}])) / (sum(rate({verdicts}[{pace.long}])) > 0)",
        "neardup:rejected_share": f"sum(rate({rejected}[{rate}])) / (sum(rate({verdicts}[{rate}])) > 0)",
        "neardup:verdict_latency_seconds:p50": (
            f"histogram_quantile(0.5, sum by (le) (rate({M.latency.bucket}[{rate}])))"
        ),
        "neardup:verdict_latency_seconds:p99": (
            f"histogram_quantile(0.99, sum by (le) (rate({M.latency.bucket}[{rate}])))"
        ),
        "neardup:candidates_cut_share": (
            f'sum(rate({M.candidates_cut}[{pace.long}])) / (sum(rate({M.pages}{{role="match"}}[{pace.long}])) > 0)'
        ),
    }


def alerts(pace: RuleDurations) -> Iterator[Alert]:
    for role, word in _ROLES.items():
        yield Alert(
            f"Neardup{word.capitalize()}Absent",
            f'absent({INFO}{{role=~"{role}|run"}} or ({INFO}{{role="backfill"}}'
            f" and on (instance, job) {M.generation_live} == 1))",
            pace.wait,
            "critical",
            f"No {word} has been scraped for {pace.wait}; pages wait in Kafka.",
        )
    yield Alert(
        "NeardupSourceGap",
        f'max(max_over_time({M.stopped}{{cause="source_gap"}}[{pace.wait}])) > 0',
        "0s",
        "critical",
        "The sketch log lacks pages that sketchers consumed; the matcher has stopped before them.",
    )
    yield Alert(
        "NeardupStopped",
        f'max by (cause) (max_over_time({M.stopped}{{cause!="source_gap"}}[{pace.wait}])) > 0',
        "0s",
        "critical",
        "A role has stopped ({{ $labels.cause }}); restarting does not help.",
    )
    yield Alert(
        "NeardupMatcherStuck",
        '(neardup:lag_records{role="match"} > 0) and on (role) (neardup:pages:rate{role="match"} == 0)'
        f' and on (role) (max by (role) ({M.ready}{{role="match"}}) == 1)',
        pace.wait,
        "critical",
        "The sketch log has new messages, and the matcher judges none.",
    )
    yield Alert(
        "NeardupNotReady",
        f"min by (role) ({M.ready}) == 0",
        pace.patience,
        "warning",
        f"A {{{{ $labels.role }}}} has not been ready for {pace.patience}.",
    )
    yield Alert(
        "NeardupSketcherLag",
        f'neardup:lag_records{{role="sketch"}} / neardup:pages:rate{{role="sketch"}} > {pace.behind_s}',
        pace.wait,
        "warning",
        "Sketchers are {{ $value | humanizeDuration }} behind the crawl at their present rate.",
    )
    yield Alert(
        "NeardupMatcherLag",
        'neardup:lag_records{role="match"} > 1000',
        pace.wait,
        "warning",
        "The matcher is {{ $value }} messages of up to 512 pages behind the sketch log.",
    )
    yield Alert(
        "NeardupLatency",
        "neardup:verdict_latency_seconds:p99 > 60",
        pace.wait,
        "warning",
        "The 99th percentile of the verdict latency is {{ $value | humanizeDuration }}.",
    )
    yield Alert(
        "NeardupRejectedShare",
        "neardup:rejected_share > 0.05",
        pace.patience,
        "warning",
        "{{ $value | humanizePercentage }} of the pages are rejected.",
    )
    yield Alert(
        "NeardupDuplicateShareJump",
        f"abs(neardup:duplicate_share - avg_over_time(neardup:duplicate_share[{pace.day}] offset {pace.long})) > 0.2",
        pace.patience,
        "warning",
        "The share of duplicates differs by {{ $value | humanizePercentage }} from the day before.",
    )
    yield Alert(
        "NeardupRocksdbStall",
        f"max(rate({M.rocksdb_stall_seconds}[{pace.window}])) > 0.1 or max({M.rocksdb_stopped}) > 0",
        pace.wait,
        "warning",
        "RocksDB delays writes: its disk is too slow.",
    )
    yield Alert(
        "NeardupDisk",
        f"{M.state_free} < on (job, instance) 0.5 * (sum by (job, instance) ({M.rocksdb_bytes}) > 0)"
        f" or predict_linear({M.state_free}[{pace.day}], 4 * 86400) < 0",
        pace.wait,
        "warning",
        "The free space of the index's disk is below half of the index size, or will end within four days.",
    )
    yield Alert(
        "NeardupCheckpointOld",
        f"max({M.checkpoint_behind}) > 2 or max({M.checkpoint_failed}) > 0",
        pace.patience,
        "warning",
        "The newest checkpoint is more than two intervals old, or the last one failed.",
    )
    yield Alert(
        "NeardupViewsBehind",
        'neardup:lag_records{role="views"} > 100000',
        pace.patience,
        "warning",
        "The views are {{ $value | humanize }} verdicts behind the topic.",
    )
    yield Alert(
        "NeardupHotKeys",
        f"sum(increase({M.hot_keys}[{pace.long}])) > 1000 or neardup:candidates_cut_share > 0.05",
        pace.patience,
        "warning",
        "Many pages share their index keys (a template, or spam); duplicates among them may be missed.",
    )
    yield Alert(
        "NeardupRestarts",
        f"sum by (role) (changes(process_start_time_seconds[{pace.long}]) * on (instance, job)"
        f" group_left (role) {INFO}) > 4"
        f' or sum by (role) (increase({M.restarts}{{cause="abort"}}[{pace.long}])) > 20',
        "0s",
        "warning",
        "A {{ $labels.role }} restarts repeatedly.",
    )


def document(pace: RuleDurations | None = None) -> dict[str, Any]:
    """A rules file."""
    pace = pace or RuleDurations()
    return {
        "groups": [
            {
                "name": "neardup-records",
                "rules": [{"record": name, "expr": expr} for name, expr in records(pace).items()],
            },
            {
                "name": "neardup-alerts",
                "rules": [
                    {
                        "alert": alert.name,
                        "expr": alert.expr,
                        **({} if alert.holds == "0s" else {"for": alert.holds}),
                        "labels": {"severity": alert.severity},
                        "annotations": {
                            "summary": alert.summary,
                            "runbook": f"{RUNBOOK}#{alert.name.lower()}",
                        },
                    }
                    for alert in alerts(pace)
                ],
            },
        ]
    }
