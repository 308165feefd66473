"""After a takedown the checkpoints made before it are removed, whatever fails or is killed meanwhile."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from neardup.decider import Decider
from neardup.errors import StateError
from neardup.index.column_families import Family
from neardup.index.rocks import RocksStore
from streams.config.settings import Settings
from streams.state.checkpoint_role import RETRY_SECONDS, RoleCheckpoints
from streams.state.checkpoint_store import CheckpointStore

EVERY = 5_000


class Matcher:
    """A matcher with a checkpoint at offset 10; then a takedown is folded, and nothing else comes."""

    def __init__(self, folder: Path) -> None:
        self.state, self.now_s = folder / "state", 0.0
        self.state.mkdir()
        (self.state / "decider.json").write_text("{}")
        self.store = CheckpointStore(str(folder / "kept"))
        self.index = RocksStore(self.state / "index")
        self.at, self.takedowns_to = 10, 0
        self.checkpoints = self.start()
        self.fold(10)
        self.checkpoints.look(self.as_folded(), self.index)
        self.fold(EVERY)
        self.look()
        assert self.offsets() == [EVERY]
        self.fold(EVERY + 7)
        self.takedowns_to = EVERY + 7

    def start(self) -> RoleCheckpoints:
        settings = Settings(bootstrap="", checkpoints=self.store.url, checkpoint_messages=EVERY, checkpoints_kept=3)
        self.checkpoints = RoleCheckpoints(settings, self.state, "log", lambda: 0, steady_s=lambda: self.now_s)
        return self.checkpoints

    def fold(self, offset: int) -> None:
        self.at = offset
        self.index.write({Family.META: {b"next": b"%d" % offset}})

    def as_folded(self) -> Any:
        decider = Decider("5" * 32)
        at, behind = self.at, self.takedowns_to
        return SimpleNamespace(next_offset=at, log_time=1_000 + at, takedowns_to=behind, decider=decider)

    def look(self) -> None:
        """One round of the matcher, and the end of what it has begun."""
        self.checkpoints.look(self.as_folded(), self.index)
        self.checkpoints.close(30)

    def offsets(self) -> list[int]:
        return sorted(one.manifest.offset for one in self.store.usable())

    def unnamed_files(self) -> set[str]:
        """Files of the store that no manifest names."""
        there = {file.name for file in (Path(self.store.url) / "files").iterdir()}
        return there - {file.digest for one in self.store.usable() for file in one.manifest.files}


@pytest.fixture
def matcher(tmp_path: Path) -> Any:
    made = Matcher(tmp_path)
    yield made
    made.index.close()


def refuse(*_: object, **__: object) -> None:
    raise StateError("the store is away")


@pytest.mark.parametrize("step", ["write", "prune"])
def test_a_copy_or_a_prune_that_fails_is_tried_again(
    matcher: Matcher, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(CheckpointStore, step, refuse)
        matcher.look()
        assert EVERY in matcher.offsets()
        tries = count_calls(patched, step)
        matcher.look()
        assert tries == []  # not at each round
        matcher.now_s += RETRY_SECONDS
        matcher.look()
        assert len(tries) == 1
    matcher.now_s += RETRY_SECONDS
    matcher.look()
    assert matcher.offsets() == [EVERY + 7]
    tries = count_calls(monkeypatch, "prune")
    matcher.now_s += RETRY_SECONDS
    matcher.look()
    assert tries == []  # done once, and for good


def count_calls(patched: pytest.MonkeyPatch, step: str) -> list[object]:
    real: Callable[..., Any] = getattr(CheckpointStore, step)
    calls: list[object] = []

    def counted(*given: Any, **options: Any) -> Any:
        calls.append(given)
        return real(*given, **options)

    patched.setattr(CheckpointStore, step, counted)
    return calls


def test_after_a_kill_between_copy_and_prune_the_next_start_removes_them(
    matcher: Matcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(CheckpointStore, "prune", refuse)
        matcher.look()
    assert matcher.offsets() == [EVERY, EVERY + 7]
    matcher.start()
    copies = count_calls(monkeypatch, "write")
    matcher.look()
    assert matcher.offsets() == [EVERY + 7]
    assert copies == []  # the checkpoint behind the takedown is there already


def test_after_a_kill_amid_a_prune_the_next_start_removes_the_files(
    matcher: Matcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The manifests went, and the files, which hold the pages, did not."""
    with monkeypatch.context() as patched:
        remove = matcher.store._fs.rm_file

        def no_files(path: str) -> None:
            if "/files/" in path:
                raise OSError("away")
            remove(path)

        patched.setattr(type(matcher.store._fs), "rm_file", lambda self, path: no_files(path))
        matcher.look()
    assert matcher.offsets() == [EVERY + 7]
    assert matcher.unnamed_files()
    matcher.start()
    matcher.look()
    assert not matcher.unnamed_files()


def test_after_a_kill_before_the_copy_the_next_start_makes_it(matcher: Matcher) -> None:
    matcher.start()
    matcher.look()
    assert matcher.offsets() == [EVERY + 7]


def test_without_a_takedown_nothing_is_owed(matcher: Matcher, monkeypatch: pytest.MonkeyPatch) -> None:
    matcher.takedowns_to = 0
    matcher.start()
    calls = [*count_calls(monkeypatch, "write"), *count_calls(monkeypatch, "prune")]
    matcher.look()
    assert calls == []
    assert matcher.offsets() == [EVERY]
