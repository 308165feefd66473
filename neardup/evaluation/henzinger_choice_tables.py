"""Builds table 10 with its plots, and the choice of t (Henzinger 2006, sections 3.1 to 3.5)."""

from collections import Counter

import numpy as np

from neardup.evaluation import henzinger_published as published
from neardup.evaluation.henzinger_choices import (
    DRAWS,
    KEPT_MIN,
    LABELS_MIN,
    Cutoff,
    Knee,
    curve,
    equal_correct,
    estimates,
    find_knee,
    knee_draws,
    together,
)
from neardup.evaluation.henzinger_label_tables import by_site, drawn_evenly, judged_table
from neardup.evaluation.henzinger_pairs_tables import SHOWN_MAX
from neardup.evaluation.labels import Judgement
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
from neardup.evaluation.study import NO_LABELS, CrawlStudy, Mask
from neardup.report.plots import Axes, Series


def combined_section(study: CrawlStudy) -> Section:
    """Builds table 10, the combined algorithm: its cutoff by S1, its result on S2."""
    section = Section(
        "10",
        "The combined algorithm",
        "B-similar pairs whose C-similarity reaches a cutoff. The labelled B pairs are split at random in halves: on "
        "S1 the cutoff is picked at the knee of precision against R (correct pairs kept, of all correct ones); on S2 "
        "it is judged. The knee (found our way) is the point farthest above the straight line between the ends "
        f"of the curve, both axes scaled to 0..1; cutoffs that keep fewer than {KEPT_MIN} pairs do not count.",
    )
    similar = study.of_b
    if not len(study.labels) or not similar.any():
        section.missing = NO_LABELS if not len(study.labels) else "No labelled pair is B-similar."
        return section
    section.text += drawn_evenly(study, "B")
    everything = curve(study, similar)
    knee = find_knee(study)
    section.plots += [*_precision_plot(everything, knee), *_r_plot(knee)]
    section.tables += [_cutoffs(knee), *_draws(study, knee)]
    cutoff = published.COMBINED_CUTOFF if knee.chosen is None else knee.chosen
    kept = knee.s2 & (study.c_similarity >= cutoff)
    name = f"Pairs of S2 that cutoff {cutoff} keeps"
    if knee.chosen is None:
        section.missing = "S1's curve has no knee (too few labelled B pairs, or of one kind); the paper's 355 is used."
    section.tables.append(judged_table(study, "10-s2", name, by_site(study, kept), published.COMBINED_ROWS))
    section.tables.append(_alternatives(study, knee, cutoff))
    section.tables.append(_site_split(study, knee, cutoff))
    return section


def _alternatives(study: CrawlStudy, knee: Knee, cutoff: int) -> ResultTable:
    """Tabulates ways to filter B, on S2: precision, and R of all pairs and by site."""
    correct = knee.s2 & study.judged(Judgement.CORRECT)
    rows: list[list[Cell]] = []
    paper = published.COMBINED_R
    ways: list[tuple[str, Mask, float | None]] = [
        ("B alone", study.of_b, None),
        ("B with B-similarity of at least 3", study.b_similarity >= 3, None),
        *((f"combined, cutoff {c}", study.c_similarity >= c, paper) for c in (cutoff, published.COMBINED_CUTOFF)),
    ]
    for name, mask, theirs in ways:
        n = int((knee.s2 & mask).sum())
        r = [
            ratio(int((mask & correct & where).sum()), int((correct & where).sum()))
            for where in (correct, study.same_site, ~study.same_site)
        ]
        rows.append([name, n, ratio(int((mask & correct).sum()), n), *r, theirs])
    shares = share("precision", "R", "R, same site", "R, different sites", "paper: R")
    return ResultTable("10-alternatives", "Ways to filter B, on S2", text("") | count("pairs kept") | shares, rows)


