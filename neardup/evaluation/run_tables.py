"""Tabulates the verdicts of a run: pairs, levels of similarity, precision."""

from collections import Counter
from functools import cached_property

import numpy as np

from neardup.decider import Decider
from neardup.errors import BadPage
from neardup.evaluation import henzinger_published as published
from neardup.evaluation.henzinger_label_tables import (
    b_judged,
    c_judged,
    kinds_of_difference,
    reasons_of_undecided,
    worst_sites,
)
from neardup.evaluation.henzinger_pairs_tables import hosts_section
from neardup.evaluation.labels import Judgement, LabelledPairs
from neardup.evaluation.measures import measure
from neardup.evaluation.rule_tables import RUN_TEXT, not_measured, rules_table, run_row, sites
from neardup.evaluation.runs import CrawlRun, Merge
from neardup.evaluation.sections import Cell, ResultTable, Section, count, number, ratio, share, text
from neardup.evaluation.study import LabelledStudy
from neardup.evaluation.truth import Editions
from neardup.urls import normalise_url
from neardup.verdict import Kind

#: Most rows of merges by deciding step; there are some ten steps.
STEPS_SHOWN = 20


class RunPages:
    """Numbers the URLs of a run like the pages of a corpus, for `join_labels`."""

    def __init__(self, run: CrawlRun) -> None:
        self.urls = list(run.clusters)
        self._places = {url: place for place, url in enumerate(self.urls)}

    def find(self, url: str) -> int | None:
        try:
            return self._places.get(normalise_url(url))
        except BadPage:
            return None


class RunStudy(LabelledStudy):
    """Labelled pairs of a run without pages. Only pairs that the run merged have levels of similarity."""

    graph_words = "that the run merged and algorithm {} calls similar"

    def __init__(self, run: CrawlRun, pages: RunPages, labels: LabelledPairs, seed: int = 0) -> None:
        self.run, self.pages, self.labels, self.seed = run, pages, labels, seed
        self.decider = Decider(scheme="")

    @cached_property
    def numbers(self) -> list[Merge | None]:
        """Returns the merge of each labelled pair, None if the run did not merge it."""
        merges = {frozenset((merge.url, merge.other)): merge for merge in self.run.merges}
        return [merges.get(frozenset(self.urls(place))) for place in range(len(self.labels))]

    def urls(self, place: int) -> tuple[str, str]:
        return self.pages.urls[self.labels.a[place]], self.pages.urls[self.labels.b[place]]


def run_sections(study: RunStudy) -> list[Section]:
    """Computes all sections of a run without its pages; the others state what they need."""
    parts = (_rules, b_judged, c_judged, kinds_of_difference, reasons_of_undecided, worst_sites)
    made = [
        *(part(study) for part in parts),
        *(run_section(study.run, study), hosts_section(study.pages.urls), _levels(study.run)),
        *(Section(key, title, missing=f"Not available from verdicts: {why}") for key, title, why in _NEED_PAGES),
    ]
    order = ("rules", "run", "hosts", *map(str, range(1, 12)), "t", "ablations")
    return sorted(made, key=lambda section: order.index(section.key))


_FILES = "Name the files or the state directory."
_NEED_PAGES = (
    ("1", "Degrees of the B graph and the C graph", f"a verdict names one similar page, not all. {_FILES}"),
    ("7", "Term differences", f"they need both texts. {_FILES}"),
    ("8", "Pairs with a term difference over 200", f"they need both texts. {_FILES}"),
    (
        "9",
        "C-similarity for each B-similarity, and the other way round",
        "section 2 has the pairs that the run merged; all pairs need the sketches.",
    ),
    (
        "10",
        "The combined algorithm",
        f"its cutoff is chosen among all B-similar pairs, merged or not. {_FILES}",
    ),
    ("t", "The choice of t", f"it needs all pairs of both graphs. {_FILES}"),
    ("ablations", "Variants of the algorithms", f"they need the texts. {_FILES}"),
)


def run_section(run: CrawlRun, study: LabelledStudy | None = None, editions: Editions | None = None) -> Section:
    """Tabulates the run's verdicts, and its merges by step. editions: items of the pages, if known."""
    total = sum(run.kinds.values())
    rows: list[list[Cell]] = [[str(kind), run.kinds[kind], ratio(run.kinds[kind], total)] for kind in Kind]
    kinds = ResultTable("run-kinds", "Its verdicts", text("verdict") | count("pages") | share("share"), rows)
    about = f"Of {run.name}." if run.name.startswith("the run") else f"Of a run made here: {run.name}."
    section = Section("run", "Verdicts of the run", about, [kinds, _clusters(run)])
    if run.merges:
        section.tables.append(_steps(run, study))
    else:
        section.missing = "The run found no near-duplicates."
    if editions is not None:
        section.tables.append(_items(run, editions))
    if run.unreadable:
        section.missing = f"{section.missing} Skipped lines that are no verdicts: {run.unreadable:,}.".strip()
    return section


