"""The network as pages may use it: GET of public addresses, in bounded bytes and time."""

import ipaddress
import socket
import unicodedata
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


#: Networks whose addresses end with an IPv4 address: mapped, compatible, translated, NAT64.
_IPV4_AT_END = tuple(map(ipaddress.IPv6Network, ("::ffff:0:0/96", "::/96", "::ffff:0:0:0/96", "64:ff9b::/96")))
_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")


def is_public(address: str) -> bool:
    """Whether an address is one of the public network: not of this machine, a local network, or a cloud's inside.

    Of an IPv6 address that stands for an IPv4 address, that one counts. Raises ValueError for what is no address.
    """
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        if (inner := _ipv4_in(found)) is not None:
            return is_public(str(inner))
        if found not in _GLOBAL_UNICAST:
            return False
    return found.is_global and not found.is_multicast


def _ipv4_in(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address that an IPv6 address stands for: at its end, as 6to4, Teredo's client, or ISATAP."""
    if any(address in network for network in _IPV4_AT_END) or int(address) >> 32 & 0xFDFF_FFFF == 0x5EFE:
        return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.sixtofour or (address.teredo[1] if address.teredo is not None else None)


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
    """Whether a URL names such an address itself, so that no resolver is asked; or in a form that no site has.

    A client, or the system below it, takes `127.1`, `2130706433` and `0x7f.1` for addresses.
    """
    try:
        host = unicodedata.normalize("NFKC", (URL(url, encoded=True).host or "").strip("[]"))
    except ValueError:
        return True
    try:
        return not is_public(host)
    except ValueError:
        plain = host.rstrip(".")
    try:
        socket.inet_aton(plain)
    except OSError:
        return ":" in plain or plain.replace(".", "").isdigit()
    return True
