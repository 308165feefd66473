"""Checkpoints: whole or not at all, each file once, damage found, and an index restored is the index as it was."""

import errno
import json
import os
import random
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO
from uuid import uuid4

import pytest
from msgspec.structs import replace

from neardup.decider import Decider
from neardup.errors import BadInput, CorruptRecord, StateError
from neardup.index.column_families import Family
from neardup.index.rocks import RocksStore
from neardup.scheme import Scheme
from streams.config.settings import Settings
from streams.roles.runtime import serving
from streams.scan.scan import scan
from streams.state.checkpoint_make import IMAGE, identity, make_image
from streams.state.checkpoint_manifest import Manifest
from streams.state.checkpoint_restore import Restoring, restore, restore_newest
from streams.state.checkpoint_role import Checkpointer
from streams.state.checkpoint_store import CheckpointStore
from streams.state.scan_directory import ScanDirectory
from tests.quiet import quiet_runtime
from tests.streams.archives import crawl, write_warc
from tests.streams.shell import Shell


def manifest(offset: int) -> Manifest:
    return Manifest(offset, 1_000 + offset, "scheme", "decider", "log", "0.1.0")


@pytest.fixture
def state(tmp_path: Path) -> Path:
    folder = tmp_path / "state"
    folder.mkdir()
    (folder / "decider.json").write_text("{}")
    return folder


def put(index: RocksStore, first: int, count: int = 500) -> None:
    rows = {b"%08d" % number: random.Random(number).randbytes(40) for number in range(first, first + count)}
    index.write({Family.SKETCHES: rows, Family.META: {b"next": b"%d" % first}})


def rows(index: RocksStore) -> list[list[tuple[bytes, bytes]]]:
    return [list(index.scan(family)) for family in Family if family is not Family.META]


def checkpoint(state: Path, index: RocksStore, store: CheckpointStore, offset: int) -> str:
    image = make_image(state, index)
    try:
        return store.write(image, manifest(offset)).checkpoint
    finally:
        shutil.rmtree(image)


def test_restored_index_equals_the_checkpointed(state: Path, tmp_path: Path) -> None:
    store = CheckpointStore(str(tmp_path / "kept"))
    index = RocksStore(state / "index")
    put(index, 0)
    name = checkpoint(state, index, store, 7)
    wanted = rows(index)
    put(index, 500)
    index.close()
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    found = restore_newest(store, fresh, lambda manifest: "")
    assert found is not None
    assert (found.name, found.manifest.offset, (fresh / "decider.json").read_text()) == (name, 7, "{}")
    restored = RocksStore(fresh / "index")
    assert rows(restored) == wanted
    restored.close()
    assert sorted(path.name for path in fresh.iterdir()) == ["decider.json", "index"]
    with pytest.raises(StateError, match="has an index"):
        restore(store, found, fresh)


