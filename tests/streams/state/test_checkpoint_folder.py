"""A store of checkpoints that connects when it is made (ftp, sftp, smb, hdfs), and is away at a start or later."""

import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from neardup.decider import Decider
from neardup.errors import StateError
from neardup.index.rocks import RocksStore
from streams.config.settings import Settings
from streams.state import checkpoint_folder
from streams.state.checkpoint_make import identity
from streams.state.checkpoint_manifest import Manifest
from streams.state.checkpoint_restore import Restoring
from streams.state.checkpoint_role import RETRY_SECONDS, RoleCheckpoints, report_checkpoints
from streams.state.checkpoint_store import CheckpointStore
from tests.quiet import quiet_runtime


class Connected(MemoryFileSystem):  # type: ignore[misc]
    """A store that answers only over the connection that it was made with."""

    protocol = "connected"
    server: Any = None  # away if None
    held: threading.Event | None = None  # no connection is made before it is set

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        if self.held is not None:
            self.held.wait()
        if self.server is None:
            raise ConnectionRefusedError(111, "Connection refused")
        self._server = self.server

    def ls(self, path: str, detail: bool = True, **options: Any) -> Any:
        if self._server is not self.server:
            raise EOFError
        return super().ls(path, detail, **options)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Connected]]:
    fsspec.register_implementation("connected", Connected, clobber=True)
    monkeypatch.setattr(Connected, "store", {})
    monkeypatch.setattr(Connected, "pseudo_dirs", [""])
    monkeypatch.setattr(Connected, "server", None)
    yield Connected
    Connected.clear_instance_cache()


def test_store_away_at_its_making_answers_later(server: type[Connected], tmp_path: Path) -> None:
    store = CheckpointStore("connected://host/kept")
    with pytest.raises(StateError, match=r"cannot list checkpoints at connected://host/kept: .*try again"):
        store.names()
    server.server = object()
    assert store.names() == []
    (tmp_path / "a").write_text("1")
    store.write(tmp_path, Manifest(7, 1, "scheme", "decider", "log", "1"))
    server.server = object()  # another connection is required from now on
    with pytest.raises(StateError, match="cannot list"):
        store.names()
    assert [one.manifest.offset for one in store.usable()] == [7]
    assert [one.manifest.offset for one in CheckpointStore("connected://host/kept").usable()] == [7]


def test_store_that_never_connects_is_waited_for_a_limited_time(
    server: type[Connected], monkeypatch: pytest.MonkeyPatch
) -> None:
    held = threading.Event()
    monkeypatch.setattr(server, "held", held)
    monkeypatch.setattr(checkpoint_folder, "CONNECT_SECONDS_MAX", 0.01)
    store = CheckpointStore("connected://host/kept")
    with pytest.raises(StateError, match=r"no connection within 0\.01 s"):
        store.names()
    held.set()


def test_store_away_at_the_start_of_a_matcher_is_read_later(server: type[Connected], tmp_path: Path) -> None:
    runtime = quiet_runtime(settings := Settings(bootstrap="", checkpoints="connected://host/kept"))
    now = [0.0]
    made = RoleCheckpoints(settings, tmp_path, "log", lambda: 0, steady_s=lambda: now[0])
    assert "Connection refused" in made.failed
    report_checkpoints(runtime.metrics, [made])
    assert runtime.metrics.checkpoint_failed._value.get() == 1
    index = RocksStore(tmp_path / "index")
    folded: Any = SimpleNamespace(next_offset=9, log_time=1, takedowns_to=0, decider=Decider("5" * 32))

    def look() -> None:
        made.look(folded, index)
        made.close(30)
        made.look(folded, index)

    server.server = object()
    CheckpointStore(settings.checkpoints).write(tmp_path, Manifest(7, 1, "scheme", "decider", "log", "1"))
    look()
    assert made.failed
    now[0] += RETRY_SECONDS
    look()
    index.close()
    assert (made.failed, made.newest) == ("", 7)


class Log:
    cluster_id, topic = "cluster", SimpleNamespace(id=b"log")

    def __init__(self, begin: int) -> None:
        self.begin = begin

    def first_offset(self) -> int:
        return self.begin

    def end(self) -> int:
        return 100


def test_restore_from_a_store_that_is_away(server: type[Connected], tmp_path: Path) -> None:
    """A whole log builds the index without it; a truncated one does not."""
    runtime = quiet_runtime(settings := Settings(bootstrap="", checkpoints="connected://host/kept"))
    decider = Decider("5" * 32)
    whole: Any = Log(0)
    assert not Restoring(settings, whole, decider, runtime.stop, runtime.health.role("match")).restore(tmp_path)
    cut: Any = Log(5)
    with pytest.raises(StateError, match="Connection refused; mend that and try again, nothing is lost"):
        Restoring(settings, cut, decider, runtime.stop, runtime.health.role("match")).restore(tmp_path)
    assert identity(whole) == identity(cut)
