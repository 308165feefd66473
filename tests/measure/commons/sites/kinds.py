"""The list of the sites: crawled ones, and made-up ones of each kind in two templates; the second is kept back."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from neardup.scheme import Scheme
from tests.measure.commons.sites import crawl, editions, owners, site_truth, sparse, talk, trade
from tests.measure.commons.sites.figures import FIGURES
from tests.measure.commons.sites.frame import Frame, SitePage
from tests.measure.gate.measure import SEED

Generate = Callable[[Frame], None]


class Kind(NamedTuple):
    """One kind of site. size: pages of each of its two sites."""

    name: str
    size: int
    generate: Generate


KINDS = (
    Kind("release notes", 500, editions.release_notes),
    Kind("courses", 400, editions.courses),
    Kind("wiki", 400, editions.wiki),
    Kind("forum", 600, talk.forum),
    Kind("bugs", 400, talk.bugs),
    Kind("notices", 300, talk.notices),
    Kind("profiles", 200, talk.profiles),
    Kind("departments", 500, owners.departments),
    Kind("shop", 500, trade.shop),
    Kind("searches", 200, trade.searches),
    Kind("addresses", 300, trade.addresses),
    Kind("slugs", 300, trade.slugs),
    Kind("canonicals", 300, trade.canonicals),
    Kind("shells", 200, sparse.shells),
    Kind("applications", 200, sparse.applications),
    Kind("lists of links", 250, sparse.lists_of_links),
    Kind("logs", 250, sparse.logs),
    *(Kind(f"figures: {name}", 200, generate) for name, generate in FIGURES.items()),
)
#: Crawled sites: name -> file in the folder of the public sets.
CRAWLS = {"browser": "browser_site.warc.xz"}


def pages_of(kind: Kind, style: int, size: int | None = None) -> list[SitePage]:
    """The pages of one made-up site, in the order of the crawl."""
    frame = Frame(kind.name, style, size or kind.size)
    kind.generate(frame)
    return frame.arrived()


def made(name: str, style: int, size: int | None = None) -> site_truth.MadeSite:
    """One made-up site, by the name of its kind, so that another process can make it."""
    pages = pages_of(next(kind for kind in KINDS if kind.name == name), style, size)
    return site_truth.MadeSite(pages, crawl.crawled(pages, Scheme(seed=SEED)))


def crawled(path: Path) -> site_truth.CrawledSite:
    return site_truth.CrawledSite(crawl.read(path, Scheme(seed=SEED)), site_truth.read_judgements())


def streams(data: Path | None, kept_back: bool) -> Iterator[tuple[str, str, Callable[[], site_truth.SiteTruth]]]:
    """(name, kind, load) of each site. kept_back: those by which no rule is chosen, instead of the others."""
    called = "kept back" if kept_back else "site"
    for kind in KINDS:
        yield f"{called}: {kind.name}", called, partial(made, kind.name, int(kept_back))
    for name, file in CRAWLS.items():
        if data is not None and (data / file).exists() and not kept_back:
            yield f"{called}: {name}", called, partial(crawled, data / file)