def test_a_table_that_is_there_is_not_copied_again(state: Path, tmp_path: Path) -> None:
    store = CheckpointStore(str(tmp_path / "kept"))
    index = RocksStore(state / "index")
    put(index, 0, 20_000)
    image = make_image(state, index)
    first = store.write(image, manifest(1))
    put(index, 20_000, 10)
    image = make_image(state, index)
    second = store.write(image, manifest(2))
    index.close()
    assert first.bytes == first.of_bytes > 500_000
    assert 0 < second.bytes < first.bytes / 20
    assert second.of_bytes >= first.of_bytes
    tables = [file for file in (tmp_path / "kept" / "files").iterdir() if file.stat().st_size > 100_000]
    assert len(tables) == 1, "one table in both"


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["flip", "cut", "lose"])
def test_a_damaged_file_is_found_and_the_checkpoint_before_is_taken(state: Path, tmp_path: Path, damage: str) -> None:
    store = CheckpointStore(str(tmp_path / "kept"))
    index = RocksStore(state / "index")
    put(index, 0)
    checkpoint(state, index, store, 1)
    wanted = rows(index)
    before = {file.name for file in (tmp_path / "kept" / "files").iterdir()}
    put(index, 500)
    checkpoint(state, index, store, 2)
    index.close()
    (new,) = [
        file
        for file in (tmp_path / "kept" / "files").iterdir()
        if file.name not in before and file.stat().st_size > 20_000
    ]
    data = bytearray(new.read_bytes())
    if damage == "lose":
        new.unlink()
    else:
        data[len(data) // 2] ^= 4
        new.write_bytes(data[: -9 if damage == "cut" else None])
    reported: list[str] = []
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    found = restore_newest(store, fresh, lambda manifest: "", reported.append)
    assert found is not None
    assert found.manifest.offset == 1
    assert len(reported) == 1
    assert "another checkpoint is tried" in reported[0]
    restored = RocksStore(fresh / "index")
    assert rows(restored) == wanted
    restored.close()


def test_a_damaged_manifest_is_passed_over(state: Path, tmp_path: Path) -> None:
    store = CheckpointStore(str(tmp_path / "kept"))
    index = RocksStore(state / "index")
    names = [checkpoint(state, index, store, offset) for offset in (1, 2)]
    index.close()
    file = tmp_path / "kept" / "checkpoints" / f"{names[1]}.json"
    file.write_bytes(file.read_bytes().replace(b'"offset":2', b'"offset":3'))
    reported: list[str] = []
    assert [one.name for one in store.usable(reported.append)] == [names[0]]
    assert "torn or changed" in reported[0]
    with pytest.raises(CorruptRecord):
        store.read(names[1])


def test_a_crash_before_the_manifest_leaves_no_checkpoint(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = CheckpointStore(str(tmp_path / "kept"))
    index = RocksStore(state / "index")
    put(index, 0)
    real, calls = store._store, 0

    def dying(target: str, source: object) -> None:
        nonlocal calls
        calls += 1
        if "/checkpoints/" in target:
            raise KeyboardInterrupt
        real(target, source)  # type: ignore[arg-type]

    monkeypatch.setattr(store, "_store", dying)
    with pytest.raises(KeyboardInterrupt):
        checkpoint(state, index, store, 1)
    assert calls > 1
    assert store.names() == []
    monkeypatch.undo()
    checkpoint(state, index, store, 2)
    put(index, 500)
    index.close()
    orphan = tmp_path / "kept" / "files" / ("0" * 40)
    orphan.write_bytes(b"of no checkpoint")
    store.prune(3)
    assert not orphan.exists()
    assert len(store.names()) == 1


def test_old_ones_go_and_their_files_with_them(state: Path, tmp_path: Path) -> None:
    store = CheckpointStore(str(tmp_path / "kept"))
    index = RocksStore(state / "index")
    for offset in range(1, 6):
        put(index, offset * 1000)
        checkpoint(state, index, store, offset)
    index.close()
    assert store.prune(2) == 3
    assert [one.manifest.offset for one in store.usable()] == [5, 4]
    held = {file.name for file in (tmp_path / "kept" / "files").iterdir()}
    assert held == {file.digest for one in store.usable() for file in one.manifest.files}
    assert store.prune(1) == 1


def test_reader_during_pruning_sees_the_kept_checkpoints(state: Path, tmp_path: Path) -> None:
    """As a command, or a standby, beside the matcher: between the list of manifests and their reading one goes."""
    store = CheckpointStore(str(tmp_path / "kept"))
    index = RocksStore(state / "index")
    for offset in (1, 2, 3):
        checkpoint(state, index, store, offset)
    index.close()
    seen = CheckpointStore(store.url).usable(pytest.fail)
    assert next(seen).manifest.offset == 3
    assert store.prune(1) == 2
    assert list(seen) == []


def test_any_store_that_fsspec_knows(state: Path, tmp_path: Path) -> None:
    store = CheckpointStore(f"memory://{uuid4().hex}/kept")
    index = RocksStore(state / "index")
    put(index, 0)
    checkpoint(state, index, store, 4)
    wanted = rows(index)
    index.close()
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    found = restore_newest(store, fresh, lambda manifest: "")
    assert found is not None
    restored = RocksStore(fresh / "index")
    assert rows(restored) == wanted
    restored.close()
    assert store.prune(1) == 0


def test_a_store_of_no_known_kind_is_refused() -> None:
    with pytest.raises(BadInput, match="nonsense"):
        CheckpointStore("nonsense://bucket/x")


class Gone(CheckpointStore):
    """A store that is away."""

    def write(self, *_: object, **__: object) -> object:  # type: ignore[override]
        raise StateError("cannot write checkpoints: the store is away")


def test_the_matcher_goes_on_when_the_store_is_away(state: Path, tmp_path: Path) -> None:
    index = RocksStore(state / "index")
    kept = CheckpointStore(str(tmp_path / "kept"))
    maker = Checkpointer(Gone(str(tmp_path / "kept")), state, every=10, keep=2)
    assert [maker.due(offset) for offset in (3, 9, 10, 19)] == [False, False, True, True]
    maker.begin(index, manifest(12))
    maker.wait(30)
    assert "the store is away" in maker.failed
    assert not (state / IMAGE).exists()
    assert [maker.due(offset) for offset in (19, 20)] == [False, True]
    maker._store = kept
    maker.begin(index, manifest(21))
    maker.wait(30)
    assert maker.failed == ""
    index.close()
    assert [one.manifest.offset for one in kept.usable()] == [21]


def scanned(tmp_path: Path) -> Path:
    path = tmp_path / "scan"
    with ScanDirectory.open(path, scheme=Scheme(seed=7)) as opened:
        scan([write_warc(tmp_path / "a.warc", crawl(30))], opened)
    return path


def everything(path: Path) -> tuple[list[dict[str, object]], list[list[tuple[bytes, bytes]]]]:
    with ScanDirectory.open(path) as opened:
        assert opened.messages == []
        return list(opened.verdicts()), [list(opened.store.scan(family)) for family in Family]


@pytest.mark.slow
def test_a_scan_comes_back_and_goes_on(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = scanned(tmp_path)
    before = everything(path)
    kept = str(tmp_path / "kept")
    assert "new files" in shell("checkpoint", "make", "--state", str(path), "--checkpoints", kept).out
    assert shell("checkpoint", "make", "--state", str(path), "--checkpoints", kept).out.count(" 0 bytes copied") <= 1
    rows = json.loads(shell("checkpoint", "list", "--checkpoints", kept, "--json").out)
    assert rows[0]["offset"] > 0
    assert "offset" in shell("checkpoint", "list", "--checkpoints", kept).out
    shutil.rmtree(path)
    result = shell("checkpoint", "restore", "--state", str(path), "--checkpoints", kept, "--checkpoint", "2")
    assert "there is no checkpoint '2'" in result.err
    result = shell("checkpoint", "restore", "--state", str(path), "--checkpoints", kept)
    assert (result.code, "NEARDUP_SEED" in result.err) == (1, True), "the seed is in no checkpoint"
    monkeypatch.setenv("NEARDUP_SEED", "8")
    result = shell("checkpoint", "restore", "--state", str(path), "--checkpoints", kept)
    assert (result.code, "set the seed" in result.err) == (1, True)
    monkeypatch.setenv("NEARDUP_SEED", "7")
    result = shell("checkpoint", "restore", "--state", str(path), "--checkpoints", kept)
    assert (result.code, "is restored" in result.out) == (0, True), result.err
    assert everything(path) == before
    result = shell("checkpoint", "restore", "--state", str(path), "--checkpoints", kept)
    assert (result.code, "has an index" in result.err) == (1, True)
    with ScanDirectory.open(path) as opened:
        scan([write_warc(tmp_path / "b.warc", crawl(12))], opened)
        fetches = [verdict for verdict in opened.verdicts() if verdict["n"] == 0]
    assert len(fetches) == sum(verdict["n"] == 0 for verdict in before[0]) + len(crawl(12))


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["checkpoint", "make"], "neardup-state is no state directory"),
        (["checkpoint", "make", "--checkpoints", "kept", "--state", "nothing"], "nothing is no state directory"),
        (["checkpoint", "restore", "--checkpoints", "kept", "--state", "new"], "kept: no such file or folder"),
        (["checkpoint", "list", "--checkpoints", "gs3://x/y"], "gs3"),
    ],
)
def test_bad_checkpoint_commands_are_refused(shell: Shell, command: list[str], words: str) -> None:
    result = shell(*command)
    assert result.code == (1 if words == "gs3" else 2)
    assert words in result.err


