"""What a page prints of its own URL is left out of its tape, and nothing else."""

import re
from random import Random

import pytest

from neardup.page import Page
from neardup.pairs.scoring import compare
from neardup.scheme import Scheme
from neardup.sketch.make_sketches import sketch_pages
from neardup.sketch.sketch_record import Sketch

pytestmark = [pytest.mark.kernel, pytest.mark.filterwarnings("ignore:overflow")]

NOW, BEFORE = Scheme(seed=20060806), Scheme(seed=20060806, own_url_words_max=0)
MOST = NOW.own_url_words_max


def sketch(text: str, url: str, scheme: Scheme = NOW) -> Sketch:
    return Sketch(sketch_pages([Page(url, text.encode(), "text/plain")], scheme)[0])


def without(text: str, url: str) -> str:
    """The text with spaces where it prints the URL, of its first MOST words, by regular expressions."""
    path, _, query = url.partition("://")[2].partition("/")[2].lower().partition("?")
    printed = "/" + path.rstrip("/")
    if len(printed) < 4:
        return text
    more = "/?+" if path.endswith("/") else ""
    asked = rf"(?:\?{re.escape(query)})?+" if query else ""
    found = rf"(?=({re.escape(printed)}{more}{asked})(?![0-9a-z?&=\-_%+~#@]|[./:][0-9a-z]))"
    spans = [match.span(1) for match in re.finditer(found, text.lower())]
    words = [match.span() for start, end in spans for match in re.compile("[0-9A-Za-z]+").finditer(text, start, end)]
    for start, end in words[:MOST]:
        text = text[:start] + " " * (end - start) + text[end:]
    return text


@pytest.mark.parametrize(
    ("url", "text", "printed"),
    [
        ("http://a.org/red-chair", "No page /red-chair here", True),
        ("http://a.org/Red-Chair", "See http://a.org/red-chair.", True),
        ("http://a.org/red-chair/", "No page /red-chair/: it went", True),
        ("http://a.org/red-chair?x=1", "No page /red-chair?x=1", True),
        ("http://a.org/red-chair?x=1", "No page /red-chair", True),
        ("http://a.org/red-chair?x=1", "No page /red-chair?x=2", False),
        ("http://a.org/red-chair", "No page /red-chair/leg", False),
        ("http://a.org/red-chair", "No page /red-chairs", False),
        ("http://a.org/red-chair", "No page /red-chair.html", False),
        ("http://a.org/red-chair", "A red chair, red-chair", False),
        ("http://a.org/red-chair", "No page /red", False),
        ("http://a.org/ab", "No page /ab", False),  # too short
        ("http://a.org/", "No page /", False),
        ("http://a.org/~ann/me", "No page /~ann/me", True),
    ],
)
def test_a_url_is_printed_with_its_slashes_and_no_more_behind_it(url: str, text: str, printed: bool) -> None:
    page = sketch(text, url)
    assert page.own_url is printed
    assert (page.tape == sketch(text, url, BEFORE).tape) is not printed
    assert page.tape == sketch(without(text, url), url, BEFORE).tape
    assert page.digest == sketch(text, url).digest
    assert not sketch(text, url, BEFORE).own_url


def test_tapes_agree_with_a_regular_expression() -> None:
    random = Random(3)
    pieces = ("/red-chair", "/red", "-chair", "?x=1", "/", ".", ":", " ", " ", "red", "Chair", "http://a.org", "\n")
    urls = ("http://a.org/red-chair", "http://a.org/Red-chair/?x=1", "http://a.org/red/chair", "http://a.org/red?x=1")
    seen = 0
    for _ in range(120):
        url, text = random.choice(urls), "".join(random.choices(pieces, k=random.randint(1, 14)))
        page, rest = sketch(text, url), without(text, url)
        assert page.tape == sketch(rest, url, BEFORE).tape, (url, text, rest)
        assert page.own_url is (rest != text)
        seen += page.own_url
    assert 10 < seen < 110


@pytest.mark.parametrize("words", [MOST, MOST + 1, 190])
def test_a_url_takes_no_more_words_out_than_an_address_has(words: int) -> None:
    url = "http://a.org/" + "-".join(f"w{i}" for i in range(words))
    text = f"Some text. See {url}. And some more."
    page = sketch(text, url)
    assert page.own_url
    assert len(sketch(text, url, BEFORE).tape) - len(page.tape) == MOST
    assert page.tape == sketch(without(text, url), url, BEFORE).tape


def test_a_url_printed_again_and_again_takes_out_no_more() -> None:
    url = "http://a.org/buy-now"
    assert len(sketch(f"words {url} " * 4, url).tape) == len(sketch(f"words {url} " * 4, url, BEFORE).tape) - 8
    again = f"words {url} " * 40 + "".join(f"w{i} " for i in range(100))
    assert sketch(again, url).tape == sketch(without(again, url), url, BEFORE).tape


def test_spam_in_a_printed_url_counts() -> None:
    text = " ".join(f"w{i}" for i in range(100))
    url = "http://spam.example/" + "-".join(f"spam{i}" for i in range(190))
    pair = compare(sketch(text, "http://a.org/page"), sketch(f"{text} {url}", url))
    assert pair.tape_score < 0.5


def test_a_url_begun_again_and_again_is_looked_for_only_so_often() -> None:
    url = f"http://a.org/{'a/' * 40}b"
    assert not sketch("/a" * 299 + "/b", url).own_url
    assert sketch("/a" * 40 + "/b", url).own_url


def test_two_error_pages_are_one_but_for_their_urls() -> None:
    def missing(name: str) -> Sketch:
        return sketch(f"Not found. The requested URL /{name} was not found on this server.", f"http://a.org/{name}")

    pair = compare(missing("red-chair"), missing("old/table-with-legs"))
    assert (pair.tape_score, pair.gaps, pair.own_urls, pair.tape_level) == (1.0, 0, True, 0)
