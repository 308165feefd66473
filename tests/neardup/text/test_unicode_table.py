"""The table of code points against Python's Unicode data. No kernel is called."""

import unicodedata
from importlib.resources import files

import numpy as np
import pytest
import xxhash

from neardup.text import unicode
from tests import whole
from tests.neardup.text import unicode_table
from tests.oracle import text as oracle


def test_the_licence_of_the_data_lies_beside_it():
    text = files(unicode).joinpath("LICENSE.txt").read_text(encoding="utf-8")
    assert "UNICODE LICENSE V3" in text
    assert "14.0.0" in text


@pytest.mark.slow
@pytest.mark.skipif(unicodedata.unidata_version != oracle.PINNED, reason="Python has another Unicode version")
def test_every_code_point_has_the_pinned_class_and_fold():
    table = unicode.table()
    names = ["", "word", "han", "kana", "thai", "lao", "khmer", "myanmar"]
    assigned = (*range(0x33000), *range(0xE0000, 0xE1000))  # between, and beyond, few are assigned
    for point in range(unicode.CODE_POINTS) if whole.chosen() else (*assigned, *range(0x33000, 0x110000, 16)):
        entry = int(table[int(table[point >> 7]) + (point & 127)])
        char, value, kind = chr(point), entry & 0x1FFFFF, entry >> unicode.CLASS_SHIFT & 15
        expected = "" if point < 32 else oracle.folded(char)
        if kind == unicode.IGNORED:
            assert oracle.ignored(char), hex(point)
        elif kind == unicode.FOLD:
            assert list(expected.encode()) == table[value + 1 : value + 1 + table[value]].tolist(), hex(point)
        else:
            assert point < 32 or not oracle.ignored(char), hex(point)
            assert len(expected) == 1 or point < 32, hex(point)
            assert names[kind] == oracle.char_class(expected or " "), hex(point)
        if names[kind : kind + 1] > [""]:
            assert chr(value) == expected, hex(point)
            assert entry >> unicode.DIGIT_BIT & 1 == (unicodedata.category(expected) == "Nd"), hex(point)


def test_a_fold_is_folded_and_at_most_twice_as_long():
    table = unicode.table()
    points = np.arange(unicode.CODE_POINTS)
    entries = table[table[points >> 7] + (points & 127)]
    values, kinds = entries & 0x1FFFFF, entries >> unicode.CLASS_SHIFT & 15
    folded = points[(kinds == unicode.FOLD) | ((kinds > 0) & (kinds < unicode.FOLD) & (values != points))]
    assert folded.size > 5000
    for point in folded.tolist():
        value = int(values[point])
        whole = chr(value)
        if kinds[point] == unicode.FOLD:
            whole = bytes(table[value + 1 : value + 1 + table[value]].tolist()).decode()
        assert all(char == " " or values[ord(char)] == ord(char) for char in whole), hex(point)
        assert all(kinds[ord(char)] < unicode.FOLD for char in whole), hex(point)
        assert len(whole.encode()) <= 2 * len(chr(point).encode()), hex(point)


@pytest.mark.slow
@pytest.mark.skipif(unicodedata.unidata_version != oracle.PINNED, reason="Python has another Unicode version")
# The golden digest below pins the table.
@pytest.mark.whole
def test_unicode_table_equals_the_output_of_its_generator():
    assert unicode_table.TABLE.read_text("ascii") == "\n".join(unicode_table.lines()) + "\n"


def test_table_golden():
    """Pins the table where Python has other data."""
    assert xxhash.xxh64_hexdigest(unicode.table().tobytes()) == "fb295e815fcb0270"
