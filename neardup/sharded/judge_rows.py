"""The rows of a judge: `neardup.clusters` with candidates from shards, and headers and texts instead of sketches."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import compress

import numpy as np

from neardup.clusters.overlay import Overlay, Reads
from neardup.decider import Decider
from neardup.index.column_families import Family, Reader
from neardup.limits import PLACE_BITS
from neardup.rules.key_families import SIMILARITY_BYTES
from neardup.search.batch_records import Pages
from neardup.search.posting_lists import Gathered
from neardup.search.scores import Scores
from neardup.sharded.answering import numbers_of
from neardup.sharded.messages import Candidates, EffectKind, joined, taken
from neardup.sketch.header import Header
from neardup.sketch.layout import HEADER, HEADER_BYTES, RecordSection

_PLACE_MASK = (1 << PLACE_BITS) - 1
_KEEP, _DROP, _POST, _UNPOST, _FOLLOW, _LEAVE = map(int, EffectKind)

#: Header fields that only pairs and keys need, so that a judge does not store them; first the lengths of such sections.
_LENGTHS = ("tape_bytes", "content_bytes", "title_names", "head_names", "bloom_bytes", "reason_bytes")
_NUMBERS = ("hen_site", "distinct", "content_tokens", "head", "supershingles", "wide", "logtf", *_LENGTHS)


def slim(record: bytes) -> bytes:
    """Returns the part of a page's record that a judge stores: no tapes, names, filter, article and keys."""
    pages = Pages([(0, record)])
    (one,) = slim_all(pages, slim_headers(pages))
    return one


def slim_all(pages: Pages, headers: np.ndarray) -> list[bytes]:
    """Return `slim` of all records of any kind. headers: result of `slim_headers` for these records."""
    starts, ends = pages.starts[RecordSection.URL], pages.starts[RecordSection.ARTICLE]
    heads: list[bytes] = headers.view(HEADER_BYTES).tolist()
    texts = zip(heads, pages.records, starts.tolist(), ends.tolist(), strict=True)
    return [head + record[start:end] for head, record, start, end in texts]


def slim_headers(pages: Pages) -> np.ndarray:
    """HEADER[pages] of `slim` records."""
    headers = pages.headers.view(HEADER_BYTES).copy().view(HEADER)
    for name in _NUMBERS:
        headers[name] = 0
    headers["size"] = HEADER.itemsize + pages.starts[RecordSection.ARTICLE] - pages.starts[RecordSection.URL]
    return headers


class JudgeReader:
    """The rows of a judge, and the posting lists of its window."""

    def __init__(self, rows: Reader, lists: Reader) -> None:
        self._rows, self._lists = rows, lists

    def get_many(self, family: Family, keys: Sequence[bytes]) -> list[bytes | None]:
        if family is not Family.KEYS:
            return self._rows.get_many(family, keys)
        posted = [len(key) == SIMILARITY_BYTES for key in keys]
        lists = iter(self._lists.get_many(family, list(compress(keys, posted))))
        rows = iter(self._rows.get_many(family, [key for key, one in zip(keys, posted, strict=True) if not one]))
        return [next(lists if one else rows) for one in posted]

    def first(self, family: Family, prefix: bytes, limit: int, after: bytes = b"") -> list[tuple[bytes, bytes]]:
        return self._rows.first(family, prefix, limit, after)

    def scan(self, family: Family) -> Iterator[tuple[bytes, bytes]]:
        return self._rows.scan(family)


