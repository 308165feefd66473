"""Drives Chromium. README.md beside this file lists what pages may request and consume."""

import asyncio
import contextlib
import os
import shutil
from dataclasses import dataclass

from playwright.async_api import Browser, BrowserContext, Error, Page, Playwright, async_playwright

from neardup import page as pages
from neardup.errors import BadInput, NeardupError
from streams.process.shutdown import completed
from streams.results.render_network import Network
from streams.results.render_visit import REQUESTS_MAX, TabDocuments, Visit, delay_of
from streams.results.render_world import World

#: Refreshes after a longer delay are not followed.
REFRESH_SECONDS_MAX = 3
#: Time limits for a tab to open, for reading its document after it is at rest or out of time, and for closing it.
OPEN_SECONDS, DOCUMENT_SECONDS, CLOSE_SECONDS = 20, 20, 30
READS_MAX = 3
_PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
#: The browser has no network: requests that this program does not answer go to a proxy that does not resolve.
_NO_WAY_OUT = (
    "--proxy-server=http://nowhere.invalid:9",
    "--proxy-bypass-list=<-loopback>",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-domain-reliability",
    "--no-pings",
)
_REST = (
    "--disable-site-isolation-trials",  # the documents of all frames are read through one session
    # One list: a later one replaces those before it. HttpsUpgrades asks for https first, behind every interception.
    "--disable-features=IsolateOrigins,site-per-process,HttpsUpgrades",
    "--js-flags=--max-old-space-size=512",
    "--mute-audio",
)


class BrowserFailed(NeardupError):
    """Chromium cannot be started. Install it, or name its path with --browser."""


@dataclass(frozen=True)
class Rendered:
    """The result for a page.

    html: rendered document; None without a document. problem: reason why the document is missing or may be incomplete.
    url: URL of the document, which refreshes may have changed. ms: milliseconds from the page's turn to its document.
    """

    html: str | None
    url: str
    problem: str = ""
    ms: float = 0.0


class Chromium:
    """Renders many pages with one browser, several at a time. Restarts a browser that dies for the next page."""

    def __init__(
        self,
        world: World,
        network: Network | None,
        *,
        program: str = "",
        sandbox: bool = True,
        page_seconds: float = 10,
    ) -> None:
        """Raises BadInput if Chromium is missing or its sandbox cannot work."""
        found = program or next(filter(None, map(shutil.which, _PROGRAMS)), "")
        if not found:
            raise BadInput(f"none of {', '.join(_PROGRAMS)} is on the PATH; install one, or name it with --browser")
        if sandbox and os.geteuid() == 0:
            raise BadInput(
                "Chromium's sandbox does not work for root: run as another user, or in a container with --no-sandbox"
            )
        self._world, self._network = world, network
        self._program, self._sandbox, self._seconds = found, sandbox, page_seconds
        self._player: Playwright | None = None
        self._browser: Browser | None = None
        self._starting = asyncio.Lock()

    async def __aenter__(self) -> "Chromium":
        self._player = await async_playwright().start()
        await self._ready()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._end()
        if self._player is not None:
            await self._player.stop()

    async def render(self, page: pages.Page) -> Rendered:
        """Renders an HTML page. page: under its normalised URL."""
        context = None
        try:
            async with asyncio.timeout(OPEN_SECONDS + self._seconds + DOCUMENT_SECONDS):
                browser = await self._ready()
                context = await browser.new_context(service_workers="block", accept_downloads=False, timezone_id="UTC")
                return await self._visited(context, page)
        except (Error, TimeoutError) as error:
            return Rendered(None, page.url, f"not rendered: {_in_short(error)}")
        finally:
            if context is not None:
                await self._close(context)

    async def _visited(self, context: BrowserContext, page: pages.Page) -> Rendered:
        visit = Visit(page, self._world, self._network)
        await context.route("**/*", visit.serve)
        tab = await context.new_page()
        context.on("page", lambda other: asyncio.ensure_future(_shut(other)))  # close the windows that it opens
        session = await context.new_cdp_session(tab)
        documents = TabDocuments(session)
        problem = ""
        try:
            async with asyncio.timeout(self._seconds):
                if not await completed(self._come_to_rest(tab, visit, documents, page.url), visit.flooded):
                    problem = f"made more than {REQUESTS_MAX:,} requests"
        except TimeoutError:
            problem = f"not at rest after {self._seconds:g} s"
        if tab.url == "about:blank":
            return Rendered(None, page.url, f"not rendered: no document within {self._seconds:g} s")
        async with asyncio.timeout(DOCUMENT_SECONDS):
            if problem:
                await session.send("Emulation.setScriptExecutionDisabled", {"value": True})
                await session.send("Page.stopLoading")
            return Rendered(await _read(documents), tab.url, problem)

    async def _come_to_rest(self, tab: Page, visit: Visit, documents: TabDocuments, url: str) -> None:
        """Loads a page and follows its navigations until there are no more."""
        await tab.goto(url, wait_until="commit", timeout=0)  # it may navigate away before it is loaded
        while True:
            seen = visit.navigations
            await tab.wait_for_load_state("load", timeout=0)
            await tab.wait_for_load_state("networkidle", timeout=0)
            if visit.navigations == seen:
                try:
                    delay = delay_of(await documents.refresh())
                except Error:
                    continue  # the tab navigated away during the query
                if delay is None or delay > REFRESH_SECONDS_MAX or not await visit.moves_on(seen, delay + 1):
                    return

    async def _ready(self) -> Browser:
        async with self._starting:
            if self._browser is None or not self._browser.is_connected():
                if self._player is None:
                    raise BrowserFailed("the browser was closed")
                try:
                    self._browser = await self._player.chromium.launch(
                        executable_path=self._program, chromium_sandbox=self._sandbox, args=[*_NO_WAY_OUT, *_REST]
                    )
                except Error as error:
                    raise BrowserFailed(f"{self._program} cannot be started: {_in_short(error)}") from error
            return self._browser

    async def _close(self, context: BrowserContext) -> None:
        """Closes a page's profile, or the browser if that takes too long."""
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await context.close()
        except (Error, TimeoutError):
            await self._end()

    async def _end(self) -> None:
        if self._browser is not None:
            with contextlib.suppress(Error, TimeoutError):
                async with asyncio.timeout(CLOSE_SECONDS):
                    await self._browser.close()


async def _read(documents: TabDocuments) -> str:
    """Reads the document, again if the tab navigates meanwhile."""
    for _ in range(READS_MAX - 1):
        with contextlib.suppress(Error):
            return await documents.html()
    return await documents.html()


async def _shut(tab: Page) -> None:
    with contextlib.suppress(Error):
        await tab.close()


def _in_short(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0][:200] or "out of time"
