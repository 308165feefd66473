"""A small web of known truth, for evaluations: generated sites and real documentation, with mirrors.

    python -m tests.measure.gate.web build/web --pages 20000 --docs FOLDER --docs 'FOLDER=REGEX'
    neardup evaluate build/web/pages.jsonl --items build/web/items.jsonl --out build/web/evaluation

pages.jsonl is a crawl in a random order of arrival, items.jsonl says what each page is about. Of the generated pages
three quarters are of ordinary sites, an eighth copies of documents on many sites, an eighth of the gate's classes.
--docs names a folder of HTML: its pages are items by their path; what REGEX finds in the path is the edition. Every
second edition has a site of its own, the others share one, as projects keep their manuals; two editions of a page are
of one item, and how much they differ is left to the evaluation.

Limits. Real pages of two paths count as two items even where they are aliases of one page. Generated words are of one
made-up language a class, and the sizes of sites, texts and menus are guesses at a web, not measured on one. A mirror
adds a line above and below, never a layout. Shares of correct pairs depend on how crowded the templates are, which is a
choice here; which algorithm errs more, and where, does not.
"""

import argparse
import base64
import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from urllib.parse import quote

import orjson

from tests.measure.gate import items, same, views
from tests.measure.gate.language import Language
from tests.measure.gate.same import slug
from tests.measure.gate.sites import FAMILIES, Sample, make_site, time_stamp

CLASSES: tuple[Callable[[int, int], list[Sample]], ...] = (
    *(same.parked_domains, same.session_ids, same.time_stamps, same.printer_versions),
    *(items.model_numbers, items.model_numbers_in_digits, items.records, items.unnamed_records),
    *(items.directory, items.unnamed_directory, items.reference, items.unnamed_reference),
    *(views.pagination, views.calendars, views.calendars_in_digits, views.resorted_lists),
    *(views.soft_404s, views.login_walls, views.unnamed_login_walls),
)
#: Share of the pages that a mirror has as well; of these, some are on two.
MIRRORED = 0.25
#: Pages taken of one edition of a folder of documentation.
DOCS_PAGES_MAX = 1500
_PAGE_BYTES_MAX = 2_000_000


@dataclass(frozen=True)
class Served:
    """One page of the web. body: made when asked for. edition: "" where pages of one item say the same."""

    url: str
    item: str
    body: Callable[[], bytes]
    edition: str = ""


class Mirrors:
    """Puts a part of the pages on other sites as well, under their old paths, with a line that says whose they are."""

    def __init__(self, seed: int) -> None:
        self._random, self._language = Random(seed), Language(seed, 6000)
        self._lines: dict[str, tuple[str, str]] = {}

    def of(self, page: Served) -> Iterator[Served]:
        """The page itself, and its mirrors."""
        yield page
        scheme, _, rest = page.url.partition("://")
        host, _, path = rest.partition("/")
        for number in range(2):
            if self._random.random() < MIRRORED:
                yield self._mirror(page, f"{scheme}://{self._host(host, number)}/{path}", host, number)

    def _host(self, host: str, number: int) -> str:
        """Of another site than `host`, by Henzinger's rule as well: it has one dot."""
        return host.replace(".", "-") + (".mirror", ".archive")[number]

    def _mirror(self, page: Served, url: str, host: str, number: int) -> Served:
        mirror = self._host(host, number)
        if mirror not in self._lines:
            words = self._language.text(self._random, self._random.randint(4, 12))
            self._lines[mirror] = f"<p>Mirror of {host} at {mirror}. {words}</p>", f"<p>{mirror}</p>"
        above, below = self._lines[mirror]
        if number:  # an archive says when it fetched the page
            below += f"<p>{time_stamp(self._random)}</p>"
        return Served(url, page.item, lambda: framed(page.body(), above, below), page.edition)


_BODY = re.compile(rb"<body[^>]*>", re.IGNORECASE)


def framed(html: bytes, above: str, below: str) -> bytes:
    """The page with something at the beginning and the end of its body."""
    at = _BODY.search(html)
    start = at.end() if at else 0
    end = html.lower().rfind(b"</body>")
    end = len(html) if end < start else end
    return html[:start] + above.encode() + html[start:end] + below.encode() + html[end:]


