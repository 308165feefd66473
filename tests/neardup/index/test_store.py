"""Both stores do the same, and the durable one keeps its promises when it is killed, locked, or out of room."""

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import rocksdict
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from neardup.errors import StateError
from neardup.index import rocks
from neardup.index.column_families import Family
from neardup.index.memory import MemoryStore
from neardup.index.rocks import RocksStore, _explained
from tests import whole

# Few letters and lengths: keys collide, and are prefixes of each other. Members need the room of a cluster's id.
KEYS = st.binary(max_size=3).map(lambda key: bytes(8) + key) | st.lists(
    st.sampled_from([b"\0", b"a", b"\xff"]), min_size=1, max_size=10
).map(b"".join)
CHANGES = st.dictionaries(
    st.sampled_from(Family), st.dictionaries(KEYS, st.none() | st.binary(max_size=5), max_size=6), max_size=3
)


class Stores(RuleBasedStateMachine):
    """A dictionary, the memory store and the RocksDB store, through the same changes."""

    @initialize()
    def make(self):
        self.directory = Path(tempfile.mkdtemp())
        self.model = {family: {} for family in Family}
        self.stores = [MemoryStore(), RocksStore(self.directory / "index")]

    @rule(changes=CHANGES)
    def write(self, changes):
        for family, rows in changes.items():
            for key, value in rows.items():
                if value is None:
                    self.model[family].pop(key, None)
                else:
                    self.model[family][key] = value
        for store in self.stores:
            store.write(changes)

    @rule(family=st.sampled_from(Family), keys=st.lists(KEYS, max_size=8))
    def get_many(self, family, keys):
        expected = [self.model[family].get(key) for key in keys]
        for store in self.stores:
            assert store.get_many(family, keys) == expected

    @rule(
        family=st.sampled_from(Family),
        prefix=KEYS | st.just(b"") | st.just(bytes(8)),
        limit=st.integers(0, 4),
        after=st.just(b"") | KEYS,
    )
    def first(self, family, prefix, limit, after):
        rows = sorted(self.model[family].items())
        expected = [(key, value) for key, value in rows if key.startswith(prefix) and (key > after or not after)]
        for store in self.stores:
            assert store.first(family, prefix, limit, after) == expected[:limit]

    @rule()
    def flush(self):
        for store in self.stores:
            store.flush()

    @rule()
    def reopen(self):
        self.stores[1].close()
        self.stores[1] = RocksStore(self.directory / "index")

    @rule()
    def checkpoint(self):
        copy = self.directory / "copy"
        self.stores[1].checkpoint(copy)
        other = RocksStore(copy)
        for family in Family:
            assert dict(other.scan(family)) == self.model[family]
        other.close()
        shutil.rmtree(copy)

    @invariant()
    def same(self):
        for store in getattr(self, "stores", ()):
            for family in Family:
                assert list(store.scan(family)) == sorted(self.model[family].items())

    def teardown(self):
        for store in getattr(self, "stores", ()):
            store.close()
        if hasattr(self, "directory"):
            shutil.rmtree(self.directory)


Stores.TestCase.settings = settings(max_examples=15, stateful_step_count=20, deadline=None)
TestStores = pytest.mark.slow(Stores.TestCase)


@pytest.fixture(params=["memory", "rocks"])
def store(request, tmp_path):
    made = MemoryStore() if request.param == "memory" else RocksStore(tmp_path / "index")
    yield made
    made.close()


def test_a_closed_store_says_so(store):
    store.write({Family.META: {b"a": b"1"}})
    store.close()
    store.close()
    with pytest.raises(StateError, match="closed; open it again"):
        store.get_many(Family.META, [b"a"])
    with pytest.raises(StateError, match="closed; open it again"):
        store.write({Family.META: {b"a": b"1"}})


def test_a_scan_may_be_written_into(store):
    store.write({Family.URLS: {b"%05d" % i: b"x" for i in range(5000)}})
    seen = []
    for key, _ in store.scan(Family.URLS):
        seen.append(key)
        store.write({Family.URLS: {key: None}})
    assert seen == [b"%05d" % i for i in range(5000)]
    assert list(store.scan(Family.URLS)) == []


