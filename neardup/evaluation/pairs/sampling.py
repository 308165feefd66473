"""Samples pairs for labelling by rule, level of similarity and site; the same pages and seed give the same pairs.

A pair's rank is a hash of its pages and the seed. A larger sample therefore contains a smaller one, and the first n
pairs of a sample are a uniform sample (with strata, as many of each): labelling may stop at any point.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import orjson

from neardup.errors import BadInput
from neardup.evaluation.pairs.corpus import Corpus
from neardup.evaluation.pairs.graphs import Graph
from neardup.evaluation.pairs.levels import C_LEVELS, COMBINED_CUTOFF, c_level_name
from neardup.kernels import joins

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
SAME_SITE, TWO_SITES = "same site", "different sites"


class Drawn(NamedTuple):
    """A pair of pages a < b, and the stratum it was sampled from."""

    a: int
    b: int
    sample: str


def draw(
    corpus: Corpus, b: Graph, c: Graph, *, rule: str = "B", count: int = 200, by: str = "all", seed: int = 0
) -> list[Drawn]:
    """Samples `count` pairs of each stratum (or all of a smaller one), by rank, strata in turn.

    Raises BadInput for an unknown rule or kind of strata, and if the rule has no pair.
    """
    check(rule, count, by)
    columns = _of_rule(corpus, b, c, rule)
    if not len(columns.a):
        raise BadInput(f"there is no pair to draw: no two pages are {RULES[rule].removeprefix('all ')}")
    out: list[tuple[int, int, Drawn]] = []
    for name, mask in _strata(corpus, columns, rule, by):
        places = np.flatnonzero(mask)
        ranks = joins.ranks(columns.a[places], columns.b[places], np.uint64(seed & ((1 << 64) - 1)))
        for turn, place in enumerate(np.argsort(ranks, kind="stable")[:count].tolist()):
            at = places[place]
            out.append((turn, int(ranks[place]), Drawn(int(columns.a[at]), int(columns.b[at]), name)))
    return [drawn for _, _, drawn in sorted(out)]


def draw_of_sets(file: Path, corpus: Corpus, count: int, seed: int) -> list[Drawn]:
    """Samples pairs of the sets of a partition: a document, then another one of its set, both uniformly.

    file: `sets.jsonl`. Documents that the corpus lacks (it keeps one of equal pages) are left out. Raises BadInput.
    """
    sets: list[list[int]] = []
    try:
        with file.open("rb") as lines:
            for line in lines:
                one = orjson.loads(line)
                urls = [document["url"] for document in (one["representative"], *one["members"])]
                pages = sorted({page for url in urls if (page := corpus.find(url)) is not None})
                if len(pages) > 1:
                    sets.append(pages)
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise BadInput(f"cannot read the sets {file}: {error}") from error
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


def check(rule: str, count: int, by: str) -> None:
    """Raises BadInput for options that `draw` would reject for any crawl, before the crawl is read."""
    if rule not in RULES:
        raise BadInput(f"rule {rule!r}: there is {', '.join(RULES)}")
    if by not in STRATA:
        raise BadInput(f"strata {by!r}: there is {', '.join(STRATA)}")
    if count < 1:
        raise BadInput(f"{count} pairs are none; ask for at least one")


class _Pairs(NamedTuple):
    a: npt.NDArray[np.uint32]
    b: npt.NDArray[np.uint32]
    b_similarity: npt.NDArray[np.uint8]
    c_similarity: npt.NDArray[np.uint16]

    def where(self, mask: npt.NDArray[np.bool_]) -> "_Pairs":
        return _Pairs(self.a[mask], self.b[mask], self.b_similarity[mask], self.c_similarity[mask])


def _of_rule(corpus: Corpus, b: Graph, c: Graph, rule: str) -> _Pairs:
    b_pairs = _Pairs(b.a, b.b, b.b_similarity, b.c_similarity)
    c_pairs = _Pairs(c.a, c.b, c.b_similarity, c.c_similarity)
    if rule == "B":
        return b_pairs
    if rule == "C":
        return c_pairs
    if rule == "combined":
        return b_pairs.where(b.c_similarity >= COMBINED_CUTOFF)
    if rule == "B-only":
        return b_pairs.where(b.c_similarity < c.least)
    if rule == "C-only":
        return c_pairs.where(c.b_similarity < b.least)
    site = corpus.site
    one = b_pairs.where((site[b.a] == site[b.b]) & (b.c_similarity >= COMBINED_CUTOFF))
    two = c_pairs.where(site[c.a] != site[c.b])
    return _Pairs(
        np.concatenate([one.a, two.a]),
        np.concatenate([one.b, two.b]),
        np.concatenate([one.b_similarity, two.b_similarity]),
        np.concatenate([one.c_similarity, two.c_similarity]),
    )


def _strata(corpus: Corpus, pairs: _Pairs, rule: str, by: str) -> Iterator[tuple[str, npt.NDArray[np.bool_]]]:
    if by == "all":
        yield rule, np.ones(len(pairs.a), bool)
    elif by == "site":
        same = corpus.site[pairs.a] == corpus.site[pairs.b]
        yield f"{rule}: {SAME_SITE}", same
        yield f"{rule}: {TWO_SITES}", ~same
    elif rule.startswith("C"):
        for low, high in C_LEVELS:
            yield f"{rule}: {c_level_name(low, high)}", (pairs.c_similarity >= low) & (pairs.c_similarity <= high)
    else:
        for level in range(7):
            yield f"{rule}: B-similarity {level}", pairs.b_similarity == level
