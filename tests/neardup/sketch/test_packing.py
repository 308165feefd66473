"""What surrounds a sketch in its record: URLs, titles, charsets, computed for a whole batch, against plain Python."""

import hashlib
import re
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup.errors import BadPage
from neardup.kernels.fingerprint import KEY_WORDS
from neardup.kernels.record import write_title
from neardup.kernels.urls import find_hosts, is_plain, write_end
from neardup.page import Page
from neardup.sketch import addresses
from neardup.sketch.addresses import addresses_of
from neardup.sketch.layout import RecordKind
from neardup.sketch.make_sketches import _batch, _headers, _resolve, sketch_pages
from neardup.sketch.sketch_record import Sketch
from neardup.text.decoding import decode, decode_into
from neardup.urls import host_of, normalise_url
from tests.neardup.hostile import EXAMPLES, JIT_OFF
from tests.neardup.sketch.sketch_inputs import SCHEME
from tests.oracle.sketches import fingerprint

pytestmark = [pytest.mark.kernel, pytest.mark.filterwarnings("ignore:overflow")]

URLS = st.builds(
    "".join,
    st.tuples(
        st.sampled_from(["http://", "https://", "http:/", "HTTP://", "ftp://", ""]),
        st.sampled_from(["a", "www.example.com", "x_y.z-", "a..b", ".a", "a.", "", "a:80", "[::1]", "ä.de"]),
        st.lists(
            st.sampled_from(
                [
                    *("/", "//", ".", "..", "a", "Z", "0", "-", "~", "%", "%2F", "%2f", "%41", "%7E", "%7F", "%5B"),
                    *("%20", "?", "#", "&", ";", "=", "[", "é", "index.", "home.", "default.html", "12", "\\", " "),
                    "\udc80",
                ]
            ),
            max_size=7,
        ).map("".join),
    ),
)


def texts(parts):
    return np.frombuffer(b"".join(parts) + bytes(64), np.uint8), np.cumsum([len(part) for part in parts])


def normal_form(url):
    try:
        return normalise_url(url)
    except BadPage:
        return None


@pytest.mark.slow
@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(URLS, min_size=1, max_size=8))
def test_hosts_of_normal_urls(urls):
    first, last = np.empty(len(urls), np.int64), np.empty(len(urls), np.int64)
    buffer, ends = texts([url.encode("utf-8", "replace") for url in urls])
    find_hosts(buffer, ends, first, last)
    named = addresses_of([Page(url, b"x") for url in urls], SCHEME)
    start = 0
    for i, url in enumerate(urls):
        normal = normal_form(url)
        assert (named.kinds[i] == RecordKind.REJECTED) == (normal is None)
        end = int(named.urls[1][i])
        if normal is not None:
            assert named.urls[0][start:end].tobytes().decode() == normal
        start = end
        if last[i] and url.isascii():
            assert normal == url
            assert url[first[i] : last[i]] == host_of(url)
        elif normal == url and url.startswith("http"):
            # rarer hosts, and routes, which the fast path does not know
            assert re.search(r"//(?:[^/]*[:@\[]|[^/]*\.(?:/|\Z))|#[!/]", url)


@settings(max_examples=EXAMPLES, deadline=None)
@given(URLS.filter(lambda url: url.isascii()))
def test_how_urls_end(url):
    path, _, query = url.partition("?")
    *before, last = path.rstrip("/").split("/")
    if re.match(r"(index|default|home)\.", last) or not re.search("[A-Za-z%]", last):
        last = (before[-1] if before else "") + "/" + last
    out = np.zeros(500, np.uint8)
    segment, end = write_end(*[texts([url.encode()])[0], 0, len(url)], out, 3)
    assert out[3:segment].tobytes().decode() == last
    assert out[3:end].tobytes().decode() == f"{last}?{query}"


@settings(max_examples=EXAMPLES, deadline=None)
@given(URLS.filter(lambda url: url.isascii()), st.sampled_from(["http://b.example/x;y?z", "ftp://h/", "file:///x"]))
def test_references_that_need_no_resolving(reference, url):
    if is_plain(texts([reference.encode()])[0], 0, len(reference)):
        assert _resolve(url, "", reference, 2048) == reference


def title_of(data, room=600):
    title = np.zeros(room, np.uint8)
    return title[: write_title(np.frombuffer(data + b"x" * 8, np.uint8), 0, len(data), title)].tobytes()


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    st.lists(st.sampled_from([b" ", b"\n", b"a", "é".encode(), "\u2003".encode(), "漢".encode(), b"\xe6\xbc", b"\xff"]))
)
def test_titles(parts):
    data = b"".join(parts)
    assert title_of(data) == " ".join(data.decode("utf-8", "ignore").split()).encode()
    assert title_of(data, 5) == " ".join(data[:5].decode("utf-8", "ignore").split()).encode()


