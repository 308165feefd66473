"""Web pages and services of a process: the bound socket, and the life of the server. Needs aiohttp."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Collection
from typing import TypeVar

from aiohttp import web

from streams.errors import WrongUsage
from streams.process.foreign_requests import LOOPBACK, refusal
from streams.process.shutdown import stop_event

T = TypeVar("T")

#: Two URLs of 2,048 bytes, percent-encoded twice, fit into a request line.
REQUEST_LINE_MAX = 32 << 10
#: Open at once. A further connection closes the oldest, so that slow clients keep no other one out.
CONNECTIONS_MAX = 256
#: From a connection, or an answer, to the end of the next request's headers.
HEADERS_SECONDS_MAX = 20.0
#: From the headers of a request to the end of its body.
BODY_SECONDS_MAX = 20.0


def listen(host: str, port: int, token: str | None, setting: str = "NEARDUP_VIEWS_TOKEN(_FILE)") -> socket.socket:
    """Return a bound socket. Raises BadInput; also for an address that other machines reach, if there is no token.

    setting: name of the setting with the token, for errors.
    """
    if host not in LOOPBACK and token is None:
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


def hosts_of(sock: socket.socket, names: Collection[str] = ()) -> frozenset[str]:
    """Return the values of Host that a server accepts. names: host names of proxies in front, with port."""
    port = sock.getsockname()[1]
    return frozenset((authority(sock), f"127.0.0.1:{port}", f"localhost:{port}", *names))


def refuse_foreign(request: web.Request, hosts: Collection[str]) -> None:
    """Raise HTTPForbidden for a request that a page of another site has caused; see `foreign_requests`."""
    if reason := refusal(request.headers, hosts):
        raise web.HTTPForbidden(text=reason)


async def body_in_time(reading: Awaitable[T]) -> T:
    """Await the reading of a request's body. Raise HTTPRequestTimeout after BODY_SECONDS_MAX, and what it raises."""
    try:
        async with asyncio.timeout(BODY_SECONDS_MAX):
            return await reading
    except TimeoutError:
        answer = web.HTTPRequestTimeout(text=f"the body did not come within {BODY_SECONDS_MAX:g} s")
        answer.force_close()
        raise answer from None


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
    runner = web.AppRunner(app, access_log=None, max_line_size=REQUEST_LINE_MAX, keepalive_timeout=HEADERS_SECONDS_MAX)
    await runner.setup()
    handlers = runner.server
    assert handlers is not None

    def connected() -> web.RequestHandler:
        held = [each for each in handlers.connections if each.transport is not None]
        if len(held) >= CONNECTIONS_MAX:
            held[0].force_close()
        return handlers()

    waits: set[asyncio.Future[object]] = {asyncio.ensure_future(stop.wait())}
    if until is not None:
        waits.add(asyncio.ensure_future(until))
    listening = await asyncio.get_running_loop().create_server(connected, sock=sock)
    try:
        ready(f"http://{authority(sock)}{path}")
        done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for each in done:
            each.result()
    finally:
        for wait in waits:
            wait.cancel()
        listening.close()
        await runner.cleanup()
