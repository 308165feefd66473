"""A backfill that serves waits for Kafka, as roles do; one that ends by itself reports at once that nothing answers."""

import socket
from collections.abc import Iterator

import pytest

from streams.config.settings import Settings
from streams.errors import Stopped
from streams.kafka import admin as admin_module
from streams.roles import backfill
from streams.roles.backfill import BackfillOptions, run_backfill
from tests.quiet import quiet_runtime
from tests.streams.shell import Shell


@pytest.fixture
def nothing() -> Iterator[str]:
    """An address at which nothing listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{held.getsockname()[1]}"


def test_backfill_waits_for_kafka_until_it_is_stopped(nothing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin_module, "TRY_SECONDS_MAX", 0.1)
    runtime = quiet_runtime(settings := Settings(seed=1, bootstrap=nothing, generation="second"))
    runtime.stop.set()
    with pytest.raises(Stopped, match="did not answer; nothing is lost"):
        run_backfill(settings, BackfillOptions(), runtime)


@pytest.mark.parametrize(("once", "code"), [(True, 1), (False, 0)])
def test_backfill_command_asks_for_kafka_first_only_if_it_ends_by_itself(
    nothing: str, monkeypatch: pytest.MonkeyPatch, shell: Shell, once: bool, code: int
) -> None:
    monkeypatch.setattr("streams.roles.runtime.GREETING_SECONDS_MAX", 0.2)
    monkeypatch.setattr(backfill, "run_backfill", lambda *given, **options: True)
    monkeypatch.setenv("NEARDUP_SEED", "1")
    ended = shell("backfill", "--generation", "second", "--bootstrap", nothing, *(["--once"] if once else []))
    assert (ended.code, nothing in ended.err) == (code, once)
