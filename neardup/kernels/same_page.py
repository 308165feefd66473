"""Whether two pages of one site with equal words are one page, by the names in their records."""

import numpy as np

from neardup.kernels import lean_kernel
from neardup.kernels.bits import word_at
from neardup.kernels.names import NAME_BYTES
from neardup.kernels.pairs import FIELDS, equal_bytes, half_at
from neardup.kernels.record import OPAQUE
from neardup.kernels.url_signs import same_signs

#: Positions of header fields in `neardup.kernels.pairs.FIELDS`.
_SITE, _FLAGS, _TITLING = (FIELDS.index(name) for name in ("site", "flags", "titling"))
_TAPE, _CONTENT, _BLOOM = (FIELDS.index(name) for name in ("tape_bytes", "content_bytes", "bloom_bytes"))
_NAMES, _HEAD_NAMES = FIELDS.index("title_names"), FIELDS.index("head_names")
_URL, _HOST, _TITLE = (FIELDS.index(name) for name in ("url_bytes", "site_bytes", "title_bytes"))


@lean_kernel
def _url_at(buf, record, at, header):
    """The position of the URL of the record at buf[record]."""
    names = np.int64(buf[record + at[_NAMES]]) + np.int64(buf[record + at[_HEAD_NAMES]])
    tapes = half_at(buf, record + at[_TAPE]) + half_at(buf, record + at[_CONTENT])
    return record + header + tapes + names * NAME_BYTES + half_at(buf, record + at[_BLOOM])


@lean_kernel
def same_page(buf, a, b, at, header, alnum):
    """Whether the pages of the records at buf[a] and buf[b], which have equal digests, are one page.

    Pages of one site are two if their titles differ, or the signs at the ends of their URLs, as of `operator*` and
    `operator+`. Pages of two sites, and those that are neither HTML nor text, are one.

    at int64[25], header: as for `neardup.kernels.pairs.score_pairs`. alnum: as for `same_signs`.
    """
    if word_at(buf, a + at[_SITE]) != word_at(buf, b + at[_SITE]) or buf[a + at[_FLAGS]] & OPAQUE:
        return True
    if word_at(buf, a + at[_TITLING]) != word_at(buf, b + at[_TITLING]):
        return False
    url_a, url_b = _url_at(buf, a, at, header), _url_at(buf, b, at, header)
    end_a, end_b = url_a + half_at(buf, a + at[_URL]), url_b + half_at(buf, b + at[_URL])
    title_a, title_b = end_a + half_at(buf, a + at[_HOST]), end_b + half_at(buf, b + at[_HOST])
    size_a, size_b = half_at(buf, a + at[_TITLE]), half_at(buf, b + at[_TITLE])
    if not equal_bytes(buf, title_a, size_a, title_b, size_b):
        return False
    if equal_bytes(buf, url_a, end_a - url_a, url_b, end_b - url_b):
        return True
    return same_signs(buf, url_a, end_a, url_b, end_b, alnum)
