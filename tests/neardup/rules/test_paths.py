"""Words and numbers of paths that tell pages apart, and pages of equal words that are two by their signs or case."""

from collections.abc import Sequence

import pytest

from neardup import open_index
from neardup.decider import Decider
from neardup.page import Page
from neardup.pairs.pair import Pair
from neardup.pairs.scoring import compare
from neardup.scheme import Scheme
from neardup.sketch.make_sketches import sketch_pages
from neardup.sketch.sketch_record import Sketch
from neardup.verdict import Kind

SCHEME = Scheme(seed=20060806)
TEXT = " ".join(f"word{chr(97 + i % 26)}{chr(97 + i // 26)}" for i in range(52))


def pair(a: str, b: str, text_a: str = "red wine", text_b: str = "blue sea") -> Pair:
    """Of two pages by their URLs and a few words of their texts."""
    pages = [
        Page(f"http://{url}", f"<p>{TEXT} {text}".encode(), "text/html") for url, text in ((a, text_a), (b, text_b))
    ]
    one, other = (Sketch(record) for record in sketch_pages(pages, SCHEME))
    assert compare(other, one)[-5:] == compare(one, other)[-5:]
    return compare(one, other)


#: Two paths, and which of them say what their pages say.
PATHS = [
    ("x.example/red/impl.html", "x.example/blue/impl.html", 1),
    ("x.example/const.Red_x.html", "x.example/%62LUE", 1),
    ("x.example/red_op/impl.html", "x.example/op/impl.html", 1),
    ("x.example/red/impl.html", "x.example/impl.html", 3),  # one alone has a word of its own, and it is deeper
    ("x.example/red/impl.html", "x.example/op5/impl.html", 2),  # another machine's edition
    ("x.example/red/impl.html", "x.example/green/impl.html", 2),  # which its page does not say
    ("x.example/green/impl.html", "x.example/impl.html", 3),
    ("x.example/red/blue", "x.example/blue/red", 0),
    ("x.example/red5", "x.example/blue6", 0),
    ("x.example/a?q=red", "x.example/a?q=blue", 0),  # queries are no paths
    ("x.example/", "x.example/", 0),
    ("x.example/red", "y.example/blue", 0),
    ("red.example/red", "red.example/blue", 2),  # a host names no page
    ("x.example/red/" + "a/b/" * 30, "x.example/blue/" + "a/b/" * 30, 0),  # too far from the end to be compared
]


@pytest.mark.kernel
@pytest.mark.parametrize(("a", "b", "found"), PATHS)
def test_paths_that_repeat_their_titles(a: str, b: str, found: int) -> None:
    assert pair(a, b).path_veto == found
    # Whether the other page has the word, too, is nothing to it: menus have all of them.
    assert pair(a, b, "red wine, blue sea", "blue sea, red wine").path_veto == found


@pytest.mark.parametrize(("a", "b", "found"), PATHS)
def test_paths_of_long_pages_say_the_same(a: str, b: str, found: int) -> None:
    many = " ".join(f"word{i}" for i in range(4000))
    assert pair(a, b, many + " red", many + " blue").path_veto == found


