"""Serves the web pages of a `Source`. They load nothing from other hosts.

Every request must name an expected host (a foreign name that resolves to this machine is refused), must not come from
another site, and carries the token if one is set; requests of other workers carry a signature. Two kinds of forms have
an effect: one sends a rejected page again, the others label audited pairs.
"""

import asyncio
import hmac
import secrets
import socket
from base64 import b64decode
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from urllib.parse import quote

import orjson
from aiohttp import web

from neardup.decider import Decider
from neardup.errors import BadInput, NeardupError
from neardup.verdict import Coordinates
from streams.evaluation.label import LabelFile, posted
from streams.process import web_server
from streams.process.web_server import hosts_of, refuse_foreign
from streams.views import comparing, counts, entries, templates, url_pages
from streams.views.audited_pairs import listed
from streams.views.entries import Cursor
from streams.views.labelling import PREFIX, AuditLabelling
from streams.views.lists import Facts
from streams.views.peers import Signer
from streams.views.search import CHARS_MIN
from streams.views.source import Source
from streams.views.view_rows import TABLES

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; form-action 'self'; frame-ancestors 'none'; "
    "base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_ID_DIGITS_MAX, _ID_MAX = 20, 10**20
#: Pages marked as sent again.
SENT_KEPT = 200

#: Pages of counts and lists: the function that finds the facts, and the parameters of the query that it takes.
_LISTS: Mapping[str, tuple[Callable[..., Facts | str], Sequence[str]]] = {
    "site": (counts.site, ("name", "from", "to")),
    "sites": (counts.sites, ("page", "after", "before", "by")),
    "patterns": (counts.patterns, ("site", "page")),
    "clusters": (counts.clusters, ("page", "after", "before", "by")),
    "kind": (counts.kind, ("name", "site", "after", "before")),
    "hot": (counts.hot, ("site", "after", "before")),
    "close": (counts.close, ("day",)),
    "rejects": (counts.rejects, ("reason", "after", "before")),
}

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_Found = tuple[str, Facts | None, str]


