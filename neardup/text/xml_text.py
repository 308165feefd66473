"""Rewrites XML as the HTML that a browser or a feed reader shows, so that one parser reads both.

* A CDATA section of XHTML is text. In HTML it is a comment, so its characters are escaped here.
* Titles, descriptions and contents of feeds hold HTML, escaped (`&lt;p&gt;`) or in a CDATA section. One level is
  unescaped, so both forms are the same markup. Each is a fragment of its own: markup that it leaves open ends with it.
* `<script/>` and `<title/>` are whole elements. The HTML parser would search their end tags.

Time is linear in the bytes, whatever they hold.
"""

import re

_CDATA, _CDATA_END = b"<![CDATA[", b"]]>"
#: What may stand before the root element, and the root of a feed. A feed of RSS 1.0 or Atom names its namespace.
_FEED = re.compile(
    rb"\s*+(?:<\?[^>]*+>\s*+|<!--(?:[^-]|-(?!->))*+-->\s*+|<![a-z][^>]*+>\s*+)*+"
    rb"<(?:(rss)|(?:[a-z]+:)?(feed)|[a-z]+:(rdf))[\s>]",
    re.IGNORECASE,
)
_NAMESPACES = {2: re.compile(rb"www\.w3\.org/2005/Atom|purl\.org/atom/"), 3: re.compile(rb"purl\.org/rss/")}
#: Starts of a comment, of a section, and in feeds of escaped markup.
_START = re.compile(rb"<!--|<!\[CDATA\[")
_START_IN_FEED = re.compile(rb"<!--|<!\[CDATA\[|&(?:lt|#0*+60|#[xX]0*+3[cC]);")
_NUMBERS = re.compile(rb"&#(?:0*+(?:(60)|(62)|(38)|(34)|(39))|[xX]0*+(?:(3[cC])|(3[eE])|(26)|(22)|(27)));")
_NAMED = (b"&lt;", b"&gt;", b"&amp;", b"&quot;", b"&apos;")  # in the order of the groups
#: Elements whose content the HTML parser searches for their end tags, and links.
_UNPARSED = b"script|style|title|textarea|iframe|noembed|noframes|xmp|plaintext|template"
_WHOLE = re.compile(rb"<(" + _UNPARSED + rb"|a)((?:\s[^<>]*)?)/>")
#: Tags of feeds, which separate words.
_FIELDS = re.compile(
    rb"</?(?:[A-Za-z][\w.-]*+:|(?:channel|item|entry|description|summary|content|subtitle|link|guid|id|pubDate|updated"
    rb"|published|modified|issued|created|lastBuildDate|category|author|contributor|name|email|uri|url|comments|source"
    rb"|generator|language|copyright|rights|managingEditor|webMaster|docs|ttl|width|height|logo|icon|creator)[\s/>])"
)
_OPENED = re.compile(rb"<(/?)(" + _UNPARSED + rb")(?=[\s/>])", re.IGNORECASE)
#: Fragments of a feed that end what they leave open. Later ones do not: a feed has some hundred.
_FRAGMENTS_MAX = 20_000


def is_feed(head: bytes) -> bool:
    """Whether a document that begins with these bytes is an RSS or Atom feed, by its root element."""
    found = _FEED.match(head)
    if found is None:
        return False
    namespace = _NAMESPACES.get(found.lastindex or 0)
    return namespace is None or namespace.search(head) is not None


def as_html(xml: bytes, feed: bool, bytes_max: int) -> tuple[bytes, bool]:
    """Rewrites XML in UTF-8 -> (HTML of at most bytes_max bytes, or as many as the XML has; whether it was cut)."""
    bytes_max = max(bytes_max, len(xml))
    out = bytearray()
    at, fragments = 0, 0
    start = _START_IN_FEED if feed else _START
    while len(out) <= bytes_max and (found := start.search(xml, at)):
        begin = found.start()
        if found[0] == b"<!--":
            end = _end_of(b"-->", xml, found.end())
            out += _markup(xml[at:begin], feed)
            out += xml[begin:end]
            at = end
            continue
        fragments += 1
        if found[0] == _CDATA:
            out += _markup(xml[at:begin], feed)
            at = _end_of(_CDATA_END, xml, found.end())
            content = xml[found.end() : at].removesuffix(_CDATA_END)
            out += _ended(content, fragments) if feed else content.replace(b"&", b"&amp;").replace(b"<", b"&lt;")
        else:
            begin = xml.rfind(b">", at, begin) + 1 or at
            out += _markup(xml[at:begin], feed)
            at = _end_of(b"<", xml, found.end(), kept=1)
            out += _ended(_unescaped(xml[begin:at]), fragments)
    out += _markup(xml[at:], feed) if len(out) <= bytes_max else b""
    if len(out) <= bytes_max:
        return bytes(out), False
    return _whole_characters(out, bytes_max), True


def _end_of(mark: bytes, xml: bytes, at: int, kept: int = 0) -> int:
    """The position behind the next mark, without its last `kept` bytes; the end if there is none."""
    found = xml.find(mark, at)
    return len(xml) if found < 0 else found + len(mark) - kept


def _markup(xml: bytes, feed: bool) -> bytes:
    """The tags and texts between sections."""
    if feed:
        xml = _unescaped(_FIELDS.sub(rb" \g<0>", xml))
    return _WHOLE.sub(rb"<\1\2></\1>", xml)


def _unescaped(xml: bytes) -> bytes:
    """Resolve one level of the references of XML."""
    if b"&#" in xml:
        xml = _NUMBERS.sub(lambda found: _NAMED[((found.lastindex or 1) - 1) % len(_NAMED)], xml)
    for name, char in ((b"&lt;", b"<"), (b"&gt;", b">"), (b"&quot;", b'"'), (b"&apos;", b"'"), (b"&amp;", b"&")):
        xml = xml.replace(name, char)
    return xml


def _ended(html: bytes, fragments: int) -> bytes:
    """A fragment and what ends its last tag, comment or raw text if it leaves them open."""
    if fragments > _FRAGMENTS_MAX or b"<" not in html:
        return html
    if html.rfind(b"<!--") > html.rfind(b"-->"):
        html += b"-->"
    elif html.rfind(b"<") > html.rfind(b">"):
        html += b"\"'>"
    opened = b""
    for tag in _OPENED.finditer(html):
        name = tag[2].lower()
        opened = name if not tag[1] and not opened else b"" if tag[1] and name == opened else opened
    return html + b"</" + opened + b">" if opened else html


def _whole_characters(utf8: bytearray, bytes_max: int) -> bytes:
    while bytes_max > 0 and utf8[bytes_max] & 0xC0 == 0x80:
        bytes_max -= 1
    return bytes(utf8[:bytes_max])
