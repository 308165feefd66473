"""Refuses requests that a page of another site makes a browser send to a server of this machine or network.

The page can name the server's address (then the browser sends Origin and Sec-Fetch-Site), or a name of its own that
resolves to that address (DNS rebinding; then Host is that name). Every HTTP server of neardup checks requests here.
"""

from collections.abc import Collection, Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

LOOPBACK = ("127.0.0.1", "::1", "localhost")


def refusal(headers: Mapping[str, str], hosts: Collection[str]) -> str:
    """Returns why a request must not be answered; "" if it may.

    hosts: the server's names with port, as in Host and in the URL of Origin.
    """
    if headers.get("Host", "") not in hosts:
        return "Host: not a name of this server; commands with --name accept more names"
    if headers.get("Sec-Fetch-Site", "none") == "cross-site":
        return "from another site"
    origin = headers.get("Origin")
    if origin is not None and urlsplit(origin).netloc not in hosts:
        return "from another origin"
    return ""


def probe_refusal(headers: Mapping[str, str], address: str) -> str:
    """The same for /metrics, /live and /ready of a server that is bound to an address.

    Probes and tunnels come to any port. A public address has names that only its operator knows, so these pass.
    """
    host = headers.get("Host", "")
    own = address not in LOOPBACK or not host or _is_own(host)
    return refusal({**headers, "Host": host}, (host,) if own else ())


def _is_own(host: str) -> bool:
    """Whether the value of Host is an IP address or localhost: no other site has such a name."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or bool(ip_address(name))
    except ValueError:
        return False
