"""The health page's figures: of roles by their metrics, of workers, of a scan; and what is wrong, in words."""

import http.server
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("prometheus_client", reason="prometheus-client is not installed")

from streams.process.health import Health, HealthServer
from streams.process.metrics import Metrics
from streams.process.shutdown import now_ms
from streams.views import health, peers, stream_health
from streams.views.stream_health import role_facts
from tests.streams.scripted import ManualClock

Answer = Callable[[http.server.BaseHTTPRequestHandler], None]


@contextmanager
def answering(answer: Answer) -> Iterator[tuple[str, list[str]]]:
    """The address of a server that answers so, and the paths that were asked for."""
    paths: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.append(self.path)
            answer(self)

        def log_message(self, *about: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/metrics", paths
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_role_is_described_by_its_metrics() -> None:
    metrics, state = Metrics(), Health(ManualClock().now_ms, 1_000)
    metrics.info(version="1.2", role="match", generation="next")
    metrics.batch_pages["match"].observe(30)
    metrics.batch_pages["match"].observe(10)
    metrics.pages["match"].inc(40)
    metrics.lag["match"].set(7)
    metrics.steps["match", "poll"].observe(50)
    metrics.steps["match", "judge"].observe(0.5)
    metrics.rocksdb_bytes["keys"].set(2_000)
    metrics.stopped["state"].set(1)
    state.role("match").not_ready("folds")
    with HealthServer("127.0.0.1", 0, state, metrics) as server:
        values = role_facts(f"http://127.0.0.1:{server.address[1]}/metrics")
    shown = {name: values[name] for name in ("problem", "role", "generation", "ready", "pages", "batches", "behind")}
    assert shown == {"problem": None, "role": "match", "generation": "next", "ready": False, "pages": 40,
                     "batches": 2, "behind": 7}  # fmt: skip
    assert (values["batch_pages"], values["batch_ms"], values["rocksdb"]) == (20.0, 250.0, {"keys": 2_000})
    (problem,) = health.of_stream("a test", None, [], 0, [values], None)["problems"]
    assert "stopped: state" in problem


def _redirects(to: http.server.BaseHTTPRequestHandler) -> None:
    to.send_response(302)
    to.send_header("Location", "/elsewhere")
    to.end_headers()


def _floods(to: http.server.BaseHTTPRequestHandler) -> None:
    to.send_response(200)
    to.end_headers()
    try:
        while True:
            to.wfile.write(b"# x\n" * 16_384)
    except OSError:
        pass


def _drips(to: http.server.BaseHTTPRequestHandler) -> None:
    to.send_response(200)
    to.end_headers()
    try:
        while True:
            to.wfile.write(b"#")
    except OSError:
        pass


def _says_nonsense(to: http.server.BaseHTTPRequestHandler) -> None:
    to.send_response(200)
    to.end_headers()
    to.wfile.write(b"neardup_ready{role=\xff\xfe")


@pytest.mark.parametrize(
    ("answer", "reason", "seconds"),
    [
        (_redirects, "status 302", 0),
        (_floods, "more than", 0),
        (_drips, "took longer", 20),
        (_says_nonsense, "cannot be read", 0),
    ],
)
def test_unreachable_metrics_are_reported(
    answer: Answer, reason: str, seconds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """seconds: that pass from one look at the clock to the next, however busy the machine is."""
    monkeypatch.setattr(stream_health, "RESPONSE_SECONDS_MAX", 60.0)
    clock = count(step=seconds)
    monkeypatch.setattr(peers, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    with answering(answer) as (url, paths):
        values = role_facts(url)
    assert reason in values["problem"]
    assert url in values["problem"]
    assert paths == ["/metrics"], "no redirect is followed"
    assert health.of_stream("a test", None, [], 0, [values], None)["problems"] == [values["problem"]]


def test_idle_readers_and_silent_roles_are_reported() -> None:
    here = {"url": "http://a:1", "own": True, "problem": None, "lag": {"0": 3}, "behind": 3, "rate": 1.0, "tables": {}}
    away = {"url": "http://b:1", "own": False, "problem": "b does not answer", "lag": None, "behind": None}
    reported = health.of_stream("a test", None, [here, away], 3, [], None, "Kafka is away")
    assert reported["unread"] == ["1", "2"]
    assert reported["problems"][:2] == ["Kafka is away", "b does not answer"]
    assert "partitions 1, 2" in reported["problems"][2]


@pytest.mark.parametrize(
    ("step", "behind", "readers", "silent", "expected"),
    [
        ("sketch", 0, [], True, ""),  # no reader is missing
        ("sketch", 3, [{}], True, ""),
        ("sketch", 3, [], False, "No sketcher consumes topic t, and 3 records wait"),
        ("match", 0, None, True, ""),  # there was nothing to say
        ("match", 3, None, False, ""),
        ("match", 3, None, True, "3 messages of topic t wait, and no verdict was emitted since 1970-01-01"),
    ],
)
def test_an_unused_step_is_reported(
    step: str, behind: int, readers: list[dict[str, Any]] | None, silent: bool, expected: str
) -> None:
    newest = 1 if silent else now_ms()
    steps = [{"step": step, "reads": "t", "behind": behind, "partitions": {}, "newest": 1, "readers": readers}]
    line = {"steps": steps, "newest_verdict": newest, "generations": [], "live": ""}
    problems = health.of_stream("a test", line, [], 0, [], None)["problems"]
    assert len(problems) == bool(expected)
    assert "".join(problems).startswith(expected)


def test_a_scans_directory_is_recognised_by_its_parts(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "0").write_bytes(b"x" * 70)
    values = health.of_scan("a scan", tmp_path, 5, [True, False])
    assert values["disk"] == {"sources": 2, "unfinished": 1, "bytes": {"log": 70, "verdicts": 0, "index": 0}}
    assert values["problems"] == ["1 of 2 sources are not finished: scan them again."]


def test_duration_is_reported_as_text() -> None:
    values = [health.ago(1000 * seconds) for seconds in (-5, 0, 119, 120, 7_200, 3 * 86_400)]
    assert values == ["0 s ago", "0 s ago", "119 s ago", "2 minutes ago", "2 hours ago", "3 days ago"]
