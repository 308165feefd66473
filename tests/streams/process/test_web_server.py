"""Bounds of a server of web pages against slow clients, and requests that pages of other sites cause."""

import asyncio
import socket
from collections.abc import Awaitable, Callable

import pytest
from aiohttp import web

from streams.process import web_server
from streams.process.foreign_requests import probe_refusal, refusal

Address = tuple[str, int]
HEADERS = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n"


def served(talk: Callable[[Address], Awaitable[None]]) -> None:
    """Runs `talk` against a server that answers with the body of the request."""

    async def echo(request: web.Request) -> web.Response:
        return web.Response(body=await web_server.body_in_time(request.read()))

    async def main() -> None:
        app = web.Application()
        app.router.add_post("/", echo)
        sock = socket.create_server(("127.0.0.1", 0))
        until = asyncio.get_running_loop().create_future()

        async def client() -> None:
            await ready.wait()
            try:
                await talk(sock.getsockname()[:2])
            finally:
                until.set_result(None)

        ready = asyncio.Event()
        talking = asyncio.ensure_future(client())
        await web_server.serve(app, sock, lambda url: ready.set(), until=until, stop=asyncio.Event())
        await talking

    asyncio.run(main())


@pytest.mark.parametrize("sent", [b"", b"POST / HTTP/1.1\r\nHost: "])
def test_serve_closes_a_connection_without_headers(sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_server, "HEADERS_SECONDS_MAX", 0.05)

    async def talk(address: Address) -> None:
        reader, writer = await asyncio.open_connection(*address)
        writer.write(sent)
        assert await asyncio.wait_for(reader.read(), 30) == b""

    served(talk)


def test_serve_answers_408_to_a_slow_body(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_server, "BODY_SECONDS_MAX", 0.05)

    async def talk(address: Address) -> None:
        reader, writer = await asyncio.open_connection(*address)
        writer.write(HEADERS + b"ab")
        assert (await asyncio.wait_for(reader.readline(), 30)).startswith(b"HTTP/1.1 408 ")

    served(talk)


def test_serve_closes_the_oldest_connection_for_a_further_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_server, "CONNECTIONS_MAX", 3)

    async def talk(address: Address) -> None:
        slow = [await asyncio.open_connection(*address) for _ in range(5)]
        for _, writer in slow:
            writer.write(HEADERS)
        for reader, writer in [*slow[2:], await asyncio.open_connection(*address)][1:]:
            writer.write(b"abcde" if (reader, writer) in slow else HEADERS + b"abcde")
            assert (await asyncio.wait_for(reader.readuntil(b"abcde"), 30)).startswith(b"HTTP/1.1 200 ")
        for reader, _ in slow[:2]:
            assert await asyncio.wait_for(reader.read(), 30) == b""

    served(talk)


HOSTS = {"127.0.0.1:80", "localhost:80", "views.example"}


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ({"Host": "127.0.0.1:80"}, ""),
        ({"Host": "views.example", "Origin": "https://views.example", "Sec-Fetch-Site": "same-origin"}, ""),
        ({"Host": "localhost:80", "Origin": "http://127.0.0.1:80"}, ""),
        ({}, "Host"),
        ({"Host": "rebound.example:80"}, "Host"),
        ({"Host": "localhost:80", "Origin": "http://rebound.example"}, "another origin"),
        ({"Host": "localhost:80", "Origin": "null"}, "another origin"),
        ({"Host": "localhost:80", "Origin": "http://localhost:3000"}, "another origin"),
        ({"Host": "localhost:80", "Sec-Fetch-Site": "cross-site"}, "another site"),
    ],
)
def test_refusal_of_requests_that_another_site_causes(headers: dict[str, str], reason: str) -> None:
    found = refusal(headers, HOSTS)
    assert (reason in found) if reason else not found


@pytest.mark.parametrize(
    ("address", "headers", "refused"),
    [
        ("127.0.0.1", {}, False),  # probes by HTTP/1.0
        ("127.0.0.1", {"Host": "localhost:9999"}, False),
        ("127.0.0.1", {"Host": "[::1]:9"}, False),
        ("127.0.0.1", {"Host": "10.1.2.3:9464"}, False),
        ("127.0.0.1", {"Host": "rebound.example:9464"}, True),
        ("127.0.0.1", {"Host": "a:b:c"}, True),
        ("localhost", {"Host": "rebound.example"}, True),
        ("0.0.0.0", {"Host": "matcher.neardup.svc:9464"}, False),
        ("0.0.0.0", {"Host": "10.1.2.3:9464", "Origin": "http://site.example"}, True),
        ("0.0.0.0", {"Host": "10.1.2.3:9464", "Sec-Fetch-Site": "cross-site"}, True),
    ],
)
def test_probe_refusal_by_the_bound_address(address: str, headers: dict[str, str], refused: bool) -> None:
    assert bool(probe_refusal(headers, address)) is refused
