"""What pages call themselves: title, heading and end of the URL, from bytes to pairs; how many go by one name."""

import pytest

from neardup import open_index
from neardup.decider import Decider
from neardup.errors import CorruptRecord
from neardup.fold import fold
from neardup.index import naming_rows
from neardup.index.memory import MemoryStore
from neardup.page import Page
from neardup.pairs.pair import Pair
from neardup.pairs.scoring import compare
from neardup.rules.siblings import COUNT_MAX, NO_SIBLINGS, Siblings
from neardup.scheme import Scheme
from neardup.sketch.header import Header
from neardup.sketch.layout import NameFlag
from neardup.sketch.make_sketches import sketch_pages
from neardup.sketch.sketch_record import Sketch
from neardup.verdict import Kind
from tests.neardup.invariants import Checked
from tests.neardup.story import in_any_slices
from tests.oracle.fold.naming import with_one
from tests.oracle.sketches import without_sessions

SCHEME = Scheme(seed=11)
HERE = "http://www.shop.example/p/chair.html"
TEXT = " ".join(f"Text{chr(97 + i)} of the page and so on." for i in range(20))


def sketch(html: str, url: str = HERE) -> Sketch:
    return Sketch(sketch_pages([Page(url, html.encode(), "text/html")], SCHEME)[0])


def flags(html: str) -> list[int]:
    """Of the names of title and heading; the words of the path are the same each time."""
    found = (int(name.flags & ~NameFlag.IN_PATH) for name in sketch(html).title_names)
    return [one for one in found if one & (NameFlag.IN_TITLE | NameFlag.IN_HEADING)]


TITLE, HEADING, BOTH = NameFlag.IN_TITLE, NameFlag.IN_HEADING, NameFlag.IN_TITLE | NameFlag.IN_HEADING
DIGITS = NameFlag.ALL_DIGITS | NameFlag.ANY_DIGIT


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<title>Red</title><p>Text", [TITLE]),
        ("<title>Red red 7</title><h1>Red chair</h1><p>Text", [BOTH, TITLE | DIGITS, HEADING]),
        ("<h1>Red</h1><h1>chair</h1>", [HEADING]),  # the first
        ("<h1> <!-- --> </h1><h1>Red chair</h1>", [HEADING, HEADING]),  # that has any text
        ("<h2>Blue</h2><h1>Red chair</h1>", [HEADING, HEADING]),  # an h1 before any h2
        ("<h2>Red chair</h2><h2>Blue</h2>", [HEADING, HEADING]),
        ("<h2>Red<h2>chair seat</h2>", [HEADING, HEADING]),  # from the last that opened
        ("<h1>Red", []),  # never closed
        ("<h3>Red</h3>", []),
        ("<template><h1>Red</h1></template><h1>chair</h1>", [HEADING]),
        ("<h1><img src=/logo.gif></h1><p>Text", []),  # an image names nothing
        ("<h1 class='a>b'>R<b>ed</b></h1>", [HEADING]),
    ],
)
def test_names_of_title_and_heading(html: str, expected: list[int]) -> None:
    assert flags(html) == expected


def test_of_title_and_heading_the_first_24_names_count() -> None:
    words = " ".join(f"w{chr(97 + i)}" for i in range(26))
    assert flags(f"<title>{words}</title><h1>{words.upper()} x y z</h1>").count(BOTH) == 24
    assert len(flags(f"<title>{words}</title><h1>{words.replace('w', 'v')}</h1>")) == 48


def test_a_naming_is_the_words_in_their_order() -> None:
    def naming(title: str, heading: str = "") -> int:
        return sketch(f"<title>{title}</title><h1>{heading}</h1><p>{TEXT}").naming

    assert naming("Red chair 7") == naming("red, chair (8)")
    assert naming("Red chair", "chair") == naming("Red chair")
    assert len({naming("Red chair"), naming("chair Red"), naming("Red"), naming("Red", "seat"), naming("7x")}) == 5
    nameless = sketch(f"<p>{TEXT}")
    assert naming("", "") == nameless.naming == nameless.head  # its first words name it


