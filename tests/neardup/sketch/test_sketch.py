"""A page's whole sketch: from tokens against the oracle, from bytes in batches; records and their view."""

import hashlib
from urllib.parse import quote

import numpy as np
import pytest

from neardup.errors import BadInput, BadPage, CorruptRecord
from neardup.evaluation.corpus_texts import page_tokens
from neardup.page import Page
from neardup.scheme import Scheme
from neardup.sketch.layout import HEADER, RecordKind
from neardup.sketch.make_sketches import sketch_pages
from neardup.sketch.sketch_record import Sketch
from neardup.text.decoding import decode
from neardup.text.one_page_tokens import words as words_of_page
from neardup.verdict import Coordinates
from tests.neardup.sketch.sketch_inputs import SCHEME, SEED, blocks_of, fields_of, layout_of, words_of
from tests.neardup.sketch.words import sketch_words
from tests.oracle import sketches as oracle

pytestmark = pytest.mark.filterwarnings("ignore:overflow")


def check(count, seed, **more):
    words = words_of(count, seed, **more)
    blocks, links = layout_of(count, seed)
    title = min(count, 5)
    url = f"http://example.org/{'/'.join(map(quote, words[2:9:3]))}/Not_In-the.page/17/example/a2?no=path"
    record = sketch_words(words, SCHEME, url=url, title_words=title, links=links, blocks=blocks)
    expected = oracle.sketch(words, SEED, title=title, links=links, blocks=blocks, url=url)
    found = fields_of(record)
    assert {name: found[name] for name in expected} == expected
    assert ("article_tape" in found) == ("article_tape" in expected)


@pytest.mark.kernel
@pytest.mark.parametrize("count", [0, 1, 2, 7, 8, 9, 15, 16, 17, 18, 63])
def test_every_field_is_the_oracles(count):
    check(count, count)


@pytest.mark.parametrize("count", [200, 1000, 1421, 3000])
def test_every_field_of_long_pages_is_the_oracles(count):
    check(count, count)
    check(count, count + 1, vocabulary=10**6)


@pytest.mark.kernel
@pytest.mark.parametrize(
    ("sizes", "links", "longest"),
    [
        ((40,), range(0), (0, 40)),
        ((12, 30, 20), range(12), (12, 42)),
        ((12, 30, 20, 25), range(42), (42, 62)),  # a menu is longer than the text
        ((20, 20), range(0), (0, 20)),  # of equal blocks the first
        ((7,), range(0), (0, 7)),
        ((40,), range(20), None),  # links alone
        ((2, 3), range(0), None),
    ],
)
def test_content_start_is_the_first_words_of_the_longest_block_of_the_main_content(sizes, links, longest):
    words = [f"w{i}" for i in range(sum(sizes))]
    found = Sketch(sketch_words(words, SCHEME, links=links, blocks=blocks_of(*sizes)))
    first, end = longest or (0, 0)
    seeds = oracle.constants(SEED, "chain", 4)
    start = oracle.chain(oracle.fingerprints(words[first : min(end, first + 8)], SEED), seeds[3])
    assert found.content_start == (start if longest else found.head)


# from bytes


def html(i):
    """Pages that differ in length, script, title and mark-up."""
    body = "".join(f"<p>{' '.join(words_of(5 + 7 * k, i * 31 + k))}" for k in range(i % 23))
    return (
        f"<html lang=en><title>Page {i} of Ümläut</title><body><a href=x>go <b>there</b></a>{body}"
        f"<p>漢字かな交じり文 {i} <img src=/pics/{i}.png>"
    ).encode()


def pages(count=60):
    made = [Page(f"http://host{i % 7}.example/{i}", html(i), "text/html; charset=utf-8") for i in range(count)]
    made[3] = Page("http://h.example/plain", b"plain words, nothing else " * 30, "text/plain")
    made[4] = Page("http://h.example/empty", b"", "text/html")
    made[5] = Page("http://h.example/gone", None)
    made[6] = Page("no url", b"words", "text/html")
    made[7] = Page("http://h.example/pdf", b"%PDF-1.7" + bytes(range(256)) * 9, "application/pdf")
    return made


@pytest.mark.slow
def test_a_page_is_sketched_as_its_words():
    for page in pages():
        record = Sketch(sketch_pages([page], SCHEME)[0])
        if record.kind is not RecordKind.PAGE or record.opaque:
            continue
        decoded = decode(page.body, page.content_type)
        host = page.url.split("/")[2]
        words = words_of_page(decoded.utf8, decoded.mode, host)
        expected = oracle.sketch(words, SEED, host_words=host.split("."))
        names = ("tokens", "distinct", "digest", "head", "supershingles", "wide", "simhash", "logtf", "tape", "bloom")
        found = fields_of(record.record)
        assert {name: found[name] for name in names} == {name: expected[name] for name in names}
        assert found["head_names"] == expected["head_names"]


