"""Copies that look the same in a browser are exact duplicates."""

from random import Random

import pytest

from neardup import Page, Scheme, open_index
from neardup.sketch.make_sketches import sketch_pages
from neardup.sketch.sketch import Sketch
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


def test_a_heading_is_found_behind_text_that_grows():
    """`naming` is made of title and heading: the heading's tokens must be found where the text has moved."""
    long = "<p>" + "½ น้ำ Ⱥ " * 50
    heads = ["<h1>green tables</h1>", "<h1>wooden chairs</h1>"]
    pages = [of("a", f"<title>shop</title>{before}{head}<p>text") for before in ("", long) for head in heads]
    green, wooden, grown_green, grown_wooden = (Sketch(record).naming for record in sketch_pages(pages, SCHEME))
    assert green != wooden
    assert (green, wooden) == (grown_green, grown_wooden)
