"""The record's layout, and the constants of kernels, which import nothing above them, held to it."""

from itertools import accumulate, pairwise

import numpy as np
import pytest

from neardup.kernels import names, pairs, record
from neardup.page import Page
from neardup.pairs.pair import Pair
from neardup.sketch.header import Header
from neardup.sketch.layout import (
    HEADER,
    HEADER_WORDS,
    NAME,
    SECTION_LENGTHS,
    NameFlag,
    RecordFlag,
    RecordSection,
    field_at,
    section_starts,
)
from neardup.sketch.make_sketches import sketch_pages
from neardup.sketch.sketch_record import Sketch
from tests.neardup.sketch.sketch_inputs import SCHEME


def test_columns_of_the_pair_kernel_are_the_fields_of_a_pair():
    assert [getattr(pairs, field.upper()) for field in Pair._fields] == list(range(pairs.COLUMNS))


@pytest.mark.parametrize("flag", NameFlag)
def test_flags_of_names_are_the_layouts(flag):
    assert getattr(names, flag.name) == flag


def test_flags_of_records_are_the_layouts():
    assert list(RecordFlag) == [record.OPAQUE, record.TRUNCATED, record.OWN_URL, record.FORMS, record.SHELL]


def test_header_words_are_the_bytes_of_a_header():
    assert NAME.itemsize == names.NAME_BYTES
    assert {field_at(field) for field in pairs.FIELDS} <= set(range(HEADER.itemsize))
    assert [(name, at) for name, (_, at) in HEADER_WORDS.fields.items()] == [
        (name, at) for name, (_, at) in HEADER.fields.items()
    ]


def test_sections_follow_one_another_as_the_header_says():
    body = b"<title>A title</title><html lang=en><link rel=canonical href=/c>" + b"<p>some words of the text" * 30
    one, other = sketch_pages(
        [Page("http://a.example/x", body, "text/html"), Page("http://b.example/", b"plain words", "text/plain")], SCHEME
    )
    headers = np.frombuffer(one[: HEADER.itemsize] + other[: HEADER.itemsize], HEADER)
    lengths = [headers[length].astype(np.int64) for length in SECTION_LENGTHS]
    for row, found in enumerate((one, other)):
        mine = [int(length[row]) for length in lengths]
        units = [NAME.itemsize if "names" in length else 1 for length in SECTION_LENGTHS]
        expected = list(accumulate((n * unit for n, unit in zip(mine, units, strict=True)), initial=HEADER.itemsize))
        assert section_starts(mine) == Header(found).starts == expected
        assert [int(start[row]) for start in section_starts(lengths)] == expected
        assert expected[-1] == len(found)
    texts = [one[start:end] for start, end in pairwise(Header(one).starts)][RecordSection.URL :]
    assert texts == [b"http://a.example/x", b"a.example", b"A title", b"http://a.example/c", b"en", b""]


def test_article_is_the_last_section():
    text = b"<p>" + b" ".join(b"word%d" % i for i in range(120)) + b"</p>"
    for head in (b"<title>A title</title>", b"<base href=/d/><link rel=canonical href=c><html lang='en us'>"):
        (found,) = sketch_pages([Page("http://a.example/x", head + text, "text/html")], SCHEME)
        header, view = Header(found), Sketch(found)
        assert found[header.starts[RecordSection.ARTICLE] :] == bytes((120, 0, 0, 0, 0)) + view.article_tape
        assert (view.article_tokens, view.article_level, len(view.article_tape)) == (120, 0, 120)
        assert (header.problem(), header.reason, view.reason) == ("", "", "")
        broken = bytearray(found)
        broken[header.starts[RecordSection.ARTICLE] + 4] = 64
        assert "level 64" in Header(bytes(broken)).problem()
    assert view.canonical == "http://a.example/d/c"


def test_lengths_of_the_last_texts_may_be_left_out():
    lengths = [5, 4, 3, 2, 1, 60, 50, 40, 30, 20, 10]
    for known in range(5, len(lengths)):
        assert section_starts(lengths[:known]) == section_starts(lengths)[: known + 1]
