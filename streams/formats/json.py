"""The `json` codec: a page as one JSON object; also a line of a file of pages.

    {"url": ..., "body": text or {"base64": ...} or null, "body_base64": ..., "content_type": ...,
     "fetched_at": see `neardup.fetch_times`, "http_status": ..., "score": the crawler's, 0 to 1, "body_ref": URL,
     "http_method": ..., "truncated": "length", "time", "disconnect" or "unspecified"}

Text and base64 are two ways to say a body; null is a tombstone, unless the status tells of a failed fetch. A page whose
method is not GET, or that was not cut at a limit of length alone, is rejected. In files of other programs, an object or
a table's row is a document with field names of its own, and an id that need not be a URL (`document_of`).
"""

import base64
import binascii
import dataclasses
import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import orjson
from msgspec import Meta, Struct

from neardup.errors import BadPage
from neardup.fetch_times import is_readable, read_time
from neardup.limits import GONE_STATUSES
from neardup.page import Page
from neardup.tolerant_json import loads
from neardup.typed_json import typed
from neardup.urls import url_of_document_id, url_of_id
from streams.formats.no_page import TRUNCATIONS, no_page
from streams.ports import Outgoing

if TYPE_CHECKING:
    from streams.formats.bodies import Bodies

_TYPES: dict[type | None, str] = {
    str: "text",
    int: "an integer",
    float: "a fraction",
    bool: "true or false",
    list: "an array",
    dict: "an object",
    type(None): "null",
}
#: What other programs call the id and the text of a document, tried in this order where `url` and `body` are missing.
IDS = ("id", "doc_id", "docid", "_id")
_TEXTS = ("text", "content", "raw_content", "html")
#: The field of the id of a file without ids: the number of the row, from 0, is its id. No field has this name.
ROW = ""
BODIES = ("body", "body_base64", "body_ref")


def decode(value: bytes, bodies: "Bodies") -> Page:
    """Decodes a record; its URL is that of the object. Raises BadPage."""
    fields = object_of(value)
    reference = fields.pop("body_ref", None)
    if reference is None:
        return page_of(fields)
    if not isinstance(reference, str):
        raise BadPage(f"body_ref is {_TYPES[type(reference)]}, and text is required")
    page = page_of({**fields, "body": "-"})  # an empty body may count as cut off
    return page if page.problem else dataclasses.replace(page, body=bodies.read(reference))


def fetched_at(value: bytes) -> int | None:
    """Returns the fetch time in a record's value; None without one."""
    try:
        found = loads(value)
        given = _fetched_at(found) if isinstance(found, dict) else None
        return None if given is None else read_time(given).ms
    except (orjson.JSONDecodeError, BadPage):
        return None


def encode(page: Page, key: bytes, gone: bool, reference: str) -> Outgoing:
    """Encode a page. gone: whether the page is a tombstone. reference: URL of its body, or ""."""
    fields: dict[str, object] = {"url": key.decode(), "http_status": page.status}
    if page.fetched_at is not None:
        fields["fetched_at"] = page.fetched_at
    if gone:
        fields["body"] = None
        return Outgoing(key, orjson.dumps(fields))
    if page.score is not None:
        fields["score"] = page.score
    if page.truncated:
        fields["truncated"] = "length"
    if page.content_type:
        fields["content_type"] = page.content_type.encode("utf-8", "replace").decode()
    if reference:
        fields["body_ref"] = reference
    else:
        body = page.body or b""  # as text if that decodes to the same bytes
        fields["body"] = body.decode("ascii") if body.isascii() else {"base64": base64.b64encode(body).decode("ascii")}
    return Outgoing(key, orjson.dumps(fields))


def decode_line(line: bytes) -> Page:
    """A page of the `json` codec, with the fields that the module lists but `body_ref`.

    A body that is null is a tombstone, unless the status tells of a failed fetch.

    Raises BadPage if it is no such object. A readable object with a bad field gives a page with a `problem`.
    """
    return page_of(object_of(line))


def object_of(line: bytes, identity: str = "url") -> dict[str, Any]:
    """Parses the object of a line. Raises BadPage.

    identity: name of the field that identifies the page. Its lone surrogates are kept: in Python's escapes they stand
    for bytes that are not UTF-8, and U+FFFD for each would give two pages one URL.
    """
    try:
        value = loads(line)
    except orjson.JSONDecodeError as error:
        # Not its own text: that counts lines within this one.
        raise BadPage(f"not JSON: {error.msg}, at character {error.pos}") from error
    if not isinstance(value, dict):
        raise BadPage(f"not a JSON object but {_TYPES[type(value)]}")
    given = value.get(identity)
    if isinstance(given, str) and "\ufffd" in given:
        value[identity] = _exact(line, identity) or given
    return value


def _exact(line: bytes, name: str) -> str | None:
    """Returns a text field with its lone surrogates, which only Python's own parser keeps; None if that fails."""
    try:
        found = json.loads(line.decode("utf-8", "surrogatepass"))[name]
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, str) else None


