"""`neardup run` without a supervisor: a call that hangs, and a broker that is frozen, do not end the stream."""

import os
import pickle
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from broker import eventually, kafka
from line import Line, Make, story
from roles import standing
from test_silence import has_hung

from streams.config.settings import Settings

#: The command's process. "hangs": in its first start the second transaction hangs, and the watchdog is impatient.
RUNS = """
import ctypes, os, pickle, sys
from streams.commands import stream
from streams.kafka import verdict_transactions
from tests.processes import die_with_parent

if __name__ == "__main__":
    die_with_parent()
    settings, hangs = pickle.load(open(sys.argv[1], "rb")), sys.argv[2] == "hangs"
    if hangs and "_NEARDUP_RESTARTS" not in os.environ:
        verdict_transactions.TRY_SECONDS_MAX = 2.0
        kind = verdict_transactions.KafkaVerdicts
        transaction, calls = kind._transaction, []

        def hanging(self, *given):
            calls.append(given)
            if len(calls) == 3:
                ctypes.CDLL(None).usleep(600_000_000)
            transaction(self, *given)

        kind._transaction = hanging

    class Flags:
        read = staticmethod(lambda: settings)

    stream.run(settings=Flags)
"""


def plain(settings: Settings) -> Settings:
    """The settings with plain dicts, because views of mappings cannot be pickled."""
    values = {name: dict(getattr(settings, name)) for name in ("decider_values", "kafka_values", "origins")}
    return replace(settings, **values)


class Run:
    """The process, with its log."""

    def __init__(self, line: Line, folder: Path, how: str, **settings: Any) -> None:
        (self.port,) = kafka.free_ports(1)
        given = folder / "settings"
        given.write_bytes(pickle.dumps(plain(replace(line.settings, metrics_port=self.port, **settings))))
        script, self._log = folder / "runs.py", folder / "run.log"
        script.write_text(RUNS)
        command = [sys.executable, str(script), str(given), how]
        with self._log.open("wb") as log:
            environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)

    def output(self) -> str:
        return self._log.read_text()

    def reason(self) -> str:
        return standing("match", self.port)[1]

    def restarts(self) -> float:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=60) as answer:
            lines = answer.read().decode().splitlines()
        name = 'neardup_restarts_total{cause="watchdog",role="run"}'
        return next(float(line.split()[-1]) for line in lines if line.startswith(name))

    def look(self) -> None:
        assert self.process.poll() is None, self.output()

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(60) == 0, self.output()


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    made: list[Run] = []

    def start(line: Line, how: str = "", **settings: Any) -> Run:
        made.append(Run(line, tmp_path, how, **settings))
        return made[-1]

    yield start
    for each in made:
        each.process.kill()
        each.process.wait()
        print(each.output())


def test_run_restarts_after_a_hanging_transaction(make: Make, begin: Callable[..., Run]) -> None:
    line = make()
    line.publish(story(8))
    run = begin(line, "hangs", transaction_deadline_ms=1_000)
    eventually(lambda: "has not returned for" in run.reason(), "/ready names the call that hangs")
    assert not standing("match", run.port)[0]
    eventually(lambda: "has not ended in 7 s" in run.output(), "the watchdog")
    line.publish(story(4))
    line.settle(look=run.look)
    assert run.restarts() == 1
    assert '"starts again"' in run.output()
    assert run.reason() == "judges"
    run.stop()

    line.check()


@pytest.mark.whole
@pytest.mark.parametrize("role", ["run", "match", "sketch"])
def test_a_broker_that_is_frozen_under_load(own_broker: Any, make: Make, begin: Callable[..., Run], role: str) -> None:
    """`run` goes on by itself; a matcher or sketcher may end by its watchdog, and a supervisor starts it again."""
    line = make(bootstrap=own_broker.bootstrap)
    run = begin(line) if role == "run" else None
    roles = {} if run else {name: line.start(name) for name in ("sketch", "match")}
    line.publish(story(150))
    eventually(lambda: line.verdicts(), "it is at work")

    def look() -> None:
        if run:
            run.look()
        for name, each in roles.items():
            if not each.running:
                assert name == role, each.output()
                assert has_hung(each), each.output()
                roles[name] = line.start(name)

    own_broker.pause()
    until = time.monotonic() + 40
    eventually(lambda: look() or time.monotonic() > until, "the time is over", 120)
    own_broker.resume()
    line.publish(story(5))
    line.settle(look=look)
    for output in [run.output()] if run else [each.output() for each in roles.values()]:
        assert "broker version" not in output
        assert "does not answer" in output or "waits for Kafka" in output
    if run:
        run.stop()

    line.check()
