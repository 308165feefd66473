"""/metrics, /live and /ready as a probe sees them."""

import http.client
import json
import socket
import threading
import time
from contextlib import ExitStack

import pytest

from neardup.errors import BadInput
from streams.process import health as module
from streams.process.health import Health, HealthServer
from streams.process.metrics import Metrics


class ManualClock:
    ms = 1_000

    def now_ms(self) -> int:
        return self.ms


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def health(clock):
    return Health(clock.now_ms, stall_ms=100, redact=lambda text: text.replace("hunter2", "***"))


@pytest.fixture
def server(health):
    with HealthServer("127.0.0.1", 0, health, Metrics()) as server:
        yield server


def ask(server: HealthServer, path: str, method: str = "GET") -> tuple[int, http.client.HTTPMessage, bytes]:
    connection = http.client.HTTPConnection(*server.address, timeout=60)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def ask_json(server: HealthServer, path: str) -> tuple[int, dict]:
    status, headers, body = ask(server, path)
    assert headers["Content-Type"] == "application/json"
    return status, json.loads(body)


def test_a_walk_from_start_to_catching_up_to_ready(server, health, clock):
    assert server.address[0] == "127.0.0.1"
    assert ask_json(server, "/ready") == (503, {"ok": False, "roles": {}})
    match = health.role("match")
    assert ask_json(server, "/ready") == (503, {"ok": False, "roles": {"match": {"ok": False, "reason": "starting"}}})
    match.not_ready("folding 3 of 900 messages")
    status, answer = ask_json(server, "/ready")
    assert (status, answer["roles"]["match"]["reason"]) == (503, "folding 3 of 900 messages")
    match.ready()
    assert ask_json(server, "/ready") == (200, {"ok": True, "roles": {"match": {"ok": True, "reason": "caught up"}}})
    health.role("sketch").not_ready("no partition assigned")
    status, answer = ask_json(server, "/ready")
    assert (status, answer["roles"]["match"]["ok"], answer["roles"]["sketch"]["ok"]) == (503, True, False)


def test_a_loop_that_stands_still_is_not_live_until_it_turns_again(server, health, clock):
    sketch = health.role("sketch")
    health.role("match")
    clock.ms += 100
    assert ask_json(server, "/live")[0] == 200
    clock.ms += 1
    sketch.turned()
    status, answer = ask_json(server, "/live")
    assert status == 503
    assert answer["roles"] == {
        "sketch": {"ok": True, "silent_ms": 0, "allowed_ms": 100},
        "match": {"ok": False, "silent_ms": 101, "allowed_ms": 100},
    }
    health.role("match").turned()
    assert ask_json(server, "/live")[0] == 200
    clock.ms -= 500
    assert ask_json(server, "/live")[0] == 200


def test_metrics_are_served_as_prometheus_reads_them(health):
    metrics = Metrics()
    metrics.pages["match"].inc(3)
    with HealthServer("127.0.0.1", 0, health, metrics) as server:
        status, headers, body = ask(server, "/metrics?name=x")
    assert (status, headers["Content-Type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert b'\nneardup_pages_total{role="match"} 3.0\n' in body


def test_other_paths_and_methods(server):
    assert ask(server, "/")[0] == ask(server, "/etc/passwd")[0] == 404
    assert ask(server, "/live", "POST")[0] == 501
    status, headers, body = ask(server, "/live", "HEAD")
    assert (status, body) == (200, b"")
    assert int(headers["Content-Length"]) > 0
    assert headers["Server"].strip() == "neardup"


def test_reasons_are_redacted_and_cut(server, health):
    health.role("match").not_ready("wrong password hunter2 " + "x" * 1000)
    reason = ask_json(server, "/ready")[1]["roles"]["match"]["reason"]
    assert reason.startswith("wrong password *** x")
    assert len(reason) == module.REASON_CHARS_MAX


def test_taken_port_is_refused_with_the_setting(server, health):
    with pytest.raises(BadInput, match="Address already in use; set metrics_host, metrics_port"):
        HealthServer(*server.address, health, Metrics())
    with pytest.raises(BadInput, match="cannot serve metrics on no host:1"):
        HealthServer("no host", 1, health, Metrics())


def test_stop_frees_the_port_ends_the_thread_and_may_come_twice(health):
    server = HealthServer("127.0.0.1", 0, health, Metrics())
    with socket.create_connection(server.address, timeout=60):  # a client that says nothing holds nothing up
        server.stop()
    server.stop()
    assert "health" not in {thread.name for thread in threading.enumerate()}
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(server.address, timeout=60)
    HealthServer(*server.address, health, Metrics()).stop()


def sent_away(client: socket.socket) -> bool:
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True


def served() -> int:
    return sum("process_request_thread" in thread.name for thread in threading.enumerate())


def test_silent_clients_take_a_bounded_number_of_threads_and_make_room(health, monkeypatch):
    monkeypatch.setattr(module, "REQUESTS_MAX", 2)
    monkeypatch.setattr(module._Handler, "timeout", 600)  # not for silence, for the others
    before = served()
    with HealthServer("127.0.0.1", 0, health, Metrics()) as server, ExitStack() as stack:
        silent = [stack.enter_context(socket.create_connection(server.address, timeout=60)) for _ in range(9)]
        assert all(map(sent_away, silent[:7]))
        assert ask(server, "/live")[0] == 200
        assert sent_away(silent[7])
        deadline = time.monotonic() + 60
        while served() - before > 1:
            assert time.monotonic() < deadline
        silent[8].sendall(b"GET /live HTTP/1.0\r\n\r\n")
        assert silent[8].recv(12) == b"HTTP/1.0 200"


def test_clients_that_drip_do_not_silence_a_probe(health):
    """As many as are served at once send a byte now and then, so that none of them is ever silent for long."""
    with HealthServer("127.0.0.1", 0, health, Metrics()) as server, ExitStack() as stack:
        slow = [
            stack.enter_context(socket.create_connection(server.address, timeout=60))
            for _ in range(module.REQUESTS_MAX)
        ]
        for client in slow:
            client.sendall(b"GET /live HTTP/1.0\r\nX: ")
        for round_ in range(3):
            assert ask(server, "/live")[0] == 200
            for client in slow[round_ + 1 :]:
                client.sendall(b"x")
            assert sent_away(slow[round_]), "the oldest connection is closed"
            slow.append(stack.enter_context(socket.create_connection(server.address, timeout=60)))
