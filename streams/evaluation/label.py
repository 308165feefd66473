"""Implements `neardup label`: shows pairs of pages to people, on a web page for this machine only.

The views are plain aiohttp handlers that another application can mount under a prefix. A request must name an expected
host, so foreign names that resolve to this machine are rejected. A form must carry this process's token and come from
the page itself. Pages are shown as text, and in frames where no script runs and nothing is loaded
(`neardup.evaluation.labelling_visitor`).
"""

import asyncio
import hmac
import os
import secrets
import socket
import stat
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from aiohttp import web
from multidict import MultiDictProxy

from neardup.errors import BadInput, NeardupError
from neardup.evaluation import labelling_visitor
from neardup.evaluation.audits import drawn_of, read_audits
from neardup.evaluation.corpus_texts import Texts
from neardup.evaluation.graphs import b_graph, c_graph
from neardup.evaluation.labelling_page import HEADERS, asset, home_html, pair_html, pair_view
from neardup.evaluation.labelling_rounds import Labelling, checked_name
from neardup.evaluation.labels import Label, parse_label, read_labels
from neardup.evaluation.runs import judged
from neardup.evaluation.sampling import IN_USE, check, draw, draw_of_queries, draw_of_sets, draw_of_verdicts
from streams.config.settings import LABEL_PORT
from streams.errors import WrongUsage, bad_input
from streams.evaluation.evaluate import check_crawl, open_crawl
from streams.evaluation.label_queries import queried_pages
from streams.ports import Progress, silent
from streams.process.disk import lock
from streams.process.shutdown import now_ms
from streams.process.web_server import body_in_time, hosts_of, listen, refuse_foreign, serve

#: Parts of the input that cannot be read, of which the user is warned.
UNREAD_SHOWN = 10
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class LabelFile:
    """A file of labels to which only this process appends.

    labels: labels that the file had at the start. messages: sentences about repairs of the file.
    """

    def __init__(self, path: Path) -> None:
        """Opens or creates the file. Raises BadInput if it is not writable, in use, or has an invalid line."""
        self.messages: list[str] = []
        self._path = path
        with bad_input(f"cannot write labels {path}"):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            if not stat.S_ISREG(os.fstat(self._handle).st_mode):
                raise BadInput(f"cannot write labels to {path}: not a file")
            lock(self._handle)
            self._mend()
            self.labels: list[Label] = read_labels(path)
        except BlockingIOError:
            self.close()
            raise BadInput(f"{path} is in use by another `neardup label`; its labellers can share that one") from None
        except BaseException:
            self.close()
            raise

    def _mend(self) -> None:
        """Cuts a torn last line, which a crash may leave; it was never shown as saved."""
        data = self._path.read_bytes()
        last = data[data.rfind(b"\n") + 1 :]
        if not last.strip():
            return
        try:
            parse_label(last)
            os.write(self._handle, b"\n")
        except BadInput:
            os.ftruncate(self._handle, len(data) - len(last))
            self.messages.append(f"{self._path}: the last line was cut off in the middle, and is taken out")

    def held(self) -> list[Label]:
        """Reads the labels that count now. Raises BadInput."""
        return read_labels(self._path)

    def append(self, line: bytes) -> None:
        """Appends a line and returns when it is on disk. Raises BadInput on failure."""
        with bad_input(f"cannot write labels {self._path}"):
            written = os.write(self._handle, line)
            if written != len(line):
                os.ftruncate(self._handle, os.fstat(self._handle).st_size - written)
                raise BadInput(f"cannot write labels {self._path}: the disk is full")
            os.fsync(self._handle)

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


