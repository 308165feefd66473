"""Hashes in kernels against the oracle, Python's own hash, and the xxhash package; and the masks of windows."""

import subprocess
import sys

import numpy as np
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup.kernels import bits as bits_module
from neardup.kernels import windows as windows_module
from neardup.kernels.fingerprint import KEY_WORDS, fingerprint, siphash
from neardup.kernels.spans import hash_spans
from neardup.kernels.xxh64 import xxh64_twice
from tests.neardup.hostile import EXAMPLES
from tests.neardup.kernels.called import called
from tests.oracle import sketches as oracle

pytestmark = [pytest.mark.kernel, pytest.mark.filterwarnings("ignore:overflow")]

U64 = np.uint64
bits, windows = called(bits_module), called(windows_module)
words = st.one_of(st.sampled_from([0, 1, 2**63, 2**64 - 1]), st.integers(0, 2**64 - 1))
keys = st.lists(words, min_size=KEY_WORDS, max_size=KEY_WORDS)
GOLDEN = [
    *("0xca143668e22bb1c4", "0x1eb740020ec393e1", "0xe08c78c487ce8ed3", "0x401096826eab5595", "0x85facc33b4d66ed1"),
    *("0x596ee52ba0028894", "0x792a99c9b8eca3e"),
]


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.binary(max_size=300) | st.binary(max_size=20), st.integers(0, 9), keys)
def test_any_bytes_at_any_offset(data, offset, key):
    array = np.frombuffer(b"#" * offset + data, np.uint8).copy()
    assert int(fingerprint(array, offset, array.size, np.array(key, U64))) == oracle.fingerprint(data, key)


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(st.binary(max_size=20), max_size=20), st.integers(0, 20), keys)
def test_spans_of_a_text_ignore_later_bytes(parts, room, key):
    text = np.frombuffer(b"".join(parts) + b"#" * room, np.uint8).copy()
    ends = np.cumsum([len(part) for part in parts], dtype=np.uint32) if parts else np.zeros(0, np.uint32)
    starts = ends - np.array([len(part) for part in parts], np.uint32)
    out = np.zeros(len(parts), np.uint64)
    hash_spans(text, starts, ends, len(parts), np.array(key, U64), out)
    assert out.tolist() == [oracle.fingerprint(part, key) for part in parts]


_PYTHONS = """
import sys
assert sys.hash_info.algorithm == "siphash13" and sys.hash_info.cutoff == 0
print(*[hash(bytes(range(size))) % 2**64 for size in range(1, 70)])
"""


def test_siphash_is_the_one_that_python_hashes_bytes_with():
    """Without a seed its key is zero; Python says -2 for -1."""
    asked = {"PYTHONHASHSEED": "0", "PATH": ""}
    found = subprocess.run([sys.executable, "-c", _PYTHONS], env=asked, capture_output=True, text=True, timeout=60)
    data = np.arange(80, dtype=np.uint8)
    for size, expected in enumerate(map(int, found.stdout.split()), 1):
        assert int(siphash(data, 0, size, U64(0), U64(0))) == oracle.siphash(bytes(range(size)), 0, 0) == expected


def test_golden():
    """Persisted in sketches: these values never change."""
    key = np.array([oracle.splitmix(i) for i in range(KEY_WORDS)], U64)
    array = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz", np.uint8).copy()
    assert [hex(fingerprint(array, 0, size, key)) for size in (0, 1, 3, 8, 15, 16, 26)] == GOLDEN


def test_words_and_masks_of_a_window():
    array = np.frombuffer(b"<A&z 9>='\"\x03\x04\x01\xc3/" + b"-" * 70, np.uint8).copy()
    target = np.zeros(80, np.uint8)
    windows.copy_text(array, 0, target, 5)
    assert target[5:20].tobytes() == b"<A&z 9>='\"\x7f\x7f\x7f\xc3/"
    white = np.frombuffer(b"\t\n\x0b\f\r\0\x08\x0e\x1f\x7f" + b"-" * 54, np.uint8).copy()
    windows.copy_text(white, 0, target, 0)
    assert target[:11].tobytes() == b"     \x7f\x7f\x7f\x7f\x7f-", "white space, and other control characters"
    name_end, greater, double, single, equals, letters = (int(mask) for mask in windows.tag_masks(array, 0))
    assert (name_end, greater, double, single, equals, letters) == (0x4050, 0x40, 0x200, 0x100, 0x80, 0xA)
    assert int(windows.markup_mask(array, 0)) == 5
    assert [int(windows.name_length(array, at)) for at in (0, 5, 15)] == [4, 1, 16]
    assert int(windows.find_byte(array, 1, np.uint8(ord("9")))) == 16
    windows.lower_case(array, 0)
    assert array[1] == ord("a")
    words, digits, breaks, borders, terms, high = (int(mask) for mask in windows.word_masks(array, 0))
    assert (words, digits, breaks, borders, terms, high) == (0x2A, 0x20, 0x400, 0x800, 0x1000, 0x2000)
    windows.flag_bytes(target, U64(2), U64(0b1011), U64(0b10), U64(1 << 63))
    assert target[2:66].tolist() == [2, 6, 0, 2, *[0] * 59, 8]
    assert int(bits.odd_up_to(U64(0b100010))) == 0b011110
    bits.put_quad(array, 3, 0x12345678)
    assert int(bits.quad_at(array, 3)) == 0x12345678
    assert [int(bits.below(n)) for n in (0, 1, 63, 64, 99)] == [0, 1, 2**63 - 1, 2**64 - 1, 2**64 - 1]
    counts = [bits.trailing_zeros(U64(0)), bits.leading_zeros(U64(0)), bits.ones(U64(0xFF))]
    assert [int(count) for count in counts] == [64, 64, 8]


_CANARY = """
import numpy as np, sys
from neardup.kernels import bits, kernel, lean_kernel, windows
from neardup.kernels.entities import put_point
from tests.neardup.kernels.called import called

bits, windows = called(bits), called(windows)

@kernel
def plain(array, index):
    return array[index]

@lean_kernel
def lean(array, index):
    return array[index]

small = np.zeros(40, np.uint8)
reads = [
    lambda: plain(small, 40), lambda: lean(small, 40), lambda: bits.word_at(small, 33),
    lambda: windows.find_byte(small, 0, np.uint8(1)), lambda: windows.tag_masks(small, -1),
    lambda: windows.word_masks(small, 0), lambda: windows.copy_text(np.zeros(64, np.uint8), 0, small, 0),
    lambda: windows.flag_bytes(small, *[np.uint64(1)] * 4),
    lambda: windows.lower_case(small, 0), lambda: bits.quad_at(small, 37), lambda: windows.name_length(small, 30),
    lambda: put_point(small, 38, 0xFFFD),
]
for number, read in enumerate(reads):
    try:
        read()
    except IndexError:
        continue
    sys.exit(f"read {number} was not caught")
"""


@pytest.mark.slow
def test_canary_bounds_checks_really_check(tmp_path):
    """A suite under NUMBA_BOUNDSCHECK proves something only if reading out of bounds raises there."""
    environment = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": ":".join(sys.path)}
    script = tmp_path / "canary.py"
    script.write_text(_CANARY)
    result = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("n", [*range(10), 63, 64])
def test_two_seeds_at_once(n):
    words = np.arange(n, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    found = xxh64_twice(words, n, np.uint64(5), np.uint64(2**64 - 1), np.empty(n, np.uint64))
    assert [int(h) for h in found] == [xxhash.xxh64_intdigest(words.tobytes(), seed) for seed in (5, 2**64 - 1)]
