"""Asks another process of the line over HTTP, for a page that somebody waits for: bounded in time and size."""

import http.client
import time
from collections.abc import Mapping
from urllib.parse import urlsplit

_READ_BYTES = 64 << 10


def get(url: str, *, seconds_max: float, bytes_max: int, headers: Mapping[str, str]) -> bytes:
    """The body of an answer 200. No redirect is followed: another host would be asked that nobody named.

    seconds_max: for the whole answer, however slowly it drips. Raises OSError, HTTPException, and ValueError for
    another status, and for what is too long or too slow.
    """
    parts, deadline = urlsplit(url), time.monotonic() + seconds_max
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.netloc, timeout=seconds_max)
    try:
        path = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
        connection.request("GET", path, headers={"Connection": "close", **headers})
        answer = connection.getresponse()
        body = bytearray()
        while chunk := answer.read1(_READ_BYTES):
            body += chunk
            if len(body) > bytes_max:
                raise ValueError(f"more than {bytes_max:,} bytes")
            if time.monotonic() > deadline:
                raise ValueError(f"it takes longer than {seconds_max:.0f} s")
        if answer.status != http.client.OK:
            raise ValueError(f"HTTP status {answer.status}: {body[:200].decode('utf-8', 'replace')}")
        return bytes(body)
    finally:
        connection.close()
