"""Combines the inputs of an evaluation's sections: a corpus, its graphs, labelled pairs and their numbers."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from neardup.decider import Decider
from neardup.evaluation.pairs.corpus import Corpus
from neardup.evaluation.pairs.graphs import Graph
from neardup.evaluation.pairs.labels import Judgement, LabelledPairs
from neardup.evaluation.pairs.runs import CrawlRun
from neardup.evaluation.pairs.texts import Texts
from neardup.evaluation.pairs.truth import Editions
from neardup.kernels import joins
from neardup.pairs.pair import Pair
from neardup.pairs.scoring import compare_records
from neardup.report.reasons import Draft, draft

Mask = npt.NDArray[np.bool_]
Levels = npt.NDArray[np.int64]

#: Why a section of labelled pairs is empty.
NO_LABELS = "No labelled pair is in this crawl: label some with `neardup label`, or give --releases for natural truth."


class LabelledStudy(ABC):
    """Labelled pairs with levels of similarity. decider: thresholds of algorithms B and C. seed: of samples.

    graph_words: text for the pairs of algorithm {} in captions.
    """

    labels: LabelledPairs
    decider: Decider
    seed: int
    graph_words = "of the {} graph"

    @property
    @abstractmethod
    def b_similarity(self) -> Levels:
        """int64[labels]: 0 to 6, -1 if unknown."""

    @property
    @abstractmethod
    def c_similarity(self) -> Levels:
        """int64[labels]: 0 to 384, -1 if unknown."""

    @property
    @abstractmethod
    def same_site(self) -> Mask:
        """bool[labels], by Henzinger's rule for sites."""

    @abstractmethod
    def sites(self, place: int) -> set[str]:
        """Returns the sites of a labelled pair."""

    @abstractmethod
    def draft(self, place: int) -> Draft | None:
        """Drafts the reason of a labelled pair; None if a text is gone or no word differs."""

    def judged(self, judgement: Judgement) -> Mask:
        return np.array([label.label is judgement for label in self.labels.labels], dtype=bool)

    def drawn(self, *samples: str) -> Mask:
        """Marks the pairs of these samples ("B", "C"), which represent them.

        Marks all pairs if no pair names one of these samples, since labels need not name samples.
        """
        found: Mask = np.array([not label.samples.isdisjoint(samples) for label in self.labels.labels], dtype=bool)
        return found if found.any() else np.ones(len(self.labels), bool)

    @cached_property
    def groups(self) -> Levels:
        """int64[labels], as in `groups_of`."""
        return groups_of(self.labels)

    def stands_for(self, *samples: str) -> bool:
        """Whether any pair is from these samples, or no pair names its sample."""
        known: set[str] = set().union(*(label.samples for label in self.labels.labels))
        return not known or not known.isdisjoint(samples)

    @cached_property
    def of_b(self) -> Mask:
        """Marks the labelled pairs that represent the B graph: B-similar, and sampled from it if any pair is."""
        similar: Mask = self.b_similarity >= self.decider.b_min
        return similar & self.drawn("B")

    @cached_property
    def of_c(self) -> Mask:
        """Marks the labelled pairs that represent the C graph, like `of_b`."""
        similar: Mask = self.c_similarity >= self.decider.c_min
        return similar & self.drawn("C")

    def chosen(self, places: Sequence[int], count: int) -> list[int]:
        """Selects at most `count` labelled pairs, in order, by a hash of their pages and the seed."""
        if len(places) <= count:
            return list(places)
        at = np.array(places, np.int64)
        a, b = (np.array(pages, np.uint32)[at] for pages in (self.labels.a, self.labels.b))
        ranks = joins.ranks(a, b, np.uint64(self.seed & ((1 << 64) - 1)))
        return sorted(at[np.argsort(ranks, kind="stable")[:count]].tolist())


def groups_of(labels: LabelledPairs) -> Levels:
    """Groups labelled pairs: int64[labels]. Pages that correct pairs connect form a group, named by its first page.

    A pair that is not correct is in the group of its earlier page.
    """
    above: dict[int, int] = {}

    def top(page: int) -> int:
        while (over := above.get(page, page)) != page:
            above[page] = above.get(over, over)
            page = over
        return page

    for a, b, label in zip(labels.a, labels.b, labels.labels, strict=True):
        if label.label is Judgement.CORRECT:
            one, other = sorted((top(a), top(b)))
            above[other] = one
    return np.array([top(a) for a in labels.a], dtype=np.int64)


@dataclass
class CrawlStudy(LabelledStudy):
    """A crawl with its graphs and labelled pairs.

    Args:
        b, c: graphs at the thresholds of algorithms B and C.
        wide: counts of all pairs down to a lower C-similarity; None if the corpus is too large.
        labels: pairs with one judgement each.
        seed: of every random choice.
        differences_max: most pairs whose term difference is computed by reading the pages again.
        run, editions: verdicts of the crawl and items of its pages, if known.
    """

    corpus: Corpus
    texts: Texts
    decider: Decider
    b: Graph
    c: Graph
    wide: Graph | None
    labels: LabelledPairs
    seed: int = 0
    differences_max: int = 5000
    notes: list[str] = field(default_factory=list)
    run: CrawlRun | None = None
    editions: Editions | None = None

    @cached_property
    def numbers(self) -> list[Pair]:
        """Returns the numbers of each labelled pair."""
        return score(self.corpus, self.labels.a, self.labels.b)

    @cached_property
    def same_site(self) -> Mask:
        site = self.corpus.site
        same: Mask = site[np.array(self.labels.a, np.int64)] == site[np.array(self.labels.b, np.int64)]
        return same

    @cached_property
    def b_similarity(self) -> Levels:
        return np.array([pair.b_similarity for pair in self.numbers], dtype=np.int64)

    @cached_property
    def c_similarity(self) -> Levels:
        return np.array([pair.c_similarity for pair in self.numbers], dtype=np.int64)

    def urls(self, place: int) -> tuple[str, str]:
        """Returns the URLs of a labelled pair in the corpus: for identity sets, those of the kept page."""
        return self.corpus.urls[self.labels.a[place]], self.corpus.urls[self.labels.b[place]]

    def sites(self, place: int) -> set[str]:
        return {self.corpus.sites[page] for page in (self.labels.a[place], self.labels.b[place])}

    def draft(self, place: int) -> Draft | None:
        a, b = self.labels.a[place], self.labels.b[place]
        one, other = self.texts.tokens(a), self.texts.tokens(b)
        if one is None or other is None:
            return None
        return draft(one.words, other.words, self.corpus.urls[a], self.corpus.urls[b])

    def differences(self, pairs: Iterable[tuple[int, int]]) -> list[int | None]:
        """Computes term differences, in order. Pages are read again, so neighbours in `pairs` should share pages."""
        out: list[int | None] = []
        for a, b in pairs:
            found = self.texts.common(int(a), int(b))
            out.append(None if found is None else found[0] + found[1] - 2 * found[2])
        return out


def score(corpus: Corpus, a: Sequence[int], b: Sequence[int]) -> list[Pair]:
    """Computes the numbers of pairs (a[i], b[i]) for the rules; the later page is the new one."""
    partners: dict[int, list[int]] = {}
    for place, new in enumerate(b):
        partners.setdefault(new, []).append(place)
    out: list[Pair | None] = [None] * len(a)
    for new, places in partners.items():
        found = compare_records(corpus.records[new], [corpus.records[a[place]] for place in places])
        for place, pair in zip(places, found, strict=True):
            out[place] = pair
    return [pair for pair in out if pair is not None]
