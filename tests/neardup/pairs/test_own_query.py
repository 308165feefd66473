"""Pages that differ in the words of their own queries alone."""

from random import Random

import pytest

from neardup import Page, Scheme, Sketch, compare, sketch_pages
from tests.measure.gate.language import Language

SCHEME = Scheme(seed=3)
LANGUAGE = Language(4, 3000)
FRAME = LANGUAGE.text(Random(1), 120)


def search(query: str, words: str, more: str = "", path: str = "search") -> Page:
    """A page without results. query: as the URL has it; words: as the page prints it."""
    html = f"<title>Results for '{words}' - Shop</title><h1>Results for {words}</h1><p>{FRAME}</p>"
    html += f"<p>We found nothing for {words}, sorry. {more}</p><p>{FRAME[:200]}</p>"
    return Page(f"https://shop.example/{path}?lang=en&q={query}", html.encode())


def holds(a: Page, b: Page) -> bool:
    one, other = (Sketch(record, SCHEME) for record in sketch_pages([a, b], SCHEME))
    assert compare(one, other).own_query == compare(other, one).own_query
    return compare(one, other).own_query


KETTLE = search("copper+kettle", "Copper kettle")


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("blue+lantern", "blue lantern"),
        ("a%20blue%20lantern", "blue lantern"),
        ("lantern", "lantern"),
        ("copper+lantern", "Copper lantern"),
        ("gr%C3%BCne+m%C3%BCtze", "grüne mütze"),
    ],
)
def test_searches_without_results_differ_in_their_own_query(query: str, words: str) -> None:
    assert holds(KETTLE, search(query, words))


@pytest.mark.parametrize(
    ("query", "words", "more"),
    [
        ("blue+lantern", "blue lantern", "But one lantern is there."),
        ("blue+lantern", "blue lantern", "Price 12."),
        ("17", "blue lantern", ""),  # the title is not of the query
        ("blue+lanterns", "blue lantern", ""),
        ("item+17", "item 17", ""),  # a number may be that of a record
        ("copper+kettle&page=2", "Copper kettle", ""),  # equal titles
    ],
)
def test_other_pages_differ_in_more(query: str, words: str, more: str) -> None:
    assert not holds(KETTLE, search(query, words, more))


def test_words_stand_for_each_other_wherever_they_stand() -> None:
    shop = search("blue+lantern", "blue lantern")
    for heading in ("h1", "p"):
        other = shop.body.replace(f"<{heading}>".encode(), f"<{heading}>Red chairs. ".encode(), 1)
        assert not holds(KETTLE, Page(shop.url, other))
    assert not holds(KETTLE, Page(shop.url, shop.body.replace(b"for blue lantern, sorry", b"for green carpet, sorry")))


def test_pages_of_other_paths_and_sites_do_not_count() -> None:
    assert not holds(KETTLE, search("blue+lantern", "blue lantern", path="find"))
    lantern = search("blue+lantern", "blue lantern")
    assert not holds(KETTLE, Page(lantern.url.replace("shop.", "store."), lantern.body))


def test_hostile_queries_are_bounded() -> None:
    for query in ("%", "%4", "a" * 3000, "a+" * 1000, ""):
        assert not holds(KETTLE, search(query, "a " * 500))
