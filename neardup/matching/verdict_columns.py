"""The verdicts of a batch as columns, which the fold's kernel fills, and the verdicts that are made of them.

The kernel names records by their byte offset in the heap, one buffer with all records of the batch and of the index
that the batch has read; `*_at` is such an offset. It decodes no text, and writes numbers of pairs once.
"""

from collections import Counter, namedtuple
from collections.abc import Sequence
from enum import IntEnum
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from neardup.decider import Decider
from neardup.errors import CorruptRecord
from neardup.index.rows import NO_PAGE
from neardup.pairs.pair import Pair
from neardup.pairs.scoring import pairs_of
from neardup.rules import Ruling, rule_of
from neardup.rules.key_families import key_name
from neardup.rules.posted_keys import families_of, keys_of_columns
from neardup.rules.records import BY
from neardup.sketch.header import Header
from neardup.sketch.layout import (
    HEADER,
    HEADER_BYTES,
    SECTION_LENGTHS,
    RecordFlag,
    RecordKind,
    RecordSection,
    score_of,
    section_starts,
)
from neardup.verdict import Coordinates, Kind, Representative, Verdict

#: The evidence of a verdict.
Evidence: TypeAlias = dict[str, Any]
#: Kinds by code; the first five are the standings of `neardup.index.rows`. 0: no kind.
KINDS = (
    *(None, Kind.UNIQUE, Kind.EXACT_DUPLICATE, Kind.NEAR_DUPLICATE, Kind.SAME_CONTENT, Kind.GONE),
    *(Kind.UNCHANGED, Kind.EDITED, Kind.STALE, Kind.REJECTED, Kind.PROMOTED),
)
#: In columns with a page id or an offset: there is none.
NONE = -1
#: In `standing_content_of`: the field is absent.
NO_FIELD = -2


class Form(IntEnum):
    """What the evidence of a verdict describes."""

    EMPTY = 0
    #: A page that had no candidates.
    ALONE = 1
    #: A page that no candidate repeats: the nearest of them.
    NEAREST = 2
    #: The candidate that the page repeats.
    BEST = 3
    #: A live page of the same digest.
    DIGEST = 4
    #: The last check of a page against a sketch of its cluster.
    CHECK = 5
    #: A page that reclaimed a cluster: the former representative, and the page against the founding sketch.
    CLAIM = 6


#: One verdict. `blank` has the values of absent fields.
VERDICT = np.dtype(
    (
        np.record,
        np.dtype(
            [
                ("i", "i4"),  # position in the batch of the record that causes the verdict
                ("n", "i4"),  # number of the verdict; 0: the page's own
                ("kind", "u1"),  # code in KINDS
                ("cut", "u1"),  # whether some candidates were not scored
                ("named", "u1"),  # whether the verdict has the field `representative`
                ("standing", "u1"),  # code in KINDS of the verdict that is in force; 0: no field
                ("at", "i8"),  # record of the page that the verdict is about
                ("replaces", "i8"),  # page id, or NONE
                # the cluster of the page; NONE: no cluster
                ("cluster", "i8"),
                ("pages", "i8"),
                ("revision", "i8"),
                ("canonical_at", "i8"),  # offset of the text in UTF-8
                ("canonical_bytes", "i8"),  # 0: the URL of the representative
                ("founding", "i8"),  # page id of the cluster's founding sketch, which represents it
                ("founding_at", "i8"),
                ("content_of", "i8"),  # founding page id of the page with the same main content, or NONE
                ("content_of_at", "i8"),
                ("standing_content_of", "i8"),  # `content_of` of the cluster's row, NONE for NO_PAGE; or NO_FIELD
                # evidence
                ("form", "u1"),  # Form
                ("by", "u1"),  # the step that decided, by its place in the table of names
                ("whole", "u1"),  # whether score and demand are integers
                ("kept_apart", "u1"),  # whether `by` alone kept similar texts apart
                ("others", "u1"),  # siblings
                ("alike", "u1"),  # siblings; 0: no field
                ("candidates", "i4"),
                ("score", "f8"),
                ("demand", "f8"),
                ("added", "f8"),  # what the older page adds, as a share of it
                ("pair", "i8"),  # row of `VerdictColumns.numbers`; NONE: no numbers
                ("a_at", "i8"),  # the two pages whose languages and sites are compared: the new page,
                ("b_at", "i8"),  # and the other; NONE: their languages are not named
                ("other", "i8"),  # page id of the page that the evidence names: nearest, holder or former
                ("other_at", "i8"),
                ("keys", "u8"),  # bit k: key k of `families_of` is shared with the best candidate, and not hot
                ("turned", "i8"),  # start in `VerdictColumns.turned` of the keys that turned hot
                ("turned_many", "i8"),
            ],
            align=True,
        ),
    )
)


