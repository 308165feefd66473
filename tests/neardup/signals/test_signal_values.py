"""The signals of Huffman 2007: every formula at its edges, and what each says of pages that are known."""

import gzip
import random
from math import log

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup.signals.idf import TOP_TERMS, Idf, tfidf_distance
from neardup.signals.result_pages import BODY_BYTES_MAX, PASSAGE_CHARACTERS, PASSAGES, Body, Result, snippet
from neardup.signals.table import (
    PIECE_BYTES,
    SETS,
    SIGNALS,
    body_length_distance,
    mcd,
    same_title,
    signals_of,
    simhash_distance,
)

NO_IDF = Idf()
WORDS = ["wool", "felt", "yarn", "loom", "warp", "weft", "spindle", "dye", "carding", "fleece", "shears", "bobbin"]


def noise(seed: int, size: int) -> bytes:
    return random.Random(seed).randbytes(size)


def text(seed: int, words: int) -> bytes:
    rng = random.Random(seed)
    return " ".join(f"{rng.choice(WORDS)}{rng.randrange(200)}" for _ in range(words)).encode()


def result(html: str, url: str = "https://a.example/1", rendered: str | None = None, query: str = "") -> Result:
    return Result(
        url,
        Body.of(html.encode(), "text/html"),
        None if rendered is None else Body.of(rendered.encode(), "text/html"),
        query,
    )


# MCD


def by_hand(a: bytes, b: bytes) -> float:
    """The formula, literally, for bodies that gzip sees whole."""
    both, one, other = (len(gzip.compress(x, 6)) for x in (a + b, a + a, b + b))
    return max(abs(both - one), abs(both - other)) / max(one, other)


@pytest.mark.parametrize("body", [b"", b"a", b"ab" * 50_000, noise(1, 200_000)])
def test_mcd_of_identical_bodies_is_nothing(body: bytes) -> None:
    assert mcd(body, bytes(body)) == 0.0


def test_mcd_of_small_bodies_is_the_formula() -> None:
    for seed in range(20):
        a, b = text(seed, 50 + 40 * seed), text(seed + 100, 80 + 10 * seed)
        assert max(len(a), len(b)) <= PIECE_BYTES
        assert mcd(a, b) == by_hand(a, b)
    assert mcd(b"", text(1, 200)) == by_hand(b"", text(1, 200))


def test_mcd_of_tiny_bodies_that_differ_may_be_nothing() -> None:
    assert mcd(b"a", b"b") < 0.1
    assert mcd(b"", b"a") < 0.2


@given(st.binary(max_size=400), st.binary(max_size=400))
@settings(max_examples=150, deadline=None)
def test_mcd_is_bounded_and_nearly_symmetric(a: bytes, b: bytes) -> None:
    one, other = mcd(a, b), mcd(b, a)
    assert 0 <= one <= 1.1
    assert abs(one - other) <= 0.1


