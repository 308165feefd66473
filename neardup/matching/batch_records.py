"""The records of a batch: their headers as columns, and each decoded further on demand."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np

from neardup.errors import CorruptRecord, InvariantBroken
from neardup.index import naming_rows
from neardup.limits import PAGE_ID_MAX
from neardup.sketch.header import Header
from neardup.sketch.layout import (
    HEADER,
    SECTION_LENGTHS,
    SKETCH_VERSION,
    RecordKind,
    RecordSection,
    section_starts,
)

#: Page ids and sketch records, in the order of the log.
Records = Sequence[tuple[int, bytes]]


class Pages(Mapping[int, Header]):
    """Pages of a batch by page id, in order. Lists and arrays have one entry for each page, by its position.

    ids, page_ids: page ids as int64[pages], and as a list.
    headers: headers of the records, HEADER[pages].
    records: bytes of the records.
    url_hashes: keys of the rows of URLs.
    named: `Header.named`, bool[pages].
    newest: the fetch times that count, ms.
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
        self.url_hashes: list[bytes] = headers["url_hash"].tolist()
        self.named: list[bool] = ((headers["kind"] != RecordKind.REJECTED) | (headers["url_bytes"] > 0)).tolist()
        self.newest: list[int] = np.minimum(headers["fetched_at"], headers["log_time"]).tolist()
        self.starts = section_starts([headers[length].astype(np.int64) for length in SECTION_LENGTHS])
        middle = RecordSection.CONTENT_TAPE, RecordSection.BLOOM, RecordSection.URL
        shared = (self.starts[section].tolist() for section in middle)
        self.middles: list[tuple[int, int, int]] = list(zip(*shared, strict=True))

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


def _explain(records: Sequence[bytes]) -> None:
    """Raises CorruptRecord for the first bad record."""
    for record in records:
        Header(record)
    raise CorruptRecord("not a batch of sketch records")