@pytest.mark.parametrize("role", ["match", "run", "backfill"])
def test_a_role_refuses_a_store_that_no_file_system_opens(role: str) -> None:
    """At its start, before it waits for Kafka, and not when its disk is lost."""
    with pytest.raises(BadInput, match="checkpoints at gs3://x/y"), serving(Settings(checkpoints="gs3://x/y"), role):
        pass


@pytest.mark.parametrize(
    ("other", "named"),
    [
        ({"generation": "second"}, "generation second"),
        ({"log": "made anew"}, "log made anew"),
        ({"scheme": "another"}, "scheme another"),
    ],
)
def test_a_folder_holds_those_of_one_generation(state: Path, tmp_path: Path, other: dict[str, str], named: str) -> None:
    """Each would take the other's away with its own old ones."""
    store = CheckpointStore(str(tmp_path / "kept"))
    index = RocksStore(state / "index")
    put(index, 0)
    theirs = replace(manifest(900), **other)
    held = store.write(make_image(state, index), theirs).checkpoint
    files = {file.name for file in (tmp_path / "kept" / "files").iterdir()}
    put(index, 500)
    with pytest.raises(StateError, match=f"{named}.*name another folder"):
        store.write(make_image(state, index), manifest(1))
    assert {file.name for file in (tmp_path / "kept" / "files").iterdir()} == files
    # Two that began in an empty folder at once: pruning leaves the other one's files.
    store._refuse_strangers = lambda manifest: set()  # type: ignore[method-assign]
    mine = [store.write(make_image(state, index), manifest(offset)).checkpoint for offset in (1, 2)]
    index.close()
    coming = tmp_path / "kept" / "files" / ("0" * 40)
    coming.write_bytes(b"of theirs, whose manifest is still to come")
    assert store.prune(1) == 1
    assert store.names() == [held, mine[1]]
    assert coming.exists()
    for one in store.usable():
        store.restore(one, tmp_path / one.name)