class Answers:
    """The answers of all shards to one message, by page. numbers: float64[pairs, fields of a Pair]."""

    def __init__(self, answers: Sequence[Candidates]) -> None:
        pairs = joined([answer.pairs for answer in answers])
        pairs = taken(pairs, np.argsort(pairs["place"], kind="stable"))
        self.numbers = numbers_of(pairs["pair"])
        self.cut = {place for answer in answers for place in answer.cut.tolist()}
        #: By place: page ids of the documents, and where the first one stands in `numbers`.
        self.documents: dict[int, tuple[list[int], int]] = {}
        #: By place: (page id, weight) of the candidates.
        self.candidates: dict[int, list[tuple[int, int]]] = {}
        #: By place and page id: bit k for the page's k-th key.
        self.keys: dict[tuple[int, int], int] = {}
        columns = (pairs[name].tolist() for name in ("place", "page_id", "weight", "keys"))
        for at, (place, page_id, weight, keys) in enumerate(zip(*columns, strict=True)):
            self.documents.setdefault(place, ([], at))[0].append(page_id)
            if weight:
                self.candidates.setdefault(place, []).append((page_id, weight - 1))
                self.keys[place, page_id] = keys


class JudgeReads(Reads):
    """Rows that were read for a message, with the answers of the shards.

    Args:
        alone: page ids of the message that share no key with another page of the window.
        records: records of all pages of the window, by page id, the pages of the message included.
        first: smallest page id of the window.
        retired: page ids from before the window that represented a cluster, and no longer do.
    """

    def __init__(
        self,
        pages: Pages,
        decider: Decider,
        threads: int,
        alone: frozenset[int],
        answers: Sequence[Candidates],
        records: Mapping[int, bytes],
        first: int,
        retired: set[int],
    ) -> None:
        super().__init__(pages, decider, threads, alone)
        self.records, self.first, self.retired = records, first, retired
        self.answers = Answers(answers) if answers and len(pages) else None
        if self.answers is None:
            return
        self.numbers.add(self.answers.numbers)
        place_of = {page_id & _PLACE_MASK: page_id for page_id in pages.page_ids}
        for place, (documents, at) in self.answers.documents.items():
            if place in place_of:  # otherwise the record was judged in an earlier message
                scores = self.scores[place_of[place]] = Scores(self.numbers)
                scores.add(documents, at)

    @cached_property
    def slim_headers(self) -> np.ndarray:
        """HEADER[pages] of the message as the judge stores them."""
        return slim_headers(self.pages)

    @cached_property
    def slim(self) -> list[bytes]:
        """The records of the message as the judge stores them."""
        return slim_all(self.pages, self.slim_headers)

    def overlay(self) -> Overlay:
        return JudgeOverlay(self, self.decider)


