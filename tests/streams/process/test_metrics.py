"""Names, labels and numbers of the metrics, as a Prometheus server reads them."""

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from neardup.errors import BadPage
from neardup.urls import normalise_url
from neardup.verdict import Kind
from streams.process.metrics import FAMILIES, REASONS, RESTARTS, STEPS, Metrics, reason_class

# Dashboards, alerts and README use these: add, never rename.
NAMES = """
neardup_audit_pairs counter
neardup_batch_pages histogram le role
neardup_candidates histogram le
neardup_candidates_cut counter
neardup_candidates_found counter index
neardup_checkpoint_behind_ratio gauge
neardup_checkpoint_bytes counter
neardup_checkpoint_failed gauge
neardup_checkpoint_offset gauge
neardup_checkpoint_timestamp_seconds gauge
neardup_duplicate_ranges counter
neardup_generation_live gauge
neardup_hot_keys counter
neardup_info gauge decider generation role scheme version
neardup_lag_records gauge role
neardup_pages counter role
neardup_read_bytes counter role
neardup_ready gauge role
neardup_rejected counter reason
neardup_repeats_found counter index
neardup_restarts counter cause role
neardup_rocksdb_bytes gauge family
neardup_rocksdb_pending_compaction_bytes gauge
neardup_rocksdb_stall_seconds counter
neardup_rocksdb_write_stopped gauge
neardup_shadow_disagreements counter kind
neardup_source_gaps counter
neardup_state_free_bytes gauge
neardup_step_seconds histogram le role step
neardup_stopped gauge cause
neardup_verdict_latency_seconds histogram le
neardup_verdicts counter verdict
"""


def families(metrics: Metrics):
    found = text_string_to_metric_families(metrics.render().decode())
    return {f.name: f for f in found if f.name.startswith("neardup") and not f.name.endswith("_created")}


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, labels)


def test_the_golden_list_of_names_types_and_labels():
    metrics = Metrics()
    metrics.info(version="1", role="match")
    metrics.ready.labels("match").set(1)
    found = []
    for name, family in families(metrics).items():
        labels = {label for sample in family.samples for label in sample.labels}
        found.append(" ".join([name, family.type, *sorted(labels)]))
        assert len(family.documentation) > 8, name
    assert "\n".join(sorted(found)) == NAMES.strip()


def test_counters_end_in_total_and_no_series_appears_with_use():
    metrics = Metrics()
    before = {(s.name, *s.labels.values()) for f in families(metrics).values() for s in f.samples}
    for family in families(metrics).values():
        if family.type == "counter":
            assert {s.name for s in family.samples} == {family.name + "_total"}
    for number in range(500):
        metrics.rejected(f"URL with a control character: 'http://a/{number}'")
    for kind in Kind:
        metrics.verdicts[kind].inc()
    metrics.latency.observe_many([1e9])
    assert before == {(s.name, *s.labels.values()) for f in families(metrics).values() for s in f.samples}
    series = len(Kind) + len(REASONS) + len(FAMILIES) + len(RESTARTS)
    assert series < 50
    assert len(before) < 500


def test_two_processes_worth_of_metrics_live_side_by_side():
    first, second = Metrics(), Metrics()
    first.pages["sketch"].inc(3)
    assert value(first, "neardup_pages_total", role="sketch") == 3
    assert value(second, "neardup_pages_total", role="sketch") == 0


def test_counted_values_are_read_back():
    metrics = Metrics()
    metrics.bytes["match"].inc(10)
    metrics.verdicts[Kind.GONE].inc(2)
    metrics.lag["match"].set(7)
    metrics.restarts["sketch", "rebalance"].inc()
    metrics.rocksdb_bytes["keys"].set(5)
    metrics.info(version="1", role="match", scheme="ab")
    assert value(metrics, "neardup_read_bytes_total", role="match") == 10
    assert value(metrics, "neardup_verdicts_total", verdict="gone") == 2
    assert value(metrics, "neardup_lag_records", role="match") == 7
    assert value(metrics, "neardup_restarts_total", role="sketch", cause="rebalance") == 1
    assert value(metrics, "neardup_rocksdb_bytes", family="keys") == 5
    assert value(metrics, "neardup_info", version="1", role="match", scheme="ab", decider="", generation="") == 1
    assert value(metrics, "process_start_time_seconds") > 0


def test_every_step_can_be_timed_and_no_other():
    metrics = Metrics()
    for role, steps in STEPS.items():
        for step in steps:
            with metrics.step(role, step):
                pass
            assert value(metrics, "neardup_step_seconds_count", role=role, step=step) == 1
    with pytest.raises(KeyError):
        metrics.step("sketch", "judge")


def test_a_batch_of_observations_counts_like_single_ones():
    metrics = Metrics()
    metrics.candidates.observe_many(np.array([0, 0, 1, 3, 64, 65], np.int32))
    metrics.candidates.observe_many([])
    metrics.candidates.observe_many([2.0])
    buckets = {
        le: value(metrics, "neardup_candidates_bucket", le=le) for le in ("0.0", "1.0", "2.0", "4.0", "64.0", "+Inf")
    }
    assert list(buckets.values()) == [2, 3, 4, 5, 6, 7]
    assert value(metrics, "neardup_candidates_count") == 7
    assert value(metrics, "neardup_candidates_sum") == 135


def test_reasons_fall_into_their_classes():
    assert reason_class("HTTP status 503") == "status"
    assert reason_class("body-ref under no allowed prefix") == "body_ref"
    assert reason_class("a line of more than 100 bytes") == "size"
    assert reason_class("not a JSON object") == "record"
    assert reason_class("cannot read /a/url/json: Permission denied") == "unreadable"
    assert reason_class("") == reason_class("the moon is full") == "other"


@pytest.mark.parametrize(
    "url", ["nothing", "http://a\x00b/", "http:///status", "http://json:99999/", "http://a/" + "x" * 3000]
)
def test_reason_class_does_not_depend_on_the_url(url):
    with pytest.raises(BadPage) as caught:
        normalise_url(url)
    assert reason_class(str(caught.value)) == "url"
    assert reason_class("no header 'url status JSON'") == "record"