def _site_split(study: CrawlStudy, knee: Knee, cutoff: int) -> ResultTable:
    """Estimates the result if pairs on one site used the combined algorithm, and pairs on two sites C."""
    found = estimates(study, knee.s2, cutoff)
    split = {
        f"on one site by the combined algorithm, cutoff {cutoff}": found["combined"][0],
        "on two sites by algorithm C": found["C"][1],
        "site split": together(found["combined"][0], found["C"][1]),
    }
    beside = {
        "algorithm B": together(*found["B"]),
        "algorithm C": together(*found["C"]),
        f"combined, cutoff {cutoff}": together(*found["combined"]),
    }
    by_b = beside["algorithm B"].correct
    rows: list[list[Cell]] = [
        [name, one.pairs, one.labelled, ratio(one.correct, one.pairs), one.correct, ratio(one.correct, by_b)]
        for name, one in (split | beside).items()
    ]
    counts = count("pairs of the crawl", "labelled")
    columns = text("") | counts | share("precision") | number("correct pairs") | share("of B's correct pairs")
    note = (
        "Estimates: all pairs on one site and on two, times the share of correct ones among the labelled (for the "
        "combined algorithm of S2). A dash: none of a part is labelled. More than B's correct pairs are those that B "
        "misses."
    )
    return ResultTable("10-site-split", "The site split, estimated", columns, rows, note)


def _draws(study: CrawlStudy, knee: Knee) -> list[ResultTable]:
    """Tabulates how far the knee, and what S2 says of it, depend on the halves that were drawn."""
    correct = study.judged(Judgement.CORRECT)
    draws = [draw for draw in knee_draws(study) if draw.chosen is not None]
    figures = [_of_s2(study, draw, correct) for draw in draws]
    own = (None, None, None) if knee.chosen is None else _of_s2(study, knee, correct)
    names = ("cutoff at the knee", "precision on S2", "R on S2")
    papers = (published.COMBINED_CUTOFF, published.COMBINED_ROWS["all"].correct, published.COMBINED_R)
    rows: list[list[Cell]] = []
    for at, (name, mine, paper) in enumerate(zip(names, own, papers, strict=True)):
        values = [value for found in figures if (value := found[at]) is not None]
        points: list[Cell] = [float(np.quantile(values, q)) if values else None for q in (0.5, 0.025, 0.975)]
        rows.append([name, mine, *points, paper])
    columns = text("") | number("this draw", "median", "2.5%", "97.5%", "paper")
    caption = f"The knee over {DRAWS} draws of S1 and S2; {len(draws):,} have one"
    note = "The draws halve one sample (ours); another sample would differ more."
    drawn = Counter(draw.chosen for draw in draws)
    counts = sorted(drawn.items(), key=lambda one: (-one[1], one[0] or 0))[:SHOWN_MAX]
    common: list[list[Cell]] = [[cutoff, many, many / DRAWS] for cutoff, many in counts]
    frequent = count("cutoff", "draws") | share("share")
    return [
        ResultTable("10-draws", caption, columns, rows, note),
        ResultTable("10-draws-cutoffs", "The most frequent knees", frequent, common),
    ]


def _of_s2(study: CrawlStudy, knee: Knee, correct: Mask) -> tuple[int | None, float | None, float | None]:
    """Returns the cutoff of a knee, and its precision and R on S2."""
    kept = knee.s2 & (study.c_similarity >= (knee.chosen or 0))
    right = int((kept & correct).sum())
    return knee.chosen, ratio(right, int(kept.sum())), ratio(right, int((knee.s2 & correct).sum()))


def _cutoffs(knee: Knee) -> ResultTable:
    middle = published.COMBINED_CUTOFF if knee.chosen is None else knee.chosen
    near = {published.COMBINED_CUTOFF, *range(middle - 6, middle + 7)}
    rows: list[list[Cell]] = [
        [str(p.cutoff) + (" (knee)" if p.cutoff == knee.chosen else ""), p.kept, p.precision, p.r]
        for p in knee.curve
        if p.cutoff in near
    ]
    columns = text("cutoff") | count("pairs of S1 kept") | share("precision", "R")
    return ResultTable("10-cutoffs", "Cutoffs around the knee, on S1", columns, rows)


