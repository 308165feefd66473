"""Defines which documents of a crawl are duplicates of each other, for measures over documents.

Two documents are duplicates if they are of one item, by the truth that also labels pairs (`truth`): two editions of an
item only if their texts have enough in common. So one document may be a duplicate of two that are no duplicates of each
other.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from neardup.evaluation.corpus import Corpus
from neardup.evaluation.corpus_texts import Texts
from neardup.evaluation.truth import ITEM_PAGES_MAX, RATIO_MIN, Editions, Items, alike


@dataclass(frozen=True)
class ItemTruth:
    """The truth of a crawl's documents.

    items: item of each URL whose item is known.
    apart: for each URL, the URLs of its item that are no duplicates of it.
    left_out: number of URLs whose item has too many pages to compare. unread: pairs of one item that could not be
    compared; they count as apart.
    """

    items: Mapping[str, str]
    apart: Mapping[str, frozenset[str]] = field(default_factory=dict)
    left_out: int = 0
    unread: int = 0

    def same(self, a: str, b: str) -> bool | None:
        """Tests whether two documents are duplicates; None if the item of one is unknown."""
        if a not in self.items or b not in self.items:
            return None
        return self.items[a] == self.items[b] and b not in self.apart.get(a, ())

    @property
    def notes(self) -> list[str]:
        """Notes on the figures."""
        found = []
        if self.left_out:
            found.append(f"pages of items with more than {ITEM_PAGES_MAX:,} pages, left out: {self.left_out:,}")
        if self.unread:
            found.append(f"pairs of one item that cannot be compared, taken as different: {self.unread:,}")
        return found


def certain_truth(urls: Iterable[str], editions: Editions) -> ItemTruth | None:
    """Returns the truth of documents whose items settle it without their texts, else None.

    Items settle it if each names one content: a file of items without editions.
    """
    split = {url: editions.split(url) for url in urls}
    if not isinstance(editions, Items) or any(edition for _, edition in split.values()):
        return None
    return ItemTruth({url: item for url, (item, _) in split.items() if item})


def item_truth(
    urls: Sequence[str], editions: Editions, corpus: Corpus, texts: Texts, ratio_min: float = RATIO_MIN
) -> ItemTruth:
    """Compares the documents of each item. The truth is unknown if URLs name fewer than two releases.

    Args:
        urls: normalised URLs of the documents, in order; of a larger item the first ITEM_PAGES_MAX count.
        editions: item and edition of each URL.
        corpus, texts: pages of the same crawl.
        ratio_min: least LCS ratio of two editions of one item that are duplicates.
    """
    sure = isinstance(editions, Items)
    groups: dict[str, list[tuple[str, str]]] = {}
    for url in urls:
        item, edition = editions.split(url)
        if item:
            groups.setdefault(item, []).append((url, edition))
    if not sure and len({edition for pages in groups.values() for _, edition in pages} - {""}) < 2:
        return ItemTruth({})
    items: dict[str, str] = {}
    apart: dict[str, set[str]] = {}
    left_out = unread = 0
    for item, pages in groups.items():
        several = not sure or len({edition for _, edition in pages}) > 1
        if several:
            left_out += len(pages[ITEM_PAGES_MAX:])
            pages = pages[:ITEM_PAGES_MAX]
        items |= {url: item for url, _ in pages}
        for (a, edition), (b, other) in combinations(pages, 2) if several else ():
            if sure and (not edition or not other or edition == other):
                continue
            found = _alike(corpus, texts, a, b, ratio_min)
            unread += found is None
            if not found:
                apart.setdefault(a, set()).add(b)
                apart.setdefault(b, set()).add(a)
    return ItemTruth(items, {url: frozenset(others) for url, others in apart.items()}, left_out, unread)


def _alike(corpus: Corpus, texts: Texts, a: str, b: str, ratio_min: float) -> bool | None:
    one, other = corpus.find(a), corpus.find(b)
    if one is None or other is None:
        return None
    return one == other or alike(texts, one, other, ratio_min)
