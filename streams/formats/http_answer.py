"""Reads HTTP answers as archives hold them: status line, headers, and a body whose encodings are undone.

Archives hold the bytes of the connection, or what the program behind them made of these: many programs store the
decoded body under the headers of the encoded one. So an encoding is undone only if the body has it.
"""

import re
from dataclasses import dataclass

from neardup.errors import BadPage
from neardup.limits import NO_PAGE_STATUSES
from neardup.url_bytes import without_surrogates
from streams.formats.compressed import decode_body, is_text

#: Of a WARC header, and of an HTTP header in a record: servers refuse longer ones.
HEADER_BYTES_MAX = 64 << 10
#: Chunks of a body: enough for 10 MB in chunks of 50 bytes. Smaller chunks only serve to waste time.
CHUNKS_MAX = 200_000
_CHUNK = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,16})[ \t]*(?:;[^\n]{0,4000})?\r?\n")
_SIZE_CUT_OFF = re.compile(rb"[0-9A-Fa-f]{0,16}\r?")
_TRAILERS = re.compile(rb"(?:[!-9;-~]+:[^\n]*\n)*[\r\n]*")
#: Old servers leave the version out (`HTTP 200 Document follows`), those of radio stations call it ICY.
_STATUS = re.compile(rb"[\r\n]{0,4}(?:HTTP(?:/\d{1,2}(?:\.\d{1,2})?)?|ICY|H[23])[ \t]+(\d{3})(?!\d)", re.IGNORECASE)
_HEAD_END = re.compile(rb"\r?\n\r?\n")
_INTERIM_MAX = 8
_CODINGS_MAX = 3
_LENGTH_DIGITS_MAX = 18
#: Bytes by which a body may be shorter than its Content-Length: programs strip the last line end, and the byte order
#: mark.
_LENGTH_SLACK = 2 + 3
#: Headers whose repeated lines form one list (RFC 9110, section 5.3).
_LISTS = ("transfer-encoding", "content-encoding", "warc-concurrent-to")
_TARGET = b"warc-target-uri"
_RANGE = re.compile(r"bytes\s+0-(\d{1,18})/(\d{1,18})\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An HTTP answer. body: stored body, whose encodings `decoded` undoes.

    cut: whether the reader did not read the whole record.
    """

    status: int
    headers: dict[str, str]
    body: bytes
    cut: bool = False

    @property
    def is_partial(self) -> bool:
        """Whether the status says that the answer is not the page: empty, a part of it, or about other things."""
        if self.status == 206 and (found := _RANGE.fullmatch(self.headers.get("content-range", "").strip())):
            return int(found[1]) + 1 != int(found[2])
        return self.status in NO_PAGE_STATUSES or self.status == 304

    @property
    def missing(self) -> str:
        """Why the body is not there as its headers declare it, or "".

        A Content-Length that is too great proves nothing if the body ends as a page does, or was stored decoded.
        """
        declared = self._length()
        framed = bool(_codings(self.headers, "transfer-encoding"))
        encoded = bool(_codings(self.headers, "content-encoding"))
        if not self.body:
            expected = framed or encoded if declared is None else declared > 0
            return "body missing" if expected else ""
        if declared is None or framed or self.cut or (encoded and is_text(self.body)):
            return ""
        # Programs that store text change line ends.
        ends = self.body.count(b"\n") if b"\r\n" not in self.body else 0
        if len(self.body) + ends + _LENGTH_SLACK >= declared or b"</html" in self.body[-1024:].lower():
            return ""
        return "body cut off: shorter than its Content-Length"

    def decoded(self, bound: int) -> bytes:
        """Returns the body without its encodings, of at most `bound` bytes. Raises BadPage."""
        transfer = _codings(self.headers, "transfer-encoding")
        content = _codings(self.headers, "content-encoding")
        for codings, name in ((transfer, "transfer"), (content, "content")):
            if len(codings) > _CODINGS_MAX:
                raise BadPage(f"{len(codings)} {name} encodings")
        body: bytes | None = self.body
        for at in reversed(range(len(transfer))):
            encoded = bool(content) or at > 0
            if transfer[at] == "chunked":
                body = _unchunked(body or b"", encoded=encoded, cut=self.cut)
            elif body and transfer[at] in ("gzip", "x-gzip", "deflate"):
                body = decode_body(body, transfer[at], bound)
        for coding in reversed(content):
            if not body:
                break
            body = decode_body(body, coding, bound)
        if body is None:
            raise BadPage(f"cannot decode Content-Encoding {', '.join(content or transfer)[:60]!r}")
        return body[:bound]

    def _length(self) -> int | None:
        text = self.headers.get("content-length", "")
        known = text.isascii() and text.isdigit() and len(text) <= _LENGTH_DIGITS_MAX
        return int(text) if known else None


def begins_answer(content: bytes) -> bool:
    """Whether content begins with a status line."""
    return _STATUS.match(content) is not None


def read_answer(content: bytes, *, cut: bool = False) -> HttpAnswer:
    """Reads the answer of a record. cut: the record has more bytes than `content`. Raises BadPage.

    Interim answers (100, 103) before the final one are skipped. Content that begins with markup is the answer of a
    server that knows no status lines (HTTP/0.9). Of an answer that is no success, headers may be missing.
    """
    status_line, start = _STATUS.match(content), 0
    for _ in range(_INTERIM_MAX):
        if status_line is None or not status_line[1].startswith(b"1"):
            break
        end = _HEAD_END.search(content, start, start + HEADER_BYTES_MAX)
        after = _STATUS.match(content, end.end()) if end else None
        if end is None or after is None:
            break
        status_line, start = after, end.end()
    if status_line is None:
        if content.lstrip()[:1] == b"<":
            return HttpAnswer(200, {}, content, cut)
        raise BadPage("no HTTP status line")
    status = int(status_line[1])
    found = _HEAD_END.search(content, start, start + HEADER_BYTES_MAX)
    if found is None:
        if not 200 <= status < 300:
            return HttpAnswer(status, {}, b"", cut)
        if len(content) - start > HEADER_BYTES_MAX:
            raise BadPage(f"an HTTP header of more than {HEADER_BYTES_MAX >> 10} kB")
        raise BadPage("an HTTP header without an end")
    return HttpAnswer(status, fields_of(content[start : found.start()].lstrip(b"\r\n")), content[found.end() :], cut)


def _codings(headers: dict[str, str], name: str) -> list[str]:
    """The codings of a header in lower case, without those that change nothing, and without parameters."""
    found = (one.partition(";")[0].strip(" \t\"'").lower() for one in headers.get(name, "").split(","))
    return [one for one in found if one not in ("", "identity", "none")]


def _unchunked(body: bytes, *, encoded: bool, cut: bool) -> bytes:
    """Undoes chunked framing that is valid up to its last chunk, or up to the end of a body that was cut off.

    Returns another body unchanged: it was stored without framing, and a first line of digits is its own. Raises
    BadPage for more chunks than CHUNKS_MAX. encoded: the chunks hold encoded bytes.
    """
    parts: list[bytes] = []
    at, bare = 0, False
    while found := _CHUNK.match(body, at):
        start, size = found.end(), int(found[1], 16)
        if size == 0:
            return b"".join(parts) if parts or _is_trailer(body, start) else body
        if len(parts) == CHUNKS_MAX:
            raise BadPage(f"a body of more than {CHUNKS_MAX:,} chunks")
        left = len(body) - start
        if size >= left:  # the number is the page's: it may be greater than any position
            whole = size == left or cut or bool(parts) or _begins_page(body[start : start + 1024], encoded)
            return b"".join((*parts, body[start:])) if whole and not (parts and bare) else body
        parts.append(body[start : start + size])
        at = start + size
        end = 2 if body.startswith(b"\r\n", at) else int(body.startswith(b"\n", at))
        if not end:
            at = -1
            break
        bare, at = bare or end == 1, at + end
    if not parts:
        return body
    cut_off = at >= 0 and not bare and len(body) - at < 20 and _SIZE_CUT_OFF.fullmatch(body, at)
    # Encoded bytes cannot be read with the sizes among them: what precedes the fault is all there is.
    return b"".join(parts) if cut_off or (encoded and not is_text(parts[0])) else body


def _is_trailer(body: bytes, start: int) -> bool:
    return len(body) - start <= HEADER_BYTES_MAX and bool(_TRAILERS.fullmatch(body, start))


def _begins_page(data: bytes, encoded: bool) -> bool:
    return data.lstrip()[:1] == b"<" or (encoded and not is_text(data))


def fields_of(header: bytes) -> dict[str, str]:
    """Parses header lines into a dictionary by lower-case names, without the first line and unreadable ones.

    The first value of a repeated name is used; values of names that stand for lists are joined by commas. Linear in
    the header's length, however its lines are folded. Bytes that are not UTF-8 are percent-encoded in the URL of a
    record (`neardup.urls`), and U+FFFD elsewhere.
    """
    found: dict[str, list[str]] = {}
    folding: list[str] | None = None
    for line in header.split(b"\n")[1:]:
        text = _text(line.rstrip(b"\r"))
        if text[:1] in (" ", "\t") and folding is not None:  # folded
            folding.append(text.strip())
            continue
        name, colon, value = text.partition(":")
        name = name.strip().lower()
        folding = None
        if colon and name:
            folding = [value.strip()]
            held = found.setdefault(name, folding)
            if held is not folding and name in _LISTS:
                held += [",", *folding]
                folding = held
            elif held is not folding:
                folding = []  # what belongs to a later value goes with it
    return {name: " ".join(parts) for name, parts in found.items()}


def _text(line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError:
        if line[: len(_TARGET)].lower() == _TARGET:
            return without_surrogates(line.decode("utf-8", "surrogateescape"))
        return line.decode("utf-8", "replace")
