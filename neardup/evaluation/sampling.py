"""Samples pairs for labelling by rule, level of similarity and site; the same pages and seed give the same pairs.

A pair's rank is a hash of its pages and the seed. A larger sample therefore contains a smaller one, and the first n
pairs of a sample are a uniform sample (with strata, as many of each): labelling may stop at any point.
"""

from collections.abc import Iterable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from neardup.errors import BadInput
from neardup.evaluation.corpus import Corpus
from neardup.evaluation.graphs import Graph
from neardup.evaluation.henzinger_published import C_LEVELS, COMBINED_CUTOFF, c_level_name
from neardup.kernels import joins
from neardup.rules.base import margin
from neardup.typed_json import decode
from neardup.verdict import Verdict

#: Pairs of the rule in use, instead of those of an algorithm of the paper.
IN_USE = "in-use"
RULES: dict[str, str] = {
    "B": "all B-similar pairs",
    "C": "all C-similar pairs",
    "combined": f"B-similar pairs of C-similarity {COMBINED_CUTOFF} or more",
    "site-split": "pairs on two sites from C, on one site from the combined algorithm",
    "B-only": "B-similar pairs that C refuses",
    "C-only": "C-similar pairs that B refuses",
}
#: all: uniformly, as the paper did. level, site: as many of each level of similarity, or of one site and two.
STRATA = ("all", "level", "site")
#: Most results of a query that are paired.
RESULTS_MAX = 1000
SAME_SITE, TWO_SITES = "same site", "different sites"
_Columns = tuple[npt.NDArray[Any], ...]


class Drawn(NamedTuple):
    """A pair of pages a < b, and the stratum it was sampled from. queries: queries whose results have both pages."""

    a: int
    b: int
    sample: str
    queries: tuple[str, ...] = ()


def draw(
    corpus: Corpus, b: Graph, c: Graph, *, rule: str = "B", count: int = 200, by: str = "all", seed: int = 0
) -> list[Drawn]:
    """Samples `count` pairs of each stratum (or all of a smaller one), by rank, strata in turn.

    Raises BadInput for an unknown rule or kind of strata, and if the rule has no pair.
    """
    check(rule, count, by)
    pairs = _of_rule(corpus, b, c, rule)
    firsts, seconds, *_ = pairs
    if not len(firsts):
        raise BadInput(f"there is no pair to draw: no two pages are {RULES[rule].removeprefix('all ')}")
    out: list[tuple[int, int, Drawn]] = []
    for name, mask in _strata(corpus, pairs, rule, by):
        places = np.flatnonzero(mask)
        ranks = joins.ranks(firsts[places], seconds[places], np.uint64(seed & ((1 << 64) - 1)))
        for turn, place in enumerate(np.argsort(ranks, kind="stable")[:count].tolist()):
            at = places[place]
            out.append((turn, int(ranks[place]), Drawn(int(firsts[at]), int(seconds[at]), name)))
    return [drawn for _, _, drawn in sorted(out)]


def draw_of_verdicts(verdicts: Iterable[Verdict], corpus: Corpus, count: int) -> list[Drawn]:
    """Samples the pairs that a rule decided, those closest to its threshold first.

    Args:
        verdicts: the rule's verdicts on the corpus. A near-duplicate gives the pair with its representative, another
            page that with its nearest candidate.
        corpus: crawl of the pairs.
        count: number of pairs at most.

    Raises BadInput if no pair was scored.
    """
    distances: dict[tuple[int, int], float] = {}
    for verdict in verdicts:
        nearest = verdict.evidence.get("nearest")
        other = nearest["url"] if nearest else verdict.representative.url if verdict.representative else ""
        above = margin(nearest or verdict.evidence)
        found = sorted({page for url in (verdict.url, other) if (page := corpus.find(url)) is not None})
        if above is not None and len(found) == 2:
            pair = found[0], found[1]
            distances[pair] = min(abs(above), distances.get(pair, abs(above)))
    if not distances:
        raise BadInput("there is no pair to draw: the rule compared no page with another one")
    closest = sorted(distances, key=lambda pair: (distances[pair], pair))
    return [Drawn(*pair, IN_USE) for pair in closest[:count]]


class _Document(Struct):
    url: str


class _Set(Struct):
    """A line of `sets.jsonl`."""

    representative: _Document
    members: list[_Document]


