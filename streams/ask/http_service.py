"""The HTTP service of `neardup ask`: POST /ask, and GET /, /metrics, /live and /ready."""

import asyncio
import hmac
import socket
from collections.abc import Awaitable, Callable, Collection

import orjson
from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

from neardup.errors import BadPage, NeardupError
from neardup.page import Page
from neardup.verdict import Kind
from streams.ask.answers import IndexSnapshot
from streams.formats.json import decode_line, object_of
from streams.process import web_server
from streams.process.foreign_requests import probe_refusal, refusal
from streams.process.shutdown import stop_event

#: Requests that wait for their turn; further ones get 503.
WAITING_MAX = 64
#: Bodies that are being read. A further one replaces the oldest, which gets 503: slow clients hold no turns.
READING_MAX = 64
#: A body as base64 is a third longer; the rest is for the other fields.
_FIELDS_BYTES = 64 << 10
_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2)
_JSON = "application/json"
#: How to ask, for the front page.
_ASK = 'POST /ask with a page as a JSON object: {"url": ..., "body": ..., "content_type": ...}'


class AskService:
    """Answers requests from one index. token: required of each question; None: none. hosts: accepted values of Host,
    with port. address: the server's own.
    """

    def __init__(self, index: IndexSnapshot, token: str | None, hosts: Collection[str], address: str) -> None:
        self._index, self._token, self._hosts, self._address = index, token, hosts, address
        self._turn, self._waiting = asyncio.Lock(), 0
        self._reading: dict[asyncio.Future[bytes], None] = {}  # in the order of arrival
        self._registry = CollectorRegistry()
        self._verdicts = Counter("neardup_ask_verdicts", "Answers by verdict", ["verdict"], registry=self._registry)
        self._refused = Counter("neardup_ask_refused", "Requests refused: too many wait", registry=self._registry)
        self._seconds = Histogram(
            "neardup_ask_seconds", "From a request to its answer", buckets=_SECONDS, registry=self._registry
        )
        for kind in Kind:
            self._verdicts.labels(kind.value)

    def application(self) -> web.Application:
        """The routes."""
        app = web.Application(client_max_size=self._index.scheme.body_bytes_max * 4 // 3 + _FIELDS_BYTES)
        app.router.add_post("/ask", self._ask)
        app.router.add_get("/", self._front)
        app.router.add_get("/metrics", self._metrics)
        for path in ("/live", "/ready"):
            app.router.add_get(path, self._ok)
        return app

    async def _ask(self, request: web.Request) -> web.Response:
        if reason := refusal(request.headers, self._hosts):
            return _error(403, reason)
        if self._token is not None:
            given = request.headers.get("Authorization", "").removeprefix("Bearer ")
            if not hmac.compare_digest(given.encode("utf-8", "replace"), self._token.encode()):
                return _error(401, "a token is required: Authorization: Bearer TOKEN")
        try:
            body = await self._body(request)
        except web.HTTPRequestEntityTooLarge:
            return _error(413, "larger than a page may be")
        except web.HTTPRequestTimeout as error:
            return _error(408, str(error.text))
        if body is None:
            self._refused.inc()
            return _error(503, f"{READING_MAX} requests that came later are being read; send the body faster")
        if self._waiting >= WAITING_MAX:
            self._refused.inc()
            return _error(503, f"{WAITING_MAX} requests wait; ask again later")
        self._waiting += 1
        try:
            with self._seconds.time():
                return await self._answer(body)
        finally:
            self._waiting -= 1

    async def _body(self, request: web.Request) -> bytes | None:
        """Read the body; None if READING_MAX later requests came meanwhile. Raise web.HTTPException."""
        if len(self._reading) >= READING_MAX:
            oldest = next(iter(self._reading))
            del self._reading[oldest]
            oldest.cancel()
        reading = asyncio.ensure_future(web_server.body_in_time(request.read()))
        self._reading[reading] = None
        reading.add_done_callback(lambda done: self._reading.pop(done, None))
        try:
            await asyncio.wait({reading})
        finally:
            reading.cancel()  # of a client that has gone
        return None if reading.cancelled() else reading.result()

    async def _answer(self, body: bytes) -> web.Response:
        try:
            if "body_ref" in object_of(body):
                return _error(400, "body_ref is not fetched; send the body")
            page = decode_line(body)
        except BadPage as error:
            return _error(400, str(error))
        try:
            async with self._turn:
                answer = await asyncio.to_thread(self._index.query, page)
        except NeardupError as error:
            return _error(503, str(error))
        self._verdicts.labels(answer.verdict.verdict.value).inc()
        return web.Response(body=orjson.dumps(answer.to_json()), content_type=_JSON)

    async def _front(self, request: web.Request) -> web.Response:
        """Say how to ask, and how old the index is. It holds no page, so it needs no token."""
        if reason := refusal(request.headers, self._hosts):
            return _error(403, reason)
        try:
            async with self._turn:
                state = await asyncio.to_thread(self._index.state)
        except NeardupError as error:
            return _error(503, str(error))
        front = {"ask": _ASK, "index": state, "flushes": self._index.flushes, "others": ["/metrics", "/live", "/ready"]}
        return web.Response(body=orjson.dumps(front), content_type=_JSON)

    async def _metrics(self, request: web.Request) -> web.Response:
        if reason := probe_refusal(request.headers, self._address):
            return _error(403, reason)
        return web.Response(body=generate_latest(self._registry), content_type="text/plain", charset="utf-8")

    async def _ok(self, request: web.Request) -> web.Response:
        if reason := probe_refusal(request.headers, self._address):
            return _error(403, reason)
        return web.Response(body=b'{"ok":true}', content_type=_JSON)


def _error(status: int, text: str) -> web.Response:
    headers = {401: {"WWW-Authenticate": "Bearer"}, 503: {"Retry-After": "1"}}.get(status)
    answer = web.Response(body=orjson.dumps({"error": text}), content_type=_JSON, status=status, headers=headers)
    if status in (408, 503):  # the rest of a body need not be read
        answer.force_close()
    return answer


async def serve(
    index: IndexSnapshot,
    sock: socket.socket,
    token: str | None,
    ready: Callable[[str], None] = lambda url: None,
    until: Awaitable[object] | None = None,
    *,
    names: Collection[str] = (),
) -> None:
    """Serve until SIGINT or SIGTERM, or until `until` is done. names: hosts (with ports) of proxies in front."""
    stop = stop_event()
    await asyncio.to_thread(index.query, Page("http://a.example/", b"kernels are loaded by the first page"))
    service = AskService(index, token, web_server.hosts_of(sock, names), sock.getsockname()[0])
    await web_server.serve(service.application(), sock, ready, path="/ask", until=until, stop=stop)
