"""Web pages and services of a process: the bound socket, and the life of the server. Needs aiohttp."""

import asyncio
import socket
from collections.abc import Awaitable, Callable

from aiohttp import web

from streams.errors import WrongUsage
from streams.process.shutdown import stop_event

_LOOPBACK = ("127.0.0.1", "::1", "localhost")
#: Two URLs of 2,048 bytes, percent-encoded twice, fit into a request line.
REQUEST_LINE_MAX = 32 << 10


def listen(host: str, port: int, token: str | None, setting: str = "NEARDUP_VIEWS_TOKEN(_FILE)") -> socket.socket:
    """Return a bound socket. Raises BadInput; also for an address that other machines reach, if there is no token.

    setting: that holds the token.
    """
    if host not in _LOOPBACK and token is None:
        raise WrongUsage(f"--host {host}: others could read the pages; set {setting}")
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise WrongUsage(f"--host {host}: {error.strerror}") from error
    sock = socket.socket(family, kind)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind(address)
    except OSError as error:
        sock.close()
        raise WrongUsage(f"cannot listen on {host}:{port}: {error.strerror}; name another with --port") from error
    return sock


def authority(sock: socket.socket) -> str:
    """Return the host and port of a bound socket, as a URL has them."""
    host, port = sock.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


async def serve(
    app: web.Application,
    sock: socket.socket,
    ready: Callable[[str], None],
    *,
    path: str = "/",
    until: Awaitable[object] | None = None,
    stop: asyncio.Event | None = None,
) -> None:
    """Serve until `stop` is set, by default by SIGINT or SIGTERM, or until `until` is done. Raises what `until` raises.

    ready: called with the URL of `path` once the server answers.
    """
    stop = stop_event() if stop is None else stop
    runner = web.AppRunner(app, access_log=None, max_line_size=REQUEST_LINE_MAX)
    await runner.setup()
    waits: set[asyncio.Future[object]] = {asyncio.ensure_future(stop.wait())}
    if until is not None:
        waits.add(asyncio.ensure_future(until))
    try:
        await web.SockSite(runner, sock).start()
        ready(f"http://{authority(sock)}{path}")
        done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for each in done:
            each.result()
    finally:
        for wait in waits:
            wait.cancel()
        await runner.cleanup()
