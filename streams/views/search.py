"""Search for a part of a URL or of a title in the rows of the table `urls`. It reads rows for a bounded time.

The words `site:a.example` and `kind:near_duplicate` narrow a search to the URLs of a site, or to those with a verdict
of a kind among their newest twenty; `kind:kept_apart` finds the pages kept apart.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from neardup.report.readable_urls import readable
from neardup.urls import ID_SCHEME, name_of
from streams.views.lists import KEPT_APART, Facts, kept_apart, shortened

SECONDS_MAX, FOUND_MAX, CHARS_MIN = 2.0, 50, 2
_TITLE_CHARS = 200
_ROWS_BETWEEN_LOOKS = 1_000
#: The URL of a document has its id encoded.
_ID = f'"{ID_SCHEME}'.encode()


class Query(NamedTuple):
    """A query. text: folded text to find in URL or title. site, kind: site and kind of the results; "" for any."""

    text: str
    site: str
    kind: str

    @property
    def parts(self) -> list[bytes]:
        """Return the bytes that the row of a match contains, in lower case."""
        return [
            part for part in (orjson.dumps(self.text)[1:-1], self.site.encode(), self.kind.encode()) if part.isascii()
        ]

    def fits(self, row: Mapping[str, Any]) -> bool:
        verdict = row["verdict"]
        if self.site and self.site != verdict.get("site"):
            return False
        if self.kind == KEPT_APART:
            if not kept_apart(verdict):
                return False
        elif self.kind and all(self.kind != kind for _, _, kind, _ in row["history"]):
            return False
        url = name_of(str(verdict["url"]))
        texts = [url, str(verdict.get("title") or "")]
        if not self.text.isascii():  # as it is shown
            texts.append(readable(url))
        return any(self.text in text.casefold() for text in texts)


def query_of(text: str) -> Query:
    """Parse what a person typed."""
    words, narrowed = list[str](), {"site": "", "kind": ""}
    for word in text.casefold().split(" "):
        name, colon, value = word.partition(":")
        if colon and value and name in narrowed:
            narrowed[name] = value
        else:
            words.append(word)
    return Query(" ".join(words).strip(), **narrowed)


def search_rows(rows: Iterable[tuple[bytes, bytes]], text: str, seconds_max: float = SECONDS_MAX) -> Facts:
    """Return {items, rows: searched, complete: whether all were searched, next: the last key searched, if not}.

    Upper and lower case are equal. FOUND_MAX items at most. rows: keys and JSON of `urls` rows, in the order of keys.
    """
    query = query_of(text)
    parts = query.parts
    deadline, count, items, complete, last = time.monotonic() + seconds_max, 0, list[Facts](), True, b""
    for key, row in rows:
        if len(items) == FOUND_MAX or (count % _ROWS_BETWEEN_LOOKS == 0 and time.monotonic() > deadline):
            complete = False
            break
        count, last = count + 1, key
        # ASCII text is found in the bytes first: decoding each row would take ten times as long.
        low = row.lower()
        if any(part not in low for part in parts) and _ID not in row:
            continue
        found = orjson.loads(row)
        verdict = found["verdict"]
        if query.fits(found):
            items.append(
                {
                    "url": shortened(verdict["url"]),
                    "title": shortened(verdict.get("title") or "", _TITLE_CHARS),
                    "verdict": (verdict.get("standing") or {}).get("verdict") or verdict["verdict"],
                    "page_id": verdict["page_id"],
                    "fetched_at": verdict.get("fetched_at"),
                }
            )
    end = None if complete else last.decode("utf-8", "replace")
    return {"items": items, "rows": count, "complete": complete, "next": end}


def joined(found: Sequence[Facts]) -> Facts:
    """Join the results of several partitions or workers, in the order of the URLs.

    The next search begins where the first of them ended that did not search all.
    """
    ends = [each["next"] for each in found if each["next"] is not None]
    end = min(ends, default=None)
    newest: dict[str, Facts] = {}
    for item in sorted((item for each in found for item in each["items"]), key=lambda item: -int(item["page_id"])):
        newest.setdefault(item["url"], item)  # a URL has rows in several partitions once partitions were added
    items = sorted((item for item in newest.values() if end is None or item["url"] <= end), key=lambda one: one["url"])
    if len(items) > FOUND_MAX:
        items = items[:FOUND_MAX]
        end = items[-1]["url"]
    return {"items": items, "rows": sum(each["rows"] for each in found), "complete": end is None, "next": end}
