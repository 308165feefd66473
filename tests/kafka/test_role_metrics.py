"""What the roles tell of themselves, against a real broker: every step is timed, every page and verdict counted."""

import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path

from line import Line, story

from streams.config.settings import Topics
from streams.process.metrics import STEPS
from streams.roles.single_process import run_single_process
from tests.quiet import quiet_runtime


def test_metrics_of_both_roles_count_their_work(broker: str, names: Topics, tmp_path: Path) -> None:
    line = Line(broker, names, tmp_path)
    pages = story()
    line.publish(pages)
    runtime = quiet_runtime(replace(line.settings, flush_ms=1))
    running = threading.Thread(target=run_single_process, args=(runtime.settings, runtime), daemon=True)
    running.start()
    try:
        line.settle()
    finally:
        runtime.stop.set()
        running.join(60)
    assert not running.is_alive()
    verdicts = Counter(verdict["verdict"] for verdict in line.check())
    line.close()

    def value(name: str, **labels: str) -> float:
        found = runtime.metrics.registry.get_sample_value(name, labels)
        assert found is not None, (name, labels)
        return found

    assert STEPS.keys() == {"sketch", "match"}
    for role in ("sketch", "match"):
        assert value("neardup_pages_total", role=role) == len(pages)
        for step in STEPS[role]:
            assert value("neardup_step_seconds_count", role=role, step=step) > 0, (role, step)
    for kind, count in verdicts.items():
        assert value("neardup_verdicts_total", verdict=kind) == count
    assert value("neardup_restarts_total", role="sketch", cause="rebalance") >= 1
    assert value("neardup_restarts_total", role="match", cause="abort") == 0
    assert value("neardup_verdict_latency_seconds_count") == len(pages)
