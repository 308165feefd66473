"""Records of pages given by their tokens.

`python -m tests.neardup.sketch.words` compiles what only this module calls: else each worker of a fresh clone would.
"""

from collections.abc import Sequence

import numpy as np

from neardup.kernels import batch as batches
from neardup.kernels.fingerprint import KEY_WORDS
from neardup.kernels.html import PADDING_BYTES
from neardup.kernels.points import ALL_DIGITS, ANY_DIGIT, IN_LINK, IN_TITLE
from neardup.kernels.spans import hash_spans
from neardup.page import Page
from neardup.scheme import Scheme
from neardup.sketch.addresses import addresses_of
from neardup.sketch.make_sketches import _batch, _headers, _records
from neardup.sketch.shape import record_bytes_max, shape_of, space_for
from neardup.text.decoding import decode_into
from neardup.urls import normalise_url


def sketch_words(
    words: Sequence[str],
    scheme: Scheme,
    *,
    url: str = "http://example.org/",
    title_words: int = 0,
    links: Sequence[int] = (),
    blocks: Sequence[int] | None = None,
) -> bytes:
    """Makes the record of a page of these tokens (lower-case words) with one space between them.

    The first title_words form the title; links: indices of words in links; blocks: the
    block number of each word. Raises BadPage for a bad URL, ValueError for more words than the scheme allows.
    """
    if len(words) > scheme.tokens_max:
        raise ValueError(f"{len(words)} words, of which the scheme takes {scheme.tokens_max}")
    pages = [Page(normalise_url(url, scheme.url_bytes_max), b"")]
    named = addresses_of(pages, scheme)
    n = len(words)
    encoded = [word.encode() for word in words]
    # Writable, as the text of a batch: the kernels are compiled for that.
    text = np.frombuffer(bytearray(b" ".join(encoded) + bytes(PADDING_BYTES)), dtype=np.uint8)
    ends = np.cumsum([len(word) + 1 for word in encoded], dtype=np.int64) - 1
    digits = [ALL_DIGITS * w.isdigit() + ANY_DIGIT * any(c.isdigit() for c in w) for w in words]
    flags = np.array(digits, dtype=np.uint8)
    flags[:title_words] |= IN_TITLE
    flags[list(links)] |= IN_LINK
    spans = (ends - [len(word) for word in encoded]).astype(np.uint32), ends.astype(np.uint32)
    fp = np.empty(n, dtype=np.uint64)
    hash_spans(text, *spans, n, scheme.constants("token", KEY_WORDS), fp)
    tokens = (fp, flags, np.array(blocks if blocks is not None else [0] * n, dtype=np.int32), *spans)
    headers = _headers(pages, named, None, [0])
    with space_for(n, scheme) as space:
        title = " ".join(words[:title_words]).encode()[: scheme.title_bytes_max]
        space.page.title[: len(title)] = np.frombuffer(title, np.uint8)
        out = space.out(named.bytes_of(0, 1) + record_bytes_max(scheme))
        batch = decode_into(_batch(named, headers), [None], [""], 0, scheme.body_bytes_max)[0]._replace(out=out)
        heading = (np.int64(0), np.int64(0))
        page = (tokens, n, heading, text, len(title))
        batches.record_of(batch, 0, *page, shape_of(scheme), space.work, space.page, 0)
        return _records(batch, 0, 1)[0]


if __name__ == "__main__":
    sketch_words(["wool"], Scheme(seed=1))
