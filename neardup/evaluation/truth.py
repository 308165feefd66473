"""Labels by natural truth, for crawls of several releases, architectures or language variants of the same pages.

Two pages of one item (the same URL but for the release) are *correct* if they differ little by an oracle that no rule
uses: |LCS| / (|A| + |B| - |LCS|) of their full token sequences is at least `ratio_min` (.75). Otherwise they are
*incorrect*. Two pages of different items are *incorrect*, too. Faults of these labels:

* Aliases of one page under two paths count as incorrect.
* A page rewritten between releases counts as incorrect, though it is the same document.
* An item that moved to another path is missed.
* No pair is undecided.
* Pages of one path that differ in one decisive word (a price, a name) count as correct.

Labels by people do not have these faults; they have others.

If a generator or an archive knows what each page is about, a file of items states it, and is trusted.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Annotated, Protocol
from urllib.parse import urlsplit

import numpy as np
from msgspec import Meta, Struct

from neardup.errors import BadInput, BadPage
from neardup.evaluation.corpus import Corpus
from neardup.evaluation.corpus_texts import Texts
from neardup.evaluation.labels import LINE_BYTES_MAX, Judgement, Label, join_labels, label_of, lines_at, united
from neardup.evaluation.text_difference import ratio_at_most
from neardup.kernels import joins
from neardup.report.reasons import Reason
from neardup.typed_json import decode
from neardup.urls import id_of, ids_named, named_url, one_named

RATIO_MIN = 0.75
#: Most pages of one item that are paired: a provider of parked domains may have thousands.
ITEM_PAGES_MAX = 100
#: Matches the first folder of a path that looks like a release.
FIRST_RELEASE = re.compile(
    r"(?<=/)(?:[vr]?\d+(?:[._-]\d+)*(?:[._-]?(?:rc|alpha|beta|dev|final|ga|m)\d*)?|latest|stable|current|main|master|devel?"
    r"|snapshot|nightly|lts|next)(?=/)",
    re.IGNORECASE,
)
LABELLER = "natural truth"


class Editions(Protocol):
    """Maps a page to its item and to the edition of that item."""

    def split(self, url: str) -> tuple[str, str]:
        """Returns (item, edition). Empty item: unknown. Empty edition: not one of several, or unknown."""
        ...


@dataclass(frozen=True)
class Releases:
    """Splits a URL into item and release. pattern: matches releases in the path (first_only: only its first match)."""

    pattern: re.Pattern[str] = FIRST_RELEASE
    first_only: bool = True

    @classmethod
    def by(cls, pattern: str | None) -> "Releases":
        """Builds from a regular expression, or None for folders that look like releases.

        Raises BadInput for an invalid one.
        """
        if pattern is None:
            return cls()
        try:
            return cls(re.compile(pattern), first_only=False)
        except re.error as error:
            raise BadInput(f"{pattern!r} is no regular expression: {error}") from error

    def split(self, url: str) -> tuple[str, str]:
        """Returns (item, release); the release is empty if the URL names none."""
        parts = urlsplit(url)
        path = parts.path + (f"?{parts.query}" if parts.query else "")
        found = [match[0] for match in self.pattern.finditer(path)]
        if self.first_only:
            found = found[:1]
        return f"{parts.netloc}{self.pattern.sub('*', path, count=int(self.first_only))}", " ".join(found)


@dataclass(frozen=True)
class Items:
    """Items from a file: normalised URL -> (item, edition)."""

    items: dict[str, tuple[str, str]]

    @classmethod
    def read(cls, path: Path) -> "Items":
        """Reads JSON lines {"url": ..., "item": ..., "edition": ...}.

        Pages of one item without an edition are equal in content.

        Raises BadInput with file and line for an unreadable file, an invalid line, or a URL with two items.
        """
        held: dict[str, tuple[str, str]] = {}
        for place, line in lines_at(path, "items"):
            url, given = _item(line, place)
            if held.setdefault(url, given) != given:
                raise BadInput(f"{place}: {url} is another item than a line before it says")
        if not held:
            raise BadInput(f'{path} names no page; a line is {{"url": ..., "item": ...}}')
        return cls(held)

    def split(self, url: str) -> tuple[str, str]:
        return self.items.get(url, ("", ""))


_Text = Annotated[str, Meta(min_length=1)]


class _Item(Struct):
    """A line of a file of items."""

    url: _Text
    item: _Text
    edition: str = ""


def _item(line: bytes, place: str) -> tuple[str, tuple[str, str]]:
    try:
        if len(line) > LINE_BYTES_MAX:
            raise ValueError(f"a line of more than {LINE_BYTES_MAX} bytes")
        given = decode(line, _Item)
        return named_url(given.url), (given.item, given.edition)
    except (ValueError, BadPage) as error:
        raise BadInput(f'{place}: a line is {{"url": ..., "item": ...}}: {error}') from error


def alike(texts: Texts, a: int, b: int, ratio_min: float) -> bool | None:
    """Tests whether the token sequences of two pages have an LCS ratio of at least ratio_min.

    None if a text cannot be read, or the two are too long to compare.
    """
    one, other = texts.tokens(a), texts.tokens(b)
    if one is None or other is None:
        return None
    ratio: float | None = ratio_at_most(one.fp, other.fp)
    if ratio is not None and ratio >= ratio_min:
        ratio = texts.ratio(a, b)
    return None if ratio is None else ratio >= ratio_min


class NaturalTruth:
    """Labels pairs of a corpus. ratio_min: least LCS ratio of two editions of one item that count as correct."""

    def __init__(self, corpus: Corpus, texts: Texts, editions: Editions, ratio_min: float = RATIO_MIN) -> None:
        self._corpus, self._texts, self._ratio_min = corpus, texts, ratio_min
        self._sure = isinstance(editions, Items)
        self._split = [editions.split(url) for url in corpus.urls]

    @property
    def editions(self) -> set[str]:
        return {edition for _, edition in self._split if edition}

    @property
    def known(self) -> int:
        """Counts the pages whose item is known."""
        return sum(bool(item) for item, _ in self._split)

    def label(self, a: int, b: int, sample: str = "") -> Label | None:
        """Labels a pair of pages; None if its truth is unknown, or texts cannot be read or are too long."""
        urls = self._corpus.urls
        (item, edition), (other_item, other_edition) = self._split[a], self._split[b]
        if not item or not other_item:
            return None

        def labelled(judgement: Judgement, *reasons: Reason) -> Label:
            return label_of(urls[a], urls[b], judgement, reasons=reasons, labeller=LABELLER, sample=sample)

        if item != other_item:
            return labelled(Judgement.INCORRECT, Reason.MAIN_ITEM)
        if self._sure and (not edition or not other_edition or edition == other_edition):
            return labelled(Judgement.CORRECT)
        found = alike(self._texts, a, b, self._ratio_min)
        return None if found is None else labelled(Judgement.CORRECT if found else Judgement.INCORRECT)

    def labels(self, samples: Mapping[tuple[int, int], str]) -> list[Label]:
        """Labels pairs a < b with their samples, sorted by item, so that each page is read about once."""
        ordered = sorted(samples, key=lambda pair: (self._split[pair[0]][0], pair))
        found = (self.label(a, b, samples[a, b]) for a, b in ordered)
        return [label for label in found if label is not None]

    def items(self) -> Iterator[tuple[int, int]]:
        """Iterates over all pairs of pages of one item, in order, for pages with an edition or a certain item.

        Uses the first ITEM_PAGES_MAX pages of a larger item.
        """
        groups: dict[str, list[int]] = {}
        for page, (item, edition) in enumerate(self._split):
            if item and (edition or self._sure):
                groups.setdefault(item, []).append(page)
        for pages in groups.values():
            yield from combinations(pages[:ITEM_PAGES_MAX], 2)

    def others(self, count: int, seed: int) -> list[tuple[int, int]]:
        """Samples about `count` pairs of different items on one site, by seed."""
        rng = np.random.default_rng(seed)
        site, n = self._corpus.site, len(self._corpus)
        order = np.argsort(site, kind="stable")
        starts = np.searchsorted(site[order], site)
        sizes = np.bincount(site, minlength=1)[site] if n else np.zeros(0, np.int64)
        out: set[tuple[int, int]] = set()
        for _ in range(20 * count if n > 1 else 0):
            if len(out) >= count:
                break
            a = int(rng.integers(n))
            b = int(order[starts[a] + rng.integers(sizes[a])])
            one, other = self._split[a][0], self._split[b][0]
            if one and other and one != other:
                out.add((min(a, b), max(a, b)))
        return sorted(out)


def beside(
    given: Sequence[Label], made: Sequence[Label], samples: Mapping[tuple[int, int], str], corpus: Corpus
) -> list[Label]:
    """Combines labels by people with labels by natural truth for pairs that people left undecided.

    samples: pairs sampled by natural truth, pages a < b. Labels by people get these samples too; otherwise the tables
    of a graph would lack every pair that people labelled.
    """
    joined = join_labels(given, corpus.find)
    settled = set(zip(joined.a, joined.b, strict=True))
    out = []
    for label in given:
        pair = _pages(label, corpus)
        drawn = "" if pair is None else samples.get(pair, "")
        out.append(replace(label, sample=united(label.sample, drawn)))
    return out + [label for label in made if _pages(label, corpus) not in settled]


def _pages(label: Label, corpus: Corpus) -> tuple[int, int] | None:
    a, b = corpus.find(label.a), corpus.find(label.b)
    return None if a is None or b is None else (min(a, b), max(a, b))


def thinned(pairs: Iterable[tuple[int, int]], count: int, seed: int) -> list[tuple[int, int]]:
    """Selects `count` pairs by a hash of pages and seed, independent of their order."""
    table = np.unique(np.array(list(pairs), dtype=np.uint32).reshape(-1, 2), axis=0)
    ranks = joins.ranks(table[:, 0], table[:, 1], np.uint64(seed & ((1 << 64) - 1)))
    kept = np.sort(np.argsort(ranks, kind="stable")[:count])
    return [(a, b) for a, b in table[kept].tolist()]


class Documents:
    """The documents of a crawl, which labels and items name by their ids: the id of a file's row names one of many.

    files: names of a file in the URLs of its ids, by the path of the file.
    """

    def __init__(self, urls: Iterable[str], files: Mapping[str, Sequence[str]]) -> None:
        self._urls, self._files = set(urls), files
        self._by_id: dict[str, list[str]] = {}
        for url in self._urls:
            if (given := id_of(url)) is not None:
                self._by_id.setdefault(given, []).append(url)

    def url(self, url: str) -> str:
        """Returns the URL of the document that an id names; any other URL unchanged.

        url: result of `named_url` for a URL, an id or FILE#ID. Raises BadInput for an id of several documents.
        """
        given = id_of(url)
        if given is None or url in self._urls:
            return url
        named = {found: name for name, found in ids_named(given, self._files)}
        for found in sorted(self._by_id.get(given, ())):
            named.setdefault(found, found)
        return one_named(given, named, self._urls.__contains__) or url

    def labels(self, labels: Iterable[Label]) -> list[Label]:
        """Returns labels with the URLs of their documents. Raises BadInput for an id of several documents."""
        out = []
        for label in labels:
            a, b = sorted((self.url(label.a), self.url(label.b)))
            out.append(label if (a, b) == label.pair else replace(label, a=a, b=b))
        return out

    def editions(self, editions: Editions) -> Editions:
        """Returns items with the URLs of their documents, other editions unchanged.

        Raises BadInput for an id of several documents, and for a document of two items.
        """
        if not isinstance(editions, Items):
            return editions
        items: dict[str, tuple[str, str]] = {}
        for url, item in editions.items.items():
            if items.setdefault(self.url(url), item) != item:
                raise BadInput(f"{id_of(url) or url}: the items name two of one document")
        return Items(items)
