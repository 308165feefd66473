"""Computes the answer of a shard to one message: candidates from its posting lists, and their scores. Pure."""

from collections.abc import Callable, Sequence

import numpy as np

from neardup.decider import Decider
from neardup.index.column_families import Family, Reader
from neardup.index.reads import Needs
from neardup.index.rows import id_key
from neardup.limits import PLACE_BITS
from neardup.pairs.pair import Pair
from neardup.search import candidates
from neardup.search.batch_records import Pages
from neardup.search.search_overlay import SearchOverlay
from neardup.search.search_reads import BatchReads
from neardup.sharded.apply_effects import followed_of
from neardup.sharded.epochs import Sharding
from neardup.sharded.messages import ANSWER, Candidates, taken

_PLACE_MASK = (1 << PLACE_BITS) - 1


def answer(
    sharding: Sharding,
    shard: int,
    offset: int,
    pages: Sequence[tuple[int, bytes]],
    store: Reader,
    decider: Decider,
    threads: int = 1,
    make_reads: Callable[[], BatchReads] | None = None,
) -> Candidates:
    """Find and score the candidates of a message's pages in the lists of `store`, and the sketches that follow URLs.

    Args:
        sharding: numbers of shards and of messages of an epoch.
        shard: number of the shard.
        offset: offset of the message in the log.
        pages: page id and record of each page of the message, without tombstones and rejected records.
        store: rows of the shard.
        decider: the rule with its numbers.
        threads: number of threads that read and score.
        make_reads: function that returns reads of these pages without any row. By default reads are made of `pages`.

    Raises:
        CorruptRecord: if a row or a record cannot be decoded.
    """
    reads = BatchReads(Pages(pages), decider, threads) if make_reads is None else make_reads()
    overlay = SearchOverlay(reads, decider)
    needs = Needs()
    needs.rows[Family.URLS] = set(reads.pages.url_hashes)
    reads.read(store, needs)
    gathered = candidates.read_many(overlay, store, reads.pages.page_ids)
    followed = _followed(reads, store)
    candidates.score(overlay, followed.items())
    found = [
        (page_id, candidate, 1 + weight)
        for page_id, (others, weights, _) in gathered.items()
        for candidate, weight in zip(others, weights, strict=True)
    ]
    keys = _keys(overlay, [(page_id, other) for page_id, other, _ in found])
    known = {(page_id, other) for page_id, other, _ in found}
    found += [(one, other, 0) for one, others in followed.items() for other in others if (one, other) not in known]
    pairs = np.zeros(len(found), dtype=ANSWER)
    if found:
        page_ids, others, weights = (np.array(column, dtype=np.int64) for column in zip(*found, strict=True))
        pairs["place"], pairs["page_id"], pairs["weight"] = page_ids & _PLACE_MASK, others, weights
        pairs["keys"][: len(keys)] = keys
        places = [reads.scores[page_id].places([other])[0] for page_id, other, _ in found]
        _put_pairs(pairs, reads.numbers.rows(places))
        pairs = taken(pairs, np.argsort(pairs["place"], kind="stable"))
    cut = [page_id & _PLACE_MASK for page_id, (_, _, more) in gathered.items() if more]
    return Candidates(sharding, decider.digest, shard, offset, np.array(sorted(cut), dtype="<u2"), pairs)


def _followed(reads: BatchReads, store: Reader) -> dict[int, list[int]]:
    """By page id of a page: the page ids of this shard's sketches that follow the page's URL."""
    rows = reads.rows[Family.URLS]
    every = {
        page_id: list(dict.fromkeys(followed_of(rows[url])))
        for page_id, url in zip(reads.pages.page_ids, reads.pages.url_hashes, strict=True)
        if rows[url] is not None
    }
    reads.read_sketches(store, [other for others in every.values() for other in others])
    held = reads.rows[Family.SKETCHES]
    return {page_id: [other for other in others if held[id_key(other)]] for page_id, others in every.items()}


def _keys(overlay: SearchOverlay, pairs: list[tuple[int, int]]) -> np.ndarray:
    """uint64[pairs]: bit k is set if the other page is posted under the page's k-th key."""
    if not pairs:
        return np.zeros(0, dtype=np.uint64)
    shared = overlay.lists.keys_shared(pairs).astype(np.uint64)
    bits: np.ndarray = (shared << np.arange(shared.shape[1], dtype=np.uint64)).sum(axis=1, dtype=np.uint64)
    return bits


def _put_pairs(answers: np.ndarray, numbers: np.ndarray) -> None:
    """Puts numbers, float64[pairs, fields of a Pair], into the field `pair` of ANSWER[pairs]."""
    pairs = answers["pair"]
    for at, name in enumerate(Pair._fields):
        pairs[name] = numbers[:, at]


def numbers_of(pairs: np.ndarray) -> np.ndarray:
    """float64[pairs, fields of a Pair] of PAIR[pairs]."""
    out = np.empty((len(pairs), len(Pair._fields)))
    for at, name in enumerate(Pair._fields):
        out[:, at] = pairs[name]
    return out
