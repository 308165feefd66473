"""Other workers of the same views: each has the rows of its own partitions, and is asked for them over HTTP."""

import http.client
import socket
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


class Peers:
    """Asks the others. own: this worker's URL. token: what they want to be borne, which is what this one wants."""

    def __init__(self, own: str, token: str | None) -> None:
        self._own = own.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

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
            found = get(
                f"{url.rstrip('/')}{path}",
                seconds_max=ANSWER_SECONDS_MAX,
                bytes_max=ANSWER_BYTES_MAX,
                headers=self._headers,
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