def blank() -> np.ndarray:
    """Returns VERDICT[1] without any optional field, for kernels to copy."""
    out = np.zeros(1, VERDICT)
    for name in ("at", "replaces", "cluster", "founding", "founding_at", "content_of", "content_of_at", "pair"):
        out[name] = NONE
    for name in ("a_at", "b_at", "other", "other_at"):
        out[name] = NONE
    out["standing_content_of"] = NO_FIELD
    return out


class VerdictColumns(NamedTuple):
    """The verdicts of a batch as arrays.

    rows: VERDICT[verdicts], in order.
    heap: uint8[bytes], the records that the rows name.
    page_ids: page ids of the batch, int64[pages].
    numbers: numbers of pairs, float64[pairs, fields of a Pair].
    turned: keys that turned hot, uint64[keys], as `similarity_columns` has them.
    names: names of steps, by the code in `by`.
    """

    rows: np.ndarray
    heap: np.ndarray
    page_ids: np.ndarray
    numbers: np.ndarray
    turned: np.ndarray
    names: Sequence[str] = BY


def verdicts_of(columns: VerdictColumns, decider: Decider) -> list[Verdict]:
    """Makes the verdicts of a batch, in order. decider: the decider that judged."""
    if not len(columns.rows):
        return []
    return _Maker(columns, decider).verdicts()


# Members of an enumeration cost a tenth of a microsecond each time they are asked for by name.
_REJECTED = KINDS.index(Kind.REJECTED)
_EMPTY, _ALONE, _NEAREST, _BEST, _DIGEST, _, _CLAIM = map(int, Form)
#: Columns of VERDICT with offsets of records.
_RECORDS_AT = ("at", "founding_at", "content_of_at", "a_at", "b_at", "other_at")
#: A row of VERDICT as Python values.
_Row: Any = namedtuple("_Row", VERDICT.names or ())  # type: ignore[misc]


class _Record(NamedTuple):
    """Fields of a record.

    start: offset of its texts in the heap. url, site, title, canonical, lang, reason: ends of the texts, from `start`.
    """

    source: str
    fetched_at: int
    partition: int
    offset: int
    position: int
    site_fingerprint: int
    thin: bool
    opaque: bool
    truncated: bool
    score: int
    start: int
    url: int
    site: int
    title: int
    canonical: int
    lang: int
    reason: int

    @property
    def coordinates(self) -> Coordinates:
        return Coordinates(self.source, self.partition, self.offset, self.position)


def _records(heap: np.ndarray, at: np.ndarray, thin_tokens: int) -> dict[int, _Record]:
    """Decodes the headers of records, by offset. at: int64[records]."""
    windows: np.ndarray = np.ndarray((len(heap) - HEADER.itemsize + 1,), HEADER_BYTES, heap, strides=(1,))
    headers = windows[at].view(HEADER)
    opaque = headers["flags"] & RecordFlag.OPAQUE != 0
    starts = section_starts([headers[name].astype(np.int64) for name in SECTION_LENGTHS])
    first, *ends = starts[RecordSection.URL :]
    hexes: dict[bytes, str] = {}
    sources = [hexes.get(source) or hexes.setdefault(source, source.hex()) for source in headers["source"].tolist()]
    columns = (
        *(headers[name] for name in ("fetched_at", "partition", "offset", "position", "site")),
        (headers["kind"] == RecordKind.PAGE) & ~opaque & (headers["tokens"] < thin_tokens),
        opaque,
        headers["flags"] & RecordFlag.TRUNCATED != 0,
        headers["score"],
        at + first,
        *(end - first for end in ends),
    )
    every = zip(sources, *(column.tolist() for column in columns), strict=True)
    return dict(zip(at.tolist(), map(_Record._make, every), strict=True))


