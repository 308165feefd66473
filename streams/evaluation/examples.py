"""Labelled pairs of pages as examples to learn from: their signals, and whether they are duplicates."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from random import Random
from time import process_time

import numpy as np

from neardup.errors import BadInput
from neardup.evaluation.graphs import b_graph, c_graph
from neardup.evaluation.huffman_study import SignalCost, StepTimes
from neardup.evaluation.labels import Judgement, Label, LabelledPairs, join_labels, read_labels
from neardup.evaluation.truth import RATIO_MIN, Editions
from neardup.pairs.components import components
from neardup.pairs.scoring import compare
from neardup.signals.idf import Idf
from neardup.signals.learning import Examples
from neardup.signals.of_sketches import OF_SKETCHES, sketch_signals
from neardup.signals.table import SIGNALS, signals_of
from neardup.sketch.layout import RecordKind
from neardup.sketch.make_sketches import sketch_pages
from neardup.sketch.sketch_record import Sketch
from streams.errors import WrongUsage
from streams.evaluation.evaluate import natural_labels, open_crawl
from streams.ports import Progress
from streams.results.query_results import Line, read_results
from streams.verdicts.compare import SCHEME

#: Pairs on which the cost of signals is measured.
COST_PAIRS = 50
#: Pairs to label by natural truth; with more, the learners would take hours.
PAIRS_MAX = 1000
#: Pages whose texts and terms are held.
_HELD_MAX = 200


@dataclass
class Labelled:
    """Labelled pairs of results.

    pairs: the two results of each decided pair, of a common query if both pages have one.
    same: whether the results of each pair are duplicates.
    idf: table of terms of all pages that were read.
    labels: labels joined to the pages. given: labels of each labeller.
    problems: problems of the input. pages: number of URLs that were read.
    """

    pairs: list[tuple[Line, Line]] = field(default_factory=list)
    same: list[bool] = field(default_factory=list)
    idf: Idf = field(default_factory=Idf)
    labels: LabelledPairs = field(default_factory=LabelledPairs)
    given: list[Label] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    pages: int = 0

    @property
    def notes(self) -> list[str]:
        """Notes on the figures."""
        undecided = self.labels.count(Judgement.UNDECIDED)
        left_out = [f"undecided pairs, left out: {undecided:,}"] if undecided else []
        return [*self.labels.problems(), *left_out]


def labelled(
    paths: Sequence[Path],
    labels: Sequence[Path],
    *,
    editions: Editions | None = None,
    pairs_max: int = PAIRS_MAX,
    adjudicator: str = "",
    base_url: str | None = None,
    progress: Progress,
) -> Labelled:
    """Returns the labelled pairs among the results of some files. Pages without a label are read for the idf alone.

    editions: label by natural truth as well, at most pairs_max pairs. adjudicator: the labeller that decides where
    labels differ. Raises BadInput for unreadable files, and if no decided pair has both pages.
    """
    if not labels and editions is None:
        raise WrongUsage("no labels: name files of them by --labels, or use --natural")
    given = [label for path in labels for label in read_labels(path)]
    if adjudicator and adjudicator not in {label.labeller for label in given}:
        raise WrongUsage(f"--adjudicator {adjudicator}: no label is of that labeller")
    if editions is not None:
        given += _natural(paths, editions, pairs_max, base_url, progress)
    required = {url for label in given for url in label.pair}
    made = Labelled(given=given)
    kept: dict[str, dict[str, Line]] = {}

    def terms() -> Iterator[Iterable[str]]:
        known: set[str] = set()
        for done, line in enumerate(read_results(paths, base_url, made.problems), 1):
            url = line.page.url
            if url in required:
                kept.setdefault(url, {}).setdefault(line.query, line)
            if url not in known:
                known.add(url)
                yield line.result().fetched.terms
            progress("read", done, 0)

    made.idf = Idf.of(terms())
    made.pages = made.idf.documents
    urls = list(kept)
    made.labels = join_labels(given, {url: number for number, url in enumerate(urls)}.get, adjudicator)
    for a, b, label in zip(made.labels.a, made.labels.b, made.labels.labels, strict=True):
        if label.label in (Judgement.CORRECT, Judgement.INCORRECT):
            made.pairs.append(_of_one_query(kept[urls[a]], kept[urls[b]]))
            made.same.append(label.label is Judgement.CORRECT)
    if not made.pairs:
        unread = f"; first problem: {made.problems[0]}" if made.problems else ""
        raise BadInput(f"none of the labels is of two pages that were read{unread}")
    return made


def _natural(
    paths: Sequence[Path], editions: Editions, most: int, base_url: str | None, progress: Progress
) -> list[Label]:
    """Labels by natural truth, as in `neardup evaluate`; at most `most` / 2 of either kind."""
    with open_crawl(paths, base_url=base_url, progress=progress) as crawl:
        found = natural_labels(crawl, (b_graph(crawl.corpus), c_graph(crawl.corpus)), editions, RATIO_MIN, 0)
    out: list[Label] = []
    for kind in (Judgement.CORRECT, Judgement.INCORRECT):
        alike = [label for label in found if label.label is kind]
        out += Random(0).sample(alike, min(len(alike), most // 2))
    return out


def _of_one_query(one: dict[str, Line], other: dict[str, Line]) -> tuple[Line, Line]:
    query = next((query for query in one if query in other), None)
    if query is None:
        return next(iter(one.values())), next(iter(other.values()))
    return one[query], other[query]


def examples_of(made: Labelled, *, sketches: bool = False, progress: Progress) -> Examples:
    """The signals of the pairs: of the results, or of their sketches. Raises BadInput."""
    rows = []
    for row in _of_sketches(made) if sketches else _of_results(made):
        rows.append(row)
        progress("signals", len(rows), len(made.pairs))
    names = OF_SKETCHES if sketches else SIGNALS
    columns = {name: np.array([row[name] for row in rows], np.float64) for name in names}
    return Examples(columns, np.array(made.same, np.bool_))


def signal_costs(made: Labelled) -> tuple[StepTimes, dict[str, SignalCost]]:
    """Measures the steps before signals, and the cost of each signal alone.

    Each signal is computed twice on new results. The first computation caches data of the pages. The time of the second
    is therefore the cost of the pair, and the difference of both times is the cost of the pages.
    """
    pairs = Random(0).sample(made.pairs, min(COST_PAIRS, len(made.pairs)))
    decoding, costs = 0.0, {}
    for name, signal in SIGNALS.items():
        page = pair = 0.0
        for lines in pairs:
            began = process_time()
            one, other = (line.result() for line in lines)
            decoded = process_time()
            signal.of(one, other, made.idf)
            first = process_time()
            signal.of(one, other, made.idf)
            again = process_time() - first
            decoding, pair, page = decoding + decoded - began, pair + again, page + max(0.0, first - decoded - again)
        costs[name] = SignalCost(500 * page / len(pairs), 1000 * pair / len(pairs))
    pages = {(line.query, line.page.url): line for both in made.pairs for line in both}.values()
    fetch = [line.fetch_ms for line in pages if line.fetch_ms is not None]
    render = [line.render_ms for line in pages if line.render_ms is not None]
    decoded = 2 * len(pairs) * len(SIGNALS)
    return StepTimes(1000 * decoding / decoded, decoded, fetch, render), costs


def groups_of(made: Labelled, by: str) -> np.ndarray:
    """Returns int64[pairs], a number for each group of pairs.

    by: "page": pairs that are connected by common pages form a group. "query": pairs of one query form a group; a pair
    without a common query is grouped by its pages.
    """
    of_query = [by == "query" and a.query and a.query == b.query for a, b in made.pairs]
    pages = [(f"page {a.page.url}", f"page {b.page.url}") for a, b in made.pairs]
    connected = components(pair for pair, queried in zip(pages, of_query, strict=True) if not queried)
    names = [
        f"query {a.query}" if queried else connected.get(page, page)
        for (a, _), (page, _), queried in zip(made.pairs, pages, of_query, strict=True)
    ]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return np.array([numbers[name] for name in names], np.int64)


def _of_results(made: Labelled) -> Iterator[dict[str, float]]:
    # pairs of a page are neighbours: its text is extracted once
    result = lru_cache(maxsize=_HELD_MAX)(Line.result)
    for a, b in made.pairs:
        yield signals_of(result(a), result(b), made.idf)


def _of_sketches(made: Labelled) -> Iterator[dict[str, float]]:
    for a, b in made.pairs:
        sketches = [Sketch(record) for record in sketch_pages([a.page, b.page], SCHEME)]
        for sketch in sketches:
            if sketch.kind is not RecordKind.PAGE:
                raise BadInput(f"{sketch.url}: {sketch.reason or 'not a page'}")
        yield sketch_signals(compare(*sketches))
