"""Copies of pages that look the same in a browser, and have other bytes inside the words."""

import re
from collections.abc import Callable
from random import Random

from tests.measure.gate.same import article, begun, drawn, slug
from tests.measure.gate.sites import Sample

_SOFT = ("\u00ad", "&shy;", "&#173;", "&#xAD;")
_ZERO_WIDTH = (
    *("\u200b", "\u200c", "\u200d", "\u2060", "\ufeff", "\u034f", "\ufe0f", "\U000e0061", "\u3164", "\0", "\x01"),
    *("&ZeroWidthSpace;", "&zwnj;", "&NoBreak;", "&#8203;"),
)
_MARKUP = (
    *("<!-- x -->", "<!---->", "<script>var a = 'b';</script>", "<style>p { }</style>", "<x-y></x-y>"),
    *("<object></object>", "<template>a <p> b</template>", "<?x?>", "</ x>"),
    *("<noscript></noscript>", "<img>", "<meta name=a>", "<wbr>"),
)  # fmt: skip
_LIGATURES = {"ffi": "ﬃ", "fi": "ﬁ", "fl": "ﬂ", "ff": "ﬀ", "st": "ﬆ"}


def _letters(upper: int, lower: int, digit: int) -> dict[int, int]:
    starts = ((ord("A"), upper, 26), (ord("a"), lower, 26), (ord("0"), digit, 10))
    return {first + i: other + i for first, other, many in starts for i in range(many)}


_FULL_WIDTH = _letters(0xFF21, 0xFF41, 0xFF10)
_BOLD, _MONOSPACE = _letters(0x1D400, 0x1D41A, 0x1D7CE), _letters(0x1D670, 0x1D68A, 0x1D7F6)


def _inside(parts: tuple[str, ...]) -> Callable[[str, Random], str]:
    """One of `parts` behind one in four of the characters of a word, the last one included."""
    return lambda word, random: "".join(
        char + (random.choice(parts) if random.random() < 0.25 else "") for char in word
    )


def _ligatures(word: str, _: Random) -> str:
    for letters, ligature in _LIGATURES.items():
        word = word.replace(letters, ligature)
    return word


#: By name: what is done to each word of the body.
DISGUISES: dict[str, Callable[[str, Random], str]] = {
    "soft hyphens": _inside(_SOFT),
    "zero-width characters": _inside(_ZERO_WIDTH),
    "markup": _inside(_MARKUP),
    "fullwidth letters": lambda word, _: word.translate(_FULL_WIDTH),
    "mathematical letters": lambda word, random: word.translate(random.choice((_BOLD, _MONOSPACE))),
    "ligatures": _ligatures,
}
_WORD = re.compile(r"<[^>]*>|&[#\w]+;|\w+")


def disguised(html: str, name: str, random: Random) -> str:
    """A page with each word of its body disguised."""
    head, body, rest = html.partition("<body")
    start, end, text = rest.partition(">")

    def one(found: re.Match[str]) -> str:
        return found[0] if found[0][0] in "<&" else DISGUISES[name](found[0], random)

    return head + body + start + end + _WORD.sub(one, text)


def disguised_mirrors(n: int, seed: int) -> list[Sample]:
    """Articles, and a mirror of each on another site, one disguise after another."""
    random, language, sites = begun(seed)
    names = list(DISGUISES)

    def copies() -> list[Sample]:
        site, topic = random.choice(sites), language.topic(random)
        html = site.html(f"{topic} | {site.name}", article(language, random, topic), "")
        copy = disguised(html.decode(), random.choice(names), random)
        mirror = f"mirror{random.randrange(10**6)}.example"
        return [
            Sample(f"http://{site.host}/{slug(topic)}", html, topic, "disguised mirrors"),
            Sample(f"http://{mirror}/{slug(topic)}", copy.encode(), topic, "disguised mirrors"),
        ]

    return drawn(n, random, copies)
