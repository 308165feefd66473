"""A made-up crawl with known duplicates, as a corpus whose pages can be read again."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from neardup.decider import Decider
from neardup.evaluation.corpus import Corpus, corpus_of
from neardup.evaluation.corpus_texts import Texts
from neardup.evaluation.graphs import b_graph, c_graph, c_graph_of_all
from neardup.evaluation.labels import Label, join_labels
from neardup.evaluation.study import CrawlStudy
from neardup.page import Page
from neardup.scheme import Scheme
from neardup.sketch.make_sketches import sketch_pages
from neardup.verdict import Coordinates

SCHEME = Scheme(seed=7)
RELEASES = ("1.0", "1.1", "2.0")
SITES = ("manual.example", "docs.mirror.example")


@dataclass(frozen=True)
class Crawl:
    """Pages, their corpus, and the texts behind it."""

    pages: list[Page]
    corpus: Corpus
    texts: Texts

    def study(self, labels: Sequence[Label] = (), **more: object) -> CrawlStudy:
        b, c = b_graph(self.corpus), c_graph(self.corpus)
        wide = c_graph_of_all(self.corpus, c_min=340, pairs_max=0)
        decider = Decider(scheme=SCHEME.digest)
        joined = join_labels(labels, self.corpus.find)
        return CrawlStudy(self.corpus, self.texts, decider, b, c, wide, joined, **more)  # type: ignore[arg-type]


def words(seed: int, count: int) -> list[str]:
    """Words of a vocabulary of 400, the same on every machine."""
    return [f"w{n}" for n in np.random.default_rng(seed).integers(0, 400, count).tolist()]


def html(title: str, text: Sequence[str], more: str = "") -> bytes:
    paragraphs = "".join(f"<p>{' '.join(text[i : i + 40])}</p>" for i in range(0, len(text), 40))
    return f"<title>{title}</title><h1>{title}</h1>{paragraphs}<p>{more}</p>".encode()


def page(url: str, title: str, text: Sequence[str], more: str = "") -> Page:
    return Page(url, html(title, text, more), "text/html")


def manual(items: int = 12, releases: Sequence[str] = RELEASES, sites: Sequence[str] = SITES) -> list[Page]:
    """Every item in every release on every site; from release to release more of its words change, and a date."""
    out = []
    for site in sites:
        for step, release in enumerate(releases):
            for item in range(items):
                text = words(item, 300)
                changed = words(1000 + item, 300)
                share = 3 * step * (item % 5)
                for at in range(share):
                    text[(7 * at) % 300] = changed[at]
                more = f"Last updated on {10 + step} May 2024 at {site}"
                out.append(page(f"https://{site}/{release}/item{item}.html", f"Item {item} of the manual", text, more))
    return out


def crawl_of(pages: Sequence[Page], read: Callable[[Coordinates], Page | None] | None = None) -> Crawl:
    """The crawl of some pages; read: what to read them with, by default the pages themselves."""
    pages = list(pages)
    places = [Coordinates(offset=i) for i in range(len(pages))]
    corpus = corpus_of(sketch_pages(pages, SCHEME, coordinates=places))
    return Crawl(pages, corpus, Texts(corpus, read or (lambda place: pages[place.offset]), SCHEME))
