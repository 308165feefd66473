"""Shells: pages whose words come from a script.

A browser runs the script and shows the words. Without it, all shells of an application have the same few words, and
would be exact duplicates. So the digest of a shell covers its bytes, scripts included, and its owner: only the same
bytes of one owner are the same page. A crawler that renders pages gives their words.
"""

import hashlib
import re
from collections.abc import Sequence

import numpy as np

from neardup.kernels.batch import HTML, Batch
from neardup.scheme import Scheme
from neardup.sketch.header import Header
from neardup.sketch.layout import RecordFlag, field_at
from neardup.urls import owner_of

#: Tokens below which a page with a script is a shell. Part of the scheme: another number needs a new version of it.
SHELL_TOKENS = 20
_SCRIPT = re.compile(rb"<script[\s>/]", re.IGNORECASE)
_DIGEST = field_at("digest")


def find_shells(batch: Batch, first: int, last: int, bodies: Sequence[bytes | None]) -> list[int]:
    """Return the pages first to last - 1 of a sketched batch that are shells: few tokens, and a script.

    Args:
        batch: the batch, whose headers `neardup.kernels.batch.sketch_batch` has filled.
        first, last: range of pages.
        bodies: bodies of all pages of the batch; None for what is no page.
    """
    tokens = batch.headers["tokens"][first:last]
    few = (tokens > 0) & (tokens < SHELL_TOKENS) & (batch.modes[first:last] == HTML)
    return [page for page in (np.flatnonzero(few) + first).tolist() if _SCRIPT.search(bodies[page] or b"")]


def with_shell_digest(record: bytes, body: bytes, scheme: Scheme) -> bytes:
    """Return the record of a shell with the digest of its owner and its bytes, under a key of the seed.

    Args:
        record: record of the page, with the digest of its tokens. Its URL names the owner.
        body: the page as fetched.
        scheme: scheme of the record.
    """
    key = scheme.constants("shell", 2).tobytes()
    digest = hashlib.blake2b(digest_size=16, key=key, person=b"neardup-shell")
    digest.update(owner_of(Header(record).url).encode() + b"\0" + body)
    out = bytearray(record)
    out[_DIGEST : _DIGEST + 16] = digest.digest()
    out[field_at("flags")] |= RecordFlag.SHELL
    return bytes(out)