class LabelViews:
    """The pages of one round of labelling; `add_to` mounts them.

    hosts: accepted Host headers, with port. prefix: mount path, "" or "/label". now_ms: the clock of the labels.
    rendered: returns the body of a URL as a browser rendered it, None without one; frames show it.
    """

    def __init__(
        self,
        labelling: Labelling,
        texts: Texts,
        *,
        hosts: Collection[str],
        prefix: str = "",
        now_ms: Callable[[], int] = now_ms,
        rendered: Callable[[str], bytes | None] = lambda url: None,
    ) -> None:
        self._labelling, self._texts = labelling, texts
        self._hosts, self._prefix, self._now_ms = frozenset(hosts), prefix, now_ms
        self._rendered = rendered
        self._token = secrets.token_urlsafe(24)
        self._lock = asyncio.Lock()  # one thread at a time reads texts or records labels

    def add_to(self, app: web.Application) -> None:
        """Adds the routes to an application; call once per application."""
        for (method, name), handler in self.handlers().items():
            app.router.add_route(method, f"{self._prefix}/{name}", handler)

    def handlers(self) -> dict[tuple[str, str], _Handler]:
        """Maps (method, path after the prefix and slash) to handlers."""
        asset = self._guarded(self._asset)
        return {
            ("GET", ""): self._guarded(self._home),
            ("GET", "pair"): self._guarded(self._pair),
            ("GET", "page"): self._guarded(self._visited, labelling_visitor.HEADERS),
            ("POST", "label"): self._guarded(self._label),
            ("POST", "undo"): self._guarded(self._undo),
            ("GET", "label.css"): asset,
            ("GET", "label.js"): asset,
        }

    def _guarded(self, handler: _Handler, headers: Mapping[str, str] = HEADERS) -> _Handler:
        async def guarded(request: web.Request) -> web.StreamResponse:
            try:
                refuse_foreign(request, self._hosts)
                response = await handler(request)
            except BadInput as error:
                response = self._page(home_html(self._labelling, self._prefix, str(error)), status=400)
            except web.HTTPException as answer:  # redirects and refusals get the headers as well
                answer.headers.update(headers)
                raise
            response.headers.update(headers)
            return response

        return guarded

    async def _home(self, request: web.Request) -> web.Response:
        return self._page(home_html(self._labelling, self._prefix))

    async def _asset(self, request: web.Request) -> web.Response:
        kind, text = asset(request.path.rpartition("/")[2])
        return web.Response(text=text, content_type=kind)

    async def _pair(self, request: web.Request) -> web.Response:
        labeller = checked_name(request.query.get("labeller", ""))
        place, after = _number(request.query, "place"), _number(request.query, "after")
        if place is None:
            place = self._labelling.next_for(labeller, -1 if after is None else after)
        if place is None:
            return self._page(home_html(self._labelling, self._prefix, done=labeller))
        if not 0 <= place < len(self._labelling.pairs):
            raise web.HTTPNotFound(text=f"there are {len(self._labelling.pairs)} pairs")
        return await self._show(labeller, place)

    async def _visited(self, request: web.Request) -> web.Response:
        """Serves one page of a pair for a frame."""
        try:
            place = _number(request.query, "place")
            side = request.query.get("side")
            if place is None or place >= len(self._labelling.pairs) or side not in ("left", "right"):
                raise BadInput("no such page of a pair")
            pair = self._labelling.pairs[place]
            async with self._lock:
                page = pair.a if side == "left" else pair.b
                kind, body = await asyncio.to_thread(labelling_visitor.visitor_page, self._texts, page, self._rendered)
        except NeardupError as error:
            raise web.HTTPNotFound(text=str(error)) from error
        return web.Response(body=body, content_type=kind, charset="utf-8")

    async def _show(self, labeller: str, place: int, problem: str = "", status: int = 200) -> web.Response:
        async with self._lock:
            view = await asyncio.to_thread(pair_view, self._labelling, self._texts, place)
        html = pair_html(self._labelling, view, labeller, self._prefix, self._token, problem)
        return self._page(html, status=status)

    async def _label(self, request: web.Request) -> web.Response:
        form = await self._form(request)
        labeller = checked_name(str(form.get("labeller", "")))
        place = _number(form, "place")
        if place is None or not 0 <= place < len(self._labelling.pairs):
            raise BadInput(f"no such pair; there are {len(self._labelling.pairs)}")
        judgement = str(form.get("judgement", ""))
        reasons = [str(reason) for reason in form.getall(f"reason-{judgement}", [])]
        try:
            async with self._lock:
                await asyncio.to_thread(self._labelling.record, labeller, place, judgement, reasons, self._now_ms())
        except BadInput as error:
            return await self._show(labeller, place, str(error), status=400)
        raise web.HTTPSeeOther(f"{self._prefix}/pair?labeller={quote(labeller)}&after={place}")

    async def _undo(self, request: web.Request) -> web.Response:
        form = await self._form(request)
        labeller = checked_name(str(form.get("labeller", "")))
        async with self._lock:
            place = await asyncio.to_thread(self._labelling.undo, labeller, self._now_ms())
        at = "" if place is None else f"&place={place}"
        raise web.HTTPSeeOther(f"{self._prefix}/pair?labeller={quote(labeller)}{at}")

    async def _form(self, request: web.Request) -> MultiDictProxy[str | bytes | bytearray | web.FileField]:
        form = await posted(request)
        if not hmac.compare_digest(str(form.get("token", "")).encode(), self._token.encode()):
            raise web.HTTPForbidden(text="the form is of another run of this server: go back and load it again")
        return form

    def _page(self, html: str, status: int = 200) -> web.Response:
        return web.Response(text=html, content_type="text/html", status=status)


