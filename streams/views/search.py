"""Search for a part of a URL or of a title in the rows of the table `urls`. It reads rows for a bounded time."""

import time
from collections.abc import Iterable, Sequence

import orjson

from neardup.page import ID_SCHEME, name_of
from streams.views.lists import Facts, cut

SECONDS_MAX, FOUND_MAX, CHARS_MIN = 2.0, 50, 2
_TITLE_CHARS = 200
_ROWS_BETWEEN_LOOKS = 1_000
#: The URL of a document has its id encoded.
_ID = f'"{ID_SCHEME}'.encode()


def search_rows(rows: Iterable[bytes], text: str, seconds_max: float = SECONDS_MAX) -> Facts:
    """Return {items, rows: searched, complete: whether all were searched}. rows: JSON of `urls` rows.

    Upper and lower case are equal. FOUND_MAX items at most.
    """
    needle = text.strip().casefold()
    raw = orjson.dumps(needle)[1:-1]
    deadline, count, items, complete = time.monotonic() + seconds_max, 0, list[Facts](), True
    for row in rows:
        if len(items) == FOUND_MAX or (count % _ROWS_BETWEEN_LOOKS == 0 and time.monotonic() > deadline):
            complete = False
            break
        count += 1
        # ASCII text is found in the bytes first: decoding each row would take ten times as long.
        if raw.isascii() and raw not in row.lower() and _ID not in row:
            continue
        verdict = orjson.loads(row)["verdict"]
        if needle in name_of(str(verdict["url"])).casefold() or needle in str(verdict.get("title") or "").casefold():
            items.append(
                {
                    "url": cut(verdict["url"]),
                    "title": cut(verdict.get("title") or "", _TITLE_CHARS),
                    "verdict": (verdict.get("standing") or {}).get("verdict") or verdict["verdict"],
                    "page_id": verdict["page_id"],
                    "fetched_at": verdict.get("fetched_at"),
                }
            )
    return {"items": items, "rows": count, "complete": complete}


def joined(found: Sequence[Facts]) -> Facts:
    """Join the results of several workers, the newest pages first."""
    newest: dict[str, Facts] = {}
    for item in sorted((item for each in found for item in each["items"]), key=lambda item: -int(item["page_id"])):
        newest.setdefault(item["url"], item)  # a URL has rows in several partitions once partitions were added
    items = list(newest.values())
    return {
        "items": items[:FOUND_MAX],
        "rows": sum(each["rows"] for each in found),
        "complete": all(each["complete"] for each in found) and len(items) <= FOUND_MAX,
    }
