"""Rows of the index that are damaged: the walk refuses them by an error, and reads nothing beyond them."""

import pytest

from neardup.errors import CorruptRecord
from neardup.fold import fold
from neardup.index.column_families import Family
from neardup.index.memory import MemoryStore
from neardup.index.rows import id_key
from neardup.sketch.layout import HEADER, field_at
from tests.neardup.handmade import record
from tests.neardup.story import SMALL, endless, folded

pytestmark = pytest.mark.kernel

WORDS = [f"word{i}" for i in range(40)]
A, B, C = (f"http://{name}.org/" for name in "abc")


def index() -> MemoryStore:
    """A page, 1, and one with its words, 2, whose sketch has no part that the two share."""
    _, store = folded([record(url, " ".join(WORDS), title="t") for url in (A, B)], endless(2))
    rows = dict(store.scan(Family.SKETCHES))
    assert [rows[id_key(page)][0] for page in (1, 2)] == [1, 2]
    return store


def judge_with(store: MemoryStore, key: bytes, row: bytes) -> None:
    """Judges a near-duplicate, and other content of the second page, over an index with another row."""
    store.write({Family.SKETCHES: {key: row}})
    edited = " ".join([*WORDS[:38], "x", "y"])
    fold([(3, record(C, edited, title="t")), (4, record(B, edited, title="t", at=9))], store, SMALL)


def changed(row: bytes, field: str, by: int) -> bytes:
    """The row of a whole record with a number of its header changed."""
    at, width = 1 + field_at(field), HEADER[field].itemsize
    number = int.from_bytes(row[at : at + width], "little") + by
    return row[:at] + (number % 256**width).to_bytes(width, "little") + row[at + width :]


def test_rows_that_are_not_damaged_are_judged() -> None:
    store = index()
    judge_with(store, id_key(1), dict(store.scan(Family.SKETCHES))[id_key(1)])


@pytest.mark.parametrize("field", ["version", "size", "tape_bytes", "content_bytes", "bloom_bytes", "url_bytes"])
@pytest.mark.parametrize("by", [-1, 1, 200])
def test_a_whole_sketch_whose_header_is_damaged_is_refused(field: str, by: int) -> None:
    store = index()
    row = dict(store.scan(Family.SKETCHES))[id_key(1)]
    with pytest.raises(CorruptRecord):
        judge_with(store, id_key(1), changed(row, field, by))


@pytest.mark.parametrize("page", [1, 2])
@pytest.mark.parametrize("kept", [1, 8, 9, 60, 300, -1])
def test_a_sketch_that_is_cut_is_refused(page: int, kept: int) -> None:
    store = index()
    row = dict(store.scan(Family.SKETCHES))[id_key(page)]
    with pytest.raises(CorruptRecord):
        judge_with(store, id_key(page), row[:kept])


@pytest.mark.parametrize("page", [1, 2])
def test_a_sketch_with_bytes_behind_it_is_refused(page: int) -> None:
    store = index()
    row = dict(store.scan(Family.SKETCHES))[id_key(page)]
    with pytest.raises(CorruptRecord):
        judge_with(store, id_key(page), row + bytes(5))
