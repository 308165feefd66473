"""Builds tables 1, 2, 7 and 9, and counts pages by host: without labels (Henzinger 2006, sections 3.1 to 3.4)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import mean, median

import numpy as np

from neardup.evaluation import henzinger_published as published
from neardup.evaluation import powerlaw
from neardup.evaluation.graphs import MISSED_AT_12, Graph
from neardup.evaluation.powerlaw import law_note, law_rows, log_log
from neardup.evaluation.sections import (
    Cell,
    Plot,
    ResultTable,
    Section,
    count,
    figure,
    number,
    ratio,
    share,
    text,
)
from neardup.evaluation.study import CrawlStudy
from neardup.evaluation.truth import thinned
from neardup.report.plots import Axes, Series
from neardup.urls import host_of, is_document

#: A term difference above this many terms is far.
FAR = 200
#: Most rows of a table of hosts or sites.
SHOWN_MAX = 20
_DEGREES_SHOWN = (2, 3, 5, 10, 50, 100, 500, 1000)


def graph_section(study: CrawlStudy) -> Section:
    """Builds table 1: degrees of the B graph and the C graph."""
    graphs = (study.b, study.c)
    laws = [powerlaw.fit(graph.degrees) for graph in graphs]
    nodes = len(study.corpus)
    joined = [int((graph.degrees > 0).sum()) for graph in graphs]
    rows: list[list[Cell]] = [
        ["pages, identity sets set aside", *[nodes] * 2],
        ["pages with an edge", *joined],
        ["their share", *[ratio(pages, nodes) for pages in joined]],
        ["edges (similar pairs)", *[graph.edges for graph in graphs]],
        ["average degree of all pages", *[ratio(2 * graph.edges, nodes) for graph in graphs]],
        ["average degree of pages with an edge", *map(ratio, [2 * graph.edges for graph in graphs], joined)],
        ["greatest degree", *[int(graph.degrees.max(initial=0)) for graph in graphs]],
        *[
            [f"of the pages with an edge, the share of degree {least} or more", *map(ratio, reached, joined)]
            for least in _DEGREES_SHOWN
            if any(reached := [int((graph.degrees >= least).sum()) for graph in graphs])
        ],
        *law_rows(laws, "degree", "pages"),
    ]
    note = law_note(laws)
    note += " Blocks of 32 bits find every pair of up to 11 differing bits; "
    if study.wide is not None and study.c.least <= 372:
        found, every = (int(graph.joint[:, :, 372].sum()) for graph in (study.c, study.wide))
        note += f"of the {every:,} pairs at 12 they found {found:,}."
    else:
        share_missed = f"a share of {MISSED_AT_12:.4%} were bits to differ at random"
        note += f"at 12 they miss pairs with one in each block, {share_missed}."
    section = Section(
        "1",
        "Degrees of the B graph and the C graph",
        "Pages are nodes; an edge joins two pages that an algorithm calls similar. The join is exact: no lists are "
        "capped, as they are in a running index.",
        [ResultTable("1-graphs", "The two graphs", text("") | number("B graph", "C graph"), rows, note)],
    )
    for graph, law in zip(graphs, laws, strict=True):
        name, of = f"1-degrees-{graph.name.lower()}", f"{graph.name} graph"
        section.plots += log_log(name, of, graph.degrees, law, "degree", "pages")
    if not any(graph.edges for graph in graphs):
        section.missing = "No two pages are similar: both graphs are empty, and there is nothing to fit or to plot."
    return section


#: For each level, pairs on two sites and on one: int64[2], and the paper's share.
_ByLevel = dict[Cell, tuple[np.ndarray, float | None]]


def levels_section(study: CrawlStudy) -> Section:
    """Builds table 2: pairs by B-similarity and by C-similarity, and the share on one site."""
    by_b, by_c = study.b.joint.sum(axis=2), study.c.joint.sum(axis=1)
    b: _ByLevel = {level: (by_b[:, level], published.b_share(level)) for level in range(study.b.least, 7)}
    # the paper's shares are of all pairs from C_MIN on; a run's own threshold may lie above it
    whole = study.c.least == published.C_MIN
    c: _ByLevel = {
        f"{low}-{high}": (by_c[:, low : high + 1].sum(axis=1), published.c_share(*theirs) if whole else None)
        for (low, high), theirs in _c_ranges(study.c)
    }
    tables = [_levels(study.b, b, published.B_ROWS), _levels(study.c, c, published.C_ROWS)]
    why = {"B": "no two pages share two supershingles", "C": "no two pages agree in enough bits"}
    empty = [graph.name for graph in (study.b, study.c) if not graph.edges]
    missing = " ".join(f"The {name} graph is empty: {why[name]}." for name in empty)
    return Section("2", "Pairs by B-similarity and by C-similarity", "", tables, [], missing)


def _c_ranges(graph: Graph) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Returns the paper's ranges of C-similarity that a graph reaches: (from its least C-similarity on, whole)."""
    return [((max(low, graph.least), high), (low, high)) for low, high in published.C_LEVELS if high >= graph.least]


