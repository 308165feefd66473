"""The template of one made-up site, and the pages that stand in it."""

from collections.abc import Callable, Sequence
from html import escape
from random import Random
from typing import NamedTuple

from tests.measure.gate.language import Language

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_LANGUAGES = (97, 98)
#: Of 10 pages, so many come again at another address, in generators that say nothing else.
AGAIN_PER_10 = 1


class SitePage(NamedTuple):
    """One page of known truth.

    main: HTML of the main part, which the truth compares; never shown to a rule apart from the page.
    item: pages of one item are one page to a reader: one should hide the others.
    work: items of one work are editions of one another, by their likeness. Without a work no other item is related.
    loose: whether other items of the work are editions at any likeness: a list in another order, a product's variant.
    own_bytes: whether equal words do not make this page another one's repeat, because scripts or targets differ.
    """

    url: str
    body: bytes
    main: str
    item: str
    work: str = ""
    loose: bool = False
    own_bytes: bool = False
    content_type: str = "text/html; charset=utf-8"


class Frame:
    """One site: its random numbers, words and template, and the pages that were added to it.

    style: 0 or 1: which of two sets of templates, addresses and labels the generator uses. size: pages to make.
    """

    def __init__(self, kind: str, style: int, size: int, host: str = "", family: str = "") -> None:
        self.kind, self.style, self.size = kind, style, size
        self.random = random = Random(f"{kind} {style} {host}")
        self.language = language = Language(_LANGUAGES[style])
        self.name = language.name(random)
        self.host = host or f"www.{self.name.lower()}{random.randint(1, 99)}.com"
        families = ("portal", "docs", "board", "plain")
        self.family = family or families[random.randrange(len(families))]
        self.before, self.after = _BOILERPLATE[self.family](self)
        self._teasers = [language.topic(random, 4, 8) for _ in range(40)]
        self.pages: list[SitePage] = []
        self._urls: set[str] = set()

    @property
    def full(self) -> bool:
        return len(self.pages) >= self.size

    def pick(self, *of: str) -> str:
        """The value for this site's style: one of two."""
        return of[self.style]

    def text(self, least: int, most: int) -> str:
        return self.language.text(self.random, self.random.randint(least, most))

    def paragraphs(self, least: int, most: int) -> str:
        return self.language.paragraphs(self.random, self.random.randint(least, most))

    def topic(self, least: int = 3, most: int = 8) -> str:
        return self.language.topic(self.random, least, most)

    def label(self, most: int = 3) -> str:
        return self.language.label(self.random, most)

    def names(self, count: int) -> list[str]:
        return [self.language.name(self.random) for _ in range(count)]

    def date(self) -> str:
        random = self.random
        return f"{random.randint(1, 28)} {random.choice(MONTHS)} {random.randint(2009, 2024)}"

    def clock(self, seconds: bool = False) -> str:
        random = self.random
        tail = f":{random.randint(0, 59):02}" if seconds else ""
        return f"{random.randint(0, 23):02}:{random.randint(0, 59):02}{tail}"

    def age(self) -> int:
        """Minutes since something was written, from a minute to years."""
        return int(10 ** self.random.uniform(0, 6.2))

    def session(self) -> str:
        return f"{self.random.getrandbits(64):016x}"

    def links(self, labels: Sequence[str], path: str = "/go/") -> str:
        return "<ul>" + "".join(f'<li><a href="{path}{i}">{one}</a></li>' for i, one in enumerate(labels)) + "</ul>"

    def html(self, title: str, main: str, *, head: str = "", around: str = "", stamp: bool = True) -> bytes:
        """The whole page. head: further elements of the head; around: what follows the main part inside the frame."""
        rotating = ""
        if self.family == "portal":
            chosen = self.random.sample(self._teasers, 3)
            rotating = f'<aside class="latest"><h4>Latest</h4>{self.links(chosen, "/news/")}</aside>'
        footer = f"<p class='t'>{self._stamp()}</p>" if stamp and self.family in ("board", "portal") else ""
        return (
            f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title, quote=False)}</title>'
            f'<meta name="viewport" content="width=device-width"><link rel="stylesheet" href="/site.css">{head}\n'
            '<script>window.dataLayer = window.dataLayer || []; dataLayer.push({"page": 1});</script></head>\n'
            f'<body>{self.before}\n<div id="content" class="col-md-9">{main}</div>\n{around}{rotating}{self.after}'
            f"{footer}</body></html>\n"
        ).encode()

    def _stamp(self) -> str:
        random = self.random
        if self.family == "board":
            return f"Powered by boardware. It is now {self.clock()}. {random.randint(20, 900)} users online."
        return f"Generated in 0.{random.randint(10, 999)} seconds"

    def add(self, path: str, title: str, main: str, item: str, work: str = "", **more: object) -> None:
        """Add a page unless its address is taken. more: parameters of `html`, and fields of the page."""
        fields = {name: more.pop(name) for name in ("loose", "own_bytes") if name in more}
        self.add_raw(SitePage(self.url(path), self.html(title, main, **more), main, item, work, **fields))  # type: ignore[arg-type]

    def add_bare(self, path: str, title: str, main: str, item: str, work: str = "", head: str = "") -> None:
        """Add a page without the frame, as for printers and mobiles, unless its address is taken."""
        body = (
            f'<html><head><meta charset="utf-8"><title>{escape(title, quote=False)}</title>{head}</head><body>{main}'
            f"<p>From {self.name}</p></body></html>"
        )
        self.add_raw(SitePage(self.url(path), body.encode(), main, item, work))

    def add_raw(self, page: SitePage) -> None:
        """Add a page that does not stand in the frame, unless its address is taken."""
        if page.url not in self._urls:
            self._urls.add(page.url)
            self.pages.append(page)

    def url(self, path: str) -> str:
        return path if "://" in path else f"https://{self.host}{path}"

    def now_and_then(self, per_10: int = AGAIN_PER_10) -> bool:
        return self.random.random() < per_10 / 10

    def arrived(self) -> list[SitePage]:
        """The pages in the order of the crawl."""
        self.random.shuffle(self.pages)
        return self.pages[: self.size]