KILLED = """
import os, signal, sys
from pathlib import Path
from neardup.index.column_families import Family
from neardup.index.rocks import RocksStore
store = RocksStore(Path(sys.argv[1]), write_bytes=1 << 20)
flushed = int(sys.argv[2])
for i in range(400):
    rows = {b"%d" % j: (b"%05d" % i) * 200 for j in range(20)}
    mark = {Family.META: {b"next": b"%05d" % i}}
    store.write({family: rows for family in Family if family is not Family.META} | mark)
    if i == flushed:
        store.flush()
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
@pytest.mark.parametrize("flushed", whole.first([399, 0], 1))
def test_rows_after_a_kill_are_of_one_moment(tmp_path, flushed):
    killed = subprocess.run([sys.executable, "-c", KILLED, tmp_path / "index", str(flushed)], check=False)
    assert killed.returncode == -signal.SIGKILL
    store = RocksStore(tmp_path / "index")
    (mark,) = store.get_many(Family.META, [b"next"])
    assert int(mark) >= flushed
    for family in Family:
        if family is not Family.META:
            assert {value for _, value in store.scan(family)} == {mark * 200}
    store.close()


def test_flush_alone_makes_every_family_durable(tmp_path):
    code = KILLED.replace("range(400)", "range(1)").replace("1 << 20", "64 << 20")
    subprocess.run([sys.executable, "-c", code, tmp_path / "index", "0"], check=False)
    store = RocksStore(tmp_path / "index")
    assert [store.get_many(family, [b"3"]) for family in Family if family is not Family.META] == [[b"00000" * 200]] * 5
    store.close()


def test_closing_makes_everything_durable_and_lets_go(tmp_path):
    store = RocksStore(tmp_path / "index")
    scan = store.scan(Family.KEYS)  # an unfinished iterator must not hold the lock
    store.write({Family.KEYS: {b"a": b"1", b"b": b"2"}})
    assert next(scan) == (b"a", b"1")
    store.close()
    again = RocksStore(tmp_path / "index")
    assert again.get_many(Family.KEYS, [b"a", b"b"]) == [b"1", b"2"]
    again.close()


@pytest.mark.parametrize("before", [True, False])
def test_an_index_of_levels_and_one_of_sorted_runs_are_opened_by_versions_of_the_other(tmp_path, monkeypatch, before):
    own, index, model = rocks._tune, tmp_path / "index", {}

    def levels(family, options, tables):
        own(family, options, tables)
        options.set_compaction_style(rocksdict.DBCompactionStyle.level())
        options.set_level_zero_file_num_compaction_trigger(4)

    for in_levels in (before, not before):
        monkeypatch.setattr(rocks, "_tune", levels if in_levels else own)
        store = RocksStore(index)
        assert dict(store.scan(Family.KEYS)) == model
        for flush in range(12):
            for i in range(100):
                key = ((i * 37 + flush * 11) % 900).to_bytes(8, "big")
                value = None if (i + flush) % 5 == 0 else bytes([in_levels, flush, i])
                store.write({Family.KEYS: {key: value}})
                model.pop(key, None)
                if value is not None:
                    model[key] = value
            store.flush()
        keys = sorted(model)
        assert store.get_many(Family.KEYS, keys) == [model[key] for key in keys]
        assert dict(store.scan(Family.KEYS)) == model
        store.close()


def test_filters_are_in_force_after_reopening(tmp_path):
    chance = random.Random(7)
    rows = {chance.randbytes(7): b"x" * 9 for _ in range(120_000)}
    for _ in range(2):
        store = RocksStore(tmp_path / "index")
        store.write({Family.KEYS: rows})
        store.flush()
        held = store._property(Family.KEYS, "rocksdb.estimate-table-readers-mem")
        assert held > len(rows), "10 bits a key"
        assert store.sizes()[Family.KEYS].file_bytes > len(rows) * 7
        assert store.pressure()[1] is False
        store.close()


def test_a_second_process_is_reported_that_the_index_is_in_use(tmp_path):
    store = RocksStore(tmp_path / "index")
    code = "import pathlib, sys, neardup.index.rocks as rocks; rocks.RocksStore(pathlib.Path(sys.argv[1]))"
    command = [sys.executable, "-c", code, tmp_path / "index"]
    other = subprocess.run(command, check=False, capture_output=True, text=True)
    assert "StateError" in other.stderr
    assert "another process uses it" in other.stderr
    with pytest.raises(StateError, match="another process uses it"):
        RocksStore(tmp_path / "index")
    store.close()


def test_foreign_directory_is_left_alone(tmp_path):
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(StateError, match="not a directory"):
            RocksStore(path)
    with pytest.raises(StateError, match="holds 'file' and no index"):
        RocksStore(tmp_path)
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("config", ["whole", "empty", "missing"])
def test_an_index_that_was_killed_while_it_was_made_is_made_again(tmp_path, config):
    path = tmp_path / "index"
    RocksStore(path).close()
    for file in path.iterdir():
        if file.name == "CURRENT" or file.suffix in (".sst", ".log"):
            file.unlink()
    (path / "000001.dbtmp").write_text("MANIFEST-000001\n")
    if config == "empty":
        (path / "rocksdict-config.json").write_text("")
    elif config == "missing":
        (path / "rocksdict-config.json").unlink()
    for held in (None, b"1"):
        store = RocksStore(path)
        assert store.get_many(Family.KEYS, [b"a"]) == [held]
        store.write({Family.KEYS: {b"a": b"1"}})
        store.close()
    (path / "CURRENT").unlink()  # with data, it is damaged
    with pytest.raises(StateError, match="sst' and no index"):
        RocksStore(path)


def test_a_damaged_index_is_reported(tmp_path):
    store = RocksStore(tmp_path / "index")
    store.write({Family.KEYS: {b"a": b"1"}})
    store.close()
    (tmp_path / "index" / "CURRENT").write_text("MANIFEST-999999\n")
    with pytest.raises(StateError, match="rebuilt from the log"):
        RocksStore(tmp_path / "index")


@pytest.mark.parametrize(
    ("expected", "advice"),
    [
        ("IO error: No space left on device: While appending to file: a/000010.sst", "make room"),
        ("Read-only file system (os error 30)", "cannot be written"),
        ("IO error: While lock file: a/LOCK: Resource temporarily unavailable", "another process uses it"),
        ("Corruption: block checksum mismatch", "rebuilt from the log"),
        ("IO error: While open a file for random read: a/000010.sst: Too many open files", "raise its limit"),
        ("something new", r"start again; if it fails again, it is damaged, .* rebuilt from the log \(something new\)"),
    ],
)
def test_errors_have_advice(tmp_path, expected, advice):
    with pytest.raises(StateError, match=advice), _explained("write", tmp_path):
        raise Exception(expected)  # as rocksdict does


FILLED = """
import random, sys
from pathlib import Path
from neardup.errors import StateError
from neardup.index.column_families import Family
from neardup.index.rocks import RocksStore
store = RocksStore(Path(sys.argv[1]) / "index", write_bytes=2 << 20)
chance = random.Random(1)
try:
    for i in range(200):
        rows = {b"%d" % (i * 500 + j): chance.randbytes(500) for j in range(500)}
        store.write({Family.KEYS: rows, Family.META: {b"next": b"%d" % (i + 1)}})