def page_of(value: Mapping[str, Any]) -> Page:
    """Returns the page of an object as in `decode_line`; a table's row may have a body of bytes.

    Raises BadPage without a URL.
    """
    url = value.get("url")
    if not isinstance(url, str) or not url:
        raise BadPage("no url")
    try:
        fields, body = _typed(value), _body(value)
        truncated = str(value.get("truncated", ""))
        truncated = truncated if truncated in TRUNCATIONS else ""  # other programs mean other things by this name
        if why := no_page(fields.http_method or "", truncated, empty=body == b""):
            raise BadPage(why)
        return Page(
            url=url,
            body=body,
            content_type=fields.content_type or "",
            fetched_at=_fetched_at(value),
            status=200 if fields.http_status is None else fields.http_status,
            score=fields.score,
            truncated=bool(truncated),
        )
    except BadPage as error:
        return Page(url=url, body=b"", problem=str(error))


class _Typed(Struct):
    """The fields of a page that have one type. Others are read by `_body` and `neardup.fetch_times`."""

    http_status: int | None = None
    http_method: str | None = None
    content_type: str | None = None
    score: float | None = None


def _typed(value: Mapping[str, Any]) -> _Typed:
    """Raises BadPage that names a field of another type."""
    try:
        return typed(value, _Typed)
    except ValueError as error:
        raise BadPage(str(error)) from error


def _fetched_at(value: Mapping[str, Any]) -> Any:
    """Returns the fetch time as given, which Page reads; None for a missing one. Raises BadPage for other types."""
    found = value.get("fetched_at")
    if found is None or found != found:  # NaN: a row of a table without one
        return None
    if not is_readable(found):
        read_time(found)
    return found


def _body(value: Mapping[str, Any]) -> bytes | None:
    body = value.get("body")
    encoded = value.get("body_base64")
    if isinstance(body, bytes):
        return body
    if isinstance(body, str):
        # Text has been decoded already: a byte order mark outranks whatever charset its headers or <meta> name.
        return body.encode() if body.isascii() else b"\xef\xbb\xbf" + body.encode("utf-8", "replace")
    if isinstance(body, dict):
        encoded = body.get("base64")
    elif body is not None:
        raise BadPage(f"body is {_TYPES.get(type(body), type(body).__name__)}, neither text nor an object with base64")
    elif encoded is None:
        if "body" not in value and value.get("http_status") not in GONE_STATUSES:
            raise BadPage("no body")
        return None
    if not isinstance(encoded, str):
        raise BadPage(f"the base64 of the body is {_TYPES[type(encoded)]}, and text is required")
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadPage(f"the body is not base64: {error}") from error


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of a document's text and id; None: `body` and `url`, as in the `json` codec."""

    text: str | None = None
    id: str | None = None

    def __bool__(self) -> bool:
        return self.text is not None or self.id is not None


def guessed(fields: Fields, names: Collection[str]) -> Fields:
    """Fills in the fields that are not set, from the field names of a file.

    `url` and `body` take precedence; `streams.files.row_ids` looks whether the values of `url` are ids. Without a known
    name, the number of the row is the id; the text stays unset, and `document_of` then reports that it is missing.
    """
    identity, text = fields.id, fields.text
    if identity is None and names and "url" not in names:
        identity = next((name for name in IDS if name in names), ROW)
    if text is None and not any(name in names for name in BODIES):
        text = next((name for name in _TEXTS if name in names), None)
    return Fields(text, identity)


#: Fields of a document that name the same things as in the `json` codec if their values are of these types.
_OF_CRAWLER: Mapping[str, Any] = {
    "content_type": str,
    "http_status": int,
    "http_method": str,
    "truncated": str,
    "score": Annotated[float, Meta(ge=0, le=1)],
}


def document_of(row: Mapping[str, Any], fields: Fields) -> Page:
    """Returns the page of a row, which may have the other fields of the `json` codec besides its id and its text.

    Other programs mean other things by their names, so a value that the codec does not admit counts as missing. A row
    without a text is gone if its status says so.

    An id that is a URL is that of a page, which may be fetched again. With an anchor it is the id of a document: parts
    of one page are documents of a corpus. In the field `url`, unless required as an id, anchors are those of a crawl.

    With ROW as the field of the id, the URL is that of the id "": the reader of the file knows the row's number. Raises
    BadPage for a row without an id; a row without a text gives a page with a `problem`.
    """
    if not fields:
        return page_of(row)
    id_field, text_field = "url" if fields.id is None else fields.id, fields.text or "body"
    given, text = row.get(id_field), row.get(text_field)
    missing, wrong = no_id(id_field)
    if id_field == ROW:
        given = ""
    elif given is None or given == "":
        raise BadPage(missing)
    elif isinstance(given, bool) or not isinstance(given, str | int):
        raise BadPage(wrong)
    url = (url_of_id if fields.id is None else url_of_document_id)(str(given))
    page: dict[str, Any] = {"url": url, "fetched_at": row.get("fetched_at")}
    for name, kind in _OF_CRAWLER.items():
        if (value := row.get(name)) is not None:
            with suppress(msgspec.ValidationError):
                page[name] = msgspec.convert(value, kind)
    if fields.text is None and (isinstance(text, dict) or (text is None and row.get("body_base64") is not None)):
        return page_of({**page, "body": text, "body_base64": row.get("body_base64")})
    if isinstance(text, str | bytes) or (text is None and page.get("http_status") in GONE_STATUSES):
        return page_of({**page, "body": text})
    return Page(
        url=page["url"], body=b"", problem=f"{text_field} is no text" if text is not None else f"no {text_field}"
    )


def no_id(field: str) -> tuple[str, str]:
    """Returns the reasons of `document_of` for a row that has no id in this field."""
    return f"no {field}", f"{field} is neither text nor a whole number"
