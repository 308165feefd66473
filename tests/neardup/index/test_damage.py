"""An index with flipped bits, torn or missing files: its rows are as they were, or an error says that it is damaged."""

import random
import shutil
from pathlib import Path

import pytest

from neardup.errors import StateError
from neardup.index.column_families import Family
from neardup.index.rocks import RocksStore

_ROWS = 400

Rows = list[list[tuple[bytes, bytes]]]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of several tables, closed."""
    path, draw = tmp_path_factory.mktemp("sound") / "index", random.Random(1)
    store = RocksStore(path)
    for part in range(3):
        numbers = range(part * _ROWS, (part + 1) * _ROWS)
        sketches = {b"%08d" % number: draw.randbytes(60) for number in numbers}
        store.write({Family.SKETCHES: sketches, Family.MEMBERS: dict(sketches), Family.META: {b"part": b"%d" % part}})
        store.flush()
    store.close()
    return path


def scanned(store: RocksStore) -> Rows:
    return [list(store.scan(family)) for family in Family]


def by_keys(store: RocksStore, wanted: Rows) -> Rows:
    found = []
    for family, rows in zip(Family, wanted, strict=True):
        values = store.get_many(family, [key for key, _ in rows])
        found.append([(key, value or b"missing") for (key, _), value in zip(rows, values, strict=True)])
    return found


def by_prefixes(store: RocksStore, wanted: Rows) -> Rows:
    found = []
    for family, rows in zip(Family, wanted, strict=True):
        prefixes = sorted({key[:6] for key, _ in rows})
        found.append([pair for prefix in prefixes for pair in store.first(family, prefix, 1_000)])
    return found


def damage(index: Path, draw: random.Random) -> str:
    """Flips a bit of a file, cuts it or removes it; what was done."""
    file = draw.choice(sorted(file for file in index.iterdir() if file.stat().st_size))
    how, data = draw.choice(["flip", "flip", "cut", "lose"]), bytearray(file.read_bytes())
    if how == "lose":
        file.unlink()
    elif how == "cut":
        file.write_bytes(data[: draw.randrange(len(data))])
    else:
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        file.write_bytes(data)
    return f"{how} {file.name}"


@pytest.mark.seeds(15, 300)
def test_no_row_is_ever_wrong_or_missing(sound: Path, tmp_path: Path, seed: int) -> None:
    store = RocksStore(sound)
    wanted = scanned(store)
    store.close()
    assert len(wanted[Family.SKETCHES]) == 3 * _ROWS
    index = tmp_path / "index"
    shutil.copytree(sound, index)
    done = damage(index, random.Random(seed))
    for read in (scanned, lambda store: by_keys(store, wanted), lambda store: by_prefixes(store, wanted)):
        text, found = "", wanted
        try:
            store = RocksStore(index)
            try:
                found = read(store)
            finally:
                store.close()
        except StateError as error:
            text = str(error)
        assert found == wanted, done
        assert not text or "it is damaged, or not of this version; set it aside" in text, done
