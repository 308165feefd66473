"""One page in a tab of the browser: answers its requests, detects when it is at rest, and serialises its document.

The document is HTML, with the documents of its frames in place of the frames. All code runs in isolated worlds, in
which scripts of the page cannot have redefined any name.
"""

import asyncio
import json
import re
import secrets
from html import escape
from typing import Any
from urllib.parse import urljoin

from playwright.async_api import CDPSession, Error, Request, Route

from neardup.errors import BadPage
from neardup.page import Page
from neardup.urls import host_of, normalise_url, site_of
from streams.results.render_network import Network
from streams.results.render_world import Answer, World

#: Limits per page. After REQUESTS_MAX requests the page is serialised as it is.
ANSWERS_MAX, ANSWERS_BYTES_MAX, REQUESTS_MAX = 200, 50_000_000, 2000
NAVIGATIONS_MAX, HOPS_MAX = 8, 5
#: Resource types that a rendered body does not need.
_LEFT_OUT = ("image", "media", "font", "texttrack")
_SCHEMES = ("http://", "https://")
_DELAY = re.compile(r"\s*(\d{1,9})")
HTML_CHARACTERS_MAX = 10_000_000
FRAMES_MAX, DEPTH_MAX = 50, 4
#: Time limit of one expression; it detects scripts of the page that never stop.
EVALUATE_MS = 3000
_WHOLE = """(() => {
  const root = document.documentElement, body = document.body;
  if (!root) return "";
  const html = body && body.tagName === "FRAMESET"
    ? "<html>" + (document.head ? document.head.outerHTML : "") + "<body>" + body.innerHTML + "</body></html>"
    : root.outerHTML;
  return html.slice(0, %d);
})()"""
_INSIDE = '(document.body ? document.body.innerHTML : "").slice(0, %d)'
_REFRESH = """(document.querySelector('meta[http-equiv="refresh" i]') || {}).content || "" """
_MARK = "function (mark) { this.replaceWith(document.createComment(mark)); }"


class Visit:
    """Answers one page's requests. navigations: documents requested by its tab so far. flooded: too many requests."""

    def __init__(self, page: Page, world: World, network: Network | None) -> None:
        self.navigations = self._requests = 0
        self.flooded = asyncio.Event()
        self._page, self._world, self._network = page, world, network
        self._site = site_of(host_of(page.url))
        self._answers = self._bytes = 0
        self._prefetched: dict[str, Answer] = {}  # answers behind redirects, until they are requested
        self._moved = asyncio.Event()

    async def serve(self, route: Route) -> None:
        """Answers or refuses a request of the browser."""
        self._requests += 1
        if self._requests > REQUESTS_MAX:
            self.flooded.set()
        try:
            answer = await self._answer(route.request)
            if answer is None:
                await route.abort("aborted")  # for any other reason the browser shows an error page
                return
            # what scripts of other origins load is part of the document; there are no cookies to guard
            headers = {"content-type": answer.content_type or "text/html", "access-control-allow-origin": "*"}
            await route.fulfill(status=answer.status, headers=headers, body=answer.body)
        except Error:
            return  # the tab has navigated away or is closed

    async def moves_on(self, after: int, seconds: float) -> bool:
        """Waits until the tab has received more than `after` documents."""
        try:
            async with asyncio.timeout(seconds):
                while self.navigations <= after:
                    self._moved.clear()
                    await self._moved.wait()
        except TimeoutError:
            return False
        return True

    async def _answer(self, request: Request) -> Answer | None:
        if request.method != "GET" or request.resource_type in _LEFT_OUT or not request.url.startswith(_SCHEMES):
            return None
        document = request.is_navigation_request()
        if document and request.frame.parent_frame is None:
            self.navigations += 1
            self._moved.set()
            if self.navigations > NAVIGATIONS_MAX:
                return None
        answer, url = await self._followed(request.url)
        if answer is None or not document or url == request.url:
            return answer
        self._prefetched = {url: answer}
        return _leads_to(url)  # a page with a refresh: the browser would follow a redirect without a request

    async def _followed(self, url: str) -> tuple[Answer | None, str]:
        """Follows a URL's redirects: (answer, final URL)."""
        for _ in range(HOPS_MAX):
            answer = self._prefetched.pop(url, None) or await self._found(url)
            if answer is None or not answer.location:
                return answer, url
            url = urljoin(url, answer.location)
        return None, url

    async def _found(self, url: str) -> Answer | None:
        self._answers += 1
        if self._answers > ANSWERS_MAX or self._bytes > ANSWERS_BYTES_MAX or not url.startswith(_SCHEMES):
            return None
        try:
            known = normalise_url(url)
        except BadPage:
            return None
        if known == self._page.url:
            return Answer(200, self._page.content_type, self._page.body or b"")
        answer = self._world.find(known)
        if answer is None and self._network is not None and site_of(host_of(known)) == self._site:
            answer = await self._network.get(known)
        self._bytes += len(answer.body) if answer else 0
        return answer