def test_batches_and_threads_change_nothing():
    batch = pages()
    alone = [sketch_pages([page], SCHEME)[0] for page in batch]
    for threads in (1, 2, 4):
        assert sketch_pages(batch, SCHEME, threads=threads) == alone
    assert sketch_pages(batch[:1], SCHEME, threads=4) == alone[:1]
    assert sketch_pages([], SCHEME, threads=2) == []


def test_scratch_of_a_giant_page_leaves_no_trace():
    batch = pages(20)
    before = sketch_pages(batch, SCHEME)
    giant = " ".join(f"{i:x}" for i in range(500_000)).encode()
    record = Sketch(sketch_pages([Page("http://h.example/", giant, "text/plain")], SCHEME)[0])
    assert record.tokens == record.distinct == 500_000
    assert sketch_pages(batch, SCHEME) == before


def test_facts_of_a_page():
    body = (
        b"<html lang='en-GB'><head><title> A  &amp; B\n</title><base href='/dir/'>"
        b"<link rel=canonical href='x?a=1&amp;b=2#top'><body>one two"
    )
    place = Coordinates(source="ab" * 16, partition=3, offset=1 << 40, position=77)
    page = Page("HTTP://WWW.Example.co.uk:80/a/../b", body, "text/html", fetched_at=1234)
    view = Sketch(sketch_pages([page], SCHEME, coordinates=[place], log_times=[5678])[0])
    assert (view.title, view.lang) == ("A & B", "en-GB")
    assert view.canonical == "http://www.example.co.uk/dir/x?a=1&b=2"
    assert (view.url, view.site) == ("http://www.example.co.uk/b", "example.co.uk")
    assert (view.fetched_at, view.log_time) == (1234, 5678)
    assert view.coordinates == place
    assert view.kind is RecordKind.PAGE
    assert view.reason == ""


def test_a_page_without_time_takes_the_log_time():
    page = Page("http://h.example/", b"x", "text/html")
    assert Sketch(sketch_pages([page], SCHEME, log_times=[99])[0]).fetched_at == 99
    for wild in (2**70, -(2**70)):  # of a file
        view = Sketch(sketch_pages([page.dated(wild)], SCHEME, log_times=[99])[0])
        assert abs(view.fetched_at) >= 2**63 - 1


@pytest.mark.parametrize(
    ("page", "kind", "reason"),
    [
        (Page("http://h.example/", None), RecordKind.TOMBSTONE, ""),
        (Page("http://h.example/", b"words", status=404), RecordKind.TOMBSTONE, ""),
        (Page("http://h.example/", b"words", status=410), RecordKind.TOMBSTONE, ""),
        (Page("http://h.example/", b"words", status=503), RecordKind.REJECTED, "HTTP status 503"),
        (Page("http://h.example/", None, status=503), RecordKind.REJECTED, "HTTP status 503"),
        (Page("http://h.example/", b"words", status=0), RecordKind.REJECTED, "HTTP status 0"),
        (Page("http://h.example/", b"words", status=301), RecordKind.REJECTED, "HTTP status 301"),
        (Page("http://h.example/", b"words", problem="cut short"), RecordKind.REJECTED, "cut short"),
        (Page("http://h.example/", None, problem="cut short"), RecordKind.REJECTED, "cut short"),
        (Page("nowhere", b"words"), RecordKind.REJECTED, "not an absolute URL"),
        (Page("http://h.example/" + "x" * 3000, b"words"), RecordKind.REJECTED, "more than 2048"),
        (Page("\udc80http://\x00" + "é" * 3000, None), RecordKind.REJECTED, ""),
    ],
)
def test_records_of_non_pages(page, kind, reason):
    view = Sketch(sketch_pages([page], SCHEME)[0])
    assert view.kind is kind
    assert reason in view.reason
    assert bool(view.reason) == (kind is RecordKind.REJECTED)
    assert (view.tokens, view.digest, view.bloom) == (0, bytes(16), b"")
    assert len(view.url) <= 2048


def test_opaque_pages_have_a_digest_of_their_body():
    def digest(body, content_type="application/pdf"):
        view = Sketch(sketch_pages([Page("http://h.example/", body, content_type)], SCHEME)[0])
        assert view.opaque == (content_type == "application/pdf")
        return view.digest

    body = b"%PDF-1.7 words"
    key = b"".join(word.to_bytes(8, "little") for word in oracle.constants(SEED, "opaque", 2))
    assert digest(body) == hashlib.blake2b(body, digest_size=16, key=key, person=b"neardup-body").digest()
    assert digest(b"") == bytes(16)
    assert digest(b"words", "text/plain") != digest(b"words")


