"""Hot keys: index keys that so many pages came to share that they find nobody any more, a template's or spam's.

A verdict says which keys its page turned hot; they stay so. Keys of the table `lists`:

hot        -> {last, families: {family: keys}, items: [...] the newest first} of the whole crawl
hot, site  -> the same of the keys that pages of a registrable domain turned hot
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from neardup.rules.families import WORDS, KeyFamily
from streams.views.lists import CHARS_KEPT, Row, Verdict

Facts = dict[str, Any]

HOT_KEPT = 50
_EVERYWHERE = "hot"


def hot_key(site: str | None = None) -> str:
    """The row's key. site: None for that of the whole crawl."""
    return _EVERYWHERE if site is None else f"{_EVERYWHERE}\n{site}"


def changes(verdict: Verdict, site: str) -> Iterator[tuple[str, Callable[[Row | None], Row]]]:
    """The keys of the rows that a verdict concerns, and what becomes of them."""
    turned = (verdict.get("evidence") or {}).get("turned_hot")
    if turned:
        names = [str(name) for name in turned]
        for key in (hot_key(), hot_key(site)):
            yield key, lambda row: _row(row, verdict, site, names)


def _row(row: Row | None, verdict: Verdict, site: str, names: Sequence[str]) -> Row:
    families = Counter[str](row["families"] if row else {})
    families.update(_family(name) for name in names)
    page = {"url": str(verdict["url"])[:CHARS_KEPT], "site": site, "page_id": verdict["page_id"]}
    items = [{"key": name[:CHARS_KEPT], **page} for name in names]
    return {"families": dict(families), "items": [*items, *(row["items"] if row else ())][:HOT_KEPT]}


def _family(name: str) -> str:
    return name.partition(":")[0][:CHARS_KEPT]


def hot_of(rows: Sequence[Row], shown: int) -> Facts:
    """How many keys of which family turned hot, and the newest `shown`, over all partitions."""
    families = Counter[str]()
    for row in rows:
        families.update(row["families"])
    items = sorted((item for row in rows for item in row["items"]), key=lambda item: (-item["page_id"], item["key"]))
    return {"total": families.total(), "families": dict(families.most_common()), "newest": items[:shown]}


def family_words(name: str) -> str:
    """What the keys of a family are, for people; a newer program's by its name. name: as in a key's name."""
    family = KeyFamily.__members__.get(_family(name).upper())
    return WORDS[family].one if family in WORDS else _family(name)
