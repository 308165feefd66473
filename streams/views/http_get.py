"""HTTP requests to other processes of the deployment, bounded in time and size."""

import http.client
import time
from collections.abc import Mapping
from urllib.parse import urlsplit

_READ_BYTES = 64 << 10


def get(url: str, *, seconds_max: float, bytes_max: int, headers: Mapping[str, str]) -> bytes:
    """Return the body of a 200 response. Redirects are not followed: they could name any host.

    seconds_max: for the whole response, however slowly it arrives. Raises OSError, HTTPException, and ValueError for
    another status and for a response that is too long or too slow.
    """
    parts, deadline = urlsplit(url), time.monotonic() + seconds_max
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.netloc, timeout=seconds_max)
    try:
        path = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
        connection.request("GET", path, headers={"Connection": "close", **headers})
        response = connection.getresponse()
        body = bytearray()
        while chunk := response.read1(_READ_BYTES):
            body += chunk
            if len(body) > bytes_max:
                raise ValueError(f"more than {bytes_max:,} bytes")
            if time.monotonic() > deadline:
                raise ValueError(f"it took longer than {seconds_max:.0f} s")
        if response.status != http.client.OK:
            raise ValueError(f"HTTP status {response.status}: {body[:200].decode('utf-8', 'replace')}")
        return bytes(body)
    finally:
        connection.close()