class _Maker:
    """Makes the verdicts of some columns. What several verdicts name is decoded once."""

    def __init__(self, columns: VerdictColumns, decider: Decider) -> None:
        rows = columns.rows
        self._columns, self._heap = columns, columns.heap.data
        self._scheme, self._decider = decider.scheme, decider.digest
        at = np.unique(np.concatenate([rows[name] for name in _RECORDS_AT]))
        self._records = _records(columns.heap, at[at >= 0], decider.thin_tokens)
        self._pages: dict[int, Representative] = {}
        self._keys: dict[int, dict[str, int]] = {}
        used = np.unique(rows["pair"])
        used = used[used >= 0]
        self._pairs: dict[int, Pair] = dict(zip(used.tolist(), pairs_of(columns.numbers[used]), strict=True))
        self._evidence_of, self._families = rule_of(decider).evidence, families_of(decider)

    def verdicts(self) -> list[Verdict]:
        """Makes a verdict of each row."""
        rows = self._columns.rows
        page_ids = self._columns.page_ids[rows["i"]].tolist()
        return list(map(self._verdict, map(_Row._make, rows.tolist()), page_ids))

    def _verdict(self, row: Any, page_id: int) -> Verdict:
        record, kind = self._records[row.at], KINDS[row.kind]
        assert kind is not None
        url, site, title, named, lang = self._texts(record)
        cluster = size = canonical = revision = None
        if row.cluster >= 0:
            cluster, size, canonical, revision = row.cluster, row.pages, self._canonical(row, url), row.revision
        is_own = not row.n
        return Verdict(
            verdict=kind,
            page_id=page_id,
            n=row.n,
            url=url,
            fetched_at=record.fetched_at,
            coordinates=record.coordinates,
            scheme=self._scheme,
            decider=self._decider,
            reason=self._text(record, record.lang, record.reason) if row.kind == _REJECTED else None,
            standing=self._standing(row) if row.standing else None,
            representative=self._page(row.founding, row.founding_at) if row.named else None,
            cluster=cluster,
            cluster_size=size,
            canonical=canonical,
            revision=revision,
            content_of=self._page(row.content_of, row.content_of_at) if row.content_of >= 0 else None,
            replaces=row.replaces if row.replaces >= 0 else None,
            evidence=self._evidence(row),
            title=title or None,
            site=site or None,
            lang=lang or None,
            thin=record.thin,
            opaque=record.opaque,
            truncated=record.truncated,
            candidates_cut=row.cut != 0,
            rel_canonical=named if named and is_own and named != url else None,
            score=score_of(record.score) if is_own else None,
        )

    # ---- pages -------------------------------------------------------------------------------------------------------

    def _texts(self, record: _Record) -> tuple[str, str, str, str, str]:
        """URL, site, title, rel=canonical and language of a record."""
        url, site, title, canonical, lang = record[-6:-1]
        raw = self._heap[record.start : record.start + lang].tobytes()
        if raw.isascii():
            text = raw.decode("ascii")
            return text[:url], text[url:site], text[site:title], text[title:canonical], text[canonical:]
        parts = raw[:url], raw[url:site], raw[site:title], raw[title:canonical], raw[canonical:]
        one, two, three, four, five = (part.decode("utf-8", "replace") for part in parts)
        return one, two, three, four, five

    def _text(self, record: _Record, start: int, end: int) -> str:
        return str(self._heap[record.start + start : record.start + end], "utf-8", "replace")

    def _lang(self, at: int) -> str:
        record = self._records[at]
        return self._text(record, record.canonical, record.lang)

    def _page(self, page_id: int, at: int) -> Representative:
        """The page of a record, as verdicts name it."""
        page = self._pages.get(at)
        if page is None:
            record = self._records[at]
            page = self._pages[at] = Representative(
                page_id=page_id,
                url=self._text(record, 0, record.url),
                fetched_at=record.fetched_at,
                coordinates=record.coordinates,
            )
        return page

    def _place(self, row: Any) -> Evidence:
        """The page that the evidence names."""
        page = self._page(row.other, row.other_at)
        return {
            "page_id": page.page_id,
            "url": page.url,
            "fetched_at": page.fetched_at,
            "coordinates": page.coordinates,
        }

    # ---- clusters ----------------------------------------------------------------------------------------------------

    def _canonical(self, row: Any, url: str) -> str:
        """The canonical URL of the cluster. url: of the page."""
        if row.canonical_bytes:
            text = self._heap[row.canonical_at : row.canonical_at + row.canonical_bytes]
            try:
                return str(text, "utf-8", "surrogatepass")
            except UnicodeDecodeError as error:
                raise CorruptRecord(f"the canonical URL of cluster {row.cluster} is not UTF-8") from error
        return url if row.founding_at == row.at else self._page(row.founding, row.founding_at).url

    def _standing(self, row: Any) -> dict[str, Any]:
        kind = KINDS[row.standing]
        if kind is Kind.GONE:
            return {"verdict": kind}
        representative = self._page(row.founding, row.founding_at)
        out = {"verdict": kind, "representative": representative, "cluster": row.cluster}
        if row.standing_content_of != NO_FIELD:
            out["content_of"] = NO_PAGE if row.standing_content_of == NONE else row.standing_content_of
        return out

    # ---- evidence ----------------------------------------------------------------------------------------------------

    def _evidence(self, row: Any) -> Evidence:
        out: Evidence = {} if row.form == _EMPTY else {"candidates": 0} if row.form == _ALONE else self._proof(row)
        if row.turned_many:
            turned = self._columns.turned[row.turned : row.turned + row.turned_many]
            out["turned_hot"] = [key_name(key) for key in keys_of_columns(turned)]
        return out

    def _proof(self, row: Any) -> Evidence:
        """Evidence with another page. The order of its fields is that of stored verdicts."""
        form = row.form
        if form == _BEST:
            out = self._of_pair(row)
            out["keys"] = self._shared(row.keys)
            out["candidates"] = row.candidates
            return _with_siblings(out, row)
        if form == _NEAREST:
            out = _with_siblings({"candidates": row.candidates}, row)
            if row.kept_apart:
                out["kept_apart"] = self._columns.names[row.by]
            out["nearest"] = self._place(row) | self._of_pair(row)
            return out
        if form == _DIGEST:
            same_site = self._records[row.a_at].site_fingerprint == self._records[row.b_at].site_fingerprint
            return self._with_langs({"by": "digest", "holder": self._place(row), "same_site": same_site}, row)
        if form == _CLAIM:
            return {"candidates": 0, "reclaimed": self._place(row) | self._of_pair(row)}
        return self._of_pair(row)

    def _of_pair(self, row: Any) -> Evidence:
        """The numbers of the pair, the step that decided, and the languages of both pages if both have one."""
        score, demand = (int(row.score), int(row.demand)) if row.whole else (row.score, row.demand)
        ruling = Ruling(None, self._columns.names[row.by], score=score, demand=demand, added=row.added)
        return self._with_langs(self._evidence_of(self._pairs[row.pair], ruling), row)

    def _with_langs(self, proof: Evidence, row: Any) -> Evidence:
        one, other = self._lang(row.a_at), self._lang(row.b_at)
        if one and other:
            proof["langs"] = [one, other]
        return proof

    def _shared(self, keys: int) -> dict[str, int]:
        """Numbers of keys by family."""
        shared = self._keys.get(keys)
        if shared is None:
            names = self._families
            shared = self._keys[keys] = dict(Counter(name for bit, name in enumerate(names) if keys >> bit & 1))
        return dict(shared)


def _with_siblings(proof: Evidence, row: Any) -> Evidence:
    """[others, alike]: pages of the same owner with the page's name."""
    if row.alike:
        proof["siblings"] = [row.others, row.alike]
    return proof


def place_of(page_id: int, header: Header) -> Evidence:
    """The coordinates by which a page can be found and read again."""
    return {"page_id": page_id, "url": header.url, "fetched_at": header.fetched_at, "coordinates": header.coordinates}
