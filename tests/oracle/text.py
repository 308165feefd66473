"""Slow, plain token strings of a page: html5lib reads the markup, Python's own tables class the characters.

Two readings of one page. `stream_words` takes the tokens of html5lib's tokenizer, driven by its tree builder: markup as
it stands in the bytes. `stream_and_tree_words` walks the finished tree, too. They differ where tree construction moves
or drops things:

* end tags without an open element, and start tags that a context forbids, are markup in the stream only;
* text and tags in tables are moved before the table; formatting elements are reopened; framesets drop text;
* inside <select> the tree ignores most tags, and so their raw text.

The kernels follow the stream. Both readings drop what a formatting tag leaves (nothing) and what other tags leave (a
break), and the contents of script, style and template.

Character tables come from unicodedata, whose version must be PINNED for a comparison over all code points.
"""

import re
import unicodedata
from collections.abc import Iterator

import html5lib
from html5lib._tokenizer import HTMLTokenizer
from html5lib.constants import tokenTypes

PINNED = "14.0.0"

_FORMATTING = re.split(
    r"\s+",
    """a abbr acronym b bdi bdo big cite code del dfn em font i ins kbd label mark nobr q s samp small span
    strike strong sub sup tt u var wbr""",
)
_HIDDEN = {"script", "style", "template"}
_HTML = "http://www.w3.org/1999/xhtml"

#: A piece of a page: ("text", characters), ("break", ""), ("term", raw URL) or ("base", raw URL).
Piece = tuple[str, str]


# Characters.

_SCRIPTS = {
    "han": ("CJK UNIFIED", "CJK COMPATIBILITY IDEOGRAPH"),
    "kana": ("HIRAGANA", "KATAKANA", "HALFWIDTH KATAKANA", "HENTAIGANA", "COMBINING KATAKANA-HIRAGANA"),
    "thai": ("THAI",),
    "lao": ("LAO",),
    "khmer": ("KHMER",),
    "myanmar": ("MYANMAR",),
}


def char_class(char: str) -> str:
    """'' for a separator, 'word', or the script whose runs are cut into pairs."""
    category = unicodedata.category(char)
    if not (category.startswith(("L", "M")) or category == "Nd"):
        return ""
    name = unicodedata.name(char, "")
    if name.endswith(("IDEOGRAPHIC ITERATION MARK", "CHINESE ITERATION MARK")) or "VIETNAMESE ALTERNATE" in name:
        return "han"
    for script, prefixes in _SCRIPTS.items():
        if any(name.startswith(prefix + joint) for prefix in prefixes for joint in " -"):
            return script
    return "word"


def lower(char: str) -> str:
    return "i" if char == "İ" else char.lower()


def words_of_text(text: str) -> list[str]:
    """Runs of one class, lower-cased; runs of the scripts without word breaks as overlapping pairs."""
    words: list[str] = []
    run, kind = "", ""
    for char in text + " ":
        now = char_class(char)
        if now != kind:
            if kind == "word" or (kind and len(run) == 1):
                words.append(run)
            elif kind:
                words += [run[i : i + 2] for i in range(len(run) - 1)]
            run, kind = "", now
        if now:
            run += lower(char)
    return words


# URLs.


def _clean(value: str) -> str:
    value = "".join(" " if char < " " else char for char in re.sub("[\t\n\r]", "", value)).strip(" ")
    value = value.partition("#")[0]
    path, mark, query = value.partition("?")
    return path.replace("\\", "/") + mark + query


_URL = re.compile(r"(?P<scheme>[a-zA-Z][a-zA-Z0-9+.-]*:)?(?P<host>//[^/?]*)?(?P<path>[^?]*)(?P<query>.*)", re.DOTALL)


def _split(url: str) -> tuple[str, str, str, str]:
    """(scheme with colon, authority with slashes, path, query with mark), each perhaps empty."""
    match = _URL.fullmatch(url)
    assert match is not None
    return match["scheme"] or "", match["host"] or "", match["path"], match["query"]


def _host(url: str) -> str:
    authority = _split(url)[1][2:].rpartition("@")[2]
    return re.sub(r":[0-9]*$", "", authority).translate(_ASCII_LOWER)


_ASCII_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}


def _join(base: str, url: str) -> str:
    """RFC 3986, section 5.2.2, for a reference without a scheme that is not empty."""
    scheme, authority, folder, _ = _split(base)
    if url.startswith("//"):
        return scheme + url
    if url.startswith("/"):
        return scheme + authority + url
    folder = _without_dots(folder)
    if url.startswith("?"):
        return scheme + authority + folder + url
    return scheme + authority + folder.rpartition("/")[0] + "/" + url


def term(value: str, host: str, base: str) -> str:
    """The one token of an image's or frame's URL: file name on the own host, else the whole URL; '' for none."""
    url = _clean(value)
    if not url or url[:5].lower() == "data:":
        return ""
    scheme, authority, _, _ = _split(url)
    if scheme and not authority:
        return url
    base = _clean(base)
    if not scheme and len(_split(base)[1]) > 2 and _host(base) != host:
        url = _join(base, url)
    scheme, authority, path, query = _split(url)
    if authority and _host(url) != host:
        return scheme + authority + _without_dots(path) + query
    name = path.rpartition("/")[2]
    return "" if name in (".", "..") else name