def draw_of_sets(file: Path, corpus: Corpus, count: int, seed: int) -> list[Drawn]:
    """Samples pairs of the sets of a partition: a document, then another one of its set, both uniformly.

    file: `sets.jsonl`. Documents that the corpus lacks (it keeps one of equal pages) are left out. Raises BadInput.
    """
    sets: list[list[int]] = []
    try:
        with file.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    one = decode(line, _Set)
                except ValueError as error:
                    raise BadInput(f"{file}:{number}: no set of a partition: {error}") from error
                urls = [document.url for document in (one.representative, *one.members)]
                pages = sorted({page for url in urls if (page := corpus.find(url)) is not None})
                if len(pages) > 1:
                    sets.append(pages)
    except OSError as error:
        raise BadInput(f"cannot read the sets {file}: {error.strerror}") from error
    if not sets:
        raise BadInput(f"no set of {file} has two different pages of this crawl")
    random = np.random.default_rng(seed)
    documents = [(page, pages) for pages in sets for page in pages]
    out: dict[tuple[int, int], Drawn] = {}
    for at in random.permutation(len(documents)).tolist():
        page, pages = documents[at]
        others = [one for one in pages if one != page]
        other = others[int(random.integers(len(others)))]
        pair = min(page, other), max(page, other)
        out.setdefault(pair, Drawn(*pair, "sets"))
        if len(out) == count:
            break
    return list(out.values())


def draw_of_queries(results: Iterable[tuple[str, str]], corpus: Corpus, count: int, seed: int) -> list[Drawn]:
    """Draws all pairs of the results of queries, as Huffman 2007 labelled them; a query's pairs follow each other.

    Queries are drawn at random until `count` pairs are reached, each with all of its pairs. A pair of several queries
    is drawn once, with these queries. Equal pages, of which the corpus keeps one, are no pair.

    results: (query, URL) in any order; results of no query are left out. Raises BadInput for a query with more than
    RESULTS_MAX results, and if no query has a pair.
    """
    pages: dict[str, dict[int, None]] = {}
    for query, url in results:
        page = corpus.find(url)
        if query and page is not None:
            pages.setdefault(query, {})[page] = None
            if len(pages[query]) > RESULTS_MAX:
                raise BadInput(f"{len(pages[query]):,} results of {query!r}; at most {RESULTS_MAX:,} are paired")
    found = [(query, sorted(of_query)) for query, of_query in pages.items() if len(of_query) > 1]
    if not found:
        raise BadInput('no query has two different pages; a result is {"query": ..., "url": ..., "body": ...}')
    queries: dict[tuple[int, int], list[str]] = {}
    for at in np.random.default_rng(seed).permutation(len(found)).tolist():
        query, of_query = found[at]
        for pair in combinations(of_query, 2):
            queries.setdefault(pair, []).append(query)
        if len(queries) >= count:
            break
    return [Drawn(a, b, "queries", tuple(names)) for (a, b), names in queries.items()]


def check(rule: str, count: int, by: str) -> None:
    """Raises BadInput for options that are invalid for any crawl, before the crawl is read."""
    if rule not in (IN_USE, *RULES):
        raise BadInput(f"rule {rule!r}: there is {', '.join((IN_USE, *RULES))}")
    if by not in STRATA:
        raise BadInput(f"strata {by!r}: there is {', '.join(STRATA)}")
    if rule == IN_USE and by != "all":
        raise BadInput(f"strata {by!r}: only a sample of an algorithm has strata; choose {', '.join(RULES)}")
    if count < 1:
        raise BadInput(f"{count} pairs are none; ask for at least one")


def _of_rule(corpus: Corpus, b: Graph, c: Graph, rule: str) -> _Columns:
    """Returns the pairs of a rule as columns: a, b, B-similarity and C-similarity."""

    def of_b(mask: npt.NDArray[np.bool_]) -> _Columns:
        return b.a[mask], b.b[mask], b.b_similarity[mask], b.c_similarity[mask]

    def of_c(mask: npt.NDArray[np.bool_]) -> _Columns:
        return c.a[mask], c.b[mask], c.b_similarity[mask], c.c_similarity[mask]

    combined = b.c_similarity >= COMBINED_CUTOFF
    if rule in ("B", "combined", "B-only"):
        return of_b({"B": b.c_similarity >= 0, "combined": combined, "B-only": b.c_similarity < c.least}[rule])
    if rule in ("C", "C-only"):
        return of_c(c.b_similarity < b.least if rule == "C-only" else c.b_similarity >= 0)
    site = corpus.site
    parts = of_b((site[b.a] == site[b.b]) & combined), of_c(site[c.a] != site[c.b])
    return tuple(np.concatenate(columns) for columns in zip(*parts, strict=True))


def _strata(corpus: Corpus, pairs: _Columns, rule: str, by: str) -> Iterator[tuple[str, npt.NDArray[np.bool_]]]:
    a, b, b_similarity, c_similarity = pairs
    if by == "all":
        yield rule, np.ones(len(a), bool)
    elif by == "site":
        same = corpus.site[a] == corpus.site[b]
        yield f"{rule}: {SAME_SITE}", same
        yield f"{rule}: {TWO_SITES}", ~same
    elif rule.startswith("C"):
        for low, high in C_LEVELS:
            yield f"{rule}: {c_level_name(low, high)}", (c_similarity >= low) & (c_similarity <= high)
    else:
        for level in range(7):
            yield f"{rule}: B-similarity {level}", b_similarity == level
