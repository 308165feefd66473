"""Requests over HTTP, bounded in time and size: to the other workers of the same views, and to the roles.

Each worker has the rows of its own partitions. The consumer group names the workers' URLs, and any member of the group
may name any URL. So no request carries the token. It carries a signature for its host, path and minute, with a key
derived from the token, which a worker with the same token can check. Another host that receives the signature can use
it for nothing else.
"""

import hashlib
import hmac
import http.client
import re
import socket
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast
from urllib.parse import quote, urlsplit

import orjson

from neardup.errors import BadInput
from streams.errors import BrokerError
from streams.views.entries import Entry, Row
from streams.views.lists import Facts

ANSWER_SECONDS_MAX = 5.0
#: All rows of a key; each is smaller than a message of Kafka.
ANSWER_BYTES_MAX = 64 << 20
#: The scheme of the Authorization header of requests between workers.
SCHEME = "Neardup-Worker"
#: How far the clocks of two workers may differ.
SIGNED_SECONDS_MAX = 300
_READ_BYTES = 64 << 10


class Signer:
    """Signs requests of one worker to another, and checks signatures. token: the views' own, the same on all."""

    def __init__(self, token: str) -> None:
        # scrypt is slow: a host that got a signature must not find a short token by trying.
        self._key = hashlib.scrypt(token.encode(), salt=b"neardup views: workers", n=1 << 14, r=8, p=1, dklen=32)

    def header(self, host: str, path: str) -> str:
        """Return the Authorization header of a request now.

        host: host with its port. path: path with its query.
        """
        now = int(time.time())
        return f"{SCHEME} {now}:{self._signature(host, path, now)}"

    def holds(self, header: str, host: str, path: str) -> bool:
        """Return whether an Authorization header was made for this request, within SIGNED_SECONDS_MAX."""
        found = re.fullmatch(rf"{SCHEME} (\d{{1,12}}):([0-9a-f]{{64}})", header)
        if found is None or abs(time.time() - int(found[1])) > SIGNED_SECONDS_MAX:
            return False
        return hmac.compare_digest(found[2], self._signature(host, path, int(found[1])))

    def _signature(self, host: str, path: str, time_s: int) -> str:
        return hmac.new(self._key, f"{host}\n{path}\n{time_s}".encode(), "sha256").hexdigest()


class Peers:
    """Requests to the other workers. own: this worker's URL. token: token of the views, or None."""

    def __init__(self, own: str, token: str | None) -> None:
        self._own = own.rstrip("/")
        self._signer = None if token is None else Signer(token)

    def others(self, held: Mapping[str, Collection[int]]) -> dict[str, Collection[int]]:
        """Return the other workers with their partitions. held: partitions by worker, from Faust's assignor."""
        return {url: parts for url, parts in held.items() if parts and url.rstrip("/") != self._own}

    def rows(self, url: str, parts: Collection[int], table: str, key: str) -> Sequence[Row]:
        """Return another worker's rows. Raises BrokerError if it does not answer."""
        return cast(list[Row], self._ask(url, parts, f"/own-rows.json?table={quote(table)}&key={quote(key, safe='')}"))

    def entries(self, url: str, parts: Collection[int], of: str, start: str, limit: int, back: bool) -> Sequence[Entry]:
        """Return another worker's entries of a list. Raises BrokerError if it does not answer."""
        place = f"of={quote(of, safe='')}&start={quote(start, safe='')}&limit={limit}{'&back=1' if back else ''}"
        found = cast(list[list[Any]], self._ask(url, parts, f"/own-entries.json?{place}"))
        return [(str(key), row) for key, row in found]

    def search(self, url: str, parts: Collection[int], text: str, after: str) -> Facts:
        """Search another worker's partitions. Raises BrokerError if it does not answer."""
        path = f"/own-search.json?text={quote(text, safe='')}&after={quote(after, safe='')}"
        return cast(Facts, self._ask(url, parts, path))

    def own(self, url: str, parts: Collection[int]) -> Mapping[str, Any]:
        """Return another worker's {lag: {partition: offsets}, rate, tables: {table: bytes}}. Raises BrokerError."""
        return cast(dict[str, Any], self._ask(url, parts, "/own.json"))

    def _ask(self, url: str, parts: Collection[int], path: str) -> Any:
        try:
            host = urlsplit(url).netloc
            found = get(
                f"{url.rstrip('/')}{path}",
                seconds_max=ANSWER_SECONDS_MAX,
                bytes_max=ANSWER_BYTES_MAX,
                headers={"Host": host} | ({"Authorization": self._signer.header(host, path)} if self._signer else {}),
            )
            return orjson.loads(found)
        except (OSError, http.client.HTTPException, ValueError) as error:
            held = ", ".join(map(str, sorted(parts)))
            raise BrokerError(
                f"the views at {url}, which have partitions {held}, do not answer ({error}); other workers take these "
                "partitions over once the session has timed out"
            ) from error


def own_address(sock: socket.socket, address: str | None) -> str:
    """Return the URL by which other workers reach this one. address: configured address; by default the socket's.

    Raises BadInput unless it is an HTTP URL without a path.
    """
    if address is not None:
        parts = urlsplit(address)
        if parts.scheme != "http" or not parts.netloc or parts.path not in ("", "/") or parts.query:
            raise BadInput(f"--address {address}: must be an address like http://views-0.views:8379")
        return f"http://{parts.netloc}"
    host, port = sock.getsockname()[:2]
    if host in ("0.0.0.0", "::"):
        host = socket.gethostname()
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def get(url: str, *, seconds_max: float, bytes_max: int, headers: Mapping[str, str]) -> bytes:
    """Return the body of a 200 response. Redirects are not followed: they could name any host.

    seconds_max: time limit of the whole response, however slowly it arrives. Raises OSError, HTTPException, and
    ValueError for another status and for a response that is too long or too slow.
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
