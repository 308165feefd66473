"""Copies that look the same in a browser are exact duplicates."""

import unicodedata
from random import Random

import pytest

from neardup import Page, Scheme, open_index
from neardup.sketch.make_sketches import sketch_pages
from neardup.sketch.sketch_record import Sketch
from tests.measure.gate.disguises import DISGUISES, disguised

PLAIN = (
    "<html><head><title>The office of flowers</title></head><body><h1>The office of flowers</h1>"
    + "".join(
        f"<p>Officials of the first florist number {i} affirm that the efficient baffling of stale flowers costs "
        f"{i * i} francs, &amp; difficult waffles {i}.</p>"
        for i in range(40)
    )
    + "</body></html>"
)
SCHEME = Scheme(seed=7)


def of(host: str, html: str) -> Page:
    return Page(f"https://{host}.example/flowers", html.encode(), "text/html; charset=utf-8")


@pytest.mark.parametrize("name", DISGUISES)
def test_a_disguised_mirror_is_an_exact_duplicate(name):
    copy = disguised(PLAIN, name, Random(name))
    assert copy != PLAIN
    with open_index(scheme=SCHEME) as index:
        verdicts = index.add([of("original", PLAIN), of("mirror", copy)])
    assert [verdict.verdict.value for verdict in verdicts] == ["unique", "exact_duplicate"]


@pytest.mark.parametrize("name", ["soft hyphens", "fullwidth letters", "ligatures"])
def test_a_disguised_title_is_the_same_title(name):
    title = PLAIN[PLAIN.index("<title>") + 7 : PLAIN.index("</title>")]
    copy = PLAIN.replace(title, disguised(f"<body>{title}", name, Random(name))[6:], 1)
    a, b = (Sketch(record) for record in sketch_pages([of("a", PLAIN), of("b", copy)], SCHEME))
    assert (a.titling, a.naming) == (b.titling, b.naming)
    assert b.title != a.title


FORMS = {
    "NFD": ("Tiếng Việt: phố cũ, été à Noël", unicodedata.normalize("NFD", "Tiếng Việt: phố cũ, été à Noël")),
    "jamo": ("한국어 텍스트", unicodedata.normalize("NFD", "한국어 텍스트")),
    "half-width kana": ("ガラスのパズル", "ｶﾞﾗｽのﾊﾟｽﾞﾙ"),
    "vowel marks": ("المدينة القديمة", "الـْمَدِينَةُ القَديمَة"),
    "Persian letters": ("كتاب جديد في إيران", "کتاب جدید فی ایران"),
    "points": ("שלום עולם", "שָׁלוֹם עוֹלָם"),
    "capitals": ("die straße, ὁ λόγος, ısı", "DIE STRASSE, Ὁ ΛΌΓΟΣ, ISI"),
    "digits": ("page 2024", "page ٢٠٢٤"),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_text_in_another_form_of_unicode_is_an_exact_duplicate(form):
    pages = [
        of(host, f"<title>{text}</title>" + "".join(f"<p>{text} {i} x{i}" for i in range(40)))
        for host, text in zip(("original", "mirror"), FORMS[form], strict=True)
    ]
    with open_index(scheme=SCHEME) as index:
        assert [one.verdict.value for one in index.add(pages)] == ["unique", "exact_duplicate"]
    a, b = (Sketch(record) for record in sketch_pages(pages, SCHEME))
    assert (a.titling, a.naming) == (b.titling, b.naming)


def test_a_heading_is_found_behind_text_that_grows():
    """`naming` is made of title and heading: the heading's tokens must be found where the text has moved."""
    long = "<p>" + "½ น้ำ Ⱥ " * 50
    heads = ["<h1>green tables</h1>", "<h1>wooden chairs</h1>"]
    pages = [of("a", f"<title>shop</title>{before}{head}<p>text") for before in ("", long) for head in heads]
    green, wooden, grown_green, grown_wooden = (Sketch(record).naming for record in sketch_pages(pages, SCHEME))
    assert green != wooden
    assert (green, wooden) == (grown_green, grown_wooden)
