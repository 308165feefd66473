"""Counts pages by host, and builds table 11: sites of incorrect pairs (Henzinger 2006, sections 3.1 to 3.4)."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from neardup.evaluation.figures import powerlaw
from neardup.evaluation.figures.distributions import law_note, law_rows, log_log
from neardup.evaluation.figures.sections import Cell, ResultTable, Section, count, number, ratio, share, text
from neardup.evaluation.pairs.corpus import Corpus
from neardup.evaluation.pairs.graphs import Graph
from neardup.evaluation.pairs.labels import Judgement
from neardup.evaluation.pairs.study import NO_LABELS, CrawlStudy, LabelledStudy, Mask
from neardup.page import host_of

SITES_SHOWN = 20


def hosts_section(urls: Sequence[str]) -> Section:
    """Tabulates pages per host. urls: normalised, one per page."""
    pages = Counter(host_of(url) for url in urls)
    sizes = np.array(sorted(pages.values(), reverse=True), dtype=np.int64)
    law = powerlaw.fit(sizes)
    rows: list[list[Cell]] = [
        ["hosts", len(sizes)],
        ["pages", len(urls)],
        ["pages a host, on average", ratio(len(urls), len(sizes))],
        ["median", float(np.median(sizes)) if len(sizes) else None],
        ["pages of the largest host", int(sizes.max(initial=0))],
        ["share of the hosts with one page", ratio(int((sizes == 1).sum()), len(sizes))],
        ["share of the pages that are on the ten largest hosts", ratio(int(sizes[:10].sum()), len(urls))],
        *law_rows([law], "size", "hosts"),
    ]
    largest: list[list[Cell]] = [[host, n, ratio(n, len(urls))] for host, n in _most(pages)]
    tables = [
        ResultTable("hosts", "Hosts", text("") | number("here"), rows, law_note([law])),
        ResultTable("hosts-largest", "The largest hosts", text("host") | count("pages") | share("share"), largest),
    ]
    about = "Hosts, not sites: www.a.example and a.example are two. Of identity sets one page counts."
    section = Section("hosts", "Pages by host", about, tables)
    if len(sizes) > 1:
        section.plots = log_log("hosts", "The crawl", sizes, law, "pages", "hosts")
    elif len(sizes):
        section.missing = "All pages are on one host: there is nothing to plot."
    else:
        section.missing = "There is no page."
    return section


def _most(counts: Counter[str]) -> list[tuple[str, int]]:
    """Returns the greatest counts, ties by name."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:SITES_SHOWN]


def worst_sites(study: LabelledStudy) -> Section:
    """Builds table 11: sites of incorrect pairs, and of all pairs if the graphs are known."""
    incorrect = study.judged(Judgement.INCORRECT)
    groups = {
        "b": ("labelled pairs of algorithm B", study.of_b),
        "c": ("labelled pairs of algorithm C", study.of_c),
        "all": ("all labelled pairs, however they were drawn", np.ones(len(study.labels), bool)),
    }
    tables = [_worst(study, f"11-sites-{name}", words, mask, incorrect) for name, (words, mask) in groups.items()]
    if isinstance(study, CrawlStudy):
        tables += [_busiest(study, graph, mask) for graph, mask in ((study.b, study.of_b), (study.c, study.of_c))]
    missing = NO_LABELS if not len(study.labels) else "" if incorrect.any() else "No pair is labelled incorrect."
    return Section("11", "Sites that cause the most incorrect pairs", "", tables, missing=missing)


def _by_site(study: LabelledStudy, mask: Mask) -> Counter[str]:
    counts: Counter[str] = Counter()
    for place in np.flatnonzero(mask).tolist():
        counts.update(study.sites(place))
    return counts


_NOTE = "A pair of two sites counts for both."
_LABELLED = count("its labelled pairs") | share("incorrect of these")


def _worst(study: LabelledStudy, name: str, words: str, mask: Mask, incorrect: Mask) -> ResultTable:
    n, wrong = int(mask.sum()), int((mask & incorrect).sum())
    labelled = _by_site(study, mask)
    rows: list[list[Cell]] = [
        [site, pairs, ratio(pairs, wrong), labelled[site], ratio(pairs, labelled[site]), ratio(pairs, n)]
        for site, pairs in _most(_by_site(study, mask & incorrect))
    ]
    columns = text("site") | count("incorrect pairs") | share("share of them") | _LABELLED
    columns |= share("share of all labelled pairs")
    return ResultTable(name, f"Incorrect pairs by site: {words}", columns, rows, _NOTE)


def _busiest(study: CrawlStudy, graph: Graph, mask: Mask) -> ResultTable:
    """Tabulates sites by all pairs of a graph, to show the weight of a few sites."""
    pairs = _pairs_by_site(study.corpus, graph)
    labelled, wrong = (_by_site(study, some) for some in (mask, mask & study.judged(Judgement.INCORRECT)))
    rows: list[list[Cell]] = [
        [site, many, ratio(many, len(graph.a)), labelled[site], ratio(wrong[site], labelled[site])]
        for site, many in _most(pairs)
    ]
    columns = text("site") | count("pairs") | share("share of all") | _LABELLED
    note = _NOTE if graph.whole else f"{_NOTE} Of {graph.edges:,} pairs {len(graph.a):,} are read, chosen by seed."
    caption = f"All pairs of the {graph.name} graph by site"
    return ResultTable(f"11-pairs-{graph.name.lower()}", caption, columns, rows, note)


def _pairs_by_site(corpus: Corpus, graph: Graph) -> Counter[str]:
    one, other = corpus.site[graph.a], corpus.site[graph.b]
    numbers = np.concatenate([one, other[other != one]])
    names = dict(zip(corpus.site.tolist(), corpus.sites, strict=True))
    return Counter({names[site]: n for site, n in enumerate(np.bincount(numbers).tolist()) if n})
