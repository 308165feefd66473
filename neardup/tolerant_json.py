"""Parses JSON as the writers of other programs mean it, in time and memory that grow with its length.

Python's `json`, pandas and others write `NaN`, `Infinity` and lone surrogates, which JSON does not have. orjson refuses
such a text; only then it is parsed again, with these parts replaced. orjson refuses nesting of more than 1,024 levels,
also the second time, so hostile input cannot exhaust the stack.
"""

import math
import re
from typing import Any

import orjson

# A string, up to the end of the text if it is not closed: so each byte is matched once. A constant or a number, which
# cannot start within a word.
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|-?\bInfinity\b|\bNaN\b|-?\b\d[0-9.eE+\-]*+', re.DOTALL)
# An escaped character; of a surrogate both halves, if they follow each other.
_ESCAPE = re.compile(rb"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u[dD][89a-fA-F]..|\\.", re.DOTALL)
_CONSTANTS = (b"NaN", b"Infinity", b"-Infinity")
_REPLACEMENT = rb"\ufffd"
_SURROGATES = re.compile("[\ud800-\udfff]")


def loads(text: bytes) -> Any:
    """Parses JSON text in UTF-8.

    `NaN`, `Infinity`, `-Infinity` and numbers beyond the range of a float are read as null, because writers use them
    for missing values. Half a surrogate pair is read as U+FFFD, both as an escape and as the three bytes that some
    writers make of it.

    Raises orjson.JSONDecodeError (a ValueError) for any other text that is not JSON.
    """
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        mended = _TOKEN.sub(_mended, _without_surrogates(text))
        if mended == text:
            raise
        try:
            return orjson.loads(mended)
        except orjson.JSONDecodeError:
            raise error from None  # its place is one in the text that was given


def _mended(token: re.Match[bytes]) -> bytes:
    found = token[0]
    if found.startswith(b'"'):
        return _ESCAPE.sub(_escape, found) if b"\\u" in found else found
    if found in _CONSTANTS:
        return b"null"
    try:
        return found if math.isfinite(float(found)) else b"null"
    except ValueError:
        return found


def _escape(escape: re.Match[bytes]) -> bytes:
    lone = len(escape[0]) == 6 and escape[0][1:2] == b"u"
    return _REPLACEMENT if lone else escape[0]


def _without_surrogates(text: bytes) -> bytes:
    """Replaces surrogates that are encoded as three bytes each; joins two that are the halves of one character."""
    try:
        decoded = text.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return text  # orjson says where it is no UTF-8
    if not _SURROGATES.search(decoded):
        return text
    return decoded.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()
