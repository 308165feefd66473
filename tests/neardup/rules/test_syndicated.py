"""One article on two sites, each with its own name, menus and comments: the same content, and no more."""

from random import Random
from typing import Any

from neardup.decider import Decider
from neardup.page import Page
from neardup.pairs.scoring import compare
from neardup.rules import rule_of
from neardup.scheme import Scheme
from neardup.sketch.make_sketches import sketch_pages
from neardup.sketch.sketch_record import Sketch
from neardup.verdict import Kind
from tests.measure.gate.language import Language

SCHEME = Scheme(seed=1)
DECIDER = Decider(SCHEME.digest)
LANGUAGE = Language(9, 6000)
ARTICLE = LANGUAGE.paragraphs(Random(1), 300)
HEADLINE = "Harbour bridge closed until further notice"


def page(host: str, article: str = ARTICLE, headline: str = HEADLINE, comments: int = 4, more: str = "") -> Page:
    """A page of a paper whose name stands in its title and all over it."""
    random, name = Random(host), LANGUAGE.name(Random(host + " "))
    menu = "".join(f"<li><a href=/{i}>{name} {LANGUAGE.label(random)}</a></li>" for i in range(12))
    words = "".join(f"<li><b>{name}</b><p>{LANGUAGE.text(random, 30)}</p></li>" for _ in range(comments))
    body = f"<ul>{menu}</ul><h1>{headline}</h1>{article}<ul>{words}</ul>{more}<p>{LANGUAGE.text(random, 20)}</p>"
    html = f"<title>{headline} - {name}</title><body>{body}</body>"
    return Page(f"http://{host}/news/{random.randrange(10**6)}", html.encode(), "text/html; charset=utf-8")


def ruled(a: Page, b: Page, **numbers: Any) -> tuple[Kind | None, str]:
    one, other = (Sketch(record) for record in sketch_pages([a, b], SCHEME))
    decider = Decider(SCHEME.digest, **numbers)
    pair = compare(one, other)
    ruling = rule_of(decider).decide(pair, decider)
    return ruling.kind, ruling.by


def test_syndicated_article_is_same_content_though_titles_name_the_papers() -> None:
    one, other = page("one.example"), page("other.example")
    assert ruled(one, other) == (Kind.SAME_CONTENT, "content: syndicated")
    assert ruled(one, other, syndicated_tokens_min=0)[0] is None
    assert ruled(one, other, rule="tape")[0] is None


def test_two_hosts_of_one_site_are_owners_as_two_sites_are() -> None:
    one, other = page("physics.one.example"), page("chemistry.one.example")
    assert ruled(one, other) == (Kind.SAME_CONTENT, "content: syndicated")
    assert ruled(one, other, rule_version=1) == (None, "title veto")
    same = page("physics.one.example", comments=5)
    for host in ("physics.one.example", "m.physics.one.example"):
        assert ruled(page(host), same)[1] != "content: syndicated"
    apart = page("chemistry.one.example", headline="Stadium opens its doors again on Saturday")
    assert ruled(one, apart)[0] is None


def test_another_headline_keeps_them_apart() -> None:
    other = page("other.example", headline="Stadium opens its doors again on Saturday")
    assert ruled(page("one.example"), other)[0] is None


def test_a_headline_alone_does_not_join_them() -> None:
    other = page("other.example", article=LANGUAGE.paragraphs(Random(2), 300))
    assert ruled(page("one.example"), other)[0] is None


def test_a_quotation_does_not_join_them() -> None:
    first = ARTICLE.split("\n")[0]
    assert (
        ruled(page("one.example"), page("other.example", article=first + LANGUAGE.paragraphs(Random(3), 400)))[0]
        is None
    )


def test_parts_in_another_order_are_another_text() -> None:
    words = ARTICLE.replace("<p>", "").replace("</p>", "").split()
    parts = [" ".join(words[at : at + 12]) for at in range(0, len(words), 12)]
    Random(4).shuffle(parts)
    assert ruled(page("one.example"), page("other.example", article="<p>" + " ".join(parts) + "</p>"))[0] is None


def test_stuffed_page_is_not_its_stuffing() -> None:
    more = f"<p>{'cheap flights to sunny places ' * 250}</p>"
    assert ruled(page("one.example"), page("other.example", more=more))[0] is None


# attacks, and pages that look like them by accident


def paragraphs(seed: int, words: int) -> str:
    return LANGUAGE.paragraphs(Random(seed), words)


def test_an_article_within_a_page_of_more_is_not_that_page() -> None:
    # a page that is crawled first with a stranger's article in its text would be shown in its place
    for at in (0, 1, 2):
        parts = [paragraphs(5, 250), paragraphs(6, 250)]
        parts.insert(at, ARTICLE)
        hiding = page("other.example", article="".join(parts), comments=0)
        assert ruled(page("one.example", comments=0), hiding)[0] is None
        assert ruled(hiding, page("one.example", comments=0))[0] is None


def test_two_articles_about_one_press_release_are_two() -> None:
    release = paragraphs(7, 400)
    for words, headline in ((80, "Stadium opens its doors again on Saturday"), (500, HEADLINE)):
        one = page("one.example", article=release + paragraphs(8, words), comments=0)
        other = page("other.example", article=paragraphs(9, words) + release, headline=headline, comments=0)
        assert ruled(one, other)[0] is None


def test_boilerplate_of_many_sites_joins_no_pages() -> None:
    notice = paragraphs(10, 300)  # a licence, what is kept in cookies, terms of use
    one = page("one.example", article=paragraphs(11, 150) + notice, headline="Wool keeps warm even when wet")
    other = page("other.example", article=paragraphs(12, 150) + notice, headline="Bread rises best in the cold")
    assert ruled(one, other)[0] is None
    # under one name it is one text: terms of use are, and so are the words of a song
    assert ruled(page("one.example", notice, "Terms of use"), page("other.example", notice, "Terms of use"))[0]


def test_a_list_in_another_order_is_another_list_also_elsewhere() -> None:
    random = Random(13)
    entries = [
        f"{LANGUAGE.topic(random, 2, 4)} $ {random.randint(1, 999)} {LANGUAGE.text(random, 12)}" for _ in range(40)
    ]
    for order in (sorted(entries), entries[::-1], random.sample(entries, len(entries)), entries[20:] + entries[:20]):
        for item in ("<li>{}</li>", "<p>{}</p>"):
            lists = ["".join(map(item.format, some)) for some in (entries, order)]
            one, other = page("one.example", lists[0], comments=0), page("other.example", lists[1], comments=0)
            assert ruled(one, other)[1] != "content: syndicated"


def test_long_comments_do_not_hide_an_article() -> None:
    assert ruled(page("one.example", comments=8), page("other.example", comments=0))[0] is Kind.SAME_CONTENT


def test_one_repeated_word_is_no_shared_article() -> None:
    text = "<p>" + "buy " * 100_000 + "</p>"
    (record,) = sketch_pages([page("one.example", text, comments=0)], SCHEME)
    assert len(Sketch(record).article_tape) <= SCHEME.article_tape_bytes_max
    assert ruled(page("one.example", text), page("other.example", text))[1] != "content: syndicated"
    assert ruled(page("one.example"), page("other.example", ARTICLE + text))[0] is None
