"""Reads a role's /metrics for the health page, bounded in time and size."""

import http.client
from collections import defaultdict
from collections.abc import Mapping
from urllib.parse import urlsplit

from prometheus_client.parser import text_string_to_metric_families

from streams.views.http_get import get
from streams.views.lists import Facts

#: (name of the sample, labels) -> value.
_Samples = Mapping[str, list[tuple[Mapping[str, str], float]]]

#: For the whole response of a role.
RESPONSE_SECONDS_MAX = 3.0
RESPONSE_BYTES_MAX = 1 << 20


def role_facts(url: str) -> Facts:
    """Return the facts of one process; if they are unavailable, `problem` has the reason and all others are None."""
    try:
        return {"url": url, "problem": None, **_facts(_samples(_read(url).decode("utf-8")))}
    except (OSError, http.client.HTTPException, ValueError, KeyError) as error:
        unknown = dict.fromkeys(_facts({}), None)
        return {
            "url": url,
            "problem": f"The metrics at {url} cannot be read: {error or type(error).__name__}",
            **unknown,
        }


def _read(url: str) -> bytes:
    address = url if urlsplit(url).path else f"{url}/metrics"
    headers = {"Accept": "text/plain"}
    return get(address, seconds_max=RESPONSE_SECONDS_MAX, bytes_max=RESPONSE_BYTES_MAX, headers=headers)


def _samples(text: str) -> _Samples:
    out: dict[str, list[tuple[Mapping[str, str], float]]] = defaultdict(list)
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            out[sample.name].append((sample.labels, sample.value))
    return out


def _facts(samples: _Samples) -> Facts:
    info = next((labels for labels, _ in samples.get("neardup_info", ())), {})
    ready = [value for _, value in samples.get("neardup_ready", ())]
    return {
        "role": info.get("role", "process"),
        "version": info.get("version"),
        "generation": info.get("generation"),
        "ready": None if not ready else min(ready) == 1,
        "stopped": [labels["cause"] for labels, value in samples.get("neardup_stopped", ()) if value == 1],
        "pages": _sum(samples, "neardup_pages_total"),
        "batches": _sum(samples, "neardup_batch_pages_count"),
        "batch_pages": _ratio(samples, "neardup_batch_pages_sum", "neardup_batch_pages_count"),
        "batch_ms": _batch_ms(samples),
        "behind": _sum(samples, "neardup_lag_records"),
        "restarts": _sum(samples, "neardup_restarts_total"),
        "rocksdb": {
            labels["family"]: int(value) for labels, value in samples.get("neardup_rocksdb_bytes", ()) if value > 0
        },
        "pending_bytes": _sum(samples, "neardup_rocksdb_pending_compaction_bytes"),
        "free_bytes": _sum(samples, "neardup_state_free_bytes"),
        "write_stopped": bool(_sum(samples, "neardup_rocksdb_write_stopped")),
        "checkpoint_failed": bool(_sum(samples, "neardup_checkpoint_failed")),
    }


def _sum(samples: _Samples, name: str) -> int | None:
    values = [value for _, value in samples.get(name, ())]
    return int(sum(values)) if values else None


def _ratio(samples: _Samples, above: str, below: str) -> float | None:
    count = _sum(samples, below)
    return round(sum(value for _, value in samples[above]) / count, 1) if count else None


def _batch_ms(samples: _Samples) -> float | None:
    """Average time of a batch in all steps but the wait for input."""
    seconds = [v for labels, v in samples.get("neardup_step_seconds_sum", ()) if labels.get("step") != "poll"]
    batches = _sum(samples, "neardup_batch_pages_count")
    return round(1000 * sum(seconds) / batches, 1) if batches else None