@pytest.mark.parametrize(
    ("a", "b", "same_tail", "same_place"),
    [
        ("/3.4/api/Foo.html", "/3.5/api/Foo.html", True, True),
        ("/p/chair", "/p/table", False, False),
        ("/p/chair", "/p/chair?ref=1", False, True),
        ("/p/chair", "/p/chair/", True, True),
        ("/show?id=1", "/show?id=2", False, True),
        ("/item/17", "/item/18", False, False),
        ("/item/17", "/other/17", False, False),  # a number counts with what stands before it
        ("/17/index.html", "/18/index.html", False, False),
        ("/3/17/index.html", "/4/17/index.html", True, True),
        ("/", "/", True, True),
    ],
)
def test_ends_of_urls(a: str, b: str, same_tail: bool, same_place: bool) -> None:
    page = f"<title>Chair</title><p>{TEXT}"
    pair = compare(sketch(page, f"http://a.example{a}"), sketch(page, f"http://a.example{b}"))
    assert (pair.same_tail, pair.same_place) == (same_tail, same_place)
    elsewhere = compare(sketch(page, f"http://a.example{a}"), sketch(page, f"http://b.example{b}"))
    same_tail = same_tail and a != "/"  # what stands before a root is the host
    assert (elsewhere.same_tail, elsewhere.same_place, elsewhere.same_naming) == (same_tail, False, True)


SESSION = "0123456789abcdef"


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        (f"/p?sid={SESSION}", f"/p?sid={SESSION[::-1]}", True),
        (f"/p?sid={SESSION}", "/p", True),
        (f"/p?x=1&PHPSESSID={SESSION}", "/p?x=1", True),
        (f"/p?PHPSESSID={SESSION}&x=1", "/p?x=1", True),
        (f"/p?osCsid={SESSION}&x=1", "/p?x=2", False),
        (f"/p?x=1&sessionToken={SESSION}&y=2&sid={SESSION}", f"/p?sid={SESSION}&x=1&y=2", True),
        (f"/p?u={SESSION}", "/p", False),
        (f"/p?sid={SESSION[1:]}", "/p", False),  # of 15 characters
        ("/p?sid=abcdefghijklmnopq", "/p", False),  # without a digit
        (f"/p?sid={SESSION}.8", "/p", False),
        ("/p?sid", "/p", False),
        ("/p?sid=17", "/p?sid=18", False),
        (f"/p;jsessionid={SESSION}", "/p", True),
        (f"/p;jsessionid={SESSION}?x=1", f"/p;jsessionid={SESSION[::-1]}?x=1", True),
        ("/p", "/p", True),
        (f"/q?sid={SESSION}", "/p", False),
        ("/p?utm_source=news&utm_medium=mail", "/p?utm_source=feed", True),
        ("/p?UTM_Campaign=a+b&x=1", "/p?x=1&gclid=Q-_x", True),
        ("/p?fbclid=1&x=1", "/p?fbclid=1&x=2", False),
        ("/p?msclkid=7", "/p", True),
        ("/p?mscl=7&lkid=1", "/p", False),
        ("/p?utm=7", "/p", False),
        ("/p?utm_=7", "/p", False),
        ("/p?clid=7", "/p", False),
        ("/p?utm_source", "/p", False),
        ("/p?sid=0123456789abcdefg#!/red", "/p#!/red", True),
        ("/p?gclid=x#/red", "/p?x=1&gclid=y#/red", False),
        ("/#/red?utm_source=x", "/#/red", True),
        ("/p?sid=0123456789abcdefg#!/red", "/p#!/blue", False),
    ],
)
def test_urls_that_differ_in_a_session_or_a_campaign(a: str, b: str, same: bool) -> None:
    page = f"<title>Chair</title><p>{TEXT}"
    pages = sketch(page, f"http://a.example{a}"), sketch(page, f"http://a.example{b}")
    for one, other in (pages, pages[::-1]):
        assert compare(one, other).same_but_sessions is same
    assert [without_sessions(pages[0].url) == without_sessions(pages[1].url)] == [same]


def pair_of(a: str, b: str) -> Pair:
    """Of titles, or of titles and headings with `/` between."""

    def page(names: str) -> Sketch:
        title, _, heading = names.partition("/")
        return sketch(f"<title>{title}</title><h1>{heading}</h1><p>{TEXT}")

    pair = compare(page(a), page(b))
    other = compare(page(b), page(a))
    fields = ("same_title", "same_words", "same_naming", "heading_veto")
    assert [getattr(pair, name) for name in fields] == [getattr(other, name) for name in fields]
    return pair