def test_a_generation_starts_from_no_other_ones(state: Path, tmp_path: Path) -> None:
    class Log:
        cluster_id, topic = "cluster", SimpleNamespace(id=b"log")

        def first_offset(self) -> int:
            return 0

        def end(self) -> int:
            return 100

    decider = Decider("5" * 32)
    index = RocksStore(state / "index")
    put(index, 0)
    index_of = replace(manifest(7), log=identity(Log()), scheme=decider.scheme, decider=decider.digest)
    CheckpointStore(str(tmp_path / "kept")).write(make_image(state, index), replace(index_of, generation="second"))
    index.close()
    for generation, there in (("", False), ("third", False), ("second", True)):
        fresh = tmp_path / f"fresh{generation}"
        fresh.mkdir()
        settings = Settings(bootstrap="", generation=generation, checkpoints=str(tmp_path / "kept"))
        runtime = quiet_runtime(settings)
        Restoring(settings, Log(), decider, runtime.stop, runtime.health.role("match")).restore(fresh)
        assert (fresh / "index").exists() is there


class Killed(BaseException):
    """Nothing catches it: what is left is what a kill leaves to the next start."""


class Deadly:
    """Steps of which the n-th is not taken."""

    def __init__(self, n: int) -> None:
        self.taken, self._n = 0, n

    def before(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def step(*given: Any) -> Any:
            self.taken += 1
            if self.taken == self._n:
                raise Killed
            return real(*given)

        return step


def is_killed(work: Callable[[], object]) -> bool:
    try:
        work()
    except Killed:
        return True
    return False


def test_a_restore_that_is_killed_at_any_step_is_done_by_the_next_start(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each file, the image whole, and each of its parts in its place: an index is there only at the end."""
    store = CheckpointStore(str(tmp_path / "kept"))
    index = RocksStore(state / "index")
    put(index, 0)
    checkpoint(state, index, store, 7)
    wanted = rows(index)
    index.close()
    files = next(store.usable()).manifest.files
    steps = len(files) + 3  # the image, and its two parts
    for step in range(1, steps + 2):
        fresh, deadly = tmp_path / f"fresh{step}", Deadly(step)
        fresh.mkdir()
        with monkeypatch.context() as patched:
            patched.setattr(store, "_get", deadly.before(store._get))
            patched.setattr(Path, "rename", deadly.before(Path.rename))
            killed = is_killed(lambda fresh=fresh: restore_newest(store, fresh, lambda manifest: ""))  # type: ignore[misc]
        assert killed is (step <= steps)
        assert (fresh / "index").exists() is not killed
        if killed:
            assert restore_newest(store, fresh, lambda manifest: "") is not None
        restored = RocksStore(fresh / "index")
        assert rows(restored) == wanted
        restored.close()
        assert sorted(path.name for path in fresh.iterdir()) == ["decider.json", "index"]


def test_tidying_that_is_killed_at_any_step_leaves_whole_checkpoints(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = CheckpointStore(str(tmp_path / "kept"))
    index = RocksStore(state / "index")
    for offset in range(1, 5):
        put(index, offset * 1000)
        checkpoint(state, index, store, offset)
    index.close()
    kills = 0
    with monkeypatch.context() as patched:
        remove = store._fs.rm_file
        while True:  # one step further each time
            step = Deadly(2).before(remove)
            # On the class: fsspec shares the instance, and an attribute of it would stay when this is undone.
            patched.setattr(type(store._fs), "rm_file", lambda self, path, step=step: step(path))
            if not is_killed(lambda: store.prune(1)):
                break
            kills += 1
            for one in store.usable():
                store.restore(one, tmp_path / f"{kills}-{one.manifest.offset}")
    assert kills > 3
    assert [one.manifest.offset for one in store.usable()] == [4]
    held = {file.name for file in (tmp_path / "kept" / "files").iterdir()}
    assert held == {file.digest for one in store.usable() for file in one.manifest.files}


@pytest.mark.parametrize("trouble", [errno.ENOSPC, errno.EIO, errno.ENOENT, errno.ETIMEDOUT, errno.EACCES, errno.EROFS])
def test_matcher_goes_on_under_any_failure_of_the_checkpoint_store(state: Path, tmp_path: Path, trouble: int) -> None:
    """A store that is full, broken or gone is reported, and the next checkpoint is made."""
    index = RocksStore(state / "index")
    store = CheckpointStore(str(tmp_path / "kept"))
    maker = Checkpointer(store, state, every=10, keep=2)
    maker.due(0)
    put(index, 0)

    def refusing(target: str, source: object) -> None:
        raise OSError(trouble, os.strerror(trouble), target)

    store._store, real = refusing, store._store  # type: ignore[method-assign, assignment]
    maker.begin(index, manifest(12))
    maker.wait(30)
    assert os.strerror(trouble) in maker.failed
    assert "nothing is lost" in maker.failed
    put(index, 500)
    store._store = real  # type: ignore[method-assign]
    assert maker.due(20)
    maker.begin(index, manifest(21))
    maker.wait(30)
    index.close()
    assert (maker.failed, [one.manifest.offset for one in store.usable()]) == ("", [21])


def test_slow_checkpoint_store_delays_no_batch(state: Path, tmp_path: Path) -> None:
    """The matcher writes on meanwhile, begins no second copy, and the copy is of the index as it was."""
    index = RocksStore(state / "index")
    store = CheckpointStore(str(tmp_path / "kept"))
    maker = Checkpointer(store, state, every=10, keep=2)
    maker.due(0)
    put(index, 0)
    wanted, slow, real = rows(index), threading.Event(), store._store

    def waiting(target: str, source: BinaryIO) -> None:
        assert slow.wait(60)
        real(target, source)

    store._store = waiting  # type: ignore[method-assign]
    maker.begin(index, manifest(12))
    put(index, 500)
    index.flush()
    assert maker.busy
    assert not maker.due(40)
    assert store.names() == []
    slow.set()
    maker.wait(60)
    index.close()
    (one,) = store.usable()
    store.restore(one, tmp_path / "then")
    restored = RocksStore(tmp_path / "then" / "index")
    assert rows(restored) == wanted
    restored.close()