@pytest.mark.parametrize("words", [20, 300, 3000, 20_000])
def test_asymmetry_is_small_at_every_length(words: int) -> None:
    for seed in range(4):
        a, b = text(seed, words), text(seed + 50, words + words // 3)
        assert abs(mcd(a, b) - mcd(b, a)) <= 0.02


def test_mcd_sees_past_gzips_window() -> None:
    """Plain gzip finds no difference between a long body's edit and a stranger: both lie out of its sight."""
    long, stranger = noise(2, 100_000), noise(3, 100_000)
    edited = long[:50_000] + b"x" * 40 + long[50_000:]
    assert by_hand(long, edited) == pytest.approx(by_hand(long, stranger), abs=0.01)
    assert mcd(long, edited) < 0.1
    assert mcd(long, stranger) > 0.9


def test_mcd_just_over_one_piece_is_no_leap() -> None:
    a, b = text(1, 2000), text(2, 2000)
    below = mcd(a[:PIECE_BYTES], b[:PIECE_BYTES])
    above = mcd(a[: PIECE_BYTES + 1], b[: PIECE_BYTES + 1])
    assert abs(below - above) < 0.05


# tf-idf


def test_ranked_lists_by_hand() -> None:
    assert tfidf_distance([], []) == 0.0
    assert tfidf_distance(["a"], []) == tfidf_distance([], ["a"]) == 1.0
    assert tfidf_distance(["a", "b"], ["a", "b"]) == 0.0
    assert tfidf_distance(["a", "b"], ["c", "d"]) == 1.0
    # La = a b c: 1 + 1/2 + 1/3; b moves to place 1 of Lb, a to place 2: 1/2 + 1/2
    assert tfidf_distance(["a", "b", "c"], ["b", "a"]) == pytest.approx(1 - 1 / (11 / 6))
    top = tfidf_distance(["a", "b", "c", "d"], ["b", "a", "c", "d"])
    assert top > tfidf_distance(["a", "b", "c", "d"], ["a", "b", "d", "c"])


@given(st.lists(st.sampled_from("abcdefg"), unique=True), st.lists(st.sampled_from("abcdefg"), unique=True))
def test_ranked_lists_are_bounded_and_symmetric_where_equally_long(a: list[str], b: list[str]) -> None:
    assert 0 <= tfidf_distance(a, b) <= 1
    if len(a) == len(b):
        assert tfidf_distance(a, b) == pytest.approx(tfidf_distance(b, a))


def test_top_terms_weigh_frequency_against_how_common_they_are() -> None:
    idf = Idf.of([["the", "wool"], ["the", "wool", "dye"], ["the"], ["the", "dye"]])
    assert idf.documents == 4
    assert idf.counts == {"the": 4, "dye": 2, "wool": 2}
    assert idf.weight("the") == 0.0
    assert idf.weight("dye") == log(2)
    assert idf.weight("unknown") == log(4)
    assert idf.top(["the", "the", "wool", "dye", "dye", "loom"]) == ["dye", "loom", "wool"]
    assert NO_IDF.top(["b", "a", "c", "c"]) == ["c", "a", "b"]
    assert len(NO_IDF.top([f"w{i}" for i in range(99)])) == TOP_TERMS
    assert Idf.from_json(idf.to_json(), "x") == idf


# length, title, domain, simhash


def test_length_title_and_simhash_at_their_edges() -> None:
    assert body_length_distance(0, 0) == 0.0
    assert body_length_distance(0, 7) == body_length_distance(7, 0) == 1.0
    assert body_length_distance(3, 4) == 0.25
    empty, letter, binary = Body(b""), Body(b"a"), Body.of(b"%PDF-1.4 \x00\x01", "application/pdf")
    assert same_title(empty, letter) == 1.0
    assert simhash_distance(empty, empty) == 0.0
    assert 0 < simhash_distance(empty, letter) < 1
    assert (binary.title, binary.text, list(binary.terms)) == ("", "", [])
    assert simhash_distance(binary, empty) == 0.0
    titled = [Body.of(f"<title>{title}</title>x".encode()) for title in ("A  b", "A b", "a b")]
    assert [same_title(titled[0], other) for other in titled] == [1.0, 1.0, 0.0]


def test_domains_are_registrable_ones() -> None:
    def domain(a: str, b: str) -> float:
        return signals_of(result("x", a), result("x", b), NO_IDF, ["same_domain"])["same_domain"]

    assert domain("https://www.a.example/x", "http://shop.a.example/y") == 1.0
    assert domain("https://a.co.uk/", "https://b.co.uk/") == 0.0
    assert domain("https://127.0.0.1/", "https://127.0.0.2/") == 0.0


def test_a_body_is_decoded_and_cut() -> None:
    body = Body.of("<title>Grüße</title>Stück".encode("iso-8859-1"), "text/html; charset=iso-8859-1")
    assert body.title == "Grüße"
    assert "stück" in body.terms
    assert len(Body.of(b"a" * (BODY_BYTES_MAX + 5)).utf8) == BODY_BYTES_MAX
    assert list(Body.of(b"<p>See<img src=/x.png></p>").terms) == ["see"]


# snippets


def test_snippets_are_the_passages_with_most_of_the_query() -> None:
    filler = "nothing to see here. " * 60
    page = f"{filler}Blue Wool is dyed here.{filler}some wool.{filler}wool and blue again, WOOL!{filler}blue.{filler}"
    found = snippet(page, "blue wool").split("\n")
    assert len(found) == PASSAGES
    assert all(len(passage) <= PASSAGE_CHARACTERS for passage in found)
    assert "Blue Wool is dyed" in found[0]
    assert "WOOL!" in " ".join(found)
    assert snippet(page, "woo") == page[: PASSAGES * PASSAGE_CHARACTERS]
    assert snippet("", "wool") == snippet("", "") == ""
    assert snippet("a", "a") == "a"
    assert "羊毛" in snippet("前" * 2000 + "羊毛" + "后" * 2000, "羊毛")


def test_a_query_of_signs_or_of_thousands_of_words_does_no_harm() -> None:
    page = "wool (and) more? " * 5000
    assert snippet(page, "?!(") == page[: PASSAGES * PASSAGE_CHARACTERS]
    assert len(snippet(page, " ".join(f"wool{i}" for i in range(5000)) + " (")) <= PASSAGES * (PASSAGE_CHARACTERS + 1)


# all of them


def test_equal_pages_differ_in_no_signal() -> None:
    page = f"<title>T</title><p>{text(1, 500).decode()}"
    values = signals_of(result(page, rendered=page + "<p>more"), result(page, rendered=page + "<p>more"), NO_IDF)
    assert set(values) == set(SIGNALS)
    assert {name for name, value in values.items() if value} == {
        "same_domain",
        "same_title_fetched",
        "same_title_rendered",
    }


@pytest.mark.parametrize("html", ["", "a", "<script>x</script>", "&#0;", "\ufffd"])
def test_next_to_nothing_has_every_signal(html: str) -> None:
    for other in ("", "a", text(1, 3000).decode()):
        for a, b in ((html, other), (other, html)):
            values = signals_of(result(a, query="a"), result(b, query="a"), NO_IDF)
            assert all(0 <= value <= 1.2 for value in values.values()), values


def test_an_unrendered_page_is_compared_as_fetched() -> None:
    article = "<title>Wool</title>" + text(1, 200).decode()
    redirect, plain = result("<title>Moved</title>", rendered=article), result(article)
    values = signals_of(redirect, plain, NO_IDF)
    for name in ("body_length", "simhash", "tfidf", "mcd", "snippet_mcd"):
        assert values[f"{name}_rendered"] == 0.0 < values[f"{name}_fetched"]
    assert (values["same_title_fetched"], values["same_title_rendered"]) == (0.0, 1.0)
    for name, value in (values := signals_of(plain, result(article + "x"), NO_IDF)).items():
        if name.endswith("_rendered"):
            assert value == values[name.replace("_rendered", "_fetched")]


def test_sets_are_those_of_the_paper() -> None:
    assert SETS["F"] == ("same_domain", "same_title_fetched", "simhash_fetched", "tfidf_fetched", "mcd_fetched")
    assert [name for name in SETS["F+R"] if name not in SETS["F"]] == [
        *("same_title_rendered", "simhash_rendered", "tfidf_rendered", "mcd_rendered"),
    ]
    others = {"body_length_fetched", "body_length_rendered", "main_content", "url"}
    assert set(SETS["F+R+FS+RS"]) == set(SIGNALS) - others


def test_main_content_leaves_menus_out() -> None:
    article = f"<p>{text(1, 900).decode()}</p>"
    menus = ["".join(f"<li><a href=/{n}>{word}</a>" for n in range(40)) for word in ("wool", "felt yarn loom")]
    a, b = (result(f"<ul>{menu}</ul>{article}") for menu in menus)
    values = signals_of(a, b, NO_IDF)
    assert values["main_content"] == 0.0 < values["simhash_fetched"]
    assert signals_of(a, result(f"<p>{text(2, 900).decode()}</p>"), NO_IDF)["main_content"] > 0.2


def test_urls_differ_in_the_words_that_one_has() -> None:
    a, b = (Result(url, Body(b"")) for url in ("https://a.example/wool/1?x=2", "http://a.example/wool/3"))
    assert signals_of(a, b, NO_IDF, ["url"]) == {"url": 0.5714}  # 1, x, 2, 3 of 7
    assert signals_of(a, a, NO_IDF, ["url"]) == {"url": 0.0}
