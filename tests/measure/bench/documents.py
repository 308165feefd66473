"""What the bench reads: made-up pages and texts, the same on every machine."""

from random import Random

from neardup.page import Page
from tests.measure.gate.language import Language

WORDS = 350
#: Of each text with a planted copy, so many words are replaced: about .87 of its shingles of 8 words are left.
EDITS = 3


def language() -> Language:
    return Language(7)


def texts(count: int, seed: int = 1) -> list[str]:
    """Documents of 350 words."""
    spoken, random = language(), Random(seed)
    return [spoken.text(random, WORDS) for _ in range(count)]


def copies(originals: list[str], seed: int = 2) -> list[str]:
    """A near-duplicate of each: some words are others."""
    spoken, random = language(), Random(seed)
    out = []
    for text in originals:
        words = text.split(" ")
        for at in random.sample(range(len(words)), EDITS):
            words[at] = spoken.draw(random, 1)[0]
        out.append(" ".join(words))
    return out


def plain_pages(found: list[str], first: int = 0) -> list[Page]:
    """Texts as pages of many sites."""
    return [
        Page(f"http://s{(first + i) % 997}.example/{first + i}", text.encode(), "text/plain; charset=utf-8", 1_000 + i)
        for i, text in enumerate(found)
    ]


_WEB_HEAD = (
    "<!DOCTYPE html><html lang=en><head><meta charset=utf-8><title>{title}</title>"
    '<link rel="canonical" href="https://www.example.com/{name}"><link rel="stylesheet" href="/assets/site.css">'
    '<script>(function(w,d){{w.dataLayer=w.dataLayer||[];var s=d.createElement("script");s.async=true;'
    's.src="https://tags.example.net/t.js?id=42&v=3";d.head.appendChild(s)}})(window,document);{code}</script>'
    '<style>{style}</style></head><body class="page page--{name}"><!-- navigation --><nav><ul>'
)


def web_page(seed: int) -> bytes:
    """A page as shops and papers have them: navigation, scripts, styles, images, long attributes, little text."""
    spoken, random = language(), Random(seed)
    title = spoken.text(random, 6)
    parts = [
        _WEB_HEAD.format(
            title=title,
            name=spoken.label(random).lower().replace(" ", "-"),
            code=";".join(f"var v{i}={random.randint(0, 99999)}" for i in range(300)),
            style="".join(f".c{i}{{margin:0 {i}px;color:#{random.randint(0, 0xFFFFFF):06x}}}" for i in range(150)),
        )
    ]
    for i in range(60):
        parts.append(
            f'<li class="nav__item nav__item--{i}" data-index="{i}"><a class="nav__link" href="/c/{i}?a=1&amp;p={i}"'
            f' title="{spoken.label(random)}">{spoken.label(random)}</a></li>\n'
        )
    parts.append("</ul></nav><main>")
    for i in range(40):
        parts.append(
            f'<div class="card card--wide" id="card-{i}"><a href="https://www.example.com/item/{i}" class="card__link">'
            f'<img src="https://img.example.net/{i}/{random.randint(0, 9999)}.jpg" width="320" height="200" alt="">'
            f'<h3 class="card__title">{spoken.label(random)}</h3></a><p>{spoken.text(random, 18)}</p>'
            f'<span class="price">&euro;&nbsp;{random.randint(1, 999)}.99</span></div>\n'
        )
    parts.append(f"</main><article>{spoken.paragraphs(random, 700)}</article>")
    parts.append("<footer>" + "".join(f'<a href="/f/{i}">{spoken.label(random)}</a> | ' for i in range(25)))
    parts.append("&copy; 2024 Example &mdash; all rights reserved.</footer></body></html>")
    return "".join(parts).encode()


def documentation_page(seed: int) -> bytes:
    """A page of about 50 kB as documentation tools make them: as many tags as words, short names, relative links."""
    spoken, random = language(), Random(seed)
    name = spoken.words[random.randint(1000, 9000)].capitalize()
    parts = [f'<!DOCTYPE HTML>\n<html lang="en">\n<head>\n<title>{name} (library 4.2 API)</title>\n</head>\n<body>\n']
    size = 0
    while size < 50_000:
        method = random.choice(spoken.words[500:6000])
        kind = random.choice(spoken.words[300:900]).capitalize()
        part = (
            f'<section class="detail" id="{method}({kind})">\n<h3>{method}</h3>\n<div class="member-signature">'
            f'<span class="modifiers">public</span>&nbsp;<span class="return-type"><a href="../util/{kind}.html" '
            f'title="class in org.example.library.util">{kind}</a></span>&nbsp;<span class="element-name">'
            f'{method}</span><wbr><span class="parameters">({kind}&nbsp;value)</span></div>\n<div class="block">'
            f'{spoken.text(random, random.randint(8, 40))} <code>{method}</code></div>\n<dl class="notes">\n'
            f"<dt>Parameters:</dt>\n<dd><code>value</code> - {spoken.text(random, 7)}</dd>\n<dt>Returns:</dt>\n"
            f"<dd>{spoken.text(random, 6)}</dd>\n</dl>\n</section>\n"
        )
        parts.append(part)
        size += len(part)
    return ("".join(parts) + "</body>\n</html>\n").encode()


def worst_cases(size: int) -> dict[str, bytes]:
    """Inputs of about `size` bytes that are made to be slow."""

    def fill(part: bytes, before: bytes = b"") -> bytes:
        return before + part * (size // len(part))

    return {
        "&&&": fill(b"&"),
        "<<<": fill(b"<"),
        "one token": fill(b"a"),
        "tokens of one letter": fill(b"a "),
        "tags between letters": fill(b"a<b>"),
        "paragraphs of one letter": fill(b"a<p>"),
        "unclosed comments": fill(b"<!--"),
        "unclosed attributes": fill(b'<a b="'),
        "attributes without end": fill(b"b ", b"<a "),
        "names of attributes": fill(b"<a b=' \">"),
        "references": fill(b"&amp;"),
        "references that are none": fill(b"&aaaaaaaa"),
        "longest references": fill(b"&CounterClockwiseContourIntegral;"),
        "numeric references": fill(b"&#65;"),
        "scripts in scripts": fill(b"<!--<script>", b"<script>"),
        "CDATA": fill(b"<![CDATA[", b"<svg>"),
        "nested svg": fill(b"<svg>"),
        "templates": fill(b"<template>"),
        "images": fill(b"<img src=x>", b"<base href=http://o.example/" + b"a/" * 900 + b">"),
        "links": fill(b"x<a href=x>"),
        "Han": fill("漢字".encode()),
        "soft hyphens": fill("a\u00ad".encode()),
        "fractions": fill("½ ".encode()),
        "Cyrillic": fill("привет мир ".encode()),
        "bytes of no character": fill(b"\xe1\x80"),
        "one word for ever": fill(b"word "),
    }
