"""Builds table 7: term differences, sizes of `diff` of two token sequences (Henzinger 2006, sections 3.1 to 3.4)."""

from collections import Counter
from statistics import mean, median

from neardup.evaluation.figures.sections import Cell, Plot, ResultTable, Section, figure, number, ratio, text
from neardup.evaluation.pairs.graphs import Graph
from neardup.evaluation.pairs.study import CrawlStudy
from neardup.evaluation.pairs.truth import thinned
from neardup.report.plots import Axes, Series

FAR = 200


def term_differences(study: CrawlStudy) -> Section:
    """Builds table 7: histogram of term differences of the B pairs and of the C pairs."""
    rows: dict[str, list[Cell]] = {
        name: [name]
        for name in (
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
    }
    section = Section(
        "7",
        "Term differences",
        "Words that diff of the two token sequences prints, inserted and deleted ones; one replaced word counts 2. "
        "Exact: an O(ND) difference, for distant pairs the longest common subsequence by bits.",
    )
    for graph in (study.b, study.c):
        found, lost = _sampled(study, graph)
        n = len(found)
        far = sum(size > FAR for size in found)
        values: list[Cell] = [
            n,
            lost,
            mean(found) if found else None,
            median(found) if found else None,
            point_of(found, 90) if found else None,
            ratio(sum(size == 2 for size in found), n),
            ratio(sum(size < 10 for size in found), n),
            far,
            ratio(far, n),
        ]
        for row, value in zip(rows.values(), values, strict=True):
            row.append(value)
        section.plots += _histogram(graph.name, found)
    note = ""
    if max(study.b.edges, study.c.edges) > study.differences_max:
        note = f"Of a larger graph {study.differences_max:,} pairs are read, chosen by a hash of pages and seed."
    columns = text("") | number("B graph", "C graph")
    section.tables.append(ResultTable("7-differences", "Term differences", columns, list(rows.values()), note))
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
    counts = Counter(sizes)
    shown = Counter({size: n for size, n in counts.items() if size <= FAR})
    # A bar covers an odd size and the even size after it, since a replaced word counts 2. Size 0 does not occur:
    # pages with equal sequences are no pair.
    totals = Counter((size + 1) // 2 * 2 for size in shown.elements())
    points = [(float(size - 1), float(n)) for size, n in sorted(totals.items())]
    hints = [f"{x:.0f} to {x + 1:.0f} terms: {n:,.0f} pairs" for x, n in points]
    axes = Axes("term difference", "pairs", x_range=(0, FAR + 1))
    beyond = len(sizes) - sum(shown.values())
    note = "The data hold every size."
    if beyond:
        note = f"{beyond:,} pairs lie beyond {FAR} terms. " + note
    series, columns = [Series("pairs", points, "steps", hints, step=2)], ("term difference", "pairs")
    caption = f"{name} graph: pairs by term difference"
    return figure(f"7-differences-{name.lower()}", caption, series, axes, columns, sorted(counts.items()), note, ())