class Views:
    """The pages. hosts: accepted values of Host, with port. token: required of each request; None: no token."""

    def __init__(
        self,
        source: Source,
        decider: Decider,
        *,
        hosts: Collection[str],
        token: str | None = None,
        labels: LabelFile | None = None,
    ) -> None:
        """labels: file for labels of audited pairs; labelling needs a token."""
        self._source, self._decider = source, decider
        self._labelling = AuditLabelling(source, labels, hosts) if labels is not None and token is not None else None
        self._hosts, self._token = frozenset(hosts), token
        self._signer = None if token is None else Signer(token)
        self._style = templates.style()
        self._form_token, self._sent = secrets.token_urlsafe(24), deque[int](maxlen=SENT_KEPT)
        self._reading = asyncio.Lock()  # one thread at a time reads pages again

    def add_to(self, app: web.Application) -> None:
        """Add the routes. Each page has a JSON twin."""
        app.router.add_get("/views.css", self._guarded(self._asset))
        app.router.add_get("/", self._guarded(self._page(self._overview)))
        app.router.add_get("/overview.json", self._guarded(self._twin(self._overview)))
        finders: dict[str, Callable[[web.Request], Awaitable[_Found]]] = {
            **{name: partial(self._listed, name) for name in _LISTS},
            "url": self._url,
            "cluster": self._cluster,
            "compare": self._compare,
            "health": self._health,
            "audits": self._audits,
        }
        for name, find in finders.items():
            app.router.add_get(f"/{name}", self._guarded(self._page(find)))
            app.router.add_get(f"/{name}.json", self._guarded(self._twin(find)))
        app.router.add_get("/search", self._guarded(self._search_page))
        app.router.add_get("/search.json", self._guarded(self._twin(self._search)))
        own = {
            "own": self._own,
            "own-rows": self._own_rows,
            "own-entries": self._own_entries,
            "own-search": self._own_search,
        }
        for name, answer in own.items():  # for other workers
            app.router.add_get(f"/{name}.json", self._guarded(answer, for_workers=True))
        app.router.add_post("/send-again", self._guarded(self._send_again))
        for method in ("GET", "POST"):
            app.router.add_route(method, f"{PREFIX}/{{name:[a-z.]*}}", self._guarded(self._label))

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
        refuse_foreign(request, self._hosts)
        if for_workers and self._signer is not None and self._signer.holds(authorization, host, request.raw_path):
            return
        if self._token is not None:
            given = _token_of(authorization)
            if not hmac.compare_digest(given.encode("utf-8", "replace"), self._token.encode()):
                realm = 'Basic realm="neardup: any user, the token as password", charset="UTF-8"'
                raise web.HTTPUnauthorized(
                    text="a token is required: Authorization: Bearer, or as a password",
                    headers={"WWW-Authenticate": realm},
                )

    def _page(self, find: Callable[[web.Request], Awaitable[_Found]]) -> _Handler:
        async def page(request: web.Request) -> web.Response:
            status = 200
            try:
                name, facts, text = await find(request)
            except NeardupError as error:
                name, facts, text, status = "missing", None, str(error), 503
            names = ("text", "url", "name") if name == "site" else ("text", "url")
            searched = next(filter(None, map(request.query.get, names)), "")
            status = status if facts is not None or status != 200 else 404
            html = templates.html(
                name if facts is not None else "missing",
                facts,
                text=text,
                away=status == 503,
                labels_taken=self._labelling is not None,
                searched=searched,
                form_token=self._form_token if self._sends_again else "",
                sent=tuple(self._sent),
            )
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
        except NeardupError as error:  # without the broker the tables are still shown
            lag, problem = None, str(error)
        days = (request.query.get(each, "") for each in ("from", "to"))
        found = await asyncio.to_thread(counts.overview, self._source, lag, problem, *days)
        return _answer("overview", found)

    async def _health(self, request: web.Request) -> _Found:
        return "health", await self._source.health(), ""

    async def _own(self, request: web.Request) -> web.Response:
        try:
            own = await self._source.own()
        except NeardupError as error:
            raise web.HTTPServiceUnavailable(text=str(error)) from error
        return web.Response(body=orjson.dumps(own), content_type="application/json")

    async def _own_rows(self, request: web.Request) -> web.Response:
        table, key = request.query.get("table", ""), request.query.get("key", "")
        if table not in TABLES:
            raise web.HTTPNotFound(text=f"no such table; there is {', '.join(TABLES)}")
        return web.Response(body=orjson.dumps(self._source.own_rows(table, key)), content_type="application/json")

    async def _own_entries(self, request: web.Request) -> web.Response:
        query = request.query
        limit = _number(query.get("limit", ""), entries.ITEMS_SHOWN, entries.LIMIT_MAX)
        place = query.get("of", ""), query.get("start", ""), limit, "back" in query
        found = await asyncio.to_thread(self._source.own_entries, *place)
        return web.Response(body=orjson.dumps(found), content_type="application/json")

    async def _own_search(self, request: web.Request) -> web.Response:
        place = request.query.get("text", ""), request.query.get("after", "")
        found = await asyncio.to_thread(self._source.own_search, *place)
        return web.Response(body=orjson.dumps(found), content_type="application/json")

    async def _search_page(self, request: web.Request) -> web.StreamResponse:
        """Redirect to a URL or site of exactly this name, else list the URLs in which the text occurs."""
        text = request.query.get("text", "").strip()
        first = bool(text) and "after" not in request.query
        try:
            url = await asyncio.to_thread(url_pages.url, self._source, text, self._decider) if first else None
        except BadInput:  # an id of several documents: all are listed
            url = None
        if url is not None:
            raise web.HTTPSeeOther(f"url?url={quote(text, safe='')}")
        if first and not isinstance(await asyncio.to_thread(counts.site, self._source, text), str):
            raise web.HTTPSeeOther(f"site?name={quote(text, safe='')}")
        return await self._page(self._search)(request)

    async def _search(self, request: web.Request) -> _Found:
        text = request.query.get("text", "").strip()
        if not CHARS_MIN <= len(text) <= url_pages.URL_CHARS_MAX:
            return "search", None, f"Search for {CHARS_MIN} to {url_pages.URL_CHARS_MAX:,} characters of a URL or title"
        after = request.query.get("after", "")[: url_pages.URL_CHARS_MAX]
        found = await asyncio.to_thread(self._source.search, text, after)
        return "search", {"text": text, "after": after or None, **found}, ""

    async def _url(self, request: web.Request) -> _Found:
        required = request.query.get("url", "")
        try:
            found = await asyncio.to_thread(url_pages.url, self._source, required, self._decider)
        except BadInput as error:
            return "url", None, str(error)
        return "url", found, f"No verdict about {required[:300]}"

    async def _listed(self, name: str, request: web.Request) -> _Found:
        find, parameters = _LISTS[name]
        given = [_page_of(request) if each == "page" else request.query.get(each, "") for each in parameters]
        return _answer(name, await asyncio.to_thread(find, self._source, *given))

    async def _audits(self, request: web.Request) -> _Found:
        sample, page = request.query.get("sample", ""), _page_of(request)

        def found() -> Facts | str:
            try:
                drawn, problem = self._source.audits.pairs(), ""
            except BadInput as error:  # no audit is configured
                drawn, problem = (), str(error)
            labels = self._labelling.labels() if self._labelling is not None else ()
            cut = partial(counts.paged, "items", page=page)
            return listed(drawn, labels, sample, cut, problem)

        return _answer("audits", await asyncio.to_thread(found))

    async def _label(self, request: web.Request) -> web.StreamResponse:
        """Answer a page or form for labelling audited pairs."""
        if self._labelling is None:
            raise web.HTTPForbidden(text="labelling needs --labels and a token (NEARDUP_VIEWS_TOKEN)")
        return await self._labelling.answer(request)

    @property
    def _sends_again(self) -> bool:
        return self._token is not None and self._source.origin.sends_again

    async def _send_again(self, request: web.Request) -> web.Response:
        """Send a rejected page to its topic again: the request needs the token, and a form of this server."""
        form = await posted(request)
        if not self._sends_again:
            raise web.HTTPForbidden(
                text="sending pages again needs views of a stream, with a token (NEARDUP_VIEWS_TOKEN)"
            )
        self._check_form(request, str(form.get("form_token", "")))
        reason, page_id = str(form.get("reason", "")), _number(str(form.get("page_id", "")), 0, _ID_MAX, least=0)
        item = await asyncio.to_thread(counts.rejected, self._source, reason, page_id)
        if item is None or not item["coordinates"]:
            raise web.HTTPNotFound(text=f"page {page_id} is not among those that were rejected for this reason")
        try:
            async with self._reading:
                await asyncio.to_thread(self._source.origin.send_again, Coordinates(**item["coordinates"]))
        except NeardupError as error:
            raise web.HTTPConflict(text=f"the page could not be sent again: {error}") from error
        self._sent.append(page_id)
        raise web.HTTPSeeOther(f"rejects?reason={quote(reason)}")

    def _check_form(self, request: web.Request, given: str) -> None:
        """Refuse a form that another site made a browser send with its stored password."""
        if request.headers.get("Authorization", "").lower().startswith("bearer "):
            return  # of a program: browsers do not add it
        if not hmac.compare_digest(given.encode("utf-8", "replace"), self._form_token.encode()):
            raise web.HTTPForbidden(text="the form is of another run of this server: reload the page")

    async def _compare(self, request: web.Request) -> _Found:
        a, b = request.query.get("a", ""), request.query.get("b", "")
        if not a.strip() or not b.strip():
            return "compare", None, "Two URLs are required, as a and b"
        shown = _number(request.query.get("shown", ""), comparing.PASSAGES_SHOWN, comparing.PASSAGES_MAX)
        given = request.query.get("page_id", "")
        page_id = _number(given, 0, _ID_MAX, least=0) if given else None
        async with self._reading:
            found = await asyncio.to_thread(
                url_pages.compare, self._source, a, b, self._decider, shown=shown, page_id=page_id
            )
        return _answer("compare", found)

    async def _cluster(self, request: web.Request) -> _Found:
        text = request.query.get("id", "")
        if not (text.isascii() and text.isdigit() and len(text) <= _ID_DIGITS_MAX):
            return "cluster", None, f"A cluster has a number for a name, not {text[:40]!r}"
        cursor = Cursor(request.query.get("after", ""), request.query.get("before", ""))
        found = await asyncio.to_thread(url_pages.cluster, self._source, int(text), cursor)
        return "cluster", found, f"No cluster {int(text)} is known"


