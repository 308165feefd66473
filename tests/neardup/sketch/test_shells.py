"""Pages whose words come from a script are one page only if their bytes are equal."""

import pytest

from neardup.page import Page
from neardup.scheme import Scheme
from neardup.sketch.make_sketches import sketch_pages
from neardup.sketch.sketch_record import Sketch

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
