"""Tables 1, 2 and 9: the graphs, without labels (Henzinger 2006, section 4)."""

import numpy as np

from neardup.evaluation import paper, powerlaw
from neardup.evaluation.figures import Cell, Plot, Section, Table, ratio
from neardup.evaluation.graphs import MISSED_AT_12, Graph, missed_by_blocks
from neardup.evaluation.plots import Axes, Series, plot
from neardup.evaluation.study import Study

_DEGREES_TOLD = (1, 2, 5, 10, 50, 100, 500, 1000)


def graph_section(study: Study) -> Section:
    """1. Degrees of the B graph and the C graph."""
    graphs = (study.b, study.c)
    laws = [powerlaw.fit(graph.degrees) for graph in graphs]
    nodes = len(study.corpus)
    rows: list[list[Cell]] = [
        ["pages, identity sets set aside", *[nodes] * 2],
        ["pages with an edge", *[int((graph.degrees > 0).sum()) for graph in graphs]],
        ["their share", *[ratio(int((graph.degrees > 0).sum()), nodes) for graph in graphs]],
        ["edges (similar pairs)", *[graph.edges for graph in graphs]],
        ["average degree of all pages", *[ratio(2 * graph.edges, nodes) for graph in graphs]],
        [
            "average degree of pages with an edge",
            *[ratio(2 * graph.edges, int((graph.degrees > 0).sum())) for graph in graphs],
        ],
        ["greatest degree", *[int(graph.degrees.max(initial=0)) for graph in graphs]],
        *[
            [f"share of pages of degree over {least}", *[ratio(int((g.degrees > least).sum()), nodes) for g in graphs]]
            for least in _DEGREES_TOLD
            if any((g.degrees > least).any() for g in graphs)
        ],
        ["power-law exponent", *[round(law.alpha, 3) if law else None for law in laws]],
        ["its standard error", *[round(law.error, 3) if law else None for law in laws]],
        ["fitted from degree", *[law.d_min if law else None for law in laws]],
        ["pages of at least that degree", *[law.nodes if law else None for law in laws]],
        ["Kolmogorov-Smirnov distance of the fit", *[round(law.distance, 3) if law else None for law in laws]],
    ]
    note = (
        "The exponent is the discrete maximum-likelihood estimate above the degree that makes the Kolmogorov-Smirnov "
        "distance smallest (Clauset, Shalizi, Newman 2009)."
    )
    if not all(laws):
        note += (
            f" A dash: fewer than {powerlaw.NODES_MIN} pages or {powerlaw.DISTINCT_MIN} degrees to fit, or no power "
            "at all."
        )
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
        [Table("1-graphs", "The two graphs", ("", "B graph", "C graph"), ("text", "number", "number"), rows, note)],
    )
    section.plots += [made for graph, law in zip(graphs, laws, strict=True) if (made := _degrees(graph, law))]
    if not any(graph.edges for graph in graphs):
        section.missing = "No two pages are similar: both graphs are empty, and there is nothing to fit or to plot."
    return section


def _degrees(graph: Graph, law: powerlaw.PowerLaw | None) -> Plot | None:
    values, counts = np.unique(graph.degrees[graph.degrees > 0], return_counts=True)
    if not len(values):
        return None
    points = list(zip(values.tolist(), counts.tolist(), strict=True))
    series = [Series("pages", points, "dots", [f"{n:,} pages of degree {d:,}" for d, n in points])]
    legend = [("s0", "pages of a degree")]
    if law is not None:
        scale = law.nodes / powerlaw.hurwitz_zeta(law.alpha, law.d_min)
        ends = (float(law.d_min), float(values[-1]))
        series.append(Series("fit", [(d, scale * d**-law.alpha) for d in np.geomspace(*ends, 30)], "curve"))
        legend.append(("s1", f"fitted power law, exponent {law.alpha:.2f}"))
    svg = plot(f"Degrees of the {graph.name} graph", series, Axes("degree", "pages", x_log=True, y_log=True))
    if svg is None:
        return None
    return Plot(
        f"1-degrees-{graph.name.lower()}",
        f"{graph.name} graph: pages by degree",
        svg,
        ("degree", "pages"),
        points,
        "Both axes are logarithmic.",
        legend,
    )