@pytest.mark.parametrize(
    ("a", "b", "same_title", "same_words"),
    [
        ("Red chair", "red  CHAIR", True, True),
        ("Red chair", "chair Red", False, True),
        ("operator*", "operator+", False, True),
        ("mask_cmp_mask", "cmp_mask", False, True),
        ("March 2024", "March 2025", False, True),
        ("March 2024", "March", False, True),
        ("Red chair", "Red", False, False),
        ("Red chair", "", False, False),
        ("", "", True, True),
    ],
)
def test_titles_of_one_site(a: str, b: str, same_title: bool, same_words: bool) -> None:
    pair = pair_of(a, b)
    assert (pair.same_title, pair.same_words) == (same_title, same_words)


@pytest.mark.parametrize(
    ("a", "b", "veto"),
    [
        ("Shop/Red chair", "Shop/Red chair", 0),
        ("Shop/Red chair", "Shop/Red table", 1),
        ("Shop/Red chair", "Shop/Red", 0),  # one alone has a word of its own
        ("Shop/Red chair", "Shop", 0),
        ("Shop/March 2024", "Shop/March 2025", 2),
        ("Shop/March 2024", "Shop/May 2025", 1),
        ("Shop/March 2024", "Shop/March lamb", 2),
        ("Red chair/Red chair", "Red chair/Shop", 0),  # the heading's words stand in the other's title
        ("Red chair/Shop", "Blue chair/Shop", 0),
    ],
)
def test_headings_of_one_site(a: str, b: str, veto: int) -> None:
    assert pair_of(a, b).heading_veto == veto


def test_a_stamp_is_one_gap_without_loose_words() -> None:
    def page(stamp: str, item: str = "A chair of red wood with four legs") -> Sketch:
        return sketch(f"<title>Chair</title><p>{item}<p>{TEXT}<p>{stamp}<p>{TEXT}")

    here = page("It is now Monday, 7 March 2005 10:15:00.")
    later = compare(here, page("It is now Friday, 8 April 2005 11:16:01."))
    assert (later.gaps, later.loose_words) == (1, 0)
    assert 4 <= later.gap_digits <= 6
    item = compare(here, page("It is now Monday, 7 March 2005 10:15:00.", "Some table from another kind of tree"))
    assert (item.gaps, item.gap_digits, item.loose_words) == (1, 0, 9)  # and the title, next to it
    both = compare(here, page("Served by web12.", "Some table from another kind of tree"))
    assert both.gaps == 2
    assert both.loose_words == 9


def test_moved_paragraphs_are_loose() -> None:
    first, second = (" ".join(f"{word}{chr(97 + i)}" for i in range(25)) for word in ("left", "right"))
    moved = compare(sketch(f"<p>{first}<p>{second}"), sketch(f"<p>{second}<p>{first}"))
    assert moved.gaps == 0
    assert moved.loose_words == 25


def test_rows_count_pages_by_fields_of_the_first() -> None:
    def header(title: str, path: str) -> Header:
        return Header(sketch(f"<title>{title}</title><p>{TEXT}", f"http://a.example/{path}").record)

    first = header("March 2024", "a?x=1")
    row = with_one(NO_SIBLINGS, first)
    assert row == Siblings(0, 1, 0, 0, first.tail, first.titling, first.place)
    row = with_one(with_one(row, header("March 2024", "a?x=1")), header("March 2025", "a?x=2"))
    assert row[:4] == (1, 2, 1, 0)
    for i in range(4):
        row = with_one(row, header(f"March {i}", f"b{'c' * i}"))
    assert row[:4] == (5, 2, 5, 4)
    assert naming_rows.decode(naming_rows.encode(row)) == row
    for _ in range(300):
        row = with_one(row, first)
    assert (row.others + row.alike, row.others) == (COUNT_MAX, 5)
    assert naming_rows.decode(naming_rows.encode(row)) == row


@pytest.mark.parametrize("row", [b"", b"\x02" + bytes(28), bytes(29), naming_rows.encode(NO_SIBLINGS)[:-1]])
def test_damaged_rows_are_refused(row: bytes) -> None:
    with pytest.raises(CorruptRecord, match="set it aside"):
        naming_rows.decode(row)


def test_keys_are_site_and_naming() -> None:
    def key(title: str, url: str) -> bytes:
        return naming_rows.key_of(Header(sketch(f"<title>{title}</title><p>{TEXT}", url).record))

    keys = {key(title, url) for title in ("Red", "Blue") for url in (HERE, HERE + "?2", "http://other.example/")}
    assert len(keys) == 4
    assert {len(key) for key in keys} == {17}


