"""Pages whose words come from a script or another page are one page only if their bytes are equal."""

import time

import pytest

from neardup import open_index
from neardup.page import Page
from neardup.scheme import Scheme
from neardup.sketch.make_sketches import sketch_pages
from neardup.sketch.sketch_record import Sketch
from tests.neardup.hostile import JIT_OFF

SCHEME = Scheme(seed=7)
NOSCRIPT = "<noscript>You need JavaScript to run this app.</noscript><div id=root></div>"


def sketch(body: str, url: str = "http://a.example/app/1", kind: str = "text/html") -> Sketch:
    return Sketch(sketch_pages([Page(url, body.encode(), kind)], SCHEME)[0])


def shell(state: str, **more: object) -> Sketch:
    return sketch(f"<title>Wool</title>{NOSCRIPT}<script>window.STATE={state}</script>", **more)


def test_shells_of_other_scripts_are_other_pages() -> None:
    one, other, again = shell("1"), shell("2"), shell("1", url="http://a.example/app/2?from=mail")
    assert one.shell
    assert one.digest != other.digest
    assert one.digest == again.digest
    assert one.tape == other.tape


def test_shells_of_other_owners_are_other_pages() -> None:
    names = ("a.example/app", "www.a.example/", "b.example/app", "ann.a.example/", "a.example/~ann/")
    digests = [shell("1", url=f"http://{name}").digest for name in names]
    assert digests[0] == digests[1]
    assert len(set(digests)) == len(names) - 1


@pytest.mark.parametrize(
    "body",
    [
        "<title>Wool</title><p>Not found.",
        "<title>Wool</title><p>" + "red wool and white wool " * 4 + "<script>1</script>",
        "<scripture>Not found.</scripture>",
        "<script>1</script>",
    ],
)
def test_pages_without_a_script_or_with_words_are_no_shells(body: str) -> None:
    assert not sketch(body).shell
    assert sketch(body).digest == sketch(body + "<!-- -->").digest == sketch(body, "http://b.example/").digest


def test_a_shell_has_fewer_than_20_words() -> None:
    pages = {words: sketch("wool " * words + "<script>1</script>") for words in (1, 19, 20)}
    assert {words: page.tokens for words, page in pages.items()} == {words: words for words in pages}
    assert [page.shell for page in pages.values()] == [True, True, False]


def test_a_shell_with_an_empty_root_has_fewer_than_80_words() -> None:
    pages = {words: sketch("wool " * words + "<div id=root></div><script>1</script>") for words in (79, 80)}
    assert {words: page.tokens for words, page in pages.items()} == {words: words for words in pages}
    assert [page.shell for page in pages.values()] == [True, False]


MENU = " ".join(f"menu{i}" for i in range(30))
#: Pages of 20 to 80 words whose words come from elsewhere, but for a script.
SIGNS = {
    "noscript": f"<noscript>{MENU} Please turn it on.</noscript><div></div>",
    "noscript of a class": f"<noscript class=note>{MENU} Please turn it on.</noscript><div></div>",
    "asks for JavaScript": f"<p>{MENU} Enable JavaScript and cookies to continue.",
    "empty root": f"<nav>{MENU}</nav><div class='x' id='root'></div>",
    "empty app": f"<nav>{MENU}</nav><main id=__next> </main>",
    "empty element": f"<nav>{MENU}</nav><app-root></app-root>",
    "element of the site": f"<nav>{MENU}</nav><wool-app class=dark>\n</wool-app>",
}
#: Pages of as many words that have words of their own.
OWN_WORDS = {
    "words": f"<p>{MENU}<script src='a.js' type='text/javascript'></script>",
    "noscript beside words": f"<p>{MENU}<noscript>{MENU}</noscript>",
    "an image in noscript": f"<p>{MENU}<noscript><img src=/pixel.gif></noscript>",
    "a root with words": f"<div id=root><p>{MENU}</p></div>",
    "an empty wrapper": f"<div id=wrapper></div><div id=fb-root></div><div id=app-banner></div><p>{MENU}",
    "a link to a script": f"<a href='javascript:void(0)'>wool</a><p>{MENU}",
}


@pytest.mark.parametrize("body", SIGNS.values(), ids=SIGNS)
def test_a_page_of_more_words_is_a_shell_if_they_come_from_elsewhere(body: str) -> None:
    assert sketch(f"<title>Wool</title>{body}<script>1</script>").shell


@pytest.mark.parametrize("body", OWN_WORDS.values(), ids=OWN_WORDS)
def test_a_page_of_few_words_of_its_own_is_no_shell(body: str) -> None:
    assert not sketch(f"<title>Wool</title>{body}<script>1</script>").shell