async def posted(request: web.Request) -> MultiDictProxy[str | bytes | bytearray | web.FileField]:
    """Reads the form of a request. Raises HTTPBadRequest for bytes that are invalid in their charset, and
    HTTPRequestTimeout for a form that comes too slowly.
    """
    try:
        return await body_in_time(request.post())
    except (ValueError, LookupError) as error:
        raise web.HTTPBadRequest(text=f"no form: {error}") from error


def _number(values: Mapping[str, object], name: str) -> int | None:
    """Reads a number of a query or form, None if missing. Raises BadInput for an invalid one."""
    text = str(values.get(name, ""))
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise BadInput(f"{name} {text[:20]!r}: a number is required")
    return int(text)


def check_options(
    paths: Sequence[Path | str],
    *,
    labels: Path,
    state: Path | None,
    rule: str,
    count: int,
    by: str,
    port: int,
    audits: Sequence[Path],
) -> None:
    """Raises BadInput for options that `label_command` rejects, before kernels are compiled and archives fetched."""
    check(rule, count, by)
    check_crawl(paths, state)
    if audits:
        read_audits(audits)
    LabelFile(labels).close()
    listen("127.0.0.1", port, None).close()


def label_command(
    paths: Sequence[Path | str] = (),
    *,
    labels: Path,
    state: Path | None = None,
    rule: str = IN_USE,
    count: int = 200,
    by: str = "all",
    seed: int = 0,
    port: int = LABEL_PORT,
    base_url: str | None = None,
    follow_links: bool = False,
    threads: int = 1,
    audits: Sequence[Path] = (),
    sets: Path | None = None,
    queries: bool = False,
    progress: Progress = silent,
    ready: Callable[[str], None] = lambda url: None,
    warn: Callable[[str], None] = lambda text: None,
) -> None:
    """Samples pairs of a crawl and serves them on 127.0.0.1 until SIGINT or SIGTERM.

    Raises BadInput before reading pages.

    Args:
        labels: file to which labels are appended.
        rule, count, by, seed: arguments of `neardup.evaluation.sampling.draw`; rule IN_USE: the crawl's own rule, of
            which pairs close to the threshold come first.
        audits: files of an audit; at most `count` of their pairs are shown instead.
        sets: `sets.jsonl` of a partition, from whose sets `count` pairs are drawn instead.
        queries: whether all pairs of the results of queries are drawn instead, whole queries until `count` is reached.
        port: port of the server; 0 for any free port.
        ready: function that receives the address once the server answers.
        warn: function that receives messages for the operator.
    """
    check(rule, count, by)
    if queries and state is not None:
        raise WrongUsage("--queries reads the results of queries: name their files instead of --state")
    audit = read_audits(audits) if audits else None
    file = LabelFile(labels)
    sock = listen("127.0.0.1", port, None)
    try:
        for message in file.messages:
            warn(message)
        results = queried_pages(list(map(Path, paths)) if queries else [], base_url)
        crawled = open_crawl(
            paths, state, base_url=base_url, follow_links=follow_links, threads=threads, progress=progress
        )
        with results as queried, crawled as crawl:
            corpus = crawl.corpus
            for line in crawl.unread[:UNREAD_SHOWN]:
                warn(line)
            if audit is not None:
                pairs = drawn_of(audit, corpus)[:count]
            elif sets is not None:
                pairs = draw_of_sets(sets, corpus, count, seed)
            elif queries:
                pairs = draw_of_queries(queried.found, corpus, count, seed)
            elif rule == IN_USE:
                pairs = draw_of_verdicts(judged(corpus.records, crawl.decider, threads), corpus, count)
            else:
                b = b_graph(corpus, b_min=crawl.decider.b_min, seed=seed, threads=threads)
                c = c_graph(corpus, c_min=crawl.decider.c_min, seed=seed, threads=threads)
                pairs = draw(corpus, b, c, rule=rule, count=count, by=by, seed=seed)
            labelling = Labelling(pairs, corpus, crawl.documents.labels(file.labels), file.append)
            progress("read", 0, 0)
            pair_view(labelling, crawl.texts, 0)  # on a new machine kernels are compiled here, not before a labeller
            asyncio.run(_serve(labelling, crawl.texts, sock, ready, queried.rendered))
    finally:
        file.close()
        sock.close()


async def _serve(
    labelling: Labelling,
    texts: Texts,
    sock: socket.socket,
    ready: Callable[[str], None],
    rendered: Callable[[str], bytes | None],
) -> None:
    app = web.Application(client_max_size=64 << 10)
    LabelViews(labelling, texts, hosts=hosts_of(sock), rendered=rendered).add_to(app)
    await serve(app, sock, ready)