def _levels(graph: Graph, by_level: _ByLevel, beside: Mapping[str, published.PaperRow]) -> ResultTable:
    """Tabulates pairs by level."""
    every = np.array([int(graph.joint[same].sum()) for same in (0, 1)])
    rows: list[list[Cell]] = []
    for name, (counts, part) in {**by_level, "all": (every, 1.0)}.items():
        n, theirs = int(counts.sum()), published.same_site_share(beside) if name == "all" else None
        rows.append([name, n, ratio(n, graph.edges), ratio(int(counts[1]), n), part, theirs])
    columns = text(f"{graph.name}-similarity") | count("pairs")
    columns |= share("share", "of them on one site", "paper (share of its sample)", "paper: on one site")
    name, caption = f"2-{graph.name.lower()}-similarity", f"Pairs by {graph.name}-similarity"
    return ResultTable(name, caption, columns, rows)


def between_section(study: CrawlStudy) -> Section:
    """Builds table 9: the two similarities against each other."""
    joint = study.b.joint.sum(axis=0)
    rows = [_c_of_b(level, joint[level]) for level in range(study.b.least, 7)]
    rows.append(_c_of_b("all", joint[study.b.least :].sum(axis=0)))
    numbers = number("mean C-similarity", "median", "standard deviation")
    columns = text("B-similarity") | count("pairs") | numbers | share("share of at least 372")
    b_table = ResultTable("9-c-for-b", "C-similarity of the pairs of each B-similarity", columns, rows)
    c_joint = study.c.joint.sum(axis=0)
    c_rows = [_b_of_c(f"{low}-{high}", c_joint[:, low : high + 1].sum(axis=1)) for (low, high), _ in _c_ranges(study.c)]
    c_rows.append(_b_of_c("all", c_joint[:, study.c.least :].sum(axis=1)))
    columns = text("C-similarity") | count("pairs") | number("mean B-similarity")
    columns |= share("share of at least 2", "share of 0")
    c_table = ResultTable("9-b-for-c", "B-similarity of the pairs of ranges of C-similarity", columns, c_rows)
    section = Section(
        "9",
        "C-similarity for each B-similarity, and the other way round",
        "How far the two algorithms see the same pairs: those of the B graph above, those of the C graph below.",
        [b_table, c_table],
    )
    section.plots = _c_for_b(joint, study.b.least)
    if not section.plots:
        section.missing = "The B graph is empty: there is no C-similarity to plot."
    return section


