"""Records that are checked together are those that are checked one by one."""

import random

import pytest

from neardup.errors import CorruptRecord
from neardup.sketch.header import Header, headers_of_valid
from neardup.sketch.layout import HEADER, RecordKind
from tests.neardup.handmade import record

RECORDS = [
    record("http://a.org/", "one two three " * 9, title="one", canonical="http://a.org/b", offset=4),
    record("http://b.org/x", body=b"image"),
    record("http://b.org/gone", kind=RecordKind.TOMBSTONE),
    record("", kind=RecordKind.REJECTED, reason="no page"),
]


def is_valid(one: bytes) -> bool:
    try:
        return not Header(one).problem()
    except (ValueError, CorruptRecord):
        return False


def test_valid_records_have_their_headers() -> None:
    headers = headers_of_valid(RECORDS)
    assert headers is not None
    assert headers.tobytes() == b"".join(one[: HEADER.itemsize] for one in RECORDS)
    assert len(headers_of_valid([])) == 0


@pytest.mark.parametrize("seed", range(4))
def test_one_bad_record_is_found_among_others(seed: int) -> None:
    rng = random.Random(seed)
    found = {True: 0, False: 0}
    for _ in range(400):
        made = bytearray(rng.choice(RECORDS))
        for _ in range(rng.choice([1, 1, 3])):
            made[rng.randrange(len(made))] = rng.choice([0, 1, 2, 3, 0x7F, 0x80, 0xFF, rng.randrange(256)])
        other = bytes(made[: rng.choice([len(made), len(made), len(made) - 1, HEADER.itemsize - 1])])
        records = [*RECORDS, other]
        rng.shuffle(records)
        assert (headers_of_valid(records) is not None) is is_valid(other), other.hex()
        found[is_valid(other)] += 1
    assert min(found.values()) > 20
