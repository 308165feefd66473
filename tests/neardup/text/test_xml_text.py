"""XHTML and feeds: CDATA, escaped markup, fragments that end, whole elements; against a parser of XML; linear time."""

import time
from html import escape
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup import Page, Scheme, open_index
from neardup.text.decoding import HTML, PLAIN, decode
from neardup.text.one_page_html import title_of
from neardup.text.one_page_tokens import words
from neardup.text.xml_text import as_html, is_feed
from tests.neardup.hostile import EXAMPLES, needs_jit

RSS = "<?xml version='1.0'?><rss version='2.0'><channel><title>News</title>{}</channel></rss>"
ATOM = "<feed xmlns='http://www.w3.org/2005/Atom'><title>News</title>{}</feed>"
RDF = "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns='http://purl.org/rss/1.0/'>{}</rdf:RDF>"


def words_of(body: str | bytes, content_type: str) -> str:
    decoded = decode(body.encode() if isinstance(body, str) else body, content_type)
    assert not decoded.opaque
    return " ".join(words(decoded.utf8, decoded.mode))


@pytest.mark.parametrize("content_type", ["application/xhtml+xml", "application/xml", "text/xml; charset=utf-8"])
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("<pre><![CDATA[if a<b && c]]></pre>", "if a b c"),
        ("<p>a<![CDATA[b]]>c</p>", "abc"),
        ("<p><![CDATA[<p>x</p> &lt;]]>", "p x p lt"),
        ("<title><![CDATA[R&D <b>]]></title>a", "r d b a"),
        ("<script><![CDATA[ if (a</script>b) ]]></script>c", "c"),
        ("<p>a<!-- <![CDATA[ x ]]> --> b<![CDATA[ c", "a b c"),
        ("<p><![CDATA[a]]]]><![CDATA[>b", "a b"),
        ("<script src='x'/><title/><p>a<textarea/> b<style />c<iframe/>d<template/>e", "a bc de"),
        ("<title>T</title><scripts/>a", "t a"),
        ("<p>&lt;b&gt; &amp;lt; &eacute;", "b lt é"),
    ],
)
def test_cdata_and_whole_elements_of_xml(body, expected, content_type):
    assert words_of(body, content_type) == expected


def test_cdata_of_html_is_a_comment():
    assert words_of("<?xml version='1.0'?><html><p>a<![CDATA[b]]>c", "text/html") == "ac"
    assert words_of("<p>a<![CDATA[b]]>c<svg><![CDATA[d]]></svg>", "text/html") == "ac d"
    assert words_of("a <![CDATA[b]]>", "text/plain") == "a cdata b"


FRAGMENTS = [
    ("<p>One <b>t</b>wo &amp; three</p>", "one two three"),
    ("caf&eacute; &#233; &amp;lt;", "café é lt"),
    ("<img src='//o.example/i.png'>a", "//o.example/i.png a"),
    ("<p>cut <a href='http://o.example/", "cut"),
    ('cut <a title="x', "cut"),
    ("<script>x</script>a<script>b", "a"),
    ("a<!-- b", "a"),
    ("a<style>b", "a"),
    ("<textarea>a<title>", "a title"),
    ("a<template>b</template>c<TEMPLATE>d", "ac"),
    ("3 < 4 > 2", "3 4 2"),
]


@pytest.mark.parametrize(
    "root", [RSS, ATOM, RDF, "<!-- a --> " + RSS, "<?xml-stylesheet x?>" + ATOM.replace("feed", "a:feed")]
)
@pytest.mark.parametrize(
    "content_type", ["application/rss+xml", "application/atom+xml", "text/xml", "text/html", "text/plain", ""]
)
@pytest.mark.parametrize(("html", "expected"), FRAGMENTS)
def test_content_of_feeds_is_html_escaped_or_in_cdata(html, expected, root, content_type):
    items = [
        f"<item><description>{form}</description><link>http://o.example/x</link></item>"
        for form in (f"<![CDATA[{html}]]>", escape(html), html.replace("&", "&#38;").replace("<", "&#x3C;"))
    ]
    found = [words_of(root.format(item), content_type) for item in items]
    head = "a news" if root.startswith("<!-- b") else "news" if "News" in root else ""
    assert found == [" ".join([head, expected, "http o example x"]).strip()] * 3


