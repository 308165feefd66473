"""The records of a batch: their headers as columns, and each decoded further on demand."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np

from neardup.errors import CorruptRecord, InvariantBroken
from neardup.index import naming_rows
from neardup.limits import PAGE_ID_MAX
from neardup.rules.key_families import KeyFamily
from neardup.rules.siblings import Traits
from neardup.sketch.header import Header
from neardup.sketch.layout import (
    HEADER,
    SECTION_LENGTHS,
    SKETCH_VERSION,
    RecordFlag,
    RecordKind,
    RecordSection,
    section_starts,
)

_DIGEST_KEY = np.dtype([("family", "u1"), ("digest", "V16")])
_NO_DIGEST = bytes(16)
_PAGE = int(RecordKind.PAGE)

#: Page ids and sketch records, in the order of the log.
Records = Sequence[tuple[int, bytes]]


class Pages(Mapping[int, Header]):
    """Pages of a batch by page id, in order. Lists and arrays have one entry for each page, by its position.

    ids, page_ids: page ids as int64[pages], and as a list.
    headers: headers of the records, HEADER[pages].
    records: bytes of the records.
    kinds: kinds of the records, values of RecordKind.
    url_hashes, digest_keys: keys of the rows of URL and digest; b"" without a digest.
    named: `Header.named`, bool[pages].
    counted: values of `Traits`, which are counted under the naming of the page.
    sites: fingerprints of the sites.
    log_times, newest: log time, and the fetch time that counts, both ms.
    names_canonical: whether the page has a rel=canonical.
    id_keys: page ids as keys of rows.
    starts: starts of the records' sections, int64[pages] for each section.
    middles: middle parts of the records, for `neardup.index.sketch_rows`.

    Raises:
        CorruptRecord: if the bytes are not records.
        InvariantBroken: if page ids do not ascend, or lie outside 0 to PAGE_ID_MAX.
    """

    def __init__(self, batch: Records) -> None:
        last = -1
        for page_id, _ in batch:
            if not last < page_id <= PAGE_ID_MAX:
                raise InvariantBroken(f"page id {page_id} after {last}: ids of a batch ascend, up to {PAGE_ID_MAX}")
            last = page_id
        self.records = [record for _, record in batch]
        self.page_ids = [page_id for page_id, _ in batch]
        self.ids = np.array(self.page_ids, dtype=np.int64)
        self.headers = _headers(self.records)
        self._positions = {page_id: at for at, page_id in enumerate(self.page_ids)}
        self._headers: list[Header | None] = [None] * len(batch)

        headers = self.headers
        self.kinds: list[int] = headers["kind"].tolist()
        self.url_hashes: list[bytes] = headers["url_hash"].tolist()
        self.named: list[bool] = ((headers["kind"] != RecordKind.REJECTED) | (headers["url_bytes"] > 0)).tolist()
        self.digest_keys = _digest_keys(headers)
        self.counted = list(zip(*(headers[name].tolist() for name in Traits._fields), strict=True))
        self.sites: list[int] = headers["site"].tolist()
        self.log_times: list[int] = headers["log_time"].tolist()
        self.newest: list[int] = np.minimum(headers["fetched_at"], headers["log_time"]).tolist()
        self.id_keys: list[bytes] = self.ids.astype(">u8").view("V8").tolist()
        self.starts = section_starts([headers[length].astype(np.int64) for length in SECTION_LENGTHS])
        middle = RecordSection.CONTENT_TAPE, RecordSection.BLOOM, RecordSection.URL
        shared = (self.starts[section].tolist() for section in middle)
        self.middles: list[tuple[int, int, int]] = list(zip(*shared, strict=True))
        self.names_canonical: list[bool] = (headers["canonical_bytes"] > 0).tolist()

    @cached_property
    def naming_keys(self) -> list[bytes]:
        """`neardup.index.naming_rows.key_of` of each page; b"" for records of another kind."""
        every = zip(self.owners.tolist(), self.headers["naming"].tolist(), self.kinds, strict=True)
        return [naming_rows.key(owner, naming) if kind == _PAGE else b"" for owner, naming, kind in every]

    @cached_property
    def owners(self) -> np.ndarray:
        """`neardup.index.naming_rows.owner` of each page, uint64[pages]; 0 for records of another kind."""
        at = np.flatnonzero(self.headers["kind"] == RecordKind.PAGE)
        bounds = (self.starts[section][at].tolist() for section in (RecordSection.URL, RecordSection.SITE))
        urls = [self.records[i][start:end] for i, start, end in zip(at.tolist(), *bounds, strict=True)]
        out = np.zeros(len(self), np.uint64)
        out[at] = naming_rows.owners(self.headers["site"][at].tolist(), urls)
        return out

    def __getitem__(self, page_id: int) -> Header:
        at = self._positions[page_id]
        header = self._headers[at]
        if header is None:
            header = self._headers[at] = Header(self.records[at])
        return header

    def __iter__(self) -> Iterator[int]:
        return iter(self._positions)

    def __len__(self) -> int:
        return len(self._positions)

    def __contains__(self, page_id: object) -> bool:
        return page_id in self._positions

    def position(self, page_id: int) -> int:
        """The position of a page in the batch."""
        return self._positions[page_id]


def _headers(records: Sequence[bytes]) -> np.ndarray:
    size = HEADER.itemsize
    starts = [record[:size] for record in records]
    joined = b"".join(starts)
    if len(joined) != size * len(records):
        _explain(records)
    headers = np.frombuffer(joined, dtype=HEADER)
    lengths = np.array([len(record) for record in records], dtype=np.int64)
    good = (headers["version"] == SKETCH_VERSION) & (headers["size"] == lengths)
    good &= headers["kind"] <= max(RecordKind)
    if not good.all():
        _explain(records)
    return headers


def _digest_keys(headers: np.ndarray) -> list[bytes]:
    """`neardup.index.rows.digest_key` of each page."""
    rows = np.empty(len(headers), dtype=_DIGEST_KEY)
    rows["family"] = np.where(headers["flags"] & RecordFlag.OPAQUE, KeyFamily.OPAQUE, KeyFamily.DIGEST)
    rows["digest"] = headers["digest"]
    every: list[bytes] = rows.view(f"V{_DIGEST_KEY.itemsize}").tolist()
    return [b"" if key.endswith(_NO_DIGEST) else key for key in every]


def _explain(records: Sequence[bytes]) -> None:
    """Raises CorruptRecord for the first bad record."""
    for record in records:
        Header(record)
    raise CorruptRecord("not a batch of sketch records")
