"""The network as pages may use it: GET of public addresses, in bounded bytes and time."""

import ipaddress
import socket
from types import TracebackType
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver
from yarl import URL

from streams.rendering.world import BODY_BYTES_MAX, REDIRECTS, Answer

AGENT = "neardup"
#: Of one answer, from its name's resolution to its last byte.
ANSWER_SECONDS = 10
_PIECE_BYTES = 1 << 16


def is_public(address: str) -> bool:
    """Whether an address is one of the public network: not of this machine, a local network, or a cloud's inside."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    return found.is_global and not found.is_multicast


class _PublicResolver(AbstractResolver):
    """Names by the system's resolver. One that leads to any address that is not public has none.

    What it says is what is connected to: a name that says something else the next time gains nothing.
    """

    def __init__(self) -> None:
        self._system = ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await self._system.resolve(host, port, family)
        if not all(is_public(one["host"]) for one in found):
            raise OSError(f"{host}: not a public address")
        return found

    async def close(self) -> None:
        await self._system.close()


class Network:
    """Answers of servers. private: addresses that are not public may be asked, too."""

    def __init__(self, *, private: bool = False) -> None:
        self._private = private
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> "Network":
        resolver: Any = None if self._private else _PublicResolver()
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(resolver=resolver, use_dns_cache=False, limit_per_host=4),
            timeout=aiohttp.ClientTimeout(total=ANSWER_SECONDS),
            headers={"User-Agent": AGENT},
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def get(self, url: str) -> Answer | None:
        """The answer to a GET, redirects as they are; None where there is none, or none that may be had."""
        if self._session is None or (not self._private and _is_private_literal(url)):
            return None
        try:
            async with self._session.get(URL(url, encoded=True), allow_redirects=False) as response:
                if response.status in REDIRECTS:
                    return Answer(response.status, location=response.headers.get("location", ""))
                body = bytearray()
                async for piece in response.content.iter_chunked(_PIECE_BYTES):
                    body += piece
                    if len(body) > BODY_BYTES_MAX:
                        return None
                return Answer(response.status, response.headers.get("content-type", ""), bytes(body))
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError):
            return None


def _is_private_literal(url: str) -> bool:
    """Whether a URL names such an address itself: no resolver is asked then."""
    try:
        return not is_public((URL(url, encoded=True).host or "").strip("[]"))
    except ValueError:
        return False