def _precision_plot(points: list[Cutoff], knee: Knee) -> list[Plot]:
    defined = [(float(p.cutoff), p.precision) for p in points if p.precision is not None]
    kept = [(float(p.cutoff), p.r) for p in points if p.precision is not None and p.r is not None]
    paper, knee_at = published.COMBINED_CUTOFF, knee.chosen
    marks = [(paper, f"paper {paper}") if knee_at is None else (knee_at, f"knee {knee_at}")]
    axes = Axes("cutoff (C-similarity)", "share", y_range=(0, 1), marks=marks)
    series = [Series("precision", defined), Series("R", kept)]
    caption = "Precision of the combined algorithm for every cutoff"
    columns, rows = ("cutoff", "pairs kept", "precision", "R"), [[p.cutoff, p.kept, p.precision, p.r] for p in points]
    return figure("10-precision", caption, series, axes, columns, rows, "All labelled B pairs.")


def _r_plot(knee: Knee) -> list[Plot]:
    defined = [p for p in knee.curve if p.precision is not None and p.r is not None]
    points = [(float(p.r or 0), float(p.precision or 0)) for p in defined]
    hints = [f"cutoff {p.cutoff}: precision {p.precision:.2f}, R {p.r:.2f}, {p.kept} pairs" for p in defined]
    series = [Series("cutoffs", points, "dots", hints)]
    legend = ["one cutoff each"]
    for point, hint in [(points[i], hints[i]) for i, p in enumerate(defined) if p.cutoff == knee.chosen]:
        series.append(Series("knee", [point], "dots", [hint]))
        legend.append(f"the knee, {knee.chosen}")
    least = min((int(10 * y) / 10 for _, y in points), default=0.0)
    axes = Axes("R", "precision", x_range=(0, 1), y_range=(min(least, 0.9), 1))
    columns, rows = ("cutoff", "R", "precision"), [[p.cutoff, p.r, p.precision] for p in defined]
    return figure("10-r", "Precision against R on S1", series, axes, columns, rows, legend=legend)


def t_section(study: CrawlStudy) -> Section:
    """Tabulates the choice of t."""
    section = Section(
        "t",
        "The choice of t",
        "Algorithm C's threshold at which it returns as many correct pairs as algorithm B. Correct pairs are "
        "estimated: pairs of each level of similarity in the whole graph, times the share of correct ones among its "
        f"labelled pairs; a level with fewer than {LABELS_MIN} goes with the next. The paper found 372 this way.",
    )
    if not len(study.labels):
        section.missing = NO_LABELS
        return section
    found = equal_correct(study)
    summary: list[list[Cell]] = [
        ["estimated correct pairs of the B graph", found.b_correct, None],
        ["t for as many correct pairs", found.t, 372],
    ]
    columns = text("") | number("here", "paper")
    section.tables.append(ResultTable("t-choice", "t for equal correct pairs", columns, summary))
    rows = [row for row in found.table if row[0] % 3 == 0 or row[0] == found.t or row[0] >= 382]
    columns = text("C-similarity") | count("pairs") | number("estimated correct")
    note = "A dash: a level above has too few labelled pairs to estimate from."
    section.tables.append(ResultTable("t-pairs", "Pairs of at least a C-similarity", columns, rows, note))
    points = [(float(level), right) for level, _, right in found.table if right is not None]
    if np.ptp([right for _, right in points] or [0]) > 0:
        series = [Series("algorithm C with t", points)]
        if found.b_correct is not None:
            series.append(Series("algorithm B", [(points[-1][0], found.b_correct), (points[0][0], found.b_correct)]))
        marks = [(found.t, f"t = {found.t}")] if found.t else []
        axes, names = (
            Axes("t (C-similarity)", "estimated correct pairs", marks=marks),
            ("t", "pairs", "estimated correct"),
        )
        section.plots += figure("t-correct", "Estimated correct pairs by t", series, axes, names, found.table)
    if found.t is None:
        section.missing = f"No t can be determined: {found.why_not}."
    return section
