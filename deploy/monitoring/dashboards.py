"""Generates Grafana's dashboards as JSON, for files, ConfigMaps or its import page."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from names import INFO, M

from streams.process.metrics import REASONS, STEPS

#: Columns of a row in Grafana, and the height of a panel.
_COLUMNS, _HEIGHT = 24, 7
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
#: Grafana's own word for a window that a scrape or two are in.
RATE = "$__rate_interval"


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel. exprs: PromQL with legends; unit: Grafana's name; kind: timeseries, stat or table."""

    title: str
    exprs: Sequence[tuple[str, str]]
    unit: str = "short"
    kind: str = "timeseries"
    stacked: bool = False
    about: str = ""
    width: int = 8

    def json(self, number: int, x: int, y: int) -> dict[str, Any]:
        custom = {"drawStyle": "line", "fillOpacity": 30 if self.stacked else 0, "showPoints": "never"}
        if self.stacked:
            custom |= {"stacking": {"mode": "normal", "group": "A"}}
        made: dict[str, Any] = {
            "id": number,
            "type": self.kind,
            "title": self.title,
            "description": self.about,
            "datasource": _SOURCE,
            "gridPos": {"h": 4 if self.kind == "stat" else _HEIGHT, "w": self.width, "x": x, "y": y},
            "targets": [
                {
                    "refId": chr(ord("A") + place),
                    "datasource": _SOURCE,
                    "expr": expr,
                    "legendFormat": legend,
                    **({"format": "table", "instant": True} if self.kind == "table" else {}),
                }
                for place, (expr, legend) in enumerate(self.exprs)
            ],
            "fieldConfig": {"defaults": {"unit": self.unit, "min": 0}, "overrides": []},
            "options": {},
        }
        if self.kind == "timeseries":
            made["fieldConfig"]["defaults"]["custom"] = custom
            made["options"] = {
                "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
                "tooltip": {"mode": "multi", "sort": "desc"},
            }
        elif self.kind == "stat":
            made["options"] = {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}}
        return made


def by(label: str, expr: str) -> list[tuple[str, str]]:
    return [(f"sum by ({label}) ({expr})", f"{{{{{label}}}}}")]


def rate(metric: str) -> str:
    return f"rate({metric}[{RATE}])"


def quantiles(metric: str, *of: float, where: str = "") -> list[tuple[str, str]]:
    return [
        (f"histogram_quantile({each}, sum by (le) (rate({metric}{where}[{RATE}])))", f"{each * 100:g} of 100")
        for each in of
    ]


def steps(role: str) -> list[tuple[str, str]]:
    """Return the share of time spent in each step."""
    return by("step", rate(f'{M.steps.sum}{{role="{role}"}}'))


def of_process(expr: str) -> list[tuple[str, str]]:
    """Return a metric that prometheus-client has for every process, with its role."""
    return [(f"{expr} * on (instance, job) group_left (role) {INFO}", "{{role}} {{instance}}")]


PIPELINE = (
    Panel("Pages judged", [("neardup:pages:rate{role='match'}", "")], "reqps", "stat", width=6),
    Panel("Duplicates, last hour", [("neardup:duplicate_share", "")], "percentunit", "stat", width=6),
    Panel("Verdict latency, 99th percentile", [("neardup:verdict_latency_seconds:p99", "")], "s", "stat", width=6),
    Panel("Lag of sketchers, pages", [("neardup:lag_records{role='sketch'}", "")], "short", "stat", width=6),
    Panel(
        "Verdicts by kind",
        [("neardup:verdicts:rate", "{{verdict}}")],
        "reqps",
        stacked=True,
        width=16,
        about="Committed verdicts. `promoted` is in addition to a page's own verdict.",
    ),
    Panel("Pages sketched and judged", [("neardup:pages:rate", "{{role}}")], "reqps"),
    Panel(
        "Verdict latency",
        quantiles(M.latency.bucket, 0.5, 0.9, 0.99),
        "s",
        about="From the broker's timestamp of the page to its verdict, including the wait in Kafka.",
    ),
    Panel(
        "Lag by role",
        [("neardup:lag_records", "{{role}}")],
        about="sketch: pages. match: messages of the log, each of up to 512 pages. views: verdicts.",
    ),
    Panel("Bytes consumed", by("role", rate(M.bytes)), "Bps"),
    Panel(
        "Rejected pages by reason",
        by("reason", rate(M.rejections)),
        "reqps",
        stacked=True,
        about=f"Reasons: {', '.join(REASONS)}. The pages themselves are in the topic of rejected pages.",
    ),
    Panel(
        "Time of a sketcher by step",
        steps("sketch"),
        "percentunit",
        stacked=True,
        about=f"{', '.join(STEPS['sketch'])}.",
    ),
    Panel(
        "Time of the matcher by step",
        steps("match"),
        "percentunit",
        stacked=True,
        about=f"{', '.join(STEPS['match'])}.",
    ),
)

