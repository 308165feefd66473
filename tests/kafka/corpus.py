"""A crawl of any length from a seed: copies, edits, fetches again, tombstones, errors, poison. Each event by itself.

`event(number)` needs no earlier event: a page that is copied or fetched again is made anew from its own number.
"""

import random
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_WORDS_RANDOM = random.Random(1)
WORDS = ["".join(_WORDS_RANDOM.choices("abcdefghiklmnoprstuvw", k=_WORDS_RANDOM.randint(2, 11))) for _ in range(6000)]
SITES = 50
_EPOCH_MS = 1_577_836_800_000


@dataclass(frozen=True, slots=True)
class Event:
    """One record of the pages topic. kind: what it is meant to be."""

    kind: str
    key: bytes
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()


def real_pages(archive: Path) -> Iterator[Event]:
    """The HTML files of a tar archive, in its order."""
    with tarfile.open(archive, "r|*") as tar:
        for member in tar:
            if member.isfile() and member.name.endswith((".html", ".htm")):
                file = tar.extractfile(member)
                assert file is not None
                url = f"https://{archive.name.partition('.')[0].replace('_', '-')}.example/{member.name}"
                yield Event("real", url.encode(), file.read(), (("content-type", b"text/html"),))


class Corpus:
    """pages_words: about so many words a page, in the mean."""

    def __init__(self, seed: int, *, page_words: int = 300) -> None:
        self._seed = seed
        self._words = page_words

    def _random(self, what: int, number: int) -> random.Random:
        return random.Random((self._seed << 40) + (number << 2) + what)

    def _texts(self, number: int) -> list[str]:
        chance = self._random(1, number)
        count = int(self._words * chance.choice((0.3, 0.6, 0.9, 1.0, 2.2)))
        return chance.choices(WORDS, k=count)

    def _page(self, number: int, words: list[str]) -> bytes:
        """In the surroundings of its site."""
        site = number % SITES
        title = " ".join(words[:5])
        parts = [f"<!doctype html><html><head><title>{title} | Site {site}</title></head><body><ul>"]
        parts += [f'<li><a href="/menu/{each}">{WORDS[site * 40 + each]}</a>' for each in range(12)]
        parts.append(f"</ul><h1>{title}</h1>")
        for start in range(0, len(words), 60):
            parts.append(f"<p>{' '.join(words[start : start + 60])}.</p>\n")
        parts.append(f"<div>Site {site}, all rights reserved</div></body></html>")
        return "".join(parts).encode()

    def _edited(self, chance: random.Random, words: list[str]) -> list[str]:
        """Another date, a word or two, some words at the end."""
        words = list(words)
        for _ in range(chance.randrange(3)):
            words[chance.randrange(5, len(words))] = chance.choice(WORDS)
        return words + chance.choices(WORDS, k=chance.randrange(1, 4))

    def event(self, number: int) -> Event:
        """The event of this number, from 0 on."""
        chance = self._random(0, number)
        back = chance.randrange(number + 1) if chance.random() < 0.2 else int(chance.expovariate(1 / 800))
        other = max(0, number - 1 - back)
        what = chance.random()
        when = _EPOCH_MS + number * 1000

        def fetch(
            kind: str,
            of: int,
            body: bytes,
            *,
            url: str = "",
            ms: int = when,
            status: int = 200,
            media: str = "text/html",
        ) -> Event:
            url = url or f"http://site{of % SITES}.example/d/{of}"
            headers = (("content-type", media.encode()), ("http-status", b"%d" % status), ("fetched-at", b"%d" % ms))
            return Event(kind, url.encode(), body, headers)

        if what < 0.50:
            return fetch("new", number, self._page(number, self._texts(number)))
        if what < 0.60:
            url = f"http://mirror{number % 7}.example/{number}"
            return fetch("copy", other, self._page(other, self._texts(other)), url=url)
        if what < 0.72:
            url = f"http://mirror{number % 7}.example/{number}"
            body = self._page(other, self._edited(chance, self._texts(other)))
            return fetch("edited copy", other, body, url=url)
        if what < 0.78:
            return fetch("again", other, self._page(other, self._texts(other)))
        if what < 0.80:
            return fetch("older", other, self._page(other, self._texts(other)), ms=_EPOCH_MS + other * 1000 - 500)
        if what < 0.86:
            return fetch("edited", other, self._page(other, self._edited(chance, self._texts(other))))
        if what < 0.88:
            return fetch("replaced", other, self._page(other, self._texts(number)))
        if what < 0.90:
            return Event("gone", f"http://site{other % SITES}.example/d/{other}".encode(), None)
        if what < 0.92:
            return fetch("not found", other, b"<p>nothing here", status=chance.choice((404, 410)))
        if what < 0.94:
            return fetch("error", other, b"<p>try later", status=chance.choice((301, 500, 503)))
        if what < 0.96:
            return self._poison(chance, number)
        if what < 0.975:
            return fetch("thin", number, f"<title>{number}</title>".encode() if number % 2 else b"")
        if what < 0.98:
            return fetch("binary", number, chance.randbytes(3000), media="application/octet-stream")
        if what < 0.981:
            return fetch("large", number, b"".join(self._page(number, self._texts(number + k)) for k in range(200)))
        url = f"http://other{number % 5}.example/{number}"
        return fetch("moved", other, self._page(number, self._texts(other)), url=url)

    def _poison(self, chance: random.Random, number: int) -> Event:
        """What no page can be read from."""
        url = f"http://poison.example/{number}".encode()
        headers: dict[str, bytes] = {}
        value: bytes | None = b"<p>poison"
        which = chance.randrange(6)
        if which == 0:
            url = chance.randbytes(9)
        elif which == 1:
            url = b""
        elif which == 2:
            headers = {"http-status": b"fine"}
        elif which == 3:
            headers = {"fetched-at": b"9" * 30}
        elif which == 4:
            headers, value = {"body-ref": b"file:///etc/passwd"}, None
        else:
            url = b"http://[" + url
        return Event("poison", url, value, tuple(headers.items()))
