"""The web pages over a `Source`: guarded, nothing loaded from elsewhere.

Every request must name a host that is expected (a foreign name that resolves to this machine is refused), must not come
from another site, and carries the token where there is one; other workers sign theirs. Two kinds of forms change
something: one sends a rejected page again, others label audited pairs.
"""

import asyncio
import hmac
import secrets
import signal
import socket
from base64 import b64decode
from collections import deque
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from functools import partial
from importlib.metadata import version
from urllib.parse import quote, urlsplit

import orjson
from aiohttp import web

from neardup.decider import Decider
from neardup.errors import BadInput, NeardupError
from neardup.verdict import Coordinates
from streams.errors import WrongUsage
from streams.evaluation.label import LabelFile, posted
from streams.views import comparing, counting, pages
from streams.views.audits import listed
from streams.views.labelling import PREFIX, AuditLabelling
from streams.views.openapi import description
from streams.views.peers import Signer
from streams.views.rows import TABLES
from streams.views.source import Source

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; form-action 'self'; frame-ancestors 'none'; "
    "base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_ID_DIGITS_MAX, _ID_MAX = 20, 10**20
#: Pages that are shown as sent again.
SENT_KEPT = 200

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_Found = tuple[str, pages.Facts | None, str]


class Views:
    """The pages. hosts: what a request's Host may be, port included. token: what it must bear; none: nothing."""

    def __init__(
        self,
        source: Source,
        decider: Decider,
        *,
        hosts: Collection[str],
        token: str | None = None,
        labels: LabelFile | None = None,
    ) -> None:
        """labels: where labels of audited pairs are appended, for whoever has the token."""
        self._source, self._decider = source, decider
        self._labelling = AuditLabelling(source, labels, hosts) if labels is not None and token is not None else None
        self._hosts, self._token = frozenset(hosts), token
        self._signer = None if token is None else Signer(token)
        self._style = pages.style()
        self._form_token, self._sent = secrets.token_urlsafe(24), deque[int](maxlen=SENT_KEPT)
        self._reading = asyncio.Lock()  # pages are read again by one thread at a time

    def add_to(self, app: web.Application) -> None:
        """Adds the routes; each page has its twin in JSON."""
        app.router.add_get("/views.css", self._guarded(self._asset))
        app.router.add_get("/", self._guarded(self._page(self._overview)))
        app.router.add_get("/overview.json", self._guarded(self._twin(self._overview)))
        for name, find in self._finders().items():
            app.router.add_get(f"/{name}", self._guarded(self._page(find)))
            app.router.add_get(f"/{name}.json", self._guarded(self._twin(find)))
        app.router.add_get("/openapi.json", self._guarded(self._described))
        for name, tell in (("own", self._own), ("own-rows", self._own_rows)):  # for other workers
            app.router.add_get(f"/{name}.json", self._guarded(tell, for_workers=True))
        app.router.add_post("/send-again", self._guarded(self._send_again))
        for method in ("GET", "POST"):
            app.router.add_route(method, f"{PREFIX}/{{name:[a-z.]*}}", self._guarded(self._label))

    def _finders(self) -> dict[str, Callable[[web.Request], Awaitable[_Found]]]:
        return {
            "url": self._url,
            "cluster": self._cluster,
            "site": self._site,
            "sites": self._sites,
            "compare": self._compare,
            "close": self._close,
            "rejects": self._rejects,
            "health": self._health,
            "audits": self._audits,
        }

    def _guarded(self, handler: _Handler, *, for_workers: bool = False) -> _Handler:
        async def guarded(request: web.Request) -> web.StreamResponse:
            try:
                self._check(request, for_workers)
                response = await handler(request)
            except web.HTTPException as answer:  # refusals get the headers as well
                _headed(answer)
                raise
            _headed(response)
            return response

        return guarded

    def _check(self, request: web.Request, for_workers: bool) -> None:
        host, authorization = request.headers.get("Host", ""), request.headers.get("Authorization", "")
        if host not in self._hosts:
            raise web.HTTPForbidden(text="Host: this server answers to its own name only; others: --name")
        if request.headers.get("Sec-Fetch-Site", "none") == "cross-site":
            raise web.HTTPForbidden(text="from another site")
        if for_workers and self._signer is not None and self._signer.holds(authorization, host, request.raw_path):
            return
        if self._token is not None:
            given = _token_of(authorization)
            if not hmac.compare_digest(given.encode("utf-8", "replace"), self._token.encode()):
                asked = {"WWW-Authenticate": 'Basic realm="neardup: any user, the token as password", charset="UTF-8"'}
                raise web.HTTPUnauthorized(
                    text="a token is wanted: Authorization: Bearer, or as a password", headers=asked
                )

    def _page(self, find: Callable[[web.Request], Awaitable[_Found]]) -> _Handler:
        async def page(request: web.Request) -> web.Response:
            status = 200
            try:
                name, facts, text = await find(request)
            except NeardupError as error:
                name, facts, text, status = "missing", None, str(error), 503
            asked = {"asked_url": request.query.get("url", ""), "asked_site": request.query.get("name", "")}
            template = name if facts is not None else "missing"
            status = status if facts is not None or status != 200 else 404
            sending = {"form_token": self._form_token if self._sends_again else "", "sent": tuple(self._sent)}
            taken = self._labelling is not None
            html = pages.html(template, facts, text=text, away=status == 503, labels_taken=taken, **asked, **sending)
            return web.Response(text=html, content_type="text/html", status=status)

        return page

    def _twin(self, find: Callable[[web.Request], Awaitable[_Found]]) -> _Handler:
        async def twin(request: web.Request) -> web.Response:
            try:
                _, facts, text = await find(request)
                status = 404 if facts is None else 200
            except NeardupError as error:
                facts, text, status = None, str(error), 503
            body = orjson.dumps({"error": text} if facts is None else facts)
            return web.Response(body=body, content_type="application/json", status=status)

        return twin

    async def _asset(self, request: web.Request) -> web.Response:
        return web.Response(text=self._style, content_type="text/css")

    async def _overview(self, request: web.Request) -> _Found:
        try:
            lag, problem = await self._source.lag(), ""
        except NeardupError as error:  # the broker is away: what the tables hold is shown all the same
            lag, problem = None, str(error)
        return "overview", await asyncio.to_thread(counting.overview, self._source, lag, problem), ""

    async def _health(self, request: web.Request) -> _Found:
        return "health", await self._source.health(), ""

    async def _described(self, request: web.Request) -> web.Response:
        return web.Response(body=orjson.dumps(description(version("neardup"))), content_type="application/json")

    async def _own(self, request: web.Request) -> web.Response:
        try:
            told = await self._source.own()
        except NeardupError as error:
            raise web.HTTPServiceUnavailable(text=str(error)) from error
        return web.Response(body=orjson.dumps(told), content_type="application/json")

    async def _own_rows(self, request: web.Request) -> web.Response:
        table, key = request.query.get("table", ""), request.query.get("key", "")
        if table not in TABLES:
            raise web.HTTPNotFound(text=f"no such table; there is {', '.join(TABLES)}")
        return web.Response(body=orjson.dumps(self._source.own_rows(table, key)), content_type="application/json")

    async def _url(self, request: web.Request) -> _Found:
        wanted = request.query.get("url", "")
        found = await asyncio.to_thread(pages.url, self._source, wanted, self._decider)
        return "url", found, f"No verdict was said of {wanted[:300]}"

    async def _site(self, request: web.Request) -> _Found:
        name = request.query.get("name", "")
        return (
            "site",
            await asyncio.to_thread(counting.site, self._source, name),
            f"No page of {name[:300]} was seen; sites are registrable domains",
        )

    async def _sites(self, request: web.Request) -> _Found:
        return "sites", await asyncio.to_thread(counting.sites, self._source, _page_of(request)), ""

    async def _close(self, request: web.Request) -> _Found:
        return _told("close", await asyncio.to_thread(counting.close, self._source, request.query.get("day", "")))

    async def _rejects(self, request: web.Request) -> _Found:
        reason = request.query.get("reason", "")
        found = await asyncio.to_thread(counting.rejects, self._source, reason, _page_of(request))
        return _told("rejects", found)

    async def _audits(self, request: web.Request) -> _Found:
        sample, page = request.query.get("sample", ""), _page_of(request)

        def found() -> pages.Facts | str:
            try:
                drawn = self._source.audits.pairs()
            except BadInput as error:
                return str(error)
            labels = self._labelling.labels() if self._labelling is not None else ()
            cut = partial(counting.paged, "items", page=page)
            return listed(drawn, labels, sample, cut)

        return _told("audits", await asyncio.to_thread(found))

    async def _label(self, request: web.Request) -> web.StreamResponse:
        """The pages on which people label audited pairs, and their forms."""
        if self._labelling is None:
            raise web.HTTPForbidden(text="only views with --labels that ask for a token (NEARDUP_VIEWS_TOKEN) label")
        return await self._labelling.answer(request)

    @property
    def _sends_again(self) -> bool:
        return self._token is not None and self._source.origin.sends_again

    async def _send_again(self, request: web.Request) -> web.Response:
        """Sends a rejected page down the line once more, for whoever has the token and means it."""
        form = await posted(request)
        if not self._sends_again:
            raise web.HTTPForbidden(text="only views of a stream that ask for a token (NEARDUP_VIEWS_TOKEN) send pages")
        self._check_form(request, str(form.get("form_token", "")))
        reason, page_id = str(form.get("reason", "")), _number(str(form.get("page_id", "")), 0, _ID_MAX, least=0)
        item = await asyncio.to_thread(counting.rejected, self._source, reason, page_id)
        if item is None or not item["coordinates"]:
            raise web.HTTPNotFound(text=f"page {page_id} is not among the newest that were rejected for this reason")
        try:
            async with self._reading:
                await asyncio.to_thread(self._source.origin.send_again, Coordinates(**item["coordinates"]))
        except NeardupError as error:
            raise web.HTTPConflict(text=f"the page could not be sent again: {error}") from error
        self._sent.append(page_id)
        raise web.HTTPSeeOther(f"rejects?reason={quote(reason)}")

    def _check_form(self, request: web.Request, given: str) -> None:
        """Refuses what another site makes a browser send with the password that it keeps."""
        origin = request.headers.get("Origin")
        if origin is not None and urlsplit(origin).netloc not in self._hosts:
            raise web.HTTPForbidden(text="from another origin")
        if request.headers.get("Authorization", "").lower().startswith("bearer "):
            return  # a program's: no browser sends it by itself
        if not hmac.compare_digest(given.encode("utf-8", "replace"), self._form_token.encode()):
            raise web.HTTPForbidden(text="the form is of another run of this server: go back and load it again")

    async def _compare(self, request: web.Request) -> _Found:
        a, b = request.query.get("a", ""), request.query.get("b", "")
        if not a.strip() or not b.strip():
            return "compare", None, "Two URLs are wanted, as a and b"
        shown = _number(request.query.get("shown", ""), comparing.PASSAGES_SHOWN, comparing.PASSAGES_MAX)
        async with self._reading:
            found = await asyncio.to_thread(pages.compare, self._source, a, b, self._decider, shown=shown)
        return _told("compare", found)

    async def _cluster(self, request: web.Request) -> _Found:
        text = request.query.get("id", "")
        if not (text.isascii() and text.isdigit() and len(text) <= _ID_DIGITS_MAX):
            return "cluster", None, f"A cluster has a number for a name, not {text[:40]!r}"
        found = await asyncio.to_thread(pages.cluster, self._source, int(text))
        return "cluster", found, f"No cluster {int(text)} is known"


