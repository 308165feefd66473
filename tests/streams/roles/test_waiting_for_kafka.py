"""What a role shows while its first requests to Kafka fail: nothing listens on the port."""

import socket
from dataclasses import replace

import pytest

from streams.config.settings import Settings
from streams.errors import NoAnswer
from streams.kafka import Admin
from streams.kafka import admin as admin_module
from streams.roles import runtime as runtime_module
from streams.roles.runtime import connect
from tests.quiet import quiet_runtime


def test_a_role_that_waits_for_kafka_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    warnings = []
    monkeypatch.setattr(admin_module, "TRY_SECONDS_MAX", 0.1)
    monkeypatch.setattr(runtime_module, "LOGGED_WAIT_SECONDS", 0.0)
    monkeypatch.setattr(runtime_module._log, "warning", lambda words, **fields: warnings.append((words, fields)))
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        settings = Settings(seed=1, bootstrap=f"127.0.0.1:{held.getsockname()[1]}")
        runtime = quiet_runtime(settings)
        connection = replace(connect(settings, "match", runtime), request_s=3)
        assert runtime.health.role("match").state() == (False, "starting")
        with pytest.raises(NoAnswer):
            Admin(connection).cluster_id()
    ready, reason = runtime.health.role("match").state()
    assert not ready
    assert reason.startswith("waits for Kafka: ")
    assert "check that Kafka runs" in reason
    assert [words for words, _ in warnings] == ["waits for Kafka"]
    runtime.health.role("match").turned()
    assert runtime.health.role("match").state() == (False, "starting")