except StateError as error:
    print(error)
for _ in range(2):
    try:
        store.close()
    except StateError as error:
        print(error)
"""


STALLED = """
import os, random, sys
from pathlib import Path
from neardup.errors import StateError
from neardup.index.column_families import Family
from neardup.index.rocks import RocksStore

room = Path(sys.argv[1])
store = RocksStore(room / "index")
chance = random.Random(2)
for family in store._families.values():
    family.set_options({"disable_auto_compactions": "true"})
for i in range(24):
    rows = {chance.randbytes(8): chance.randbytes(500) for _ in range(400)}
    store.write({Family.KEYS: rows, Family.META: {b"next": b"%d" % i}})
    store.flush()
with (room / "all").open("wb", 0) as file:
    try:
        while True:
            file.write(bytes(4096))
    except OSError:
        pass
os.truncate(room / "all", (room / "all").stat().st_size - 1_000_000)
for family in store._families.values():
    try:
        family.set_options({"disable_auto_compactions": "false"})
    except Exception:
        pass  # set, and not kept: the disk is full
while not store._db.property_int_value("rocksdb.background-errors"):
    pass
for call in store.flush, store.close:
    try:
        call()
    except StateError as error:
        print(error)
"""


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 24 MB."""
    room = tmp_path / "room"
    room.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", room], check=False).returncode:
        pytest.skip("no mount here")
    yield room
    subprocess.run(["umount", "-l", room], check=True)


def output(script, room):
    return subprocess.run(
        [sys.executable, "-c", script, room], check=True, capture_output=True, text=True, timeout=120
    ).stdout


MOUNTS = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="mounts a small file system")


@pytest.mark.slow
@MOUNTS
def test_a_full_disk_ends_the_process_and_loses_no_half_of_a_write(small_disk):
    assert output(FILLED, small_disk).count("make room and start again") >= 2
    subprocess.run(["mount", "-o", "remount,size=64m", small_disk], check=True)  # opening writes files
    store = RocksStore(small_disk / "index")
    (mark,) = store.get_many(Family.META, [b"next"])
    assert sum(1 for _ in store.scan(Family.KEYS)) == 500 * int(mark)
    store._let_go()


@pytest.mark.slow
@MOUNTS
def test_no_flush_waits_for_compactions_that_a_full_disk_fails(small_disk):
    """Neither one that was asked for, nor that of a close; RocksDB by itself would wait without end."""
    assert output(STALLED, small_disk).count("make room and start again") == 2
