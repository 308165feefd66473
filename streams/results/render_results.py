"""`neardup render`: adds the bodies that a browser renders to results."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from neardup.signals.result_pages import Body
from streams.ports import Progress, silent
from streams.results.query_results import Line, encode_result, read_results, result_file
from streams.results.render_browser import Chromium, Rendered
from streams.results.render_network import Network
from streams.results.render_world import World

_HTML = 0  # Body.mode


@dataclass
class RenderCounts:
    """Counts of a run. others: results that had a rendered body, or are no HTML. failed: pages without a rendered body.

    problems: problems of pages, files and archives.
    """

    results: int = 0
    rendered: int = 0
    others: int = 0
    failed: int = 0
    problems: list[str] = field(default_factory=list)


def render_command(
    paths: Sequence[Path],
    out: Path,
    *,
    world: Sequence[Path] = (),
    network: Network | None = None,
    tabs: int = 2,
    base_url: str | None = None,
    progress: Progress = silent,
    **browser: Any,
) -> RenderCounts:
    """Renders the results of some files, in their order. Raises BadInput, BrowserFailed.

    Args:
        world: archives that answer requests.
        network: servers that answer the others; None: none does.
        tabs: pages at a time.
        browser: options of `Chromium`.
    """
    tally = RenderCounts()

    async def render() -> None:
        async with AsyncExitStack() as stack:
            archives = stack.enter_context(World(world, base_url=base_url))
            tally.problems += archives.problems
            reached = None if network is None else await stack.enter_async_context(network)
            chromium = await stack.enter_async_context(Chromium(archives, reached, **browser))
            file = stack.enter_context(result_file(out))
            lines = read_results(paths, base_url, tally.problems)
            async for line, rendered in _each(chromium, lines, tabs):
                file.write(_noted(line, rendered, tally) + b"\n")
                progress("render", tally.results, 0)

    asyncio.run(render())
    return tally


async def _each(chromium: Chromium, lines: Iterable[Line], tabs: int) -> AsyncIterator[tuple[Line, Rendered | None]]:
    """Lines with what became of them, in their order; `tabs` of them at a time are in the browser."""
    waiting: deque[tuple[Line, asyncio.Task[Rendered | None]]] = deque()
    free = asyncio.Semaphore(tabs)
    try:
        for line in lines:
            waiting.append((line, asyncio.create_task(_one(chromium, line, free))))
            if len(waiting) > 2 * tabs:
                first, task = waiting.popleft()
                yield first, await task
        while waiting:
            first, task = waiting.popleft()
            yield first, await task
    finally:
        for _, task in waiting:
            task.cancel()


async def _one(chromium: Chromium, line: Line, free: asyncio.Semaphore) -> Rendered | None:
    """None for what needs no browser."""
    if line.rendered is not None or Body.of(line.page.body or b"", line.page.content_type).mode != _HTML:
        return None
    if not line.page.url.startswith(("http://", "https://")):
        return Rendered(None, line.page.url, "not rendered: its URL is neither http nor https")
    async with free:
        began = time.monotonic()
        rendered = await chromium.render(line.page)
        return replace(rendered, ms=round(1000 * (time.monotonic() - began), 1))


def _noted(line: Line, rendered: Rendered | None, tally: RenderCounts) -> bytes:
    """The line that is written."""
    tally.results += 1
    if rendered is None:
        tally.others += 1
        return encode_result(line)
    if rendered.problem:
        tally.problems.append(f"{line.page.url}: {rendered.problem}")
    if rendered.html is None:
        tally.failed += 1
        return encode_result(line)
    tally.rendered += 1
    body = rendered.html.encode("utf-8", "replace")
    moved = {} if rendered.url == line.page.url else {"rendered_url": rendered.url}
    return encode_result(replace(line, rendered=body, render_ms=rendered.ms), **moved)