def b_section(study: Study) -> Section:
    """2. Pairs by B-similarity."""
    counts = study.b.joint.sum(axis=(0, 2))
    same = study.b.joint[1].sum(axis=1)
    rows: list[list[Cell]] = [
        [
            level,
            int(counts[level]),
            ratio(int(counts[level]), study.b.edges),
            ratio(int(same[level]), int(counts[level])),
            paper.b_share(level),
        ]
        for level in range(study.b.least, 7)
    ]
    rows.append(["all", study.b.edges, 1.0 if study.b.edges else None, ratio(int(same.sum()), study.b.edges), 1.0])
    columns = ("B-similarity", "pairs", "share", "of them on one site", "paper (share of its sample)")
    kinds = ("text", "count", "share", "share", "share")
    table = Table("2-b-similarity", "Pairs by B-similarity", columns, kinds, rows, paper=(4,))
    missing = "" if study.b.edges else "The B graph is empty: no two pages share two supershingles."
    return Section("2", "Pairs by B-similarity", "", [table], [], missing)


def between_section(study: Study) -> Section:
    """9. The two similarities against each other."""
    levels = np.arange(385)
    joint = study.b.joint.sum(axis=0)
    rows: list[list[Cell]] = []
    for level in range(study.b.least, 7):
        here = joint[level]
        count = int(here.sum())
        mean = ratio(float((here * levels).sum()), count)
        spread = None if mean is None or count < 2 else float(np.sqrt((here * (levels - mean) ** 2).sum() / count))
        median = int(np.searchsorted(np.cumsum(here), count / 2)) if count else None
        rows.append([level, count, mean, median, spread, ratio(int(here[372:].sum()), count)])
    b_table = Table(
        "9-c-for-b",
        "C-similarity of the pairs of each B-similarity",
        ("B-similarity", "pairs", "mean C-similarity", "median", "standard deviation", "share of at least 372"),
        ("text", "count", "number", "count", "number", "share"),
        rows,
    )
    c_joint = study.c.joint.sum(axis=0)
    b_levels = np.arange(7)
    c_rows: list[list[Cell]] = []
    for low, high in paper.C_LEVELS:
        if high < study.c.least:
            continue  # a run's own threshold may lie above the paper's
        low = max(low, study.c.least)
        here = c_joint[:, low : high + 1].sum(axis=1)
        count = int(here.sum())
        c_rows.append(
            [
                f"{low}-{high}",
                count,
                ratio(float((here * b_levels).sum()), count),
                ratio(int(here[2:].sum()), count),
                ratio(int(here[0]), count),
            ]
        )
    c_table = Table(
        "9-b-for-c",
        "B-similarity of the pairs of ranges of C-similarity",
        ("C-similarity", "pairs", "mean B-similarity", "share of at least 2", "share of 0"),
        ("text", "count", "number", "share", "share"),
        c_rows,
    )
    section = Section(
        "9",
        "C-similarity for each B-similarity, and the other way round",
        "How far the two algorithms see the same pairs: those of the B graph above, those of the C graph below.",
        [b_table, c_table],
    )
    made = _c_for_b(joint, study.b.least)
    if made is not None:
        section.plots.append(made)
    else:
        section.missing = "The B graph is empty: there is no C-similarity to plot."
    return section


def _c_for_b(joint: np.ndarray, least: int) -> Plot | None:
    present = [level for level in range(least, 7) if joint[level].any()]
    if not present:
        return None
    used = np.flatnonzero(joint[least:].sum(axis=0))
    low = int(used[0]) // 8 * 8
    bins = range(low, 385, 8) if 384 - low > 64 else range(low, 385, 4)
    step = bins.step
    series, rows = [], []
    for level in present:
        here = joint[level]
        points = [(min(x + step / 2, 384.0), float(here[x : x + step].sum() / here.sum())) for x in bins]
        series.append(Series(f"B-similarity {level}", points))
    for x in range(low, 385):
        if joint[least:, x].any():
            rows.append([x, *[int(joint[level, x]) for level in range(least, 7)]])
    svg = plot("C-similarity for each B-similarity", series, Axes("C-similarity", "share of the pairs"))
    if svg is None:
        return None
    legend = [(f"s{i}", f"B-similarity {level}") for i, level in enumerate(present)]
    columns = ("C-similarity", *[f"B-similarity {level}" for level in range(least, 7)])
    note = f"Shares of the pairs of one B-similarity in ranges of {step} bits; the data hold every bit."
    return Plot("9-c-for-b", "C-similarity for each fixed B-similarity", svg, columns, rows, note, legend)
