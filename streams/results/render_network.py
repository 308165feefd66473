"""Gives pages network access: GET from public addresses, with limits on bytes and time."""

import ipaddress
import socket
import unicodedata
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver
from yarl import URL

from neardup.limits import BODY_BYTES_MAX
from streams.results.render_world import REDIRECTS, Answer

AGENT = "neardup"
#: Time limit of one answer, from name resolution to the last byte.
ANSWER_SECONDS = 10
_PIECE_BYTES = 1 << 16


#: Networks whose addresses embed an IPv4 address at their end: mapped, compatible, translated, NAT64.
_IPV4_AT_END = tuple(map(ipaddress.IPv6Network, ("::ffff:0:0/96", "::/96", "::ffff:0:0:0/96", "64:ff9b::/96")))
#: Networks without sites that Python 3.11 takes for public: protocol assignments (Oracle Cloud has its metadata at
#: 192.0.0.192), Azure's service for its machines, relays of 6to4, documentation.
_NO_SITES = tuple(map(ipaddress.ip_network, ("192.0.0.0/24", "168.63.129.16/32", "192.88.99.0/24", "3fff::/20")))
_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")


def is_public(address: str) -> bool:
    """Tests whether an address is public: not this machine's, a local network's, or a cloud's internal one.

    Of an IPv6 address with an embedded IPv4 address, the latter counts. Raises ValueError for an invalid address.
    """
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        if (inner := _ipv4_in(found)) is not None:
            return is_public(str(inner))
        if found not in _GLOBAL_UNICAST:
            return False
    if any(found in network for network in _NO_SITES):
        return False
    return found.is_global and not found.is_multicast


def _ipv4_in(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """Returns the IPv4 address embedded in an IPv6 address: at its end, or as 6to4, Teredo client or ISATAP."""
    if any(address in network for network in _IPV4_AT_END) or int(address) >> 32 & 0xFDFF_FFFF == 0x5EFE:
        return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.sixtofour or (address.teredo[1] if address.teredo is not None else None)


class _PublicResolver(AbstractResolver):
    """Resolves names by the system's resolver; fails if any address of a name is not public.

    The client connects to the resolved address, so a name that resolves differently the next time gains nothing.
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
    """Fetches from servers. private: addresses that are not public are allowed."""

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

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def get(self, url: str) -> Answer | None:
        """GETs a URL without following redirects; None for no answer or a forbidden one."""
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
    """Tests whether a URL's host is a private address, or has a form that no site uses.

    No resolver checks literal addresses; clients and systems read `127.1`, `2130706433` and `0x7f.1` as addresses.
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