@pytest.mark.parametrize("body", SIGNS.values(), ids=SIGNS)
def test_without_a_script_words_come_from_nowhere_else(body: str) -> None:
    assert not sketch(f"<title>Wool</title>{body}").shell


def test_a_page_that_sends_a_browser_to_another_one_at_once_is_a_shell() -> None:
    def page(meta: str, many: int = 30) -> bool:
        return sketch(f"<title>Moved</title><meta {meta}><p>{'wool ' * many}").shell

    for target in (
        'http-equiv="refresh" content="0;url=/new"',
        "content=' 5 ; URL=/new' HTTP-EQUIV=Refresh",
        'http-equiv=refresh content="0.5, /new"',
    ):
        assert page(target)
        assert page(target, 2)
        assert not page(target, 80)
    for stays in (
        'http-equiv=refresh content="30;url=/new"',
        'http-equiv=refresh content="5"',
        'http-equiv=refresh content="5; "',
        'http-equiv=refresher content="0;url=/new"',
        'name=refresh content="0;x"',
    ):
        assert not page(stays)
    assert not page('http-equiv=refresh><meta content="0;url=/new"')
    assert not page('name=a><noscript><meta http-equiv="refresh" content="0;url=/new"></noscript')


def test_a_noscript_without_an_end_goes_to_the_end_of_the_page() -> None:
    assert sketch(f"<script>1</script><p>Wool<NOSCRIPT>{MENU}").shell
    assert not sketch(f"<p>Wool<NOSCRIPT>{MENU}<script>1</script>").shell


@pytest.mark.skipif(JIT_OFF, reason="compiled kernels are meant")
@pytest.mark.parametrize("tag", ["<meta http-equiv=refresh content=", "<meta http-equiv="])
def test_spaces_in_the_tags_of_a_page_take_no_longer_than_words(tag: str) -> None:
    def fastest_s(fill: str) -> float:
        body = f"<title>Wool</title><script>1</script>{(tag + 3000 * fill) * 60}"
        out = []
        for _ in range(3):
            began = time.process_time()
            sketch(body)
            out.append(time.process_time() - began)
        return min(out)

    # a search that tries each of the spaces again from each of them takes over 200 times as long
    assert fastest_s(" ") < 20 * fastest_s("a")


def test_pages_that_send_a_browser_on_are_one_if_words_target_and_owner_are() -> None:
    def digest(target: str, more: str = "", host: str = "a.example") -> bytes:
        body = f'<title>Moved</title><meta http-equiv="refresh" content="0;url={target}">{more}'
        return sketch(body, f"http://{host}/old").digest

    assert digest("/new") == digest("/new", "<!-- at noon -->")
    assert len({digest("/new"), digest("/newer"), digest("/new", "Wool"), digest("/new", host="b.example")}) == 4


def test_scripts_are_found_in_every_charset() -> None:
    body = "<meta charset=utf-16><title>Wool</title>Wait.<script>1</script>"
    pages = [Page("http://a.example/", body.encode(charset), "text/html") for charset in ("utf-16", "utf-16-le")]
    assert all(Sketch(record).shell for record in sketch_pages(pages, SCHEME))


@pytest.mark.parametrize("body", [SIGNS["noscript"], SIGNS["empty root"], NOSCRIPT], ids=["noscript", "root", "thin"])
def test_a_shell_has_exact_duplicates_alone(body: str) -> None:
    def page(state: int, url: str) -> Page:
        text = f"<title>Wool</title>{body}<script>window.STATE={state}</script>"
        return Page(f"https://a.example/{url}", text.encode(), "text/html")

    pages = [page(1, "one"), page(2, "two"), page(1, "one?from=mail"), page(3, "three")]
    with open_index(scheme=SCHEME) as index:
        verdicts = index.add(pages)
    assert [one.verdict for one in verdicts] == ["unique", "unique", "exact_duplicate", "unique"]
    assert all(one.shell for one in verdicts)


def test_plain_texts_are_no_shells() -> None:
    body = "<title>Wool</title>Wait.<script>1</script>"
    assert sketch(body).shell
    assert not sketch(body, kind="text/plain").shell


def test_a_shell_has_its_digest_whatever_else_is_left_to_python() -> None:
    body = f"<link rel=canonical href='x?a=&amp;'><html lang='de_DE'><title>Wool</title>{NOSCRIPT}<script>1</script>"
    alone = sketch(body)
    pages = [Page(f"http://a.example/{i}", body.encode(), "text/html") for i in range(3)]
    assert alone.shell
    assert alone.canonical == "http://a.example/app/x?a=&"
    assert {Sketch(record).digest for record in sketch_pages(pages, SCHEME)} == {alone.digest}
    assert all(Sketch(record).lang == alone.lang for record in sketch_pages(pages, SCHEME))
