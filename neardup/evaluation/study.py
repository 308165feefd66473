"""Combines the inputs of an evaluation's sections: a corpus, its graphs, labelled pairs and their numbers."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from neardup.decider import Decider
from neardup.evaluation.corpus import Corpus
from neardup.evaluation.corpus_texts import Texts
from neardup.evaluation.graphs import Graph
from neardup.evaluation.labels import Judgement, LabelledPairs
from neardup.evaluation.runs import CrawlRun
from neardup.evaluation.truth import Editions
from neardup.kernels import joins
from neardup.pairs.components import components
from neardup.pairs.pair import Pair
from neardup.pairs.scoring import compare_records
from neardup.report.reasons import Draft, Reason, draft
from neardup.urls import hen_site, host_of, site_named

Mask = npt.NDArray[np.bool_]
Levels = npt.NDArray[np.int64]

#: Why a section of labelled pairs is empty.
NO_LABELS = "No labelled pair is in this crawl: label some with `neardup label`, or give --releases for natural truth."


class LabelledStudy:
    """Labelled pairs with levels of similarity.

    decider: thresholds of algorithms B and C. seed: seed of the samples.
    numbers: numbers of each labelled pair, with b_similarity and c_similarity; None if they are unknown.
    graph_words: text for the pairs of algorithm {} in captions.
    """

    labels: LabelledPairs
    decider: Decider
    seed: int
    graph_words = "of the {} graph"

    @property
    def numbers(self) -> Sequence[Any]:
        raise NotImplementedError

    def urls(self, place: int) -> tuple[str, str]:
        """Returns the URLs of a labelled pair; for identity sets, those of the kept page."""
        raise NotImplementedError

    def draft(self, place: int) -> Draft | None:
        """Drafts the reason of a labelled pair; None if a text is gone or no word differs."""
        return None

    @cached_property
    def b_similarity(self) -> Levels:
        """int64[labels]: 0 to 6, -1 if unknown."""
        return self._levels("b_similarity")

    @cached_property
    def c_similarity(self) -> Levels:
        """int64[labels]: 0 to 384, -1 if unknown."""
        return self._levels("c_similarity")

    def _levels(self, name: str) -> Levels:
        levels = (getattr(pair, name, None) for pair in self.numbers)
        return np.array([-1 if level is None else level for level in levels], dtype=np.int64)

    @cached_property
    def same_site(self) -> Mask:
        """bool[labels], by Henzinger's rule for sites."""
        return np.array([len(self.sites(place)) == 1 for place in range(len(self.labels))], dtype=bool)

    @property
    def has_sites(self) -> bool:
        """Whether any labelled page is on a site: documents with ids are on none."""
        return any(self.sites(place) for place in range(len(self.labels)))

    def sites(self, place: int) -> set[str]:
        """Returns the sites of a labelled pair; none for documents with ids."""
        return {site_named(url, hen_site(host_of(url))) for url in self.urls(place)} - {""}

    def judged(self, judgement: Judgement) -> Mask:
        return np.array([label.label is judgement for label in self.labels.labels], dtype=bool)

    def reasoned(self, *reasons: Reason) -> Mask:
        """Marks the pairs whose label has one of these reasons."""
        return np.array([not set(reasons).isdisjoint(label.reasons) for label in self.labels.labels], dtype=bool)

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
        return sorted(at[np.argsort(self.ranks(at), kind="stable")[:count]].tolist())

    def ranks(self, places: npt.NDArray[np.int64], salt: int = 0) -> npt.NDArray[np.uint64]:
        """Hashes labelled pairs by their pages, the seed and a salt: uint64[places]."""
        a, b = (np.array(pages, np.uint32)[places] for pages in (self.labels.a, self.labels.b))
        return joins.ranks(a, b, np.uint64((self.seed ^ salt) & ((1 << 64) - 1)))  # type: ignore[no-any-return]


def groups_of(labels: LabelledPairs) -> Levels:
    """Groups labelled pairs: int64[labels]. Pages that correct pairs connect form a group, named by its first page.

    A pair that is not correct is in the group of its earlier page.
    """
    joined = zip(labels.a, labels.b, labels.labels, strict=True)
    # components are named by their greatest item
    groups = components((-a, -b) for a, b, label in joined if label.label is Judgement.CORRECT)
    return np.array([-groups.get(-a, -a) for a in labels.a], dtype=np.int64)


@dataclass
class CrawlStudy(LabelledStudy):
    """A crawl with its graphs and labelled pairs.

    Args:
        b, c: graphs at the thresholds of algorithms B and C.
        wide: counts of all pairs down to a lower C-similarity; None if the corpus is too large.
        labels: pairs with one judgement each.
        seed: seed of every random choice.
        differences_max: greatest number of pairs whose term difference is computed by reading the pages again.
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
        return score(self.corpus, self.labels.a, self.labels.b)

    def urls(self, place: int) -> tuple[str, str]:
        return self.corpus.urls[self.labels.a[place]], self.corpus.urls[self.labels.b[place]]

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