INDEX = (
    Panel("Index on disk", by("family", M.rocksdb_bytes), "bytes", stacked=True),
    Panel("Free disk space", [(f"min({M.state_free} and on (job, instance) {M.rocksdb_bytes})", "left")], "bytes"),
    Panel(
        "Age of the newest checkpoint",
        [(f"max({M.checkpoint_behind})", "intervals"), (f"max({M.checkpoint_failed})", "last one failed")],
        about="In intervals of checkpoint_messages; more than one while a checkpoint is being copied.",
    ),
    Panel("Bytes pending compaction", [(f"sum({M.rocksdb_pending})", "pending")], "bytes"),
    Panel(
        "Writes delayed by RocksDB",
        [(f"sum({rate(M.rocksdb_stall_seconds)})", "share of time"), (f"max({M.rocksdb_stopped})", "stopped")],
        "percentunit",
    ),
    Panel(
        "Candidates per page",
        quantiles(M.candidates.bucket, 0.5, 0.9, 0.99),
        about="Earlier pages that were scored for a page.",
    ),
    Panel(
        "Pages with too many candidates",
        [("neardup:candidates_cut_share", "cut")],
        "percentunit",
        about="A duplicate among the candidates left out is missed.",
    ),
    Panel(
        "Candidates by index",
        by("index", rate(M.candidates_found)),
        "reqps",
        about="Found by supershingles, simhash blocks, both, or neither (first words, or the place on the site).",
    ),
    Panel(
        "Repeats by index",
        by("index", rate(M.repeats_found)),
        "reqps",
        about="Pages with verdict near_duplicate or same_content, by the index that found the page that they repeat.",
    ),
    Panel("New hot keys", [(f"sum({rate(M.hot_keys)})", "keys")], "reqps"),
    Panel("Pages per batch", quantiles(M.batch_pages.bucket, 0.5, 0.99, where='{role="match"}')),
    Panel("Disagreements of the shadow rule", by("kind", rate(M.disagreements)), "reqps"),
)

PROCESSES = (
    Panel("Ready", [(f"min by (role) ({M.ready})", "{{role}}")], "bool_yes_no"),
    Panel("Stopped", [(f"max by (cause) ({M.stopped})", "{{cause}}")], "bool_yes_no"),
    Panel(
        "Restarts from the committed position",
        [(f"sum by (role, cause) ({rate(M.restarts)})", "{{role}}: {{cause}}")],
        "reqps",
        about="rebalance: partitions were reassigned. abort: a transaction was aborted.",
    ),
    Panel(
        "CPU in use",
        [
            (
                f"rate(process_cpu_seconds_total[{RATE}]) * on (instance, job) group_left (role) {INFO}",
                "{{role}} {{instance}}",
            )
        ],
        about="A role with one thread uses one at most.",
    ),
    Panel(
        "Memory",
        of_process("process_resident_memory_bytes"),
        "bytes",
    ),
    Panel(
        "Duplicate ranges",
        [(f"sum({rate(M.duplicate_ranges)})", "ranges")],
        "reqps",
        about="Sent again after a sketcher's restart; the matcher counts each page once.",
    ),
    Panel("Versions", [(INFO, "")], kind="table", width=24),
)

ALL = {
    "neardup-pipeline": ("neardup: pipeline", PIPELINE),
    "neardup-index": ("neardup: index", INDEX),
    "neardup-processes": ("neardup: processes", PROCESSES),
}


def placed(panels: Sequence[Panel]) -> Iterator[dict[str, Any]]:
    """Place panels in rows."""
    x = y = 0
    height = _HEIGHT
    for number, panel in enumerate(panels, 1):
        if x + panel.width > _COLUMNS:
            x, y = 0, y + height
        made = panel.json(number, x, y)
        height = made["gridPos"]["h"]
        x += panel.width
        yield made


def dashboard(uid: str) -> dict[str, Any]:
    title, panels = ALL[uid]
    return {
        "uid": uid,
        "title": title,
        "tags": ["neardup"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "browser",
        "templating": {
            "list": [
                {
                    "name": "datasource",
                    "label": "Prometheus",
                    "type": "datasource",
                    "query": "prometheus",
                    "current": {},
                    "hide": 0,
                }
            ]
        },
        "links": [
            {
                "title": "neardup",
                "type": "dashboards",
                "tags": ["neardup"],
                "asDropdown": True,
                "includeVars": True,
                "keepTime": True,
                "icon": "dashboard",
                "targetBlank": False,
                "url": "",
                "tooltip": "",
            }
        ],
        "annotations": {"list": []},
        "panels": list(placed(panels)),
    }
