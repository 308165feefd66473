"""Reads ARC files, the format of web archives before WARC, as records of WARC.

A file begins with a version block, whose URL is `filedesc://...`; then come records: a line with URL, IP address,
date, content type and length, and the answer of the server. In version 2 five more fields stand before the length. In
`.arc.gz` each record is a gzip member. Source: Internet Archive, "ARC File Format", 1996 (versions 1 and 2).
"""

import re
from datetime import UTC, datetime
from typing import ClassVar
from uuid import NAMESPACE_URL, uuid5

from streams.files.warc_reader import WarcReader

#: Of a record's first line. URLs are far shorter.
LINE_BYTES_MAX = 64 << 10
#: Of a version block: two lines; and how far its length may be wrong.
VERSION_BLOCK_BYTES_MAX, _MISCOUNTED_MAX = 64 << 10, 4
_LENGTH_DIGITS_MAX = 18
_DATE = re.compile(rb"\d{14}(?:\d{3})?|\d{12}")
_ADDRESS = re.compile(rb"[0-9A-Fa-f.:]{1,45}|-")
#: Where a record may start, in its first bytes; and in the midst of garbage, where more must fit.
_SCHEME = re.compile(rb"[A-Za-z][A-Za-z0-9+.-]{0,15}:")
_LINE_START = re.compile(rb"(?:\A|(?<=\n))[A-Za-z][A-Za-z0-9+.-]{0,15}:[^ \n]{1,2000} [0-9A-Fa-f.:-]{1,45} \d{14} ")


class ArcReader(WarcReader):
    """Reads the records of one ARC file as `WarcReader` does."""

    name: ClassVar[str] = "an ARC"
    start_bytes: ClassVar[int] = 18
    start: ClassVar[re.Pattern[bytes]] = _LINE_START
    start_bytes_max: ClassVar[int] = 4096

    @staticmethod
    def starts(data: bytes) -> bool:
        return _SCHEME.match(data) is not None

    def _header(self) -> dict[str, str] | None:
        stream, scanned = self.stream, 0
        while (end := stream.buffer.find(b"\n", scanned)) < 0:
            scanned = len(stream.buffer)
            if scanned > LINE_BYTES_MAX or not (stream.fill() or self._continues()):
                return None
        headers = headers_of(bytes(stream.buffer[:end]), stream.position)
        stream.take(end + 1 if headers else 0)  # else the next record may start behind this line
        if headers and headers["warc-type"] == "warcinfo":
            self._measure_version_block(headers)
        return headers

    def _measure_version_block(self, headers: dict[str, str]) -> None:
        """Corrects a length that some writers miscount by a few bytes: it would cut the next record's URL."""
        length = int(headers["content-length"])
        if length > VERSION_BLOCK_BYTES_MAX:
            return
        self.stream.want(length + self.start_bytes_max)
        begin = max(0, length - _MISCOUNTED_MAX)
        found = self.start.search(self.stream.buffer, begin, length + self.start_bytes_max)
        if found and abs(found.start() - length) <= _MISCOUNTED_MAX:
            headers["content-length"] = str(found.start())


def headers_of(line: bytes, position: int) -> dict[str, str] | None:
    """The fields of a WARC record, from the first line of a record of ARC; None for another line.

    position: position of the record; two records with one URL and date get different ids.
    """
    tokens = line.rstrip(b"\r").split(b" ")
    length = tokens[-1]
    for at in range(2, len(tokens) - 2):  # a URL may hold spaces
        if _DATE.fullmatch(tokens[at]) and _ADDRESS.fullmatch(tokens[at - 1]):
            break
    else:
        return None
    url, date, media = _text(b" ".join(tokens[: at - 1])), tokens[at].decode(), _text(tokens[at + 1])
    if not _SCHEME.match(line) or not length.isdigit() or len(length) > _LENGTH_DIGITS_MAX:
        return None
    scheme = url.partition(":")[0].lower()
    kind = {"http": "response", "https": "response", "filedesc": "warcinfo"}.get(scheme, "resource")
    fields = {
        "warc-type": kind,
        "warc-target-uri": url,
        "warc-date": _date(date),
        "warc-record-id": f"<urn:uuid:{uuid5(NAMESPACE_URL, f'{url} {date} {position}')}>",
        "warc-ip-address": tokens[at - 1].decode(),
        "content-type": "application/http; msgtype=response" if kind == "response" else media,
        "content-length": length.decode(),
    }
    return {name: value for name, value in fields.items() if value}


def _date(digits: str) -> str:
    """Return the date in the form of WARC, or "" for no date. digits: date to the minute, second or millisecond."""
    try:
        moment = datetime.strptime(digits[:14].ljust(14, "0"), "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return ""
    fraction = f".{digits[14:]}" if digits[14:] else ""
    return f"{moment:%Y-%m-%dT%H:%M:%S}{fraction}Z"


def _text(data: bytes) -> str:
    """Text in UTF-8; bytes of another charset are percent-encoded, so that two URLs stay two."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return "".join(chr(byte) if byte < 0x80 else f"%{byte:02X}" for byte in data)
