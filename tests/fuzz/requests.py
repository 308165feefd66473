"""Requests to the web pages of views and of labelling: what a handler raises is a defect."""

import asyncio
import socket
from collections import defaultdict
from functools import cache
from urllib.parse import quote_from_bytes

from aiohttp import web

from neardup.evaluation.graphs import b_graph, c_graph
from neardup.evaluation.labelling_rounds import Labelling
from neardup.evaluation.sampling import draw
from streams.evaluation.label import LabelViews
from streams.views.web import Views
from tests.neardup.evaluation.crawl import crawl_of, manual
from tests.streams.views.random_verdicts import DECIDER, Held, random_verdicts

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
#: The first answer waits for kernels, which are compiled with bounds checks; the search itself has a limit of 5 s.
_SECONDS_MAX = 300
_SAFE = "/?&=%.:+-_~,;@!$'()*"


class Server:
    """The pages in one loop with the requests to them, without a port. token: what a form must have."""

    def __init__(self, pages: Views | LabelViews, token: str = "") -> None:
        self.token = token
        self._loop = asyncio.new_event_loop()
        app = web.Application()
        pages.add_to(app)
        self._runner = web.AppRunner(app, access_log=None)
        self._loop.run_until_complete(self._runner.setup())

    def answer(self, request: bytes) -> bytes:
        """What is sent back until the connection ends."""
        return self._loop.run_until_complete(asyncio.wait_for(self._answered(request), _SECONDS_MAX))

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
def _views() -> Server:
    return Server(Views(Held(random_verdicts(60)), DECIDER, hosts=["h"], token=TOKEN))


@cache
def _labels() -> Server:
    crawl = crawl_of(manual(items=6))
    pairs = draw(crawl.corpus, b_graph(crawl.corpus), c_graph(crawl.corpus), count=4)
    labelling = Labelling(pairs, crawl.corpus, {}, lambda label: None)
    pages = LabelViews(labelling, crawl.texts, hosts=["h"], prefix="")
    return Server(pages, pages._token)


def http_request(data: bytes) -> None:
    """To views. The first byte chooses the method; the rest of the first line is the path, what follows a form, whose
    first byte chooses its kind.
    """
    _asked(_views(), data)


def label_request(data: bytes) -> None:
    """The same to labelling."""
    _asked(_labels(), data)


def _asked(server: Server, data: bytes) -> None:
    method = _METHODS[data[0] % len(_METHODS)] if data else "GET"
    path, _, form = data[1:].partition(b"\n")
    form = form.replace(b"TOKEN", server.token.encode())
    head = (
        f"{method} /{quote_from_bytes(path, safe=_SAFE)} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n"
        f"Authorization: Bearer {TOKEN}\r\nContent-Type: {_KINDS[form[:1]]}\r\n"
        f"Content-Length: {len(form)}\r\n\r\n"
    )
    answer = server.answer(head.encode() + form)
    status = answer.split(b" ", 2)[1] if answer.startswith(b"HTTP/1.") else b""
    assert status.isdigit(), answer[:200]
    assert status != b"500", answer[:500]
