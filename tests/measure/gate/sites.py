"""Made-up sites: the boilerplate that all pages of one template share, in four families."""

from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from tests.measure.gate.language import Language


class Sample(NamedTuple):
    """One page of known truth: pages of one `item` say the same, pages of two items do not. kind: its class."""

    url: str
    html: bytes
    item: str
    kind: str


FAMILIES = ("portal", "shop", "reference", "plain")


@dataclass
class Site:
    """One template. before, after: HTML around the main part; slogan: what constant titles say."""

    language: Language
    host: str
    name: str
    slogan: str
    before: str
    after: str

    def html(self, title: str, main: str, stamp: str = "") -> bytes:
        """The whole page. stamp: text of the footer: date or user of the page."""
        stamp = f'<div class="stamp">{stamp}</div>' if stamp else ""
        return (
            '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">\n'
            f"<title>{title}</title>\n"
            '<link rel="stylesheet" href="/static/site.css"><style>body { margin: 0 auto }</style>\n'
            '<script>window.dataLayer = window.dataLayer || []; var page = "<p>not text</p>";</script></head>\n'
            f'<body class="page">{self.before}\n<main id="main">{main}</main>\n{self.after}{stamp}</body></html>\n'
        ).encode()


def make_site(language: Language, random: Random, family: str) -> Site:
    """A site of a family with its own words; boilerplate of some 15 to 400 tokens."""
    name = language.name(random)
    host = f"www.{name.lower()}{random.randint(1, 999)}.com"
    slogan = f"{name} - {language.topic(random, 3, 6)}"
    before, after = _BOILERPLATE[family](language, random, name)
    return Site(language, host, name, slogan, before, after)


def _links(language: Language, random: Random, count: int, most: int = 3) -> str:
    labels = [language.label(random, most) for _ in range(count)]
    return "<ul>" + "".join(f'<li><a href="/go/{i}">{label}</a></li>' for i, label in enumerate(labels)) + "</ul>"


def _portal(language: Language, random: Random, name: str) -> tuple[str, str]:
    before = (
        f'<header><img src="/logo.png" alt="{name}"><form action="/search"><input name="q"></form></header>'
        f"<nav>{_links(language, random, random.randint(8, 20))}</nav>"
    )
    after = (
        f"<aside><h3>{language.label(random)}</h3>{_links(language, random, random.randint(5, 15), 8)}</aside>"
        f"<footer>{_links(language, random, random.randint(4, 10), 2)}"
        f"<p>&copy; {name}. {language.text(random, random.randint(20, 60))}</p></footer>"
    )
    return before, after


def _shop(language: Language, random: Random, name: str) -> tuple[str, str]:
    before = (
        f'<div id="top"><a href="/">{name}</a> | <a href="/cart">{language.label(random, 2)}</a></div>'
        f'<div id="categories">{_links(language, random, random.randint(15, 40), 2)}</div>'
    )
    after = (
        f'<div id="service"><h4>{language.label(random)}</h4>{_links(language, random, random.randint(8, 16))}</div>'
        f'<div id="legal"><p>{language.text(random, random.randint(40, 120))}</p>'
        f"<p>{name} &reg; {language.text(random, random.randint(10, 30))}</p></div>"
    )
    return before, after


def _reference(language: Language, random: Random, name: str) -> tuple[str, str]:
    before = (
        f'<div class="top">{_links(language, random, 8, 1)}</div>'
        f'<div class="toc">{_links(language, random, random.randint(20, 80), 2)}</div>'
    )
    after = f'<div class="bottom"><small>{name}. {language.text(random, random.randint(10, 30))}</small></div>'
    return before, after


def _plain(language: Language, random: Random, name: str) -> tuple[str, str]:
    return "", f"<hr><address>{name}, {language.text(random, random.randint(10, 30))}</address>"


_BOILERPLATE = {"portal": _portal, "shop": _shop, "reference": _reference, "plain": _plain}


def make_sites(language: Language, random: Random, count: int = 4) -> list[Site]:
    """`count` sites, families in turn."""
    return [make_site(language, random, FAMILIES[i % len(FAMILIES)]) for i in range(count)]


DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)


def time_stamp(random: Random) -> str:
    """What servers print about a fetch: when, how long it took, which visitor."""
    clock = f"{random.randint(0, 23):02}:{random.randint(0, 59):02}:{random.randint(0, 59):02}"
    date = f"{random.choice(DAYS)}, {random.randint(1, 28)} {random.choice(MONTHS)} {random.randint(2005, 2024)}"
    return random.choice(
        (
            f"It is now {date} {clock}.",
            f"Page generated in 0.{random.randint(1, 9999):04} seconds with {random.randint(4, 40)} queries.",
            f"You are visitor number {random.randint(1000, 9_999_999)} since 1 May 1999. Last change: {date}.",
            f"Served {clock} GMT by web{random.randint(1, 40)}.",
        )
    )