class JudgeOverlay(Overlay):
    """A judge's rows with the changes of one message so far; lists are those of the window. Collects effects."""

    reads: JudgeReads

    def __init__(self, reads: JudgeReads, decider: Decider) -> None:
        super().__init__(reads, decider)
        self._retired: set[int] = set()  # representatives from before the window that this message retired
        self._followed: dict[bytes, bool] = {}  # by URL hash: whether sketches may follow the URL

    # ---- sketches --------------------------------------------------------------------------------------------------

    def header(self, page_id: int) -> Header:
        """The header of a page: with the whole sketch in the window, else with the texts only. Raises Missing."""
        header = self.reads.headers.get(page_id)
        if header is None and page_id in self.reads.records and page_id not in self.pages:
            header = self.reads.headers[page_id] = Header(self.reads.records[page_id])
        return super().header(page_id) if header is None else header

    def kept(self, record: bytes) -> bytes:
        return slim(record)

    def kept_of(self, i: int) -> tuple[bytes, tuple[int, int, int]]:
        return self.reads.slim[i], _NO_SECTIONS

    def kept_columns(self, at: np.ndarray) -> tuple[np.ndarray, list[bytes], list[tuple[int, int, int]]]:
        slim = self.reads.slim
        headers = self.reads.slim_headers.view(HEADER_BYTES)[at].view(HEADER)
        return headers, [slim[i] for i in at.tolist()], [_NO_SECTIONS] * len(at)

    def can_score(self, page_id: int, other: int) -> bool:
        scores = self.reads.scores.get(page_id)
        return (scores is not None and other in scores) or other in self.reads.records

    def scored_as(self, page_id: int, held: int) -> int:
        return page_id

    # ---- candidates ------------------------------------------------------------------------------------------------

    def with_others(self, gathered: dict[int, Gathered], page_ids: Sequence[int]) -> dict[int, Gathered]:
        """Adds the shards' candidates, without those that no longer represent a cluster."""
        answers = self.reads.answers
        if answers is None:
            return gathered
        out, most = dict(gathered), self.decider.candidates_max
        for page_id in page_ids:
            place = page_id & _PLACE_MASK
            if place not in answers.candidates:
                continue
            candidates, weights, cut = gathered.get(page_id, ([], [], False))
            every = [(-weight, one) for one, weight in zip(candidates, weights, strict=True)]
            every += [(-weight, one) for one, weight in answers.candidates[place] if not self._is_retired(one)]
            every.sort()
            kept = every[:most]
            cut = cut or len(every) > most or place in answers.cut
            out[page_id] = [one for _, one in kept], [-weight for weight, _ in kept], cut
        return out

    def _is_retired(self, page_id: int) -> bool:
        return page_id in self.reads.retired or page_id in self._retired

    def is_as_read(self, page_id: int) -> bool:
        return not self._retired and super().is_as_read(page_id)

    def is_lonely(self, page_id: int) -> bool:
        answers = self.reads.answers
        return (answers is None or page_id & _PLACE_MASK not in answers.candidates) and super().is_lonely(page_id)

    def families(self, pairs: Sequence[tuple[int, int]]) -> dict[tuple[int, int], dict[str, int]]:
        answers, names = self.reads.answers, self.reads.posted.families
        known = {} if answers is None else answers.keys
        counts: dict[int, dict[str, int]] = {}
        out = super().families([pair for pair in pairs if (pair[0] & _PLACE_MASK, pair[1]) not in known])
        for page_id, other in pairs:
            keys = known.get((page_id & _PLACE_MASK, other))
            if keys is not None:
                if keys not in counts:
                    counts[keys] = dict(Counter(name for bit, name in enumerate(names) if keys >> bit & 1))
                out[page_id, other] = dict(counts[keys])
        return out

    def turned_keys(self) -> list[bytes]:
        """Always empty: lists turn hot in each shard, and the lists of the window are not kept."""
        return []

    @property
    def hot_turned(self) -> int:
        return 0

    # ---- effects ---------------------------------------------------------------------------------------------------

    def post(self, page_id: int) -> None:
        if page_id >= self.reads.first:
            super().post(page_id)
        self.effects.append((_POST, page_id, _NO_URL))

    def unpost(self, page_id: int) -> None:
        if page_id >= self.reads.first:
            super().unpost(page_id)
        else:
            self._retired.add(page_id)
        self.effects.append((_UNPOST, page_id, _NO_URL))

    def require_lists(self, page_id: int) -> None:
        if page_id >= self.reads.first:
            super().require_lists(page_id)

    def found(self, first: int, last: int) -> None:
        pages = self.pages
        for page_id, url_hash in zip(pages.page_ids[first:last], pages.url_hashes[first:last], strict=True):
            self.effects += (
                (_POST, page_id, _NO_URL),
                (_KEEP, page_id, _NO_URL),
                (_FOLLOW, page_id, url_hash),
            )
            self._followed[url_hash] = True

    def keep(self, page_id: int) -> None:
        self.effects.append((_KEEP, page_id, _NO_URL))

    def drop(self, page_id: int) -> None:
        self.effects.append((_DROP, page_id, _NO_URL))

    def follow(self, url_hash: bytes, *page_ids: int) -> None:
        self.leave(url_hash)
        self.effects += [(_FOLLOW, page_id, url_hash) for page_id in dict.fromkeys(page_ids)]
        self._followed[url_hash] = True

    def leave(self, url_hash: bytes) -> None:
        known = self.reads.rows[Family.URLS].get(url_hash) is not None
        if self._followed.get(url_hash, known):
            self.effects.append((_LEAVE, 0, url_hash))
        self._followed[url_hash] = False


_NO_URL = bytes(16)
#: `Pages.middles` of a slim record: tape, filter and names are empty.
_NO_SECTIONS = (HEADER.itemsize, HEADER.itemsize, HEADER.itemsize)
