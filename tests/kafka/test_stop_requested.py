"""SIGTERM ends a role soon, with or without a broker; and what a role says last is a line of its log."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from broker import eventually, kafka
from line import Make, story
from roles import Role

from streams.config.settings import Settings
from streams.kafka import Connection
from streams.process.watchdog import EXIT_CODE

#: Less than a request may take, which a role that does not listen waits for.
STOP_SECONDS = Connection.request_s / 2


@pytest.mark.slow
@pytest.mark.parametrize("role", ["sketch", "match"])
def test_a_role_that_finds_no_broker_stops_on_request(tmp_path: Path, role: str) -> None:
    (port,) = kafka.free_ports(1)
    settings = Settings(bootstrap=f"127.0.0.1:{port}", seed=7, state=str(tmp_path / "state"), metrics_port=0)
    found = Role(role, settings, tmp_path / "log")
    try:
        eventually(lambda: '"started"' in found.output(), "its start")
        found.signal(signal.SIGTERM)
        assert found.wait(STOP_SECONDS) == 0, found.output()
    finally:
        found.kill()
    last, end = map(json.loads, found.output().splitlines()[-2:])
    assert last["event"] == "stopped in the middle of its work"
    assert end["event"] == "stopped"


@pytest.mark.whole
@pytest.mark.slow
def test_busy_roles_stop_while_the_broker_is_silent(own_broker: Any, make: Make) -> None:
    line = make(bootstrap=own_broker.bootstrap)
    line.publish(story(6))
    roles = [line.start("sketch"), line.start("match")]
    line.settle()
    line.publish(story(200))
    eventually(lambda: len(line.verdicts()) > len(story(6)), "they are at work")
    own_broker.pause()
    for role in roles:
        role.signal(signal.SIGTERM)
    for role in roles:
        # A call of the client that does not return is ended by the watchdog.
        assert role.wait(STOP_SECONDS) in (0, EXIT_CODE), role.output()
    own_broker.resume()
    line.start("sketch")
    line.start("match")
    line.check()


def test_the_last_line_is_of_the_log_too(tmp_path: Path) -> None:
    """What collects logs reads lines of JSON: an error that ends a process is one, and no text beside it."""
    (tmp_path / "state").write_text("no folder")
    (port,) = kafka.free_ports(1)
    main = "from streams.commands import main; main()"
    command = [sys.executable, "-c", main, "match", "--bootstrap", f"127.0.0.1:{port}"]
    environment = {**os.environ, "NEARDUP_SEED": "7"}
    ended = subprocess.run([*command, "--metrics-host", "no.such.host.invalid"], capture_output=True, env=environment)
    assert ended.returncode == 1
    (line,) = ended.stderr.decode().splitlines()
    answer = json.loads(line)
    assert (answer["level"], answer["error"]) == ("error", "BadInput")
    assert "set metrics_host" in answer["reason"]
