"""A copy on another site in which one word is replaced wherever it stands, and two are repeated, is still a copy."""

import random
from dataclasses import replace

import pytest

from neardup import Page, Scheme, open_index
from neardup.decider import Decider

SCHEME = Scheme(seed=11)
DEFAULT = Decider(SCHEME.digest)


def article(words=420, seed=1):
    """Text in sentences about a thing, `Merino`, that title, heading and text name, in all some ten times."""
    rng = random.Random(seed)
    out = [f"word{rng.randrange(2000)}" for _ in range(words)]
    for place in range(20, words, words // 8):
        out[place] = "Merino"
    return " ".join(out)


def page(url, text, title="Merino wool keeps warm", heading="Merino wool"):
    body = f"<title>{title}</title><h1>{heading}</h1><p>{text}"
    return Page(url, body.encode(), "text/html", 1000)


def evaded(text, many=2):
    """Changes that a copier makes: the title has another word, and some words occur twice."""
    words = text.replace("Merino", "Alpaca").split()
    for place in range(100, 100 + 50 * many, 50):
        words[place:place] = [words[place]]
    return " ".join(words)


def copy(url, many=2):
    return page(url, evaded(article(), many), "Alpaca wool keeps warm", "Alpaca wool")


def last(decider, *pages):
    with open_index(scheme=SCHEME, decider=decider) as index:
        return index.add(pages)[-1]


def test_a_replaced_word_makes_no_other_page_of_a_copy_elsewhere():
    emitted = last(DEFAULT, page("https://a.example/merino", article()), copy("https://b.test/alpaca"))
    assert emitted.verdict == "near_duplicate"
    evidence = emitted.evidence
    assert (evidence["by"], evidence["same_site"], evidence["vetoes"]["title"]) == ("renamed", False, "holds")
    assert evidence["tape_score"] >= 0.95


def test_renamed_pages_of_one_site_are_of_a_template():
    emitted = last(DEFAULT, page("https://a.example/merino", article()), copy("https://www.a.example/alpaca"))
    assert (emitted.verdict, emitted.evidence["nearest"]["by"]) == ("unique", "title veto")


def test_where_more_differs_names_tell_pages_apart():
    words = article().split()
    other = " ".join([*words[:200], *(f"other{i}" for i in range(40)), *words[240:]])
    mine = page("https://b.test/alpaca", evaded(other), "Alpaca wool keeps warm", "Alpaca wool")
    verdict = last(DEFAULT, page("https://a.example/merino", article()), mine)
    assert (verdict.verdict, verdict.evidence["nearest"]["by"]) == ("unique", "title veto")
    assert 0.74 < verdict.evidence["nearest"]["score"] < DEFAULT.renamed_tape_min


@pytest.mark.parametrize("demand", [0.0, 0.99])
def test_how_much_must_agree_is_a_number_of_the_decider(demand):
    pages = page("https://a.example/merino", article()), copy("https://b.test/alpaca")
    emitted = last(replace(DEFAULT, renamed_tape_min=demand), *pages)
    assert (emitted.verdict, emitted.evidence["nearest"]["by"]) == ("unique", "title veto")


def test_the_page_that_it_copies_is_nearer_than_its_siblings():
    """A mirror of a template: each page goes to its own, by whichever name the mirror goes."""
    kinds = ["Merino", "Angora", "Mohair", "Cashmere"]
    site = [
        page(f"https://a.example/{kind}", article().replace("Merino", kind), f"{kind} wool keeps warm", f"{kind} wool")
        for kind in kinds
    ]
    mirror = [replace(each, url=each.url.replace("a.example", "b.test"), body=each.body + b" 12 May") for each in site]
    with open_index(scheme=SCHEME) as index:
        verdicts = index.add([*site, *mirror])
    assert [verdict.verdict for verdict in verdicts[:4]] == ["unique"] * 4
    assert [verdict.representative.url for verdict in verdicts[4:]] == [each.url for each in site]
