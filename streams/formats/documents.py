"""Documents of JSON lines and tables with field names of their own, and ids that need not be URLs."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from neardup.errors import BadPage
from neardup.page import Page, url_of_id
from streams.formats.json import page_of


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of a document's text and id; None: `body` and `url`, as in the `json` codec."""

    text: str | None = None
    id: str | None = None

    def __bool__(self) -> bool:
        return self.text is not None or self.id is not None


#: What other programs call the id and the text of a document, tried in this order where `url` and `body` are missing.
_IDS = ("id", "doc_id", "docid", "_id")
_TEXTS = ("text", "content", "raw_content")
BODIES = ("body", "body_base64", "body_ref")


def guessed(fields: Fields, names: Collection[str]) -> Fields:
    """Fills in the fields that are not set, from the field names of a file.

    `url` and `body` take precedence. A field stays unset if no known name is present: `document_of` then reports what
    is missing.
    """
    identity, text = fields.id, fields.text
    if identity is None and "url" not in names:
        identity = next((name for name in _IDS if name in names), None)
    if text is None and not any(name in names for name in BODIES):
        text = next((name for name in _TEXTS if name in names), None)
    return Fields(text, identity)


def document_of(row: Mapping[str, Any], fields: Fields) -> Page:
    """Returns the page of a row. Besides its own fields, a row may have `content_type`.

    Raises BadPage for a row without an id; a row without a text gives a page with a `problem`.
    """
    if not fields:
        return page_of(row)
    id_field, text_field = fields.id or "url", fields.text or "body"
    given, text, kind = row.get(id_field), row.get(text_field), row.get("content_type")
    if given is None or given == "":
        raise BadPage(f"no {id_field}")
    if isinstance(given, bool) or not isinstance(given, str | int):
        raise BadPage(f"{id_field} is neither text nor a whole number")
    url = url_of_id(str(given))
    if not isinstance(text, str | bytes):
        return Page(url=url, body=b"", problem=f"{text_field} is no text" if text is not None else f"no {text_field}")
    return page_of({"url": url, "body": text, "content_type": kind if isinstance(kind, str) else None})
