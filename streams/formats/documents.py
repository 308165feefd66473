"""Documents of JSON lines and tables with field names of their own, and ids that need not be URLs."""

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

from neardup.errors import BadPage
from neardup.page import Page
from streams.formats.json import page_of

#: What the URL of a document begins with whose id is none. Its host is a digest of the id: nothing says that two such
#: documents are of one site, so the rules must not take them for siblings of one template.
ID_SCHEME = "id://"


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
    url = url_of(str(given))
    if not isinstance(text, str | bytes):
        return Page(url=url, body=b"", problem=f"{text_field} is no text" if text is not None else f"no {text_field}")
    return page_of({"url": url, "body": text, "content_type": kind if isinstance(kind, str) else None})


def url_of(given: str) -> str:
    """Returns an id that is a URL unchanged; makes a URL of any other id: `id://DIGEST/ID`."""
    if "://" in given:
        return given
    return f"{ID_SCHEME}{_digest(given)}/{quote(given, errors='replace')}"


def id_of(url: str | None) -> str | None:
    """Returns the id of a URL that `url_of` made; None for other URLs, and if normalising removed a part of the id."""
    if url is None or not url.startswith(ID_SCHEME):
        return None
    digest, _, quoted = url.removeprefix(ID_SCHEME).partition("/")
    given = unquote(quoted)
    return given if _digest(given) == digest else None


def _digest(given: str) -> str:
    return hashlib.blake2b(given.encode("utf-8", "replace"), digest_size=8).hexdigest()
