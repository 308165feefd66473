"""A checkpoint store with two writers, without room, with damaged files, or that may only be read."""

import errno
import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from neardup.errors import StateError
from streams.state.checkpoint_manifest import Manifest
from streams.state.checkpoint_restore import restore_newest
from streams.state.checkpoint_store import CheckpointStore


def manifest(offset: int) -> Manifest:
    return Manifest(offset, 1_000 + offset, "scheme", "decider", "log", "0.1.0")


def image(path: Path, **files: bytes) -> Path:
    """A state directory to be copied; `index/CURRENT` and so on are not looked into by the store."""
    shutil.rmtree(path, ignore_errors=True)
    (path / "index").mkdir(parents=True)
    (path / "decider.json").write_bytes(b"{}")
    for name, data in files.items():
        (path / "index" / name).write_bytes(data)
    return path


def contents(path: Path) -> dict[str, bytes]:
    return {file.relative_to(path).as_posix(): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def restored(url: str, path: Path) -> tuple[int, dict[str, bytes]] | None:
    """Offset and files of the newest good checkpoint."""
    path.mkdir()
    found = restore_newest(CheckpointStore(url), path, lambda manifest: "")
    return None if found is None else (found.manifest.offset, contents(path))


class Paused(CheckpointStore):
    """Calls `around` before each of its operations on the store, with its number, name and path. now_s: its clock."""

    def __init__(self, url: str) -> None:
        self.now_s = 0.0
        super().__init__(url, lambda: self.now_s)
        self.operations = 0
        self.around: Callable[[int, str, str], None] = lambda number, name, path: None
        real, root = self._connection()

        class Watched:
            def __getattr__(_, name: str) -> Any:
                found = getattr(real, name)
                if name not in ("ls", "cat_file", "rm_file", "open"):
                    return found

                def operation(path: str, *given: Any, **how: Any) -> Any:
                    self.operations += 1
                    self.around(self.operations, name, path)
                    return found(path, *given, **how)

                return operation

        self._connected = Watched(), root


def test_a_slow_writer_removes_nothing_of_its_successor(tmp_path: Path) -> None:
    """The successor writes a whole checkpoint at each moment of the slow writer's prune.

    It began with a restored index: its checkpoint shares a file with the oldest one, which the slow writer removes.
    """
    number, moments = 0, 0
    while True:
        number += 1
        url = str(tmp_path / str(number))
        slow, successor = Paused(url), CheckpointStore(url)
        for offset, files in ((1, {"a": b"shared"}), (2, {"b": b"second"}), (3, {"c": b"third"})):
            slow.write(image(tmp_path / "image", **files), manifest(offset))
        newest = image(tmp_path / "newest", a=b"shared", d=b"its own")
        wrote: list[str] = []

        def meanwhile(
            now: int,
            name: str,
            path: str,
            at: int = number,
            slow: Paused = slow,
            successor: CheckpointStore = successor,
            newest: Path = newest,
            wrote: list[str] = wrote,
        ) -> None:
            if now == at:
                slow.now_s += 60.0
                successor.write(newest, manifest(4))
                wrote.append(f"{name} {path.removeprefix(slow.url)}")

        slow.operations = 0
        slow.around = meanwhile
        slow.prune(1)
        if not wrote:
            break
        removed_then = wrote[0].startswith("rm_file /files/")  # by manifests read before that: see the docstring
        moments += not removed_then
        if removed_then:
            successor.write(newest, manifest(5))
        assert restored(url, tmp_path / f"{number}-restored") == (4 + removed_then, contents(newest)), wrote
    assert moments > 4


@pytest.mark.parametrize("shared", [True, False])
def test_a_prune_in_the_midst_of_a_copy_damages_nothing(tmp_path: Path, shared: bool) -> None:
    """Another writer prunes before each operation of a copy, and takes what no manifest names yet."""
    number = 0
    while True:
        number += 1
        url = str(tmp_path / str(number))
        slow, writer = CheckpointStore(url), Paused(url)
        for offset in (1, 2):
            slow.write(image(tmp_path / "image", a=b"shared", b=b"%d" % offset), manifest(offset))
        slow.write(image(tmp_path / "image", c=b"third"), manifest(3))
        newest = image(tmp_path / "newest", a=b"shared" if shared else b"own", d=b"its own")
        wanted = contents(newest)

        def meanwhile(now: int, name: str, path: str, at: int = number, slow: CheckpointStore = slow) -> None:
            if now == at:
                slow.prune(1)

        writer.operations = 0
        writer.around = meanwhile
        writer.write(newest, manifest(4))
        assert restored(url, tmp_path / f"{number}-restored") == (4, wanted), f"operation {number}"
        if writer.operations < number:
            break
    assert number > 5


def test_a_prune_between_a_copy_and_its_name_costs_another_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, pruned, rename = str(tmp_path / "kept"), [], Path.rename

    def prune_before(path: Path, target: Path) -> Path:
        if path.suffix == ".part" and path not in pruned and len(pruned) < 2:
            pruned.append(path)
            CheckpointStore(url).prune(1)
        return rename(path, target)

    newest = image(tmp_path / "image", a=b"a", b=b"b")
    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", prune_before)
        CheckpointStore(url).write(newest, manifest(1))
    assert len(pruned) == 2
    assert restored(url, tmp_path / "restored") == (1, contents(newest))
    assert not list(Path(url).rglob("*.part"))


def test_a_restore_that_is_slower_than_prunes_takes_a_newer_one(tmp_path: Path) -> None:
    """With each other file that it copies the writer makes a checkpoint, and removes the others."""
    url = str(tmp_path / "kept")
    writer, reader = CheckpointStore(url), Paused(url)
    tables = {f"{number:06d}.sst": b"%d" % number * 100 for number in range(6)}
    made, opened = [1], [0]

    def write(offset: int) -> Path:
        return image(tmp_path / "image", **tables, CURRENT=b"%d" % offset)

    def goes_on(now: int, name: str, path: str) -> None:
        opened[0] += name == "open"
        if name == "open" and opened[0] % 2 and made[0] < 20:
            made[0] += 1
            writer.write(write(made[0]), manifest(made[0]))
            writer.prune(1)

    writer.write(write(1), manifest(1))
    (tmp_path / "fresh").mkdir()
    reader.around = goes_on
    reported: list[str] = []
    found = restore_newest(reader, tmp_path / "fresh", lambda manifest: "", reported.append)
    assert found is not None
    assert 1 < found.manifest.offset <= made[0] < 20, "what it has copied is not copied again"
    assert contents(tmp_path / "fresh") == contents(write(found.manifest.offset))
    assert "lacks its file" in reported[0]


class Small(CheckpointStore):
    """A store with room for so many bytes."""

    room = 10_000

    def _store(self, target: str, source: BinaryIO) -> None:
        taken = sum(file.stat().st_size for file in Path(self.url).rglob("*") if file.is_file())
        data = source.read()
        source.seek(0)
        if taken + len(data) > self.room:
            raise OSError(errno.ENOSPC, "No space left on device", target)
        super()._store(target, source)


def test_a_full_store_gives_up_its_oldest_checkpoints(tmp_path: Path) -> None:
    store = Small(str(tmp_path / "kept"))
    for offset in range(1, 8):
        store.write(image(tmp_path / "image", a=b"%d" % offset * 3_000), manifest(offset))
        offsets = [one.manifest.offset for one in store.usable()]
        assert offsets == list(range(offset, 0, -1))[: len(offsets)]
        assert len(offsets) >= min(offset, 2)
    last = contents(image(tmp_path / "image", a=b"7" * 3_000))
    assert restored(store.url, tmp_path / "restored") == (7, last)


def test_a_checkpoint_that_never_fits_leaves_the_newest_and_the_room(tmp_path: Path) -> None:
    store = Small(str(tmp_path / "kept"))
    for offset in (1, 2):
        store.write(image(tmp_path / "image", a=b"%d" % offset * 3_000), manifest(offset))
    with pytest.raises(StateError, match=r"No space left on device; make room, .* nothing is lost"):
        store.write(image(tmp_path / "image", b=b"b" * 4_000, c=b"c" * 4_000), manifest(3))
    assert [one.manifest.offset for one in store.usable()] == [2]
    held = {file.name for file in Path(store.url, "files").iterdir()}
    assert held == {file.digest for one in store.usable() for file in one.manifest.files}
    store.room = 20_000  # as its operator is asked to
    store.write(image(tmp_path / "image", b=b"b" * 4_000, c=b"c" * 4_000), manifest(3))
    assert [one.manifest.offset for one in store.usable()] == [3, 2]


def flip(file: Path, draw: random.Random) -> None:
    data = bytearray(file.read_bytes())
    if data:
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        file.write_bytes(data)


def cut(file: Path, draw: random.Random) -> None:
    data = file.read_bytes()
    file.write_bytes(data[: draw.randrange(len(data) + 1)])


def lose(file: Path, draw: random.Random) -> None:
    file.unlink()


def half_copied(file: Path, draw: random.Random) -> None:
    """What a store shows of a copy that is not there yet: its room, without its bytes."""
    data = file.read_bytes()
    kept = draw.randrange(len(data) + 1)
    file.write_bytes(data[:kept] + bytes(len(data) - kept))


@pytest.mark.seeds(60, 500)
def test_the_newest_good_one_is_restored_or_none(tmp_path: Path, seed: int) -> None:
    """Random copies of an index that changes, prunes, and damage; what is good is known without the store's code."""
    draw = random.Random(seed)
    url = str(tmp_path / "kept")
    store = CheckpointStore(url)
    files = {"CURRENT": b"0"}
    wanted: dict[int, dict[str, bytes]] = {}
    for offset in range(1, draw.randrange(2, 7)):
        files["CURRENT"] = b"%d" % offset
        files[f"{offset:06d}.sst"] = draw.randbytes(draw.choice([0, 1, 100, 5_000]))
        if draw.random() < 0.3:
            del files[draw.choice([name for name in files if name != "CURRENT"])]
        folder = image(tmp_path / "image", **files)
        store.write(folder, manifest(offset))
        wanted[offset] = contents(folder)
        if draw.random() < 0.3:
            store.prune(draw.randrange(1, 4))
    before = contents(tmp_path / "kept")
    for _ in range(draw.choice([0, 1, 1, 2, 5])):
        stored = sorted(file for file in Path(url).rglob("*") if file.is_file())
        if not stored:
            break
        draw.choice([flip, cut, lose, half_copied])(draw.choice(stored), draw)
    after = contents(tmp_path / "kept")
    good = list(good_offsets(before, after))
    found = restored(url, tmp_path / "restored")
    assert found == ((good[0], wanted[good[0]]) if good else None)
    # What is damaged is copied again: the next checkpoint is good.
    folder = image(tmp_path / "image", **files)
    CheckpointStore(url).write(folder, manifest(100))
    assert restored(url, tmp_path / "again") == (100, contents(folder))


def good_offsets(before: dict[str, bytes], after: dict[str, bytes]) -> Iterator[int]:
    """Newest first, those whose manifest and files are as they were written."""
    for name in sorted((name for name in before if name.startswith("checkpoints/")), reverse=True):
        same = {other for other in before if after.get(other) == before[other]}
        named = [f"files/{digest}" for digest in digests_in(before[name])]
        if name in same and all(each in same for each in named):
            yield int(name.removeprefix("checkpoints/").partition("-")[0])


def digests_in(data: bytes) -> list[str]:
    return [part.partition(b'"')[0].decode() for part in data.split(b'"digest":"')[1:]]


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users may enter."""
    folder = Path(tempfile.mkdtemp(prefix="neardup-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="an owner may change what is read-only; becomes another user")
def test_a_store_that_may_only_be_read(open_folder: Path) -> None:
    """It is restored from; nothing is written, and the error says what to do."""
    url = str(open_folder / "kept")
    store = CheckpointStore(url)
    first = image(open_folder / "first", a=b"first")
    store.write(first, manifest(1))
    store.write(image(open_folder / "second", a=b"second", b=b"more"), manifest(2))
    newest = CheckpointStore(url).read(store.names()[0])
    flip(Path(url, "files", newest.manifest.files[-1].digest), random.Random(1))
    (open_folder / "mine").mkdir()
    (open_folder / "mine").chmod(0o777)
    held = contents(Path(url))
    os.seteuid(65534)
    try:
        with pytest.raises(StateError, match=r"cannot write checkpoints at .*: Permission denied; mend that"):
            store.write(first, manifest(3))
        with pytest.raises(StateError, match=r"cannot tidy checkpoints at .*: Permission denied; mend that"):
            store.prune(1)
        assert restored(url, open_folder / "mine" / "restored") == (1, contents(first))
    finally:
        os.seteuid(0)
    assert contents(Path(url)) == held
