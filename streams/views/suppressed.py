"""What was suppressed on a site, and for which pages. A key of the table `lists`:

suppressed, site -> {last, items: [...] the newest first, originals: {URL: pages of the site suppressed for it}}

An original that comes up late may lack what was said while it had too few for the list.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from neardup.standing import DUPLICATES
from streams.views.lists import Row, Verdict

Facts = dict[str, Any]

#: The row is written anew for each batch with a duplicate of the site.
ITEMS_KEPT, ORIGINALS_KEPT, CHARS_KEPT = 10, 10, 1_000


def suppressed_key(site: str) -> str:
    return f"suppressed\n{site}"


def changes(verdict: Verdict, kind: str, site: str) -> Iterator[tuple[str, Callable[[Row | None], Row]]]:
    """The key of the row that a verdict concerns, if any, and what becomes of it."""
    if kind in DUPLICATES:
        yield suppressed_key(site), lambda row: _row(row, verdict)


def _row(row: Row | None, verdict: Verdict) -> Row:
    original = str((verdict.get("representative") or {}).get("url") or "")[:CHARS_KEPT]
    item = {
        "url": str(verdict["url"])[:CHARS_KEPT],
        "original": original,
        "verdict": verdict["verdict"],
        "page_id": verdict["page_id"],
    }
    originals = dict(row["originals"]) if row else {}
    originals[original] = originals.get(original, 0) + 1
    if len(originals) > 2 * ORIGINALS_KEPT:
        originals = {url: originals[url] for url in _most(originals)}
    return {"items": [item, *(row["items"] if row else ())][:ITEMS_KEPT], "originals": originals}


def _most(originals: dict[str, int]) -> list[str]:
    return sorted(originals, key=lambda url: (-originals[url], url))[:ORIGINALS_KEPT]


def suppressed_of(rows: Sequence[Row]) -> Facts:
    """The newest suppressed pages, and the pages that most were suppressed for, over all partitions."""
    originals = Counter[str]()
    for row in rows:
        originals.update(row["originals"])
    items = sorted((item for row in rows for item in row["items"]), key=lambda item: -item["page_id"])[:ITEMS_KEPT]
    return {"newest": items, "originals": {url: originals[url] for url in _most(originals)}}
