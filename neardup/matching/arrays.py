"""The arrays of a batch: its records and keys, room for rows that are read, and for what judging finds."""

from collections.abc import Sequence

import numpy as np

from neardup.decider import Decider
from neardup.index import posting_rows, sketch_rows
from neardup.kernels.pairs import COLUMNS, FIELDS
from neardup.limits import DAY_MS
from neardup.matching.batch_records import Pages
from neardup.matching.kernels import lists, rows
from neardup.matching.kernels.clusters import CLUSTER, URL
from neardup.matching.kernels.judge import CLAIM, COMBINED_C_MIN, COUNTS, EMIT, RECLAIM_MS, TRACE, Judge
from neardup.matching.kernels.lists import Keys
from neardup.matching.kernels.records import PAGE
from neardup.matching.kernels.rows import ENTRY, NEED, UNDO, Rows
from neardup.matching.kernels.search import CANDIDATE, CHECK, SEARCH, Pairs
from neardup.matching.verdict_columns import VERDICT, blank
from neardup.pairs.scoring import pair_scratch
from neardup.rules.posted_keys import (
    counts_siblings,
    fewest_tokens,
    key_indexes,
    key_places,
    key_weights,
    length_gap,
    similarity_columns,
)
from neardup.rules.records import RULING, SIBLINGS, pairs_view
from neardup.rules.rulings import tables_of
from neardup.sketch.header import log_length
from neardup.sketch.layout import RecordKind, RecordSection, field_at
from neardup.urls import url_hash

_AT = np.array([field_at(name) for name in FIELDS], dtype=np.int64)
_TRAITS = np.array([field_at(name) for name in ("tail", "titling", "place")], dtype=np.int64)
_SALTS = np.array([posting_rows.salt_of(first) for first in range(256)], dtype=np.uint64)
#: Bytes of the heap before the first record: the row of a further page of a digest, and room.
_FIRST = 8
#: Lengths of arrays: beside a batch, and for each of its pages. An array that is too short is made anew.
_ENTRIES, _ENTRIES_A_PAGE, _UNDO = 1024, 64, 4096
_PAIRS, _PAIRS_A_PAGE, _VERDICTS, _VERDICTS_A_PAGE, _TURNED, _CHECKS = 256, 4, 64, 2, 256, 16
#: Times the bytes of the batch that the heap has room for.
_HEAP = 4


def _least_logs() -> np.ndarray:
    """The least number of tokens of each `log_length`, int64[256]."""
    out = np.zeros(256, dtype=np.int64)
    for number in range(1, 256):
        low, high = 0, 1 << 33
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if log_length(middle) >= number else (middle + 1, high)
        out[number] = low
    return out


_LOGS = _least_logs()


def power(least: int) -> int:
    """The least power of two that is not below a number."""
    return 1 << (least - 1).bit_length()


def longer(array: np.ndarray, wanted: int) -> np.ndarray:
    """A copy with room for `wanted` items, or for twice as many as now."""
    out = np.zeros((max(wanted, 2 * len(array)), *array.shape[1:]), array.dtype)
    out[: len(array)] = array
    return out


def rows_of(pages: Pages) -> tuple[Rows, np.ndarray]:
    """The table of a batch's rows, with its records alone, and the offsets of the records, int64[pages]."""
    many = len(pages)
    heap, at = _heap_of(pages)
    entries = _ENTRIES + _ENTRIES_A_PAGE * many
    r = Rows(
        heap=heap,
        entries=np.empty(entries, ENTRY),
        table=np.full(power(2 * entries), -1, np.int64),
        undo=np.empty(_UNDO, UNDO),
        needs=np.empty(entries, NEED),
        n=np.zeros(rows.NUMBERS, np.int64),
    )
    r.n[rows.HEAP] = at[-1] + int(pages.headers["size"][-1]) if many else _FIRST
    return r, at


def _heap_of(pages: Pages) -> tuple[np.ndarray, np.ndarray]:
    """The heap with the records of a batch, each behind a byte that makes it a sketch row; offsets of the records."""
    sizes = pages.headers["size"].astype(np.int64)
    at = _FIRST + np.cumsum(sizes + 1) - sizes
    data = b"\1".join([b"\1" + bytes(_FIRST - 1), *pages.records]) if len(pages) else b"\1" + bytes(_FIRST - 1)
    heap = np.empty(_HEAP * len(data) + _FIRST, np.uint8)
    heap[: len(data)] = np.frombuffer(data, np.uint8)
    return heap, at