def records_of_one_name() -> list[tuple[int, bytes]]:
    """60 pages under one title, of which eight words in the middle differ; every fourth comes again with a stamp."""
    pages = []
    for i in range(45):
        item = " ".join(f"item{chr(97 + i % 26)}{chr(97 + i // 26)}{chr(97 + k)}" for k in range(12))
        for stamp in ("", "Page generated in 0.123 seconds.")[: 1 + (i % 3 == 0)]:
            html = f"<title>Shop</title><h1>Shop</h1><p>{TEXT}<p>{item}<p>{TEXT}<p>{stamp}"
            pages.append(Page(f"http://shop.example/item/{i}?{len(stamp)}", html.encode(), "text/html"))
    return list(enumerate(sketch_pages(pages, SCHEME)))


def test_of_many_pages_of_one_name_only_the_first_two_may_be_taken_for_each_other() -> None:
    batch = records_of_one_name()
    kinds: dict[str, list[str]] = {}
    for rule in ("verified", "tape"):
        outcome = fold(batch, MemoryStore(), Decider(SCHEME.digest, rule=rule))
        kinds[rule] = [verdict.verdict for verdict in outcome.verdicts]
    assert kinds["tape"].count(Kind.UNIQUE) == 1
    assert kinds["verified"].count(Kind.NEAR_DUPLICATE) == 15  # the repeats


def test_slicing_changes_no_counts_of_names() -> None:
    records, decider = [record for _, record in records_of_one_name()], Decider(SCHEME.digest)
    _, store = in_any_slices(records, 1, decider=decider)
    counted = Checked(store, decider).namings
    assert [(row.others, row.alike) for row in counted.values()] == [(59, 1)]


def test_pages_without_names_may_differ_in_figures() -> None:
    """Texts of archives and feeds have no titles: there order decides, though all that differs has digits in it."""
    words = [f"w{i * i % 1009}" for i in range(350)]
    # On one site pages of the same first words are of one name.
    for hosts, first in ((("a", "b"), 27), (("a", "a"), 27), (("a", "a"), 7)):
        other = [f"x{i}" if i % 40 == first else word for i, word in enumerate(words)]
        pages = [
            Page(f"http://{host}.example/{i}", " ".join(text).encode(), "text/plain")
            for i, (host, text) in enumerate(zip(hosts, (words, other), strict=True))
        ]
        with open_index(scheme=Scheme(seed=7)) as index:  # with one seed of 80 no key of theirs is equal
            assert index.add(pages)[1].verdict == "near_duplicate"


#: Where one user's page lies, where it is repeated, and where another user has a page of the same name.
USERS = {
    "hosts": ("https://ann.tumblr.com/a", "https://ann.tumblr.com/b", "https://bob.tumblr.com/z"),
    "hosts, www": ("https://ann.substack.com/a", "https://www.ann.substack.com/b", "https://bob.substack.com/z"),
    "users": ("https://medium.com/@ann/a", "https://medium.com/@ann/b", "https://medium.com/@bob/z"),
    "folders": ("https://forum.test/users/ann/a", "https://forum.test/users/ann/b", "https://forum.test/users/bob/z"),
    "homes": ("http://www.uni.example/~ann/a", "http://uni.example/~ann/b", "http://uni.example/~bob/z"),
}


@pytest.mark.parametrize("urls", USERS.values(), ids=USERS)
@pytest.mark.parametrize("seed", range(3))
def test_no_user_of_a_site_keeps_another_ones_repeats_apart(urls: tuple[str, str, str], seed: int) -> None:
    own, again, other = urls
    words = [f"w{(17 + seed) * i % 401}" for i in range(300)]

    def page(url: str, text: list[str]) -> Page:
        return Page(url, f"<title>My photos</title><p>{' '.join(text)}".encode(), "text/html")

    def output(*pages: Page) -> Kind:
        with open_index(scheme=SCHEME) as index:
            return index.add(pages)[-1].verdict

    repeat = page(again, [*words[:150], "changed", *words[151:]])
    assert output(page(own, words), repeat) is Kind.NEAR_DUPLICATE
    others = [page(f"{other}{i}", [f"v{i}x{j}" for j in range(300)]) for i in range(3)]
    assert output(*others, page(own, words), repeat) is Kind.NEAR_DUPLICATE
    siblings = [page(f"{own}/{i}", [f"v{i}x{j}" for j in range(300)]) for i in range(3)]
    assert output(*siblings, page(own, words), repeat) is Kind.UNIQUE, "her own pages of this name do"