def delay_of(refresh: str) -> int | None:
    """Parses the delay of a meta refresh, in seconds; None for an invalid one."""
    found = _DELAY.match(refresh)
    return int(found[1]) if found else None


def _leads_to(url: str) -> Answer:
    body = f'<meta charset="utf-8"><meta http-equiv="refresh" content="0;url={escape(url)}">'
    return Answer(200, "text/html", body.encode("utf-8", "replace"))


class TabDocuments:
    """Reads the documents of one tab."""

    def __init__(self, session: CDPSession) -> None:
        self._session = session
        self._frames = 0

    async def refresh(self) -> str:
        """Returns the content of the document's meta refresh; empty without one."""
        tree = await self._tree()
        return str(await self._evaluate(await self._inside(tree["frame"]["id"]), _REFRESH))

    async def html(self) -> str:
        """Serialises the document with its frames grafted in, which removes them from the tab.

        Raises Error for a closed tab.
        """
        await self._session.send("DOM.enable")
        return await self._grafted(await self._tree(), _WHOLE, 0)

    async def _tree(self) -> dict[str, Any]:
        found: dict[str, Any] = (await self._session.send("Page.getFrameTree"))["frameTree"]
        return found

    async def _grafted(self, tree: dict[str, Any], expression: str, depth: int) -> str:
        world = await self._inside(tree["frame"]["id"])
        grafts: dict[str, str] = {}
        for child in tree.get("childFrames", ()) if depth < DEPTH_MAX else ():
            self._frames += 1
            if self._frames > FRAMES_MAX:
                break
            try:
                inner = await self._grafted(child, _INSIDE, depth + 1)
                mark = secrets.token_hex(16)
                await self._mark(child["frame"]["id"], world, mark)
                grafts[mark] = inner
            except Error:
                continue  # the frame is gone, or its scripts never stop
        html = str(await self._evaluate(world, expression % HTML_CHARACTERS_MAX))
        for mark, inner in grafts.items():
            html = html.replace(f"<!--{mark}-->", f"<div>{inner}</div>", 1)
        return html[:HTML_CHARACTERS_MAX]

    async def _inside(self, frame: str) -> int:
        made = await self._session.send("Page.createIsolatedWorld", {"frameId": frame, "worldName": "neardup"})
        return int(made["executionContextId"])

    async def _evaluate(self, world: int, expression: str) -> Any:
        asked = {"expression": expression, "contextId": world, "returnByValue": True, "timeout": EVALUATE_MS}
        found = await self._session.send("Runtime.evaluate", asked)
        if "exceptionDetails" in found:
            raise Error(json.dumps(found["exceptionDetails"].get("text", "")))
        return found["result"].get("value", "")

    async def _mark(self, frame: str, world: int, mark: str) -> None:
        """Replaces a frame by a comment."""
        owner = await self._session.send("DOM.getFrameOwner", {"frameId": frame})
        node = {"backendNodeId": owner["backendNodeId"], "executionContextId": world}
        found = await self._session.send("DOM.resolveNode", node)
        asked = {
            "objectId": found["object"]["objectId"],
            "functionDeclaration": _MARK,
            "arguments": [{"value": mark}],
        }
        async with asyncio.timeout(EVALUATE_MS / 1000):
            await self._session.send("Runtime.callFunctionOn", asked)