def _without_dots(path: str) -> str:
    """RFC 3986, section 5.2.4, on a path that is empty or begins with a slash."""
    out: list[str] = []
    segments = path.split("/")[1:]
    for i, segment in enumerate(segments):
        last = i == len(segments) - 1
        if segment == "..":
            out = out[:-1]
        elif segment != ".":
            out.append(segment)
        if last and segment in (".", ".."):
            out.append("")
    return "".join("/" + segment for segment in out)


def refresh_url(content: str) -> str:
    """The target named by the content of a meta refresh, '' for none."""
    match = re.match(r"[\0- ]*[0-9.]+(?=[\0- ;,])[\0- ]*[;,]?[\0- ]*(.*)", content, re.DOTALL)
    if match is None:
        return ""
    rest = match[1]
    named = re.match(r"[uU][rR][lL][\0- ]*=[\0- ]*(.*)", rest, re.DOTALL)
    if named:
        rest = named[1]
    if rest[:1] in ("'", '"'):
        rest = rest[1:].partition(rest[0])[0]
    return rest


# Pages.


def _decoded(page: bytes) -> str:
    # The tree builder drops NUL, which would join words; any other control character separates them.
    return page.decode("utf-8", "replace").replace("\0", "\1")


def _terms(name: str, attributes: dict[str, str]) -> Iterator[Piece]:
    if name in ("img", "image", "frame", "iframe") and "src" in attributes:
        yield "term", attributes["src"]
    if name == "meta" and attributes.get("http-equiv", "").strip("\t\n\f\r ").lower() == "refresh":
        yield "term", refresh_url(attributes.get("content", ""))
    if name == "base" and "href" in attributes:
        yield "base", attributes["href"]


def words_of_pieces(pieces: Iterator[Piece], host: str) -> list[str]:
    words: list[str] = []
    text, base, has_base = "", "", False
    for kind, value in pieces:
        if kind == "text":
            text += value
            continue
        words += words_of_text(text)
        text = ""
        if kind == "base" and not has_base:
            base, has_base = value, True
        elif kind == "term":
            found = "".join(lower(char) for char in term(value, host, base) if char != "\ufffd")
            words += [found] if found else []
    return words + words_of_text(text)


class _Watched(HTMLTokenizer):
    def __iter__(self) -> Iterator[dict]:
        for token in super().__iter__():
            self.parser.take(token)
            yield token


class _Recorder(html5lib.HTMLParser):
    """A parser that takes down each token before the tree builder sees it."""

    def __init__(self) -> None:
        super().__init__(tree=html5lib.getTreeBuilder("etree"))
        self.pieces: list[Piece] = []
        self.templates = 0

    def mainLoop(self) -> None:
        self.tokenizer.__class__ = _Watched
        super().mainLoop()

    def take(self, token: dict) -> None:
        kind, nodes = token["type"], self.tree.openElements
        if kind == tokenTypes["ParseError"]:
            return
        hidden = self.templates > 0 or any(node.name in ("script", "style") for node in nodes)
        if kind in (tokenTypes["Characters"], tokenTypes["SpaceCharacters"]):
            if not hidden:
                self.pieces.append(("text", token["data"]))
            return
        name = token.get("name") or ""
        is_tag = kind in (tokenTypes["StartTag"], tokenTypes["EndTag"])
        if not (hidden or (is_tag and name in _FORMATTING)):
            self.pieces.append(("break", ""))
        foreign = bool(nodes) and nodes[-1].namespace != _HTML
        if foreign and (self.isHTMLIntegrationPoint(nodes[-1]) or self.isMathMLTextIntegrationPoint(nodes[-1])):
            foreign = False
        if kind == tokenTypes["StartTag"]:
            if foreign and name in ("img", "meta"):  # these end foreign content, and what hides in it
                foreign, hidden = False, self.templates > 0
            if not (hidden or foreign):
                self.pieces += _terms(name, dict(token["data"]))
            self.templates += name == "template" and not foreign
        elif kind == tokenTypes["EndTag"] and name == "template" and self.templates:
            self.templates -= 1


def stream_words(page: bytes, host: str = "") -> list[str]:
    """Token strings of the markup as it stands: what the kernels must give."""
    recorder = _Recorder()
    recorder.parse(_decoded(page))
    return words_of_pieces(iter(recorder.pieces), host)


def _walk(element) -> Iterator[Piece]:  # type: ignore[no-untyped-def]
    name = element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""
    if name not in _FORMATTING:
        yield "break", ""
    if name:
        yield from _terms(name, element.attrib)
        if name not in _HIDDEN:
            yield "text", element.text or ""
            for child in element:
                yield from _walk(child)
                yield "text", child.tail or ""
    if name not in _FORMATTING:
        yield "break", ""


def stream_and_tree_words(page: bytes, host: str = "") -> tuple[list[str], list[str]]:
    """Those of `stream_words`, and the token strings of the finished tree, in document order."""
    recorder = _Recorder()
    root = recorder.parse(_decoded(page))
    return words_of_pieces(iter(recorder.pieces), host), words_of_pieces(_walk(root), host)