def test_every_white_space_ends_a_word():
    points = range(0x3100) if JIT_OFF else range(sys.maxunicode)
    spaces = [chr(point) for point in points if chr(point).isspace()]
    assert title_of("".join(f"a{space}" for space in spaces).encode()) == b" ".join([b"a"] * len(spaces))
    others = "".join(chr(point) for point in range(0x20, 0x3100) if not chr(point).isspace() and point != 0x7F).encode()
    assert title_of(others, len(others)) == others


BODIES = st.builds(
    b"".join,
    st.lists(
        st.one_of(
            st.sampled_from([b"<p>words", b"\x1b$B0", b"\x0e", b"\xef\xbb\xbf", b"\xff\xfe", b"%PDF-", b"....ftypmp42"])
            | st.sampled_from(
                [b"Rar!", b"PK\x03\x04", b"<meta charset=koi8-r>", "größe".encode(), b"\xe4\xf6", b"\x00"]
            )
            | st.sampled_from([bytes(range(32)), b"a\x00b\x00" * 20, b"GIF89a", b"ID3\x03", b"CWS\x05", b"plain "]),
            st.sampled_from([b"<rss>", b"<?xml ?>", b"<!-- x -->", b" "])
            | st.sampled_from(
                [b"<![CDATA[<p>", b"]]>", b"&lt;", b"<title/>", b"<a:feed xmlns='http://www.w3.org/2005/Atom'>"]
            ),
            st.binary(max_size=6),
        ),
        max_size=5,
    ),
)
TYPES = st.sampled_from(
    [
        *("text/html; charset=utf-8", "text/html", "", "text/plain", "text/plain;charset=UTF-8", "image/png", "x"),
        *("application/xhtml+xml", "text/html; charset=iso-2022-jp", "text/html;charset=windows-1252"),
        "text/html; charset=gbk",
    ]
)


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(st.tuples(st.none() | BODIES, TYPES), min_size=1, max_size=6))
def test_a_batch_is_decoded_as_each_body(pages):
    bodies, types = zip(*pages, strict=True)
    made = [Page("http://a.example/", b"") for _ in pages]
    named = addresses_of(made, SCHEME)
    batch, _ = decode_into(_batch(named, _headers(made, named, None, [0] * len(made))), bodies, types, 0, 10**6)
    for i, (body, content_type) in enumerate(pages):
        found = batch.buffer[batch.starts[i] : batch.ends[i]].tobytes()
        if body is None:
            assert (found, batch.modes[i]) == (b"", 3)
            continue
        expected = decode(body, content_type)
        assert (found, batch.modes[i]) == (expected.utf8, 2 if expected.opaque else expected.mode)
        assert not batch.buffer[batch.ends[i] : batch.ends[i] + 256].any()


def test_fields_that_a_record_names_its_page_by():
    title = "<title> Ärger  &amp; Wolle </title>"
    links = "<link rel=canonical href=http://c.example/z>"
    page = Page("http://www.b.example/a/index.html?q=1", f"<html lang=de>{title}{links}words".encode(), "text/html")
    view = Sketch(sketch_pages([page], SCHEME)[0])
    key = SCHEME.constants("names", KEY_WORDS).tolist()
    assert (view.title, view.lang, view.canonical) == ("Ärger & Wolle", "de", "http://c.example/z")
    assert view.titling == fingerprint("ärger & wolle".encode(), key)
    assert view.tail == fingerprint(b"a/index.html?q=1", key)
    assert view.place == fingerprint(b"%d b.example a/index.html" % view.naming, key)
    assert view.url_hash == hashlib.blake2b(page.url.encode(), digest_size=16, person=b"neardup-url").digest()
    for lang, expected in (("x" * 65, "x" * 64), ("d&amp;e", "d&e"), ("", "")):
        body = f"<html lang='{lang}'><link rel=canonical href='../y;z?#f'>words".encode()
        view = Sketch(sketch_pages([Page(page.url, body, "text/html")], SCHEME)[0])
        assert (view.lang, view.canonical) == (expected, "http://www.b.example/y;z")


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.text("ab9._-:[]", max_size=40) | st.just("a1.b-" * 12) | st.just("a" * 63 + ".example"))
def test_tokens_of_a_plain_host_are_those_of_any_host(host):
    key = SCHEME.constants("token", KEY_WORDS)
    plain = addresses.host_tokens(host.encode(), key).tolist()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(addresses, "_PLAIN_HOST", re.compile(b"(?!)"))  # none is plain
        assert addresses.host_tokens(host.encode(), key).tolist() == plain
    assert len(plain) == len(re.findall("[a-z0-9]+", host))
