"""Paths of URLs that say different things, and pages of equal words that are two by their signs or case."""

from collections.abc import Sequence

import pytest

from neardup.decider import Decider
from neardup.deduplicator import open_index
from neardup.page import Page
from neardup.pairs.scoring import compare
from neardup.scheme import Scheme
from neardup.sketch.making import sketch_pages
from neardup.sketch.view import Sketch
from neardup.verdict import Kind

SCHEME = Scheme(seed=20060806)
TEXT = " ".join(f"word{chr(97 + i % 26)}{chr(97 + i // 26)}" for i in range(120))


def apart(a: str, b: str) -> bool:
    pages = [Page(f"http://{url}", b"<p>" + TEXT.encode(), "text/html") for url in (a, b)]
    one, other = (Sketch(record) for record in sketch_pages(pages, SCHEME))
    assert compare(other, one).paths_apart == compare(one, other).paths_apart
    return compare(one, other).paths_apart


@pytest.mark.kernel
@pytest.mark.parametrize(
    ("a", "b", "is_apart"),
    [
        ("x.example/const.red.html", "x.example/const.blue.html", True),
        ("x.example/const.Red.html", "x.example/const.red.html", False),
        ("x.example/a/const.red.html", "x.example/const.red.html", False),  # one alone has a word of its own
        ("x.example/red/5", "x.example/red/6", False),
        ("x.example/red5", "x.example/blue6", False),
        ("x.example/%C3%A9t%C3%A9", "x.example/hiver", True),
        ("x.example/%C3%A9t%C3%A9", "x.example/%C3%A9t%C3%A9/1", False),
        ("x.example/a?q=red", "x.example/a?q=blue", False),  # queries are no paths
        ("x.example/red", "x.example/", False),
        ("x.example/", "x.example/", False),
        ("x.example/red", "y.example/blue", False),
        ("x.example/" + "red/" * 500 + "a", "x.example/" + "blue/" * 400 + "a", False),  # too long to be told
        ("x.example/" + "/".join(f"{chr(97 + i)}x" for i in range(26)) * 9, "x.example/bx/b", False),
    ],
)
def test_paths_that_each_have_a_word_of_their_own(a: str, b: str, is_apart: bool) -> None:
    assert apart(a, b) is is_apart


def verdicts(pages: Sequence[tuple[str, str]], **decider: bool) -> list[tuple[Kind, str]]:
    """Of pages of one site by their paths and titles, one text for all: verdict, and which step said so."""
    with open_index(scheme=SCHEME, decider=Decider(SCHEME.digest, **decider)) as index:
        told = index.add(
            [
                Page(f"http://x.example/{path}", f"<title>{title}</title><p>{TEXT}".encode(), "text/html")
                for path, title in pages
            ]
        )
    return [(Kind(verdict.verdict), str(verdict.evidence.get("by", ""))) for verdict in told]


def test_pages_of_equal_words_whose_titles_differ_in_signs_or_case_are_two() -> None:
    signs = ("op_1.html", "operator*"), ("op_2.html", "operator+")
    case = ("eth.html", "KEY_Eth"), ("eth_small.html", "KEY_eth")
    for pages in (signs, case):
        assert verdicts(pages)[1][0] is Kind.UNIQUE
        assert verdicts(pages, letters_veto=False)[1] == (Kind.EXACT_DUPLICATE, "digest")
    same_end = ("1.0/op.html", "Operator"), ("1.1/op.html", "operator")
    assert verdicts(same_end)[1] == (Kind.NEAR_DUPLICATE, "tape")  # a release
    # A third page is the copy of the one whose title it has.
    third = verdicts([*signs, ("again/op_3.html", "operator+")])
    assert third[2] == (Kind.EXACT_DUPLICATE, "digest")


def test_pages_of_equal_words_whose_urls_differ_in_signs_are_two() -> None:
    assert verdicts([("operator*.html", ""), ("operator%25.html", "")])[1][0] is not Kind.EXACT_DUPLICATE
    for other in ("a_b.html", "a.b.html", "c/a-b.html", "a-b.html?x=*", "c.html"):
        assert verdicts([("a-b.html", ""), (other, "")])[1] == (Kind.EXACT_DUPLICATE, "digest")
