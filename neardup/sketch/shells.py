"""Shells: pages whose words come from a script, or from another page.

A browser runs the script, or goes to the other page, and shows the words. Without it, all shells of an application have
the same few words, and would be duplicates. So a shell has exact duplicates of its owner alone: its digest covers its
owner, and its bytes with the scripts in them, or the words and the other page's URL. A crawler that renders pages gives
their words.
"""

import hashlib
import re

import numpy as np

from neardup.kernels.batch import HTML, Batch
from neardup.scheme import Scheme
from neardup.sketch.header import Header
from neardup.sketch.layout import RecordFlag, field_at
from neardup.text.one_page_tokens import words
from neardup.urls import owner_of

#: Tokens below which a page with a script is a shell, text of `noscript` left out. Part of the scheme, as the next
#: number is: another number needs a new version of it.
SHELL_TOKENS = 20
#: Tokens below which a page with a script is a shell also if it has an empty root element or asks for JavaScript, and
#: any page that sends a browser to another one at once. Menus and notices around an application are as long.
SIGNED_TOKENS = 80
_SCRIPT = re.compile(rb"<script[\s>/]")
_META = re.compile(rb"<meta\s[^<>]{0,4000}")
_REFRESH = re.compile(rb"\shttp-equiv\s*+=\s*+[\"']?+\s*+refresh\b")
#: A delay of less than 10 seconds, and another page.
_TARGET = re.compile(rb"\scontent\s*+=\s*+[\"']?+\s*+\d(?:\.\d*+)?+\s*+[;,]\s*+[^\s\"'>]")
#: The elements into which applications of the usual frameworks write.
_ROOT = re.compile(
    rb"<(?:(?:div|main|section)\s[^<>]{0,200}\bid\s*+=\s*+[\"']?+(?:(?:react|vue|main|q)-)?"
    rb"(?:root|app|application|mount|__next|__nuxt|___gatsby|svelte)(?![\w-])[^<>]{0,200}"
    rb"|(?:(?:[a-z0-9]{1,30}-){1,3}(?:app|root)|(?:app|root)(?:-[a-z0-9]{1,30}){1,3})(?:\s[^<>]{0,200})?)>\s{0,200}</"
)
_DIGEST = field_at("digest")


def find_shells(batch: Batch, first: int, last: int) -> list[tuple[int, bool]]:
    """Return the pages first to last - 1 of a sketched batch that are shells, and whether by a script.

    Args:
        batch: the batch, whose headers `neardup.kernels.batch.sketch_batch` has filled.
        first, last: range of pages, whose decoded bodies are in the buffer of the batch.
    """
    tokens = batch.headers["tokens"][first:last]
    few = (tokens > 0) & (tokens < SIGNED_TOKENS) & (batch.modes[first:last] == HTML)
    found = []
    for page in (np.flatnonzero(few) + first).tolist():
        lower = batch.buffer[batch.starts[page] : batch.ends[page]].tobytes().lower()
        shown = _without_noscript(lower)
        if any(_REFRESH.search(meta) and _TARGET.search(meta) for meta in _META.findall(shown)):
            found.append((page, False))
        elif _is_scripted(lower, shown, int(batch.headers["tokens"][page])):
            found.append((page, True))
    return found


def _is_scripted(lower: bytes, shown: bytes, tokens: int) -> bool:
    """Whether the words of a page of few tokens come from a script. shown: the page without text of `noscript`."""
    if not _SCRIPT.search(shown):
        return False
    if tokens < SHELL_TOKENS or _ROOT.search(shown):
        return True
    if len(shown) == len(lower) and shown.count(b"javascript") == shown.count(b"/javascript"):  # types of scripts
        return False
    left = words(shown)
    return len(left) < SHELL_TOKENS or "javascript" in left


def _without_noscript(html: bytes) -> bytes:
    """A page in lower case as a browser that runs scripts reads it."""
    parts, at = [], 0
    while (start := html.find(b"<noscript", at)) >= 0:
        parts.append(html[at:start])
        at = html.find(b"</noscript", start)
        if at < 0:
            return b"".join(parts)
    return b"".join((*parts, html[at:]))


def with_shell_digest(record: bytes, body: bytes | None, scheme: Scheme) -> bytes:
    """Return the record of a shell with the digest of its owner and its bytes, under a key of the seed.

    Args:
        record: record of the page, with the digest of its tokens. Its URL names the owner.
        body: the page as fetched; None: the digest covers the tokens, which have the URL of the other page.
        scheme: scheme of the record.
    """
    body = record[_DIGEST : _DIGEST + 16] if body is None else body
    key = scheme.constants("shell", 2).tobytes()
    digest = hashlib.blake2b(digest_size=16, key=key, person=b"neardup-shell")
    digest.update(owner_of(Header(record).url).encode() + b"\0" + body)
    out = bytearray(record)
    out[_DIGEST : _DIGEST + 16] = digest.digest()
    out[field_at("flags")] |= RecordFlag.SHELL
    return bytes(out)
