"""Requests to the web pages of views, whose table holds hostile verdicts: what a handler raises is a defect."""

import asyncio
import socket
from collections import defaultdict
from functools import cache
from typing import Any
from urllib.parse import quote_from_bytes

from aiohttp import web

from streams.views.web import Views
from tests.streams.views.said import DECIDER, Held, said

TOKEN = "0123456789abcdef"
_METHODS = ("GET", "GET", "GET", "POST", "HEAD")
_KINDS = defaultdict(
    lambda: "application/x-www-form-urlencoded",
    {
        b"\1": "application/x-www-form-urlencoded; charset=utf-16",
        b"\2": "application/x-www-form-urlencoded; charset=none",
        b"\3": "multipart/form-data; boundary=b",
    },
)
_SAFE = "/?&=%.:+-_~,;@!$'()*"


class Server:
    """The pages in one loop with the requests to them, without a port."""

    def __init__(self, source: Any) -> None:
        self._loop = asyncio.new_event_loop()
        app = web.Application()
        Views(source, DECIDER, hosts=["h"], token=TOKEN).add_to(app)
        self._runner = web.AppRunner(app, access_log=None)
        self._loop.run_until_complete(self._runner.setup())

    def answer(self, request: bytes) -> bytes:
        """What is sent back until the connection ends."""
        return self._loop.run_until_complete(asyncio.wait_for(self._answered(request), 30))

    async def _answered(self, request: bytes) -> bytes:
        here, there = socket.socketpair()
        with here:
            here.setblocking(False)
            await self._loop.connect_accepted_socket(self._runner.server, there)  # type: ignore[arg-type]
            await self._loop.sock_sendall(here, request)
            answer = bytearray()
            while piece := await self._loop.sock_recv(here, 1 << 16):
                answer += piece
            return bytes(answer)


@cache
def _server() -> Server:
    return Server(Held(said(60)))


def http_request(data: bytes) -> None:
    """The first byte chooses the method; the rest of the first line is the path, what follows a form, whose first byte
    chooses its kind.
    """
    method = _METHODS[data[0] % len(_METHODS)] if data else "GET"
    path, _, form = data[1:].partition(b"\n")
    head = (
        f"{method} /{quote_from_bytes(path, safe=_SAFE)} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n"
        f"Authorization: Bearer {TOKEN}\r\nContent-Type: {_KINDS[form[:1]]}\r\n"
        f"Content-Length: {len(form)}\r\n\r\n"
    )
    answer = _server().answer(head.encode() + form)
    status = answer.split(b" ", 2)[1] if answer.startswith(b"HTTP/1.") else b""
    assert status.isdigit(), answer[:200]
    assert status != b"500", answer[:500]