def test_a_long_body_is_cut():
    scheme = Scheme(seed=SEED, body_bytes_max=50)
    body = b"twelve words " * 12
    cut, whole = (
        Sketch(sketch_pages([Page("http://h.example/", b, "text/plain")], scheme)[0]) for b in (body, body[:50])
    )
    assert (cut.truncated, whole.truncated) == (True, False)
    assert cut.digest == whole.digest


def test_text_long_as_utf8_is_cut():
    scheme = Scheme(seed=SEED, body_bytes_max=50)
    body = "ภาษาไทยนี้".encode("cp874") * 5
    thai = Page("http://h.example/", body, "text/plain; charset=windows-874")
    kept = Page("http://h.example/", body.decode("cp874")[:16].encode(), "text/plain; charset=utf-8")
    small = Page("http://h.example/", body[:16], "text/plain; charset=windows-874")
    cut, whole, few = (Sketch(record) for record in sketch_pages([thai, kept, small], scheme))
    assert (cut.truncated, whole.truncated, few.truncated) == (True, False, False)
    assert cut.digest == whole.digest == few.digest


@pytest.mark.kernel
@pytest.mark.parametrize("text", ["a b c d ", "ภาษาไทย", "漢a字b", "Ⱥ Ⱥ a ", "aé é ", "<img src=x>"])
@pytest.mark.parametrize("most", [1, 7, 40])
def test_a_page_of_too_many_tokens_is_cut(text, most):
    scheme, whole = Scheme(seed=SEED, tokens_max=most), text * 50
    page = Page("http://h.example/", whole.encode(), "text/html; charset=utf-8")
    cut = Sketch(sketch_pages([page], scheme)[0])
    words = words_of_page(whole.encode(), 0, "h.example")
    expected = oracle.sketch(words[:most], SEED)
    assert (cut.tokens, cut.truncated) == (most, True)
    assert (cut.digest.hex(), cut.tape) == (expected["digest"], expected["tape"])
    full = Scheme(seed=SEED, tokens_max=len(words))
    assert not Sketch(sketch_pages([page], full)[0]).truncated
    assert page_tokens(page, scheme).fp.tolist() == oracle.fingerprints(words[:most], SEED)


def test_internationalised_hosts_do_not_veto_by_their_display_form():
    page = Page("http://münchen.example/", "münchen ist hier".encode(), "text/plain; charset=utf-8")
    view = Sketch(sketch_pages([page], SCHEME)[0])
    assert view.url == "http://xn--mnchen-3ya.example/"
    assert [int(name.flags) for name in view.head_names] == [4, 0, 0]


def test_hash_of_the_url_is_that_of_its_normal_form():
    urls = ("http://h.example/a", "HTTP://H.EXAMPLE:80/./a#x", "http://h.example/b")
    first, second, other = (
        Sketch(r).url_hash for r in sketch_pages([Page(u, b"x", "text/html") for u in urls], SCHEME)
    )
    assert first == second != other


# records


def test_a_record_that_is_none_is_refused():
    record = sketch_words(["one", "two"], SCHEME)
    assert Sketch(record).tokens == 2
    for wrong in (b"", record[:10], b"\x02" + record[1:], record + b"x", record[:-1]):
        with pytest.raises(CorruptRecord):
            Sketch(wrong)
    header = np.frombuffer(record[: HEADER.itemsize], HEADER).copy()
    header["tape_bytes"] += 1
    with pytest.raises(CorruptRecord, match="sections"):
        Sketch(header.tobytes() + record[HEADER.itemsize :])


def test_words_need_a_url():
    with pytest.raises(BadPage):
        sketch_words(["one"], SCHEME, url="nowhere")


@pytest.mark.parametrize(
    "change",
    [
        {"supershingles": 7},
        {"minvalues": 20},
        {"bloom_bits_max": 1000},
        {"tape_bytes_max": 1 << 16},
        {"logtf_bits": 96},
    ],
)
def test_schemes_that_no_record_can_hold(change):
    with pytest.raises(BadInput, match=next(iter(change))):
        sketch_words(["one"], Scheme(seed=1, **change))


def test_the_budget_of_a_page():
    # about 2 kB for a long page: what one costs in the log
    record = sketch_words(words_of(6000, 1), SCHEME, title_words=6)
    assert len(record) < HEADER.itemsize + 500 + 250 + 8 * (24 + 16) + 1024 + 100
