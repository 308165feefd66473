"""Slow, plain token strings of a page: html5lib reads the markup, Python's own tables class the characters.

Two readings of one page. `stream_words` takes the tokens of html5lib's tokenizer, driven by its tree builder: markup as
it stands in the bytes. `stream_and_tree_words` walks the finished tree, too. They differ where tree construction moves
or drops things:

* end tags without an open element, and start tags that a context forbids, are markup in the stream only;
* text and tags in tables are moved before the table; formatting elements are reopened; framesets drop text;
* inside <select> the tree ignores most tags, and so their raw text.

The kernels follow the stream. In both readings a tag breaks a word if a browser shows its element as a block, a line
or a box of its own, or if it stands in foreign content; all other markup leaves nothing, nor do the contents of script,
style, template, noembed and noframes.

Character tables come from unicodedata, whose version must be PINNED for a comparison over all code points.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

import html5lib
from html5lib._tokenizer import HTMLTokenizer
from html5lib.constants import tokenTypes

PINNED = "14.0.0"

_FORMATTING = re.split(
    r"\s+",
    """a abbr acronym b bdi bdo big cite code del dfn em font i ins kbd label mark nobr q s samp small span
    strike strong sub sup tt u var wbr""",
)
_BREAKING = re.split(
    r"\s+",
    """address article aside blockquote br button canvas caption center col colgroup dd details dialog dir div dl dt
    fieldset figcaption figure footer form frameset h1 h2 h3 h4 h5 h6 header hgroup hr iframe input legend li listing
    main marquee math menu meter nav ol optgroup option p plaintext pre progress rt rtc search section select summary
    svg table tbody td textarea tfoot th thead title tr ul video xmp""",
)
#: Elements of HTML that break a word only inside svg and math.
_POINTS = ("foreignobject", "desc", "annotation-xml", "mi", "mo", "mn", "ms", "mtext")
_HIDDEN = {"script", "style", "template"}
_UNSHOWN = {"noembed", "noframes"}
_HTML = "http://www.w3.org/1999/xhtml"

#: A piece of a page: ("text", characters), ("break", ""), ("term", raw URL) or ("base", raw URL).
Piece = tuple[str, str]


# Characters. A page has few different ones, each many times.

_known = lru_cache(1 << 14)
_SCRIPTS = {
    "han": ("CJK UNIFIED", "CJK COMPATIBILITY IDEOGRAPH"),
    "kana": ("HIRAGANA", "KATAKANA", "HALFWIDTH KATAKANA", "HENTAIGANA", "COMBINING KATAKANA-HIRAGANA"),
    "thai": ("THAI",),
    "lao": ("LAO",),
    "khmer": ("KHMER",),
    "myanmar": ("MYANMAR",),
}


@_known
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


#: Letters of one sound: each of the second string stands for the first.
_ONE_SOUND = ("σς", "اآأإٱ", "يىی", "كکڪ", "هھۀہۂە", "ةۃ", "iİı")


def lower(char: str) -> str:
    """Lower case, where digits are ASCII digits and letters of one sound one letter."""
    if unicodedata.category(char) == "Nd":
        return "0123456789"[int(char)]
    if char in "ßẞ":
        return "ss"
    return next((letters[0] for letters in _ONE_SOUND if char in letters), char.lower())


#: Vowel marks, Quranic marks, points and accents of Arabic and Hebrew without hamza above; tatweel.
_OPTIONAL = re.compile(
    "[\u0610-\u061a\u0640\u064b-\u0653\u0655-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed"
    "\u0898-\u089f\u08ca-\u08e1\u08e3-\u08ff\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\ufb1e]"
)


def ignored(char: str) -> bool:
    """Default_Ignorable_Code_Point by its definition, and control characters that are no white space.

    Other_Default_Ignorable_Code_Point + Cf + Variation_Selector - White_Space - interlinear annotation - Egyptian
    format controls - Prepended_Concatenation_Mark (Unicode 14, DerivedCoreProperties.txt).
    """
    point, category = ord(char), unicodedata.category(char)
    form = unicodedata.normalize("NFKC", char)
    if _OPTIONAL.search(form) and not _OPTIONAL.sub("", form).strip(" "):
        return True
    if category == "Cc":
        return char not in "\t\n\v\f\r\x85"
    name = unicodedata.name(char, "")
    if category == "Cf":
        annotation = name.startswith(("INTERLINEAR", "EGYPTIAN"))
        prepended = name.startswith(("ARABIC", "KAITHI", "SYRIAC")) and name != "ARABIC LETTER MARK"
        return not (annotation or prepended)
    if "VARIATION SELECTOR" in name or point >> 12 == 0xE0:
        return True
    fillers = ("HANGUL CHOSEONG FILLER", "HANGUL JUNGSEONG FILLER", "HANGUL FILLER", "HALFWIDTH HANGUL FILLER")
    vowels = ("KHMER VOWEL INHERENT AQ", "KHMER VOWEL INHERENT AA", "COMBINING GRAPHEME JOINER")
    # Reserved ones: unassigned among ignorable characters.
    return name in fillers + vowels or char == "\u2065" or "\ufff0" <= char <= "\ufff8"


@_known
def folded(char: str) -> str:
    """What stands for a character in a token: nothing, its compatibility form if that is short, itself; folded."""
    if ignored(char):
        return ""
    form = _OPTIONAL.sub("", unicodedata.normalize("NFKC", char))
    parts = [lower(part) if char_class(part) else " " for part in form]
    plain = not any(unicodedata.category(part) == "Nd" or part.isalpha() for part in form)
    if len("".join(parts).encode()) > 2 * len(char.encode("utf-8", "surrogatepass")) or (plain and parts[0] == " "):
        return lower(char)
    return "".join(parts)


#: What stands before a mark that makes no difference there.
_SAME_WITH = {"\u0307": "i", "\u0654": "اه"}
_MOST = 32


def composed(text: str) -> str:
    """Folded characters with their marks as NFC composes them; without marks that have no letter."""
    clusters: list[str] = []
    for char in text:
        alone = not clusters or not char_class(clusters[-1][0])
        if not unicodedata.combining(char):
            clusters.append(char)
        elif not alone:
            clusters[-1] += char
    out = []
    for cluster in clusters:
        parts = unicodedata.normalize("NFD", cluster)
        if not "가" <= cluster[0] <= "힣":
            parts = "".join(part for part in parts if parts[0] not in _SAME_WITH.get(part, ""))[:_MOST]
        out.append(parts)
    return unicodedata.normalize("NFC", "".join(out))


def words_of_text(text: str) -> list[str]:
    """Runs of one class, folded; runs of the scripts without word breaks as overlapping pairs."""
    words: list[str] = []
    run, kind = "", ""
    for char in composed("".join(map(folded, text))) + " ":
        now = char_class(char)
        if now != kind:
            if kind == "word" or (kind and len(run) == 1):
                words.append(run)
            elif kind:
                words += [run[i : i + 2] for i in range(len(run) - 1)]
            run, kind = "", now
        if now:
            run += char
    return words


def in_url(char: str) -> str:
    """A character of a term: only what a fold leaves alone is lower-cased."""
    one = folded(char)
    return one if len(one) == 1 and char_class(one) else char


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
    # The tree builder drops NUL; in attributes html5lib replaces it. As any other control character it is ignored.
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
        if kind == "base":
            base, has_base = (base, True) if has_base else (value, True)
            continue
        found = "".join(in_url(char) for char in term(value, host, base) if char != "\ufffd") if kind == "term" else ""
        if found or kind == "break":
            words += words_of_text(text)
            text = ""
        words += [found] if found else []
    return words + words_of_text(text)


def _breaks(name: str, foreign: bool, inside: bool) -> bool:
    """foreign: the tag stands in svg or math, not where HTML goes on in them; inside: it stands anywhere below them."""
    return name in _BREAKING or (foreign and name not in _FORMATTING) or (inside and name in _POINTS)


def _is_shadow(attributes: dict[str, str]) -> bool:
    values = (attributes.get("shadowrootmode"), attributes.get("shadowroot"))
    return any(value is not None and re.fullmatch("(?i:open|closed)", value, re.ASCII) for value in values)


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
        hidden = self.templates > 0 or any(
            node.name in ("script", "style") or (node.name in _UNSHOWN and node.namespace == _HTML) for node in nodes
        )
        if kind in (tokenTypes["Characters"], tokenTypes["SpaceCharacters"]):
            if not hidden:
                self.pieces.append(("text", token["data"]))
            return
        name = token.get("name") or ""
        inside = any(node.namespace != _HTML for node in nodes)
        foreign = bool(nodes) and nodes[-1].namespace != _HTML
        if foreign and (self.isHTMLIntegrationPoint(nodes[-1]) or self.isMathMLTextIntegrationPoint(nodes[-1])):
            foreign = False
        is_tag = kind in (tokenTypes["StartTag"], tokenTypes["EndTag"])
        if is_tag and not hidden and _breaks(name, foreign, inside):
            self.pieces.append(("break", ""))
        if kind == tokenTypes["StartTag"]:
            if foreign and name in ("img", "meta"):  # these end foreign content, and what hides in it
                foreign, hidden = False, self.templates > 0
            if not (hidden or foreign):
                self.pieces += _terms(name, dict(token["data"]))
            shown = _is_shadow(dict(token["data"])) and not self.templates
            self.templates += name == "template" and not foreign and not shown
        elif kind == tokenTypes["EndTag"] and name == "template" and self.templates:
            self.templates -= 1


def stream_words(page: bytes, host: str = "") -> list[str]:
    """Token strings of the markup as it stands: what the kernels must give."""
    recorder = _Recorder()
    recorder.parse(_decoded(page))
    return words_of_pieces(iter(recorder.pieces), host)


def _walk(element, inside: bool = False) -> Iterator[Piece]:  # type: ignore[no-untyped-def]
    space, _, name = element.tag.rpartition("}") if isinstance(element.tag, str) else ("", "", "")
    foreign = bool(name) and space != "{" + _HTML
    breaks = bool(name) and _breaks(name.lower(), foreign, inside)
    if breaks:
        yield "break", ""
    if name:
        yield from _terms(name, element.attrib)
        shadow = name == "template" and not foreign and _is_shadow(element.attrib)
        if (name not in _HIDDEN or shadow) and not (name in _UNSHOWN and not foreign):
            yield "text", element.text or ""
            for child in element:
                yield from _walk(child, inside or foreign)
                yield "text", child.tail or ""
    if breaks:
        yield "break", ""


def stream_and_tree_words(page: bytes, host: str = "") -> tuple[list[str], list[str]]:
    """Those of `stream_words`, and the token strings of the finished tree, in document order."""
    recorder = _Recorder()
    root = recorder.parse(_decoded(page))
    return words_of_pieces(iter(recorder.pieces), host), words_of_pieces(_walk(root), host)


def valid_utf8(data):
    """Whether bytes are characters of the table of RFC 3629, section 4; the end may cut the last one."""
    while data:
        first, *rest = data
        size = 1 if first < 0x80 else 2 if 0xC2 <= first < 0xE0 else 3 if 0xE0 <= first < 0xF0 else 4
        if 0x80 <= first < 0xC2 or first > 0xF4:
            return False
        least, most = {0xE0: (0xA0, 0xBF), 0xED: (0x80, 0x9F), 0xF0: (0x90, 0xBF), 0xF4: (0x80, 0x8F)}.get(
            first, (0x80, 0xBF)
        )
        for i, byte in enumerate(rest[: size - 1]):
            if not (least <= byte <= most if i == 0 else 0x80 <= byte <= 0xBF):
                return False
        data = data[size:]
    return True