def _headed(response: web.StreamResponse) -> None:
    """Add HEADERS to a response without a policy of its own, as labelling pages have."""
    if "Content-Security-Policy" not in response.headers:
        response.headers.update(HEADERS)


def _answer(name: str, found: Facts | str) -> _Found:
    """found: facts of a page, or an error text."""
    return (name, None, found) if isinstance(found, str) else (name, found, "")


def _page_of(request: web.Request) -> int:
    return _number(request.query.get("page", ""), 1, 1_000_000)


def _number(text: str, default: int, most: int, least: int = 1) -> int:
    """Return a number of a query within bounds; the default for anything else."""
    given = int(text) if text.isascii() and text.isdigit() and len(text) <= _ID_DIGITS_MAX else default
    return max(least, min(given, most))


def _token_of(authorization: str) -> str:
    """Return the bearer token or the basic password of a request."""
    scheme, _, given = authorization.partition(" ")
    if scheme.lower() == "basic":
        with suppress(ValueError):
            return b64decode(given, validate=True).decode().partition(":")[2]
    return given if scheme.lower() == "bearer" else ""


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
    stop: asyncio.Event | None = None,
) -> None:
    """Serve the pages; see `web_server.serve`. names: hosts (with ports) of proxies in front."""
    app = web.Application(client_max_size=64 << 10)
    Views(source, decider, hosts=hosts_of(sock, names), token=token, labels=labels).add_to(app)
    await web_server.serve(app, sock, ready, until=until, stop=stop)