def _headed(response: web.StreamResponse) -> None:
    """With HEADERS, but where a page has a policy of its own, as those of labelling."""
    if "Content-Security-Policy" not in response.headers:
        response.headers.update(HEADERS)


def _told(name: str, found: pages.Facts | str) -> _Found:
    """found: what a page says, or in words why there is nothing."""
    return (name, None, found) if isinstance(found, str) else (name, found, "")


def _page_of(request: web.Request) -> int:
    return _number(request.query.get("page", ""), 1, 1_000_000)


def _number(text: str, default: int, most: int, least: int = 1) -> int:
    """A number of a query; what is none counts as not given."""
    given = int(text) if text.isascii() and text.isdigit() and len(text) <= _ID_DIGITS_MAX else default
    return max(least, min(given, most))


def _token_of(authorization: str) -> str:
    """What a request bears as a token, or as the password that a browser has asked for."""
    scheme, _, given = authorization.partition(" ")
    if scheme.lower() == "basic":
        with suppress(ValueError):
            return b64decode(given, validate=True).decode().partition(":")[2]
    return given if scheme.lower() == "bearer" else ""


def listen(host: str, port: int, token: str | None) -> socket.socket:
    """A bound socket. Raises BadInput; also for an address that others reach where no token is asked for."""
    if host not in _LOOPBACK and token is None:
        raise WrongUsage(f"--host {host}: others could read the pages; set NEARDUP_VIEWS_TOKEN(_FILE)")
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


