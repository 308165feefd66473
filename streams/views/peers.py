"""Other workers of the same views: each has the rows of its own partitions, and is asked for them over HTTP.

The group of the views names the workers' URLs, and any member of the group may name any URL. So no request carries the
token: it is signed with a key made from the token, for this host, this path and this minute. A worker that has the same
token checks the signature; another host, or one that reads along, can use it for nothing else.
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
from streams.views.asking import get
from streams.views.lists import Row

ANSWER_SECONDS_MAX = 5.0
#: Rows of a key, each below a message of Kafka.
ANSWER_BYTES_MAX = 64 << 20


#: The scheme of the Authorization header of requests between workers.
SCHEME = "Neardup-Worker"
#: How far the clocks of two workers may differ.
SIGNED_SECONDS_MAX = 300


class Signer:
    """Signs requests of one worker to another, and checks signatures. token: the views' own, the same on all."""

    def __init__(self, token: str) -> None:
        # Slow on purpose: a host that got a signature must not find a short token by trying.
        self._key = hashlib.scrypt(token.encode(), salt=b"neardup views: workers", n=1 << 14, r=8, p=1, dklen=32)

    def header(self, host: str, path: str) -> str:
        """The Authorization header of a request now. host: with its port; path: with its query."""
        at = int(time.time())
        return f"{SCHEME} {at}:{self._signature(host, path, at)}"

    def holds(self, header: str, host: str, path: str) -> bool:
        """Whether a request's Authorization header was made for it, and lately."""
        found = re.fullmatch(rf"{SCHEME} (\d{{1,12}}):([0-9a-f]{{64}})", header)
        if found is None or abs(time.time() - int(found[1])) > SIGNED_SECONDS_MAX:
            return False
        return hmac.compare_digest(found[2], self._signature(host, path, int(found[1])))

    def _signature(self, host: str, path: str, at: int) -> str:
        return hmac.new(self._key, f"{host}\n{path}\n{at}".encode(), "sha256").hexdigest()


class Peers:
    """Requests to the other workers. own: this worker's URL. token: of the views, None where they have none."""

    def __init__(self, own: str, token: str | None) -> None:
        self._own = own.rstrip("/")
        self._signer = None if token is None else Signer(token)

    def others(self, held: Mapping[str, Collection[int]]) -> dict[str, Collection[int]]:
        """held: partitions by worker, as Faust's assignor tells them."""
        return {url: parts for url, parts in held.items() if parts and url.rstrip("/") != self._own}

    def rows(self, url: str, parts: Collection[int], table: str, key: str) -> Sequence[Row]:
        """Those that another worker has. Raises BrokerError where it does not answer."""
        return cast(list[Row], self._ask(url, parts, f"/own-rows.json?table={quote(table)}&key={quote(key, safe='')}"))

    def own(self, url: str, parts: Collection[int]) -> Mapping[str, Any]:
        """{lag: {partition: offsets}, rate, tables: {table: bytes}} of another worker. Raises BrokerError."""
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
                f"the views at {url}, which have partitions {held}, do not answer ({error}); once they are missed, "
                "others take these over"
            ) from error


def own_address(sock: socket.socket, address: str | None) -> str:
    """The URL that other workers reach this one by. address: as it was told; by default from the socket.

    Raises BadInput for what is no URL of HTTP without a path.
    """
    if address is not None:
        parts = urlsplit(address)
        if parts.scheme != "http" or not parts.netloc or parts.path not in ("", "/") or parts.query:
            raise BadInput(f"--address {address}: an address like http://views-0.views:8379 is wanted")
        return f"http://{parts.netloc}"
    host, port = sock.getsockname()[:2]
    if host in ("0.0.0.0", "::"):
        host = socket.gethostname()
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