def _c_of_b(name: Cell, counts: np.ndarray) -> list[Cell]:
    """Formats a row. counts: int64[385], pairs by C-similarity."""
    c_levels, count = np.arange(385), int(counts.sum())
    mean = ratio(float((counts * c_levels).sum()), count)
    spread = None if mean is None or count < 2 else float(np.sqrt((counts * (c_levels - mean) ** 2).sum() / count))
    middle = np.searchsorted(np.cumsum(counts), [(count - 1) // 2 + 1, count // 2 + 1])
    median = float(middle.mean()) if count else None
    return [name, count, mean, median, spread, ratio(int(counts[372:].sum()), count)]


def _b_of_c(name: Cell, counts: np.ndarray) -> list[Cell]:
    """Formats a row. counts: int64[7], pairs by B-similarity."""
    count = int(counts.sum())
    mean = ratio(float((counts * np.arange(7)).sum()), count)
    return [name, count, mean, ratio(int(counts[2:].sum()), count), ratio(int(counts[0]), count)]


def _c_for_b(joint: np.ndarray, least: int) -> list[Plot]:
    present = [level for level in range(least, 7) if joint[level].any()]
    if not present:
        return []
    low = int(np.flatnonzero(joint[least:].sum(axis=0))[0])
    step = 8 if 384 - low > 64 else 4
    # Ranges are counted down from 384. Counted up from `low`, the last range could hold 384 alone, and the curve would
    # fall where most pairs are.
    starts = range(385 - step * -(-(385 - low) // step), 385, step)
    series = []
    for level in present:
        here = joint[level]
        points = [(x + (step - 1) / 2, float(here[max(x, 0) : x + step].sum() / here.sum())) for x in starts]
        hints = [f"{x} to {x + step - 1} bits: {share:.0%}" for x, (_, share) in zip(starts, points, strict=True)]
        series.append(Series(f"B-similarity {level}", points, hints=hints))
    rows = [[x, *joint[least:, x].tolist()] for x in range(low, 385) if joint[least:, x].any()]
    axes = Axes("C-similarity", "share of the pairs")
    columns = ("C-similarity", *[f"B-similarity {level}" for level in range(least, 7)])
    note = f"Shares of the pairs of one B-similarity in ranges of {step} bits; the data hold every bit."
    return figure("9-c-for-b", "C-similarity for each fixed B-similarity", series, axes, columns, rows, note)


def term_differences(study: CrawlStudy) -> Section:
    """Builds table 7: term differences, sizes of `diff` of two token sequences, of the B pairs and of the C pairs."""
    section = Section(
        "7",
        "Term differences",
        "Words that diff of the two token sequences prints, inserted and deleted ones; one replaced word counts 2. "
        "Exact: an O(ND) difference, for distant pairs the longest common subsequence by bits.",
    )
    names = (
        "pairs looked at",
        "pairs whose texts are gone or too long",
        "mean",
        "median",
        "90% of the pairs differ in at most",
        "share of 2 (one word replaced)",
        "share below 10",
        f"number over {FAR}",
        f"share over {FAR}",
    )
    columns: list[list[Cell]] = []
    for graph in (study.b, study.c):
        sizes, lost = _sampled(study, graph)
        n, far = len(sizes), sum(size > FAR for size in sizes)
        middle = [mean(sizes), median(sizes), point_of(sizes, 90)] if sizes else [None] * 3
        shares = [ratio(sum(size == 2 for size in sizes), n), ratio(sum(size < 10 for size in sizes), n)]
        columns.append([n, lost, *middle, *shares, far, ratio(far, n)])
        section.plots += _histogram(graph.name, sizes)
    note = ""
    if max(study.b.edges, study.c.edges) > study.differences_max:
        note = f"Of a larger graph {study.differences_max:,} pairs are read, chosen by a hash of pages and seed."
    rows = list(zip(names, *columns, strict=True))
    headings = text("") | number("B graph", "C graph")
    section.tables.append(ResultTable("7-differences", "Term differences", headings, rows, note))
    if not section.plots:
        section.missing = "There is no similar pair whose two texts can be read: nothing to measure."
    return section


def point_of(sizes: list[int], percent: int) -> int:
    """Returns a percentile: the least size that at least `percent` percent of the sizes do not exceed."""
    return sorted(sizes)[-(-percent * len(sizes) // 100) - 1]


def _sampled(study: CrawlStudy, graph: Graph) -> tuple[list[int], int]:
    """Returns term differences of at most differences_max pairs, and the number of pairs without one."""
    pairs = list(zip(graph.a.tolist(), graph.b.tolist(), strict=True))
    if len(pairs) > study.differences_max:
        pairs = thinned(pairs, study.differences_max, study.seed)
    found = study.differences(pairs)
    sizes = [size for size in found if size is not None]
    return sizes, len(found) - len(sizes)


def _histogram(name: str, sizes: list[int]) -> list[Plot]:
    shown = [size for size in sizes if size <= FAR]
    # A bar covers an odd size and the even size after it, since a replaced word counts 2. Size 0 does not occur:
    # pages with equal sequences are no pair.
    totals = Counter((size + 1) // 2 * 2 for size in shown)
    points = [(float(size - 1), float(n)) for size, n in sorted(totals.items())]
    hints = [f"{x:.0f} to {x + 1:.0f} terms: {n:,.0f} pairs" for x, n in points]
    axes = Axes("term difference", "pairs", x_range=(0, FAR + 1))
    beyond = len(sizes) - len(shown)
    note = "The data hold every size."
    if beyond:
        note = f"{beyond:,} pairs lie beyond {FAR} terms. " + note
    series, columns = [Series("pairs", points, "steps", hints, step=2)], ("term difference", "pairs")
    caption, rows = f"{name} graph: pairs by term difference", sorted(Counter(sizes).items())
    return figure(f"7-differences-{name.lower()}", caption, series, axes, columns, rows, note, legend=())


def hosts_section(urls: Sequence[str]) -> Section:
    """Tabulates pages per host. urls: normalised, one per page."""
    on_hosts = [url for url in urls if not is_document(url)]
    pages = Counter(map(host_of, on_hosts))
    sizes = np.array(sorted(pages.values(), reverse=True), dtype=np.int64)
    law = powerlaw.fit(sizes)
    rows: list[list[Cell]] = [
        ["hosts", len(sizes)],
        ["pages", len(on_hosts)],
        ["pages a host, on average", ratio(len(on_hosts), len(sizes))],
        ["median", float(np.median(sizes)) if len(sizes) else None],
        ["pages of the largest host", int(sizes.max(initial=0))],
        ["share of the hosts with one page", ratio(int((sizes == 1).sum()), len(sizes))],
        ["share of the pages that are on the ten largest hosts", ratio(int(sizes[:10].sum()), len(on_hosts))],
        *law_rows([law], "size", "hosts"),
    ]
    largest: list[list[Cell]] = [[host, n, ratio(n, len(on_hosts))] for host, n in most(pages)]
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
    elif urls:
        section.tables, section.missing = [], "Documents with ids are on no host."
    else:
        section.missing = "There is no page."
    return section


def most(counts: Counter[str]) -> list[tuple[str, int]]:
    """Returns the greatest counts, ties by name."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:SHOWN_MAX]