async def serve(
    source: Source,
    decider: Decider,
    sock: socket.socket,
    *,
    names: Collection[str] = (),
    token: str | None = None,
    labels: LabelFile | None = None,
    ready: Callable[[str], None] = lambda url: None,
    until: Awaitable[object] | None = None,
) -> None:
    """Serves until SIGINT or SIGTERM, or until `until` is done. names: hosts (with ports) that a proxy answers to."""
    host, port = sock.getsockname()[:2]
    host = f"[{host}]" if ":" in host else host
    hosts = {f"{host}:{port}", f"127.0.0.1:{port}", f"localhost:{port}", *names}
    app = web.Application(client_max_size=64 << 10)
    Views(source, decider, hosts=hosts, token=token, labels=labels).add_to(app)
    runner = web.AppRunner(app, access_log=None)
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(ValueError, RuntimeError):  # not in the main thread: who runs us stops us
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await runner.setup()
    waits: set[asyncio.Future[object]] = {asyncio.ensure_future(stop.wait())}
    if until is not None:
        waits.add(asyncio.ensure_future(until))
    try:
        await web.SockSite(runner, sock).start()
        ready(f"http://{host}:{port}/")
        done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for each in done:
            each.result()  # raises what `until` ended with
    finally:
        for wait in waits:
            wait.cancel()
        await runner.cleanup()