_UNITS = ((525_600, "year"), (43_200, "month"), (10_080, "week"), (1440, "day"), (60, "hour"), (1, "minute"))


def ago(minutes: int) -> str:
    """How long ago something was, as forums say."""
    for size, unit in _UNITS:
        if minutes >= size:
            count = minutes // size
            return f"{count} {unit}{'s' * (count > 1)} ago"
    return "just now"


def slug(text: str) -> str:
    """The words of a text as a segment of a path."""
    return "-".join("".join(c if c.isalnum() else " " for c in text.lower()).split())


def table(rows: Sequence[Sequence[object]], head: Sequence[str] = ()) -> str:
    first = "<tr>" + "".join(f"<th>{cell}</th>" for cell in head) + "</tr>" if head else ""
    lines = ("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table>{first}{''.join(lines)}</table>"


def _labels(frame: Frame, least: int, most: int, words: int = 3) -> list[str]:
    return [frame.label(words) for _ in range(frame.random.randint(least, most))]


def _portal(frame: Frame) -> tuple[str, str]:
    before = (
        f'<header><a href="/"><img src="/img/logo.svg" alt="{frame.name}"></a><form action="/search"><input name="q">'
        f"<button>Search</button></form></header><nav>{frame.links(_labels(frame, 10, 22))}</nav>"
    )
    after = (
        f"<aside><h3>{frame.label()}</h3>{frame.links(_labels(frame, 5, 12, 6), '/top/')}</aside>"
        f"<footer>{frame.links(_labels(frame, 6, 12), '/about/')}<p>&copy; 2024 {frame.name}. All rights reserved. "
        f"{frame.text(25, 60)}</p><p>Privacy policy | Terms of use | Cookies</p></footer>"
    )
    return before, after


def _docs(frame: Frame) -> tuple[str, str]:
    before = (
        f'<div id="header"><h2>{frame.name}</h2>{frame.links(_labels(frame, 6, 9, 2))}</div>'
        f'<div id="sidebar"><h4>{frame.label()}</h4>{frame.links(_labels(frame, 18, 50), "/docs/")}</div>'
    )
    after = f'<div id="footer"><p>{frame.name} is published under a free licence. {frame.text(10, 30)}</p></div>'
    return before, after


def _board(frame: Frame) -> tuple[str, str]:
    before = (
        f'<table class="top"><tr><td><a href="/">{frame.name} Index</a></td><td>FAQ</td><td>Search</td>'
        f"<td>Members</td><td>Register</td><td>Log in</td></tr></table><p>{frame.text(8, 20)}</p>"
    )
    after = (
        f"<p>You cannot post new topics. You cannot reply to topics. You cannot edit your posts.</p>"
        f"<form><select>{''.join(f'<option>{one}</option>' for one in _labels(frame, 8, 25))}</select>"
        f"<input type=submit value=Go></form><address>{frame.name}, {frame.text(8, 20)}</address>"
    )
    return before, after


def _plain(frame: Frame) -> tuple[str, str]:
    before = f'<p><a href="/">{frame.name}</a> &gt; <a href="/all">{frame.label()}</a></p><hr>'
    return before, f"<hr><address>{frame.name}. {frame.text(10, 25)}</address>"


_BOILERPLATE: dict[str, Callable[[Frame], tuple[str, str]]] = {
    "portal": _portal,
    "docs": _docs,
    "board": _board,
    "plain": _plain,
}
