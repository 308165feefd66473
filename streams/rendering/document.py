"""Serialises a tab's document as HTML, with the documents of its frames in place of the frames.

All code runs in isolated worlds, in which scripts of the page cannot have redefined any name.
"""

import asyncio
import json
import secrets
from typing import Any

from playwright.async_api import CDPSession, Error

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
