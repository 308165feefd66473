"""Hostile and real pages for the tests of html and tokens, and how large inputs may be with the JIT off."""

import os
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import strategies as st

from tests.whole import count

#: Without the JIT the kernels are a thousand times slower: inputs of 2 kB, few examples.
JIT_OFF = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
BYTES_MAX = 2000 if JIT_OFF else 50_000
EXAMPLES = 25 if JIT_OFF else count(150, 300)
OWN_HOST = "own.example"

needs_jit = pytest.mark.skipif(JIT_OFF, reason="input too large with the JIT off")

_ARCHIVES = Path(__file__).parents[3] / "shared" / "data"

_MARKUP_TEXT = """< & > ' " / = - ! ? a B c7 word Long <!-- --> --!> <!--> <!---> <!> <?php?> </> </b> <b> <B> <br>
<br/> <span> <wbr> <a> <a/href=x> </a> <input> <hr/> <h1> </h1> <h2> </h2> <table> <td>
<ul><li> <body> <html/lang=en> <noscript>
</noscript>
<script> </script> <!--<script> </script/ <style> </style> <title> </title> <textarea> </textarea> <xmp> </xmp>
<template> </template> <img/src=a/b.png> <img/src='//o.com/x/../y.png?q#f'> <img/src="http://own.example/z.gif?1">
<img/src=data:xx> <image/src=k> <iframe/src=i.html> </iframe> <frame/src=f.html>
<meta/http-equiv=refresh/content='0;url=t.html'> <meta/http-equiv=Refresh/content="5"> <base/href='http://o.com/d/e?x'>
<base/href=/r/> &amp &amp; &notit; &not &notin; &#x41; &#65 &#150; &#0; &#x110000; &#xD800; &nbsp; &nGt; &eacute &copy=
&ampx &# &#x;"""
_MARKUP_TEXT += """ <custom-el> </custom-el> <unknown/> <longunknownname> <object> </object> <noembed> </noembed>
<noframes> </noframes> <blockquote> <link> &shy; &zwnj; &#173; &#x200b; &ZeroWidthSpace; &#1; &frac12; &fflig;"""
_MARKUP_TEXT += """ <template/shadowrootmode=open> <template/shadowroot='Closed'> <template/shadowrootmode=no>
</template>"""
_MARKUP = _MARKUP_TEXT.split()
_HTML_ONLY = ["<p>", "</p>", "<p", "<div class='x'>", "</div>", "</body>", "</html>"]
# In foreign content an end tag of an HTML element ends it only if that element is open, which takes a tree to know.
_FOREIGN_TEXT = (
    "<svg> </svg> <svg/> <math> </math> <foreignObject> </foreignObject> <desc> <mi> </mi> <g> </g> <![CDATA[ ]]>"
)
_FOREIGN = _FOREIGN_TEXT.split()
_LOOSE = [
    " ",
    "\n",
    "\t",
    "\f",
    ' a="',
    " href=x",
    " =y",
    " b='",
    "</script ",
    "</ >",
    "<IMG alt=x src= q >",
    '<A HREF="q">',
]
_LOOSE += ["x" * 9, "y" * 17, "z" * 70, "é", "É", "漢", "字", "カ", "ー", "ไ", "ท", "ລ", "ខ", "မ", "İ", "Ⱥ", "ß", "ẞ"]
_LOOSE += ["\xad", "\u200b", "\U000e0100", "ﬁ", "½", "Ａ", "㋿", "ำ", "ﻻ", "ﷺ"]
_LOOSE += ["e\u0301", "â\u0323", "ᄀ\u1161", "ｶﾞ", "ا\u064eـأ", "ı", "ς"]
_LOOSE += ["\u0301", "٣", "\u200d", "\ufeff", "😀", "\x7f", *"\0\1\2\3\4\5"]
_BROKEN = [b"\xc3", b"\xa9", b"\xff", b"\xed\xa0\x80", b"\xf0\x9f", b"\xe1\x80"]


def _pages(parts: list[str]) -> st.SearchStrategy[bytes]:
    piece = st.sampled_from([part.encode() for part in parts + _LOOSE] + _BROKEN)
    return st.lists(piece, min_size=1, max_size=40).map(b"".join).map(lambda page: page[:BYTES_MAX])


#: Pages of markup in pieces, whole and broken, with bytes that are no UTF-8.
hostile_pages = st.one_of(
    _pages(_MARKUP + _HTML_ONLY),
    _pages([part for part in _MARKUP if part not in ("<", "</h1>", "</h2>")] + _FOREIGN),
)


def archive_pages(archive: str, count: int) -> Iterator[tuple[str, bytes]]:
    """(name, bytes) of some pages of a public corpus, always the same; skips the test where the corpus is missing."""
    path = _ARCHIVES / f"{archive}.tar.xz"
    if not path.exists():
        pytest.skip(f"no corpus {path.name} in ../shared/data beside the repository")
    with tarfile.open(path, "r|xz") as members:
        for member in members:
            if member.isfile() and member.name.endswith(".html") and zlib.crc32(member.name.encode()) % 40 == 0:
                body = members.extractfile(member)
                assert body is not None
                yield member.name, body.read()
                count -= 1
                if count == 0:
                    return