def generated(count: int, seed: int) -> list[Served]:
    """About `count` pages with their mirrors, in no order."""
    own = count / (1 + 2 * MIRRORED)
    parts = [(ordinary, 0.75 * own), (copied, 0.125 * count), *[(one, 0.125 * own / len(CLASSES)) for one in CLASSES]]
    mirrors = Mirrors(seed)
    out: list[Served] = []
    for number, (generate, size) in enumerate(parts):
        for sample in generate(max(10, int(size)), 1000 * seed + number):
            page = Served(sample.url, f"{number} {sample.item}", lambda html=sample.html: html)  # type: ignore[misc]
            out += [page] if generate in _EVERYWHERE else mirrors.of(page)
    return out


def ordinary(count: int, seed: int) -> list[Sample]:
    """Sites as most are: from a few pages to a tenth of all, from hardly any boilerplate to mostly boilerplate.

    Half of the sites have 400 tokens of it or more: menus, on one site in five prose. On one in four the pages are
    lists, as those of shops and forums; on the others they are texts that repeat the words of their topic. Half of the
    pages have 120 tokens of their own or more. One in seven is fetched again under another URL, with another session id
    or time stamp.
    """
    random, language = Random(seed), Language(seed)
    out: list[Sample] = []
    rank = 0
    while len(out) < count:
        rank += 1
        out += _site(language, random, rank, min(count - len(out), 3 + count // (10 + 4 * rank)))
    return out[:count]


def _site(language: Language, random: Random, rank: int, count: int) -> Iterator[Sample]:
    site = make_site(language, random, random.choice(FAMILIES))
    size = int(min(3000, random.lognormvariate(6.0, 1.0)))
    site.after += language.paragraphs(random, size) if random.random() < 0.2 else _menus(language, random, size)
    named = random.random() < 0.7
    fields = [language.label(random, 2) for _ in range(random.randint(2, 6))] if random.random() < 0.25 else []
    for number in range(count):
        topic = language.topic(random)
        title = f"{topic} | {site.name}" if named else site.slogan
        size = int(min(1500, 15 + random.lognormvariate(4.7, 0.9)))
        text = _rows(language, random, fields, size) if fields else _on_topic(language, random, size)
        main = f"<h1>{topic}</h1>{text}"
        url, item = f"http://{site.host}/{slug(topic)}-{number}", f"{rank} {number}"
        stamp = time_stamp(random) if random.random() < 0.3 else ""
        yield Sample(url, site.html(title, main, stamp), item, "ordinary")
        if random.random() < 1 / 7:
            session = f"{random.getrandbits(64):016x}"
            again = site.html(title, main, random.choice((time_stamp(random), f"Session: {session}")))
            yield Sample(f"{url}?sid={session}", again, item, "ordinary")


def copied(count: int, seed: int) -> list[Sample]:
    """Documents that many sites keep a copy of, as manuals and licences: 2 to 30 copies, each with its host's line."""
    random, language = Random(seed), Language(seed)
    out: list[Sample] = []
    while len(out) < count:
        topic = language.topic(random)
        main = f"<h1>{topic}</h1>{_on_topic(language, random, int(min(6000, random.lognormvariate(6.5, 0.8))))}"
        for _ in range(min(30, int(2 * random.paretovariate(1.2)))):
            host = f"{language.name(random).lower()}{random.randint(1, 9999)}.org"
            lines = f"<p>{host}: {language.text(random, random.randint(2, 10))}</p>"
            body = f"{lines}{main}<p>{time_stamp(random)}</p>"
            html = f"<html><head><title>{topic}</title></head><body>{body}</body></html>"
            out.append(Sample(f"http://{host}/doc/{slug(topic)}", html.encode(), topic, "copied"))
    return out[:count]


#: Classes that are on many sites by themselves.
_EVERYWHERE = (same.parked_domains, copied)


def _rows(language: Language, random: Random, fields: list[str], count: int) -> str:
    """About `count` words as a list: every row the same fields, with words of its own between."""
    rows = range(max(2, count // (3 * len(fields))))
    return (
        "<ul>" + "".join(f"<li>{' '.join(f'{f} {language.label(random, 2)}' for f in fields)}" for _ in rows) + "</ul>"
    )


def _menus(language: Language, random: Random, count: int) -> str:
    """About `count` tokens of links."""
    labels = [language.label(random) for _ in range(count // 2)]
    return "<ul>" + "".join(f"<li><a href='/{at}'>{label}</a>" for at, label in enumerate(labels)) + "</ul>"


def _on_topic(language: Language, random: Random, count: int) -> str:
    """`count` words of which a fifth are of 8 that the text is about (words come in bursts: Church, Gale 1995)."""
    own = [random.choice(language.words[100:]) for _ in range(8)]
    words = [random.choice(own) if random.random() < 0.2 else word for word in language.draw(random, count)]
    return "".join(f"<p>{' '.join(words[at : at + 60])}.</p>" for at in range(0, count, 60))


def documentation(root: Path, editions: str, seed: int, pages_max: int = DOCS_PAGES_MAX) -> list[Served]:
    """The HTML files below a folder with their mirrors; of an edition at most pages_max, the same in each."""
    pattern = re.compile(editions) if editions else None
    name = re.sub(r"[^a-z0-9]+", "-", root.name.lower()).strip("-")
    found: dict[str, list[tuple[bytes, str, Path]]] = {}
    for path in sorted(root.rglob("*.html")):
        if path.is_symlink() or path.stat().st_size > _PAGE_BYTES_MAX:
            continue
        place = str(path.relative_to(root))
        edition = " ".join(match[0] for match in pattern.finditer(place)) if pattern else ""
        item = pattern.sub("*", place) if pattern else place
        rank = hashlib.blake2b(item.encode(), key=b"%d" % seed).digest()
        found.setdefault(edition, []).append((rank, item, path))
    mirrors = Mirrors(seed)
    out = []
    for number, (edition, pages) in enumerate(sorted(found.items())):
        own = re.sub(r"[^a-z0-9]+", "-", edition.lower()).strip("-")[:50]
        host = f"{name}-{own}.org" if number % 2 else f"{name}.org"
        for _, item, path in sorted(pages)[:pages_max]:
            url = f"http://{host}/{quote(path.relative_to(root).as_posix())}"
            out += mirrors.of(Served(url, f"{name} {item}", path.read_bytes, edition))
    return out


def write_web(pages: list[Served], out: Path, seed: int) -> int:
    """Writes pages.jsonl and items.jsonl; returns the number of pages. Of one URL the first page is taken."""
    out.mkdir(parents=True, exist_ok=True)
    taken = list({page.url: page for page in reversed(pages)}.values())
    taken.sort(key=lambda page: page.url)
    Random(seed).shuffle(taken)
    with (out / "pages.jsonl").open("wb") as crawl, (out / "items.jsonl").open("wb") as truth:
        for page in taken:
            body = base64.b64encode(page.body()).decode()
            crawl.write(orjson.dumps({"url": page.url, "content_type": "text/html", "body_base64": body}) + b"\n")
            fields = {"url": page.url, "item": page.item}
            truth.write(orjson.dumps(fields | ({"edition": page.edition} if page.edition else {})) + b"\n")
    return len(taken)


def main() -> None:
    options = argparse.ArgumentParser(description="Builds a small web of known truth.")
    options.add_argument("out", type=Path)
    options.add_argument("--pages", type=int, default=10_000, help="generated pages, mirrors included")
    options.add_argument("--docs", action="append", default=[], metavar="FOLDER[=REGEX]")
    options.add_argument("--docs-pages", type=int, default=DOCS_PAGES_MAX, help="of each edition")
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    pages = generated(given.pages, given.seed)
    for text in given.docs:
        folder, _, editions = text.partition("=")
        pages += documentation(Path(folder), editions, given.seed, given.docs_pages)
    print(f"{write_web(pages, given.out, given.seed):,} pages in {given.out}")


if __name__ == "__main__":
    main()
