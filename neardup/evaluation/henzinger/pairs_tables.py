"""Builds tables 1, 2 and 9: the graphs, without labels (Henzinger 2006, sections 3.1 to 3.4)."""

from collections.abc import Sequence

import numpy as np

from neardup.evaluation.figures import powerlaw
from neardup.evaluation.figures.distributions import law_note, law_rows, log_log
from neardup.evaluation.figures.sections import (
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
from neardup.evaluation.henzinger import published
from neardup.evaluation.pairs import levels
from neardup.evaluation.pairs.graphs import MISSED_AT_12, Graph, missed_by_blocks
from neardup.evaluation.pairs.study import CrawlStudy
from neardup.report.plots import Axes, Series

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
        [
            "average degree of pages with an edge",
            *[ratio(2 * graph.edges, pages) for graph, pages in zip(graphs, joined, strict=True)],
        ],
        ["greatest degree", *[int(graph.degrees.max(initial=0)) for graph in graphs]],
        *_of_degree(graphs, joined),
        *law_rows(laws, "degree", "pages"),
    ]
    note = law_note(laws)
    missed = missed_by_blocks(study.corpus, study.c) if study.c.least <= 372 else None
    if missed is not None:
        note += (
            f" Blocks of 32 bits find every pair of up to 11 differing bits; of the {missed.all:,} pairs at 12 they "
            f"found {missed.found:,}."
        )
    else:
        note += (
            " Blocks of 32 bits find every pair of up to 11 differing bits; at 12 they miss pairs with one in each "
            f"block, a share of {MISSED_AT_12:.4%} were bits to differ at random."
        )
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


def _of_degree(graphs: Sequence[Graph], joined: Sequence[int]) -> list[list[Cell]]:
    """Returns shares of the pages with an edge by least degree, up to the greatest degree."""
    reached = [least for least in _DEGREES_SHOWN if any((graph.degrees >= least).any() for graph in graphs)]
    return [
        [
            f"of the pages with an edge, the share of degree {least} or more",
            *[ratio(int((graph.degrees >= least).sum()), pages) for graph, pages in zip(graphs, joined, strict=True)],
        ]
        for least in reached
    ]


def levels_section(study: CrawlStudy) -> Section:
    """Builds table 2: pairs by B-similarity and by C-similarity, and the share on one site."""
    tables = [_b_levels(study.b), _c_levels(study.c)]
    empty = [graph for graph in (study.b, study.c) if not graph.edges]
    why = {"B": "no two pages share two supershingles", "C": "no two pages agree in enough bits"}
    missing = " ".join(f"The {graph.name} graph is empty: {why[graph.name]}." for graph in empty)
    return Section("2", "Pairs by B-similarity and by C-similarity", "", tables, [], missing)


_LEVELS = count("pairs") | share("share", "of them on one site", "paper (share of its sample)", "paper: on one site")


def _b_levels(graph: Graph) -> ResultTable:
    by_level = graph.joint.sum(axis=2)
    rows = [_level(level, graph, by_level[:, level], published.b_share(level)) for level in range(graph.least, 7)]
    rows.append(_level("all", graph, by_level.sum(axis=1), 1.0, published.same_site_share(published.B_ROWS)))
    return ResultTable("2-b-similarity", "Pairs by B-similarity", text("B-similarity") | _LEVELS, rows)


def _c_levels(graph: Graph) -> ResultTable:
    by_level = graph.joint.sum(axis=1)
    rows: list[list[Cell]] = []
    for low, high in levels.C_LEVELS:
        if high >= graph.least:  # a run's own threshold may lie above the paper's
            here = by_level[:, max(low, graph.least) : high + 1].sum(axis=1)
            theirs = published.c_share(low, high) if graph.least == levels.C_MIN else None
            rows.append(_level(f"{max(low, graph.least)}-{high}", graph, here, theirs))
    rows.append(_level("all", graph, by_level.sum(axis=1), 1.0, published.same_site_share(published.C_ROWS)))
    return ResultTable("2-c-similarity", "Pairs by C-similarity", text("C-similarity") | _LEVELS, rows)


def _level(
    name: Cell, graph: Graph, counts: np.ndarray, share: float | None, same_site: float | None = None
) -> list[Cell]:
    """Formats a row. counts: int64[2], pairs on two sites and on one. share, same_site: the paper's."""
    n = int(counts.sum())
    return [name, n, ratio(n, graph.edges), ratio(int(counts[1]), n), share, same_site]


def between_section(study: CrawlStudy) -> Section:
    """Builds table 9: the two similarities against each other."""
    joint = study.b.joint.sum(axis=0)
    rows = [_c_of_b(level, joint[level]) for level in range(study.b.least, 7)]
    rows.append(_c_of_b("all", joint[study.b.least :].sum(axis=0)))
    numbers = number("mean C-similarity", "median", "standard deviation")
    columns = text("B-similarity") | count("pairs") | numbers | share("share of at least 372")
    b_table = ResultTable("9-c-for-b", "C-similarity of the pairs of each B-similarity", columns, rows)
    c_joint = study.c.joint.sum(axis=0)
    c_rows: list[list[Cell]] = []
    for low, high in levels.C_LEVELS:
        if high >= study.c.least:  # a run's own threshold may lie above the paper's
            low = max(low, study.c.least)
            c_rows.append(_b_of_c(f"{low}-{high}", c_joint[:, low : high + 1].sum(axis=1)))
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
    series, rows = [], []
    for level in present:
        here = joint[level]
        points = [(x + (step - 1) / 2, float(here[max(x, 0) : x + step].sum() / here.sum())) for x in starts]
        hints = [f"{x} to {x + step - 1} bits: {share:.0%}" for x, (_, share) in zip(starts, points, strict=True)]
        series.append(Series(f"B-similarity {level}", points, hints=hints))
    for x in range(low, 385):
        if joint[least:, x].any():
            rows.append([x, *[int(joint[level, x]) for level in range(least, 7)]])
    axes = Axes("C-similarity", "share of the pairs")
    columns = ("C-similarity", *[f"B-similarity {level}" for level in range(least, 7)])
    note = f"Shares of the pairs of one B-similarity in ranges of {step} bits; the data hold every bit."
    return figure("9-c-for-b", "C-similarity for each fixed B-similarity", series, axes, columns, rows, note)