def _clusters(run: CrawlRun) -> ResultTable:
    sizes = Counter(Counter(run.clusters.values()).values())
    clusters, pages = sum(sizes.values()), sum(size * n for size, n in sizes.items())
    rows: list[list[Cell]] = [
        ["pages in clusters", pages],
        ["clusters", clusters],
        ["clusters of two pages or more", clusters - sizes[1]],
        ["pages of the largest cluster", max(sizes, default=0)],
        ["pages per cluster, on average", ratio(pages, clusters)],
    ]
    return ResultTable("run-clusters", "Clusters at the end of the run", text("") | number("here"), rows)


def _items(run: CrawlRun, editions: Editions) -> ResultTable:
    """Counts pages that an index would lose or show twice."""
    items = {url: item for url in run.clusters if url not in run.exact and (item := editions.split(url)[0])}
    right = wrong = same = 0
    for merge in run.merges:
        one, other = items.get(merge.url), editions.split(merge.other)[0]
        if one is not None and other:
            right += one == other
            wrong += one != other
            same += one != other and merge.same_site
    distinct = len(set(items.values()))
    repeats = len(items) - distinct
    rows: list[list[Cell]] = [
        ["items", distinct, None],
        ["pages beside the first of each item", repeats, None],
        ["merged with a page of their item", right, ratio(right, repeats)],
        ["merged with a page of another item", wrong, ratio(wrong, distinct)],
        ["of these on one site", same, ratio(same, distinct)],
    ]
    note = (
        "Near-duplicates alone. Shares: of the pages beside the first, and of the items. Editions of an item count as "
        "one item here, however much they differ."
    )
    return ResultTable("run-items", "Pages by item", text("") | count("here") | number("share"), rows, note)


def _steps(run: CrawlRun, study: LabelledStudy | None) -> ResultTable:
    """Tabulates merges by the step that decided, with their labels."""
    labels = [] if study is None else study.labels.labels
    judged = {frozenset(label.pair): label.label for label in labels}
    rows: list[list[Cell]] = []
    steps = Counter(merge.by for merge in run.merges)
    for step, many in [("all", len(run.merges)), *steps.most_common(STEPS_SHOWN)]:
        here = [merge for merge in run.merges if step in ("all", merge.by)]
        given = [judged.get(frozenset((merge.url, merge.other))) for merge in here]
        right, wrong, open_ones = (given.count(one) for one in list(Judgement)[:3])
        n = right + wrong + open_ones
        found = measure(np.ones(n, bool), np.arange(n) < right, 0).precision
        row: list[Cell] = [step or "(unknown)", many, ratio(sum(merge.same_site for merge in here), many)]
        rows.append([*row, right, wrong, open_ones, ratio(right, n), found.bounds if 0 < right < n else None])
    columns = text("decided by") | count("near-duplicates") | share("of them on one site")
    columns |= count("labelled correct", "incorrect", "undecided") | share("precision") | text("precision 95%")
    note = (
        "Pairs of a page and the page that it was verified against. An undecided pair counts as not correct. A dash: "
        "no labels, or labels of one kind only."
    )
    return ResultTable("run-steps", "Near-duplicates by the step that decided", columns, rows, note)


def _levels(run: CrawlRun) -> Section:
    """Builds table 2 and a part of table 9 from the pairs that the run merged."""
    rows: list[list[Cell]] = []
    with_evidence = [merge for merge in run.merges if None not in (merge.b_similarity, merge.c_similarity)]
    for level in range(7):
        here = [merge for merge in with_evidence if merge.b_similarity == level]
        c = [merge.c_similarity or 0 for merge in here]
        n, of_c, one_site = (
            len(here),
            sum(bits >= published.C_MIN for bits in c),
            sum(merge.same_site for merge in here),
        )
        shares = [ratio(n, len(with_evidence)), ratio(one_site, n), ratio(sum(c), n), ratio(of_c, n)]
        rows.append([str(level), n, *shares, published.b_share(level)])
    columns = text("B-similarity") | count("pairs") | share("share", "of them on one site")
    columns |= number("mean C-similarity") | share(f"share of C-similarity {published.C_MIN} or more")
    columns |= share("paper (share of its B pairs)")
    table = ResultTable("2-b-similarity", "Near-duplicates by B-similarity", columns, rows)
    about = "The pairs that the run merged: a page and the page that it was verified against."
    missing = "" if with_evidence else "No pairs: the run merged none, or its verdicts have no evidence."
    if with_evidence and len(with_evidence) < len(run.merges):
        missing = f"{len(run.merges) - len(with_evidence):,} near-duplicates have no evidence and are left out."
    return Section("2", "Pairs by B-similarity", about, [table], missing=missing)


def _rules(study: RunStudy) -> Section:
    section = Section("rules", "The run on labelled pairs", RUN_TEXT)
    section.missing = not_measured(study)
    for where, mask in sites(study).items() if study.labels.decided else ():
        row = run_row(study, study.run, mask)
        if row[1]:
            section.tables.append(rules_table(where, [row]))
    if not section.tables and not section.missing:
        section.missing = "No labelled pair is of two pages of the run."
    section.missing = f"{section.missing} Other rules need the pages: name the files or the state directory.".strip()
    return section
