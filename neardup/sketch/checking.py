"""Checks the records of a message together, by columns. `Header.problem` of each one takes several microseconds."""

from collections.abc import Sequence

import numpy as np

from neardup.kernels.tape import LEVELS
from neardup.sketch.header import FLAGS, article_problem, is_normal
from neardup.sketch.layout import (
    HEADER,
    SECTION_LENGTHS,
    SKETCH_VERSION,
    RecordKind,
    RecordSection,
    section_starts,
)


def headers_of_valid(records: Sequence[bytes]) -> np.ndarray | None:
    """Returns the headers, HEADER[records]; None if `Header` refuses one of the records or finds a problem in it."""
    joined = b"".join([record[: HEADER.itemsize] for record in records])
    if len(joined) != HEADER.itemsize * len(records):
        return None
    headers = np.frombuffer(joined, dtype=HEADER)
    starts = section_starts([headers[name].astype(np.int64) for name in SECTION_LENGTHS])
    sizes = np.array([len(record) for record in records], dtype=np.int64)
    bloom = headers["bloom_bytes"].astype(np.int64)
    good = (headers["version"] == SKETCH_VERSION) & (headers["kind"] <= max(RecordKind))
    good &= (headers["size"] == sizes) & (starts[-1] == sizes)
    good &= (headers["tape_level"] < LEVELS) & (headers["content_level"] < LEVELS)
    good &= (headers["flags"] & ~np.uint8(FLAGS) == 0) & (bloom & (bloom - 1) == 0)
    good &= (headers["offset"] >= 0) & (headers["position"] >= 0) & (headers["log_time"] >= 0)
    if not good.all():
        return None
    pages = headers["kind"] == RecordKind.PAGE
    columns = pages.tolist(), starts[RecordSection.URL].tolist(), starts[RecordSection.SITE].tolist()
    for record, is_page, start, end in zip(records, *columns, strict=True):
        if is_page and not is_normal(record[start:end]):
            return None
    articles = starts[RecordSection.ARTICLE]
    for i in np.nonzero(pages & (articles < sizes))[0].tolist():
        if article_problem(records[i][articles[i] :]):
            return None
    return headers