def test_fields_of_feeds_are_words_of_their_own():
    item = "<item><guid>a1</guid><dc:creator>Ann</dc:creator><pubDate>Mon</pubDate><category>x</category></item>"
    assert words_of(RSS.format(item), "application/rss+xml") == "news a1 ann mon x"
    assert words_of(RSS.format(item.replace("><", ">\n<")), "application/rss+xml") == "news a1 ann mon x"
    assert title_of(decode(ATOM.format("").replace("News", "<![CDATA[R&amp;D]]>").encode(), "text/xml").utf8) == "R&D"
    assert words_of("<feed xmlns='http://www.w3.org/2005/Atom'><title type='html'/>a", "text/xml") == "a"


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"<html>",
        b"<feed>",
        b"<rss-like>",
        b"<rdf:RDF>",
        b"a<rss>",
        b"<feedback xmlns='http://www.w3.org/2005/Atom'>",
    ],
)
def test_other_documents_are_no_feeds(head):
    assert not is_feed(head)
    assert decode(head + b" &lt;p&gt;", "text/plain").mode == PLAIN


def test_a_feed_and_its_escaped_mirror_are_exact_duplicates():
    texts = [f"<p>The {n} ferry &amp; the bus leave at <i>n</i>oon from pier {n * n}.</p>" for n in range(40)]
    bodies = [
        RSS.format("".join(f"<item><description>{form(text)}</description></item>" for text in texts))
        for form in ("<![CDATA[{}]]>".format, escape)
    ]
    pages = [Page(f"https://{n}.example/rss", body.encode(), "application/rss+xml") for n, body in enumerate(bodies)]
    with open_index(scheme=Scheme(seed=7)) as index:
        assert [one.verdict.value for one in index.add(pages)] == ["unique", "exact_duplicate"]


pieces = st.sampled_from(
    ["<![CDATA[", "]]>", "<", ">", "&lt;", "&#60;", "&amp;", "<!--", "-->", "<a b='", "'", "<title/>", "<script>", "</",
     "x ", "é", "</script>", "/>", "<description>", "<x:y>", "&#000", "&#x3"]
)  # fmt: skip


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(pieces, max_size=40).map("".join), st.booleans(), st.integers(0, 200))
def test_any_xml_can_be_rewritten(xml, feed, bytes_max):
    html, cut = as_html(xml.encode(), feed, bytes_max)
    html.decode()
    assert len(html) <= max(bytes_max, len(xml.encode()))
    whole, _ = as_html(xml.encode(), feed, 1 << 20)
    assert whole.startswith(html)
    assert cut == (whole != html)


text = st.text("ab <&]>\"'é\n", max_size=30)


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(st.tuples(text, st.booleans()), max_size=6))
def test_texts_of_xhtml_are_those_of_a_parser(parts):
    body = "".join(f"<![CDATA[{t.replace(']]>', '')}]]>" if raw else escape(t) for t, raw in parts)
    xml = f"<html><p>{body}</p></html>"
    expected = "".join(ElementTree.fromstring(xml).itertext())
    assert words_of(xml, "application/xhtml+xml").split() == words(expected.encode(), 1)


@needs_jit
@pytest.mark.parametrize(
    "unit", ["<![CDATA[", "<![CDATA[]]>", "&lt;", "<!--", ">&lt;<", "&#0", "<title", "<a:", "<", ">", "&amp;"]
)
def test_hostile_xml_takes_linear_time(unit):
    def seconds(size: int) -> float:
        body = RSS.format(unit * (size // len(unit))).encode()
        best = 1e9
        for _ in range(3):
            begin = time.thread_time()
            assert len(decode(body, "text/xml", 1 << 20).utf8) <= max(len(body), 1 << 20)
            best = min(best, time.thread_time() - begin)
        return best

    assert seconds(400_000) < 40 * max(seconds(40_000), 1e-4)
    assert decode(unit.encode() * 1000, "application/xhtml+xml").mode == HTML