def judge_of(pages: Pages, at: np.ndarray, decider: Decider, *, emit: bool, trace: bool) -> Judge:
    """What judging a batch takes beside its rows. at: result of `rows_of`."""
    many = len(pages)
    posted, columns = similarity_columns(pages.headers, decider)
    keys = np.zeros((many, columns.shape[1]), dtype=np.uint64)
    keys[posted] = columns
    numbers = np.zeros(5, np.int64)
    numbers[RECLAIM_MS], numbers[COMBINED_C_MIN] = decider.reclaim_days * DAY_MS, decider.combined_c_min
    numbers[COUNTS], numbers[EMIT], numbers[TRACE] = counts_siblings(decider), emit, trace
    return Judge(
        pages=_pages_of(pages, at, posted, counts_siblings(decider)),
        keys=_keys_of(keys, decider),
        pairs=_pairs_of(pages, decider),
        numbers=numbers,
        verdicts=np.zeros(_VERDICTS + _VERDICTS_A_PAGE * many, VERDICT),
        blank=blank(),
        turned=np.zeros(_TURNED, np.uint64),
        clusters=np.zeros(4, CLUSTER),
        urls=np.zeros(5, URL),
        claims=np.zeros(1, CLAIM),
        began=np.zeros(5, np.int64),
    )


def _keys_of(keys: np.ndarray, decider: Decider) -> Keys:
    first, places = key_places(decider)
    numbers = np.zeros(6, np.int64)
    numbers[lists.POSTINGS_MAX], numbers[lists.HOT_KEPT] = decider.postings_max, decider.hot_postings_kept
    numbers[lists.LENGTH_GAP], numbers[lists.CANDIDATES_MAX] = length_gap(decider), decider.candidates_max
    numbers[lists.HOT_C_MIN], numbers[lists.FEWEST_TOKENS] = decider.hot_c_min, fewest_tokens(decider)
    most = len(first) * max(decider.postings_max, decider.hot_postings_kept) + 1
    return Keys(
        keys=keys,
        lists=np.full(keys.shape, -1, np.int64),
        first=first.astype(np.uint64),
        places=places,
        weights=key_weights(decider),
        indexes=key_indexes(decider),
        salts=_SALTS,
        numbers=numbers,
        found=np.zeros(most, np.uint64),
        found_weights=np.zeros(most, np.int64),
        table=np.full(power(2 * most), -1, np.int64),
    )


def _pairs_of(pages: Pages, decider: Decider) -> Pairs:
    many, headers = len(pages), pages.headers
    room = _PAIRS + _PAIRS_A_PAGE * many
    numbers = np.zeros((room, COLUMNS))
    tapes = ("tape_bytes", "content_bytes", "reason_bytes")
    tape = max([int(headers[name].max(initial=0)) for name in tapes])
    return Pairs(
        at=_AT,
        scratch=pair_scratch(tape),
        tape_room=np.array([tape], np.int64),
        logs=_LOGS,
        numbers=numbers,
        pairs=pairs_view(numbers),
        tables=tables_of(decider),
        siblings=np.zeros(1, SIBLINGS),
        traits=_TRAITS,
        searches=np.zeros(1 + many, SEARCH),
        candidates=np.zeros(room, CANDIDATE),
        rulings=np.zeros(room, RULING),
        checks=np.zeros(_CHECKS, CHECK),
        check_rulings=np.zeros(_CHECKS, RULING),
        ruled=np.zeros(2, RULING),
    )


def _words(hashes: Sequence[bytes]) -> np.ndarray:
    """Keys of 16 bytes as two numbers each, uint64[keys, 2]."""
    words: np.ndarray = np.frombuffer(b"".join(hashes), ">u8").reshape(-1, 2).astype(np.uint64)
    return words


def _pages_of(pages: Pages, at: np.ndarray, posted: np.ndarray, counts: bool) -> np.ndarray:
    """PAGE[pages]. at: offsets of their records; posted: whether they have similarity keys."""
    headers = pages.headers
    out = np.zeros(len(pages), PAGE)
    if not len(pages):
        return out
    out["i"] = np.arange(len(pages))
    out["id"], out["at"], out["log_time"], out["newest"] = pages.ids, at, headers["log_time"], pages.newest
    urls = _words(pages.url_hashes)
    out["url_a"], out["url_b"] = urls[:, 0], urls[:, 1]
    out["kind"], out["named"] = headers["kind"], pages.named
    out["posts"] = posted & (headers["kind"] == RecordKind.PAGE)
    if counts:
        named = np.nonzero(out["posts"])[0]
        # The words of a key are big-endian, and its numbers little-endian.
        out["naming_a"][named] = pages.owners[named].byteswap()
        out["naming_b"][named] = headers["naming"][named].byteswap()
    starts, ends = pages.starts[RecordSection.CANONICAL], pages.starts[RecordSection.LANG]
    for i in np.nonzero(headers["canonical_bytes"])[0].tolist():
        named_url = url_hash(pages.records[i][starts[i] : ends[i]].decode("utf-8", "replace"))
        if named_url != pages.url_hashes[i]:
            out["canonical_a"][i], out["canonical_b"][i] = _words([named_url])[0]
    out["check"] = sketch_rows.checks_of(headers, pages.records, pages.middles)
    return out