@pytest.mark.kernel
@pytest.mark.parametrize(
    ("a", "b", "found"),
    [
        ("x.example/owners/10/pets/new", "x.example/owners/7/pets/new", True),
        ("x.example/owners/B00X5TQ1Z8/new", "x.example/owners/B07FZ8S74R/new", True),
        ("x.example/owners/B00X5TQ1Z8/new", "x.example/owners/7/new", True),
        ("x.example/p/6f9619ff-8b86-4011-b42d-00c04fc964ff", "x.example/p/0b9a7a4e-52d1-4f6e-9a70-1f2e3d4c5b6a", True),
        ("x.example/owners/b7fz8s7/new", "x.example/owners/a0x5tq1/new", False),  # hardly longer than v1beta1
        ("x.example/postgresql15/new", "x.example/postgresql16/new", False),
        ("x.example/15-rc2/new", "x.example/16-rc1/new", False),
        ("x.example/owners/10/pets/12", "x.example/owners/10/pets/7?edit=1", True),
        ("x.example/10", "x.example/7", True),
        ("x.example/owners/10/pets/new", "x.example/owners/10/pets/new", False),
        ("x.example/owners/10/pets/new", "x.example/owners/pets/new", False),
        ("x.example/owners/10/pets/new", "x.example/owners/10/7/pets/new", False),
        ("x.example/owners/10/pets/new", "x.example/owners/7/pets/old", False),
        ("x.example/docs/3.1/index", "x.example/docs/3.2/index", False),  # a release
        ("x.example/15/guide/app.html", "x.example/16/guide/app.html", False),  # likewise: a file names its page
        ("x.example/15/app.html", "x.example/16/app.html", 2),  # a release, or a record
        ("x.example/15/3/app.html", "x.example/16/3/app.html", 2),
        ("x.example/a.b/15/app", "x.example/a.b/16/app", True),
        ("x.example/amd64/index", "x.example/arm64/index", False),
        ("x.example/pets?id=10", "x.example/pets?id=7", False),
        ("x.example/owners/10/pets/", "x.example/owners/7/pets", False),
        ("x.example/owners/10/pets", "y.example/owners/7/pets", False),
    ],
)
def test_paths_that_differ_in_numbers_alone(a: str, b: str, found: int) -> None:
    form = "<title>Clinic</title><h1>New Animal</h1>"
    assert pair(a, b, form, form).records == found
    # What half of title and heading stand in is a name.
    named = "<title>Owners</title><h1>Pets</h1>"
    assert pair(a, b, named, named).records == (2 if found and "owners" in a else found)


@pytest.mark.kernel
@pytest.mark.parametrize(
    ("a", "b", "found"),
    [
        (("map_core/x", "Map core"), ("map/x", "Map"), 1),
        (("map_core/x", "Map core"), ("map/core", "Map"), 0),  # the other path has the word
        (("map/x", "Map core"), ("map/x", "Map"), 0),  # its path has not
        (("map5/x", "Map 5"), ("map/x", "Map"), 0),
        (("map_core/x", ""), ("map/x", "Map"), 0),
    ],
)
def test_a_word_of_title_and_path_that_the_other_page_has_in_no_name(
    a: tuple[str, str], b: tuple[str, str], found: int
) -> None:
    urls = [f"x.example/{path}" for path, _ in (a, b)]
    texts = [f"<title>{title}</title>" if title else "" for _, title in (a, b)]
    assert pair(*urls, *texts).titles_apart == found == pair(*urls[::-1], *texts[::-1]).titles_apart


def verdicts(pages: Sequence[tuple[str, str]], **decider: bool) -> list[tuple[Kind, str]]:
    """Verdict and deciding step of pages of one site, by paths and titles; all have one text."""
    with open_index(scheme=SCHEME, decider=Decider(SCHEME.digest, **decider)) as index:
        emitted = index.add(
            [
                Page(f"http://x.example/{path}", f"<title>{title}</title><p>{TEXT}".encode(), "text/html")
                for path, title in pages
            ]
        )
    return [(Kind(verdict.verdict), str(verdict.evidence.get("by", ""))) for verdict in emitted]


def test_equal_words_under_titles_that_differ_in_signs_or_case_are_two_pages() -> None:
    signs = ("op_1.html", "operator*"), ("op_2.html", "operator+")
    case = ("eth.html", "KEY_Eth"), ("eth_small.html", "KEY_eth")
    for pages in (signs, case):
        assert verdicts(pages)[1][0] is Kind.UNIQUE
    same_end = ("1.0/op.html", "Operator"), ("1.1/op.html", "operator")
    assert verdicts(same_end)[1] == (Kind.NEAR_DUPLICATE, "tape")  # a release
    # A third page is the copy of the one whose title it has.
    third = verdicts([*signs, ("again/op_3.html", "operator+")])
    assert third[2] == (Kind.EXACT_DUPLICATE, "digest")


def test_equal_words_under_urls_that_differ_in_signs_are_two_pages() -> None:
    assert verdicts([("operator*.html", ""), ("operator%25.html", "")])[1][0] is not Kind.EXACT_DUPLICATE
    assert verdicts([("#/operator*", ""), ("#/operator%25", "")])[1][0] is not Kind.EXACT_DUPLICATE
    for other in ("a_b.html", "a.b.html", "c/a-b.html", "a-b.html?x=*", "c.html"):
        assert verdicts([("a-b.html", ""), (other, "")])[1] == (Kind.EXACT_DUPLICATE, "digest")
