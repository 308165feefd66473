"""Reads compressed files and bodies in bounded pieces. Reports damage with its position."""

import bz2
import lzma
import os
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from fastwarc.stream_io import BrotliReader, ZstdReader

PIECE_BYTES = 256 << 10
#: Suffixes of compressed files.
SUFFIXES = (".gz", ".zst", ".bz2", ".xz")
#: Bytes per read of a compressed file. Fewer than PIECE_BYTES, because the unused rest is copied at each member's end.
_RAW_BYTES = 64 << 10
#: Most positions that are tried as the start of a gzip member after damage, since a file may consist of such positions.
_RESUME_TRIES_MAX = 100_000
_BODY_MEMBERS_MAX = 100
#: What fastwarc's reader raises for damage.
_ZSTD_ERRORS = (OSError, ValueError, EOFError)
#: An xz file whose dictionary is larger cannot be read; `xz -9` makes one of 64 MiB.
_XZ_MEMORY_MAX = 256 << 20
_GZIP = b"\x1f\x8b\x08"
_BZ2 = b"BZh"
_XZ = b"\xfd7zXZ"
#: Files that need no encoding: their first bytes show that the body was stored decoded.
_FILES = (b"%PDF-", b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"PK\x03\x04")
_TEXT_BYTES, _TEXT_BYTES_MIN = 1024, 64
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
#: But for ESC, SO and SI, by which ISO 2022 changes charsets.
_CONTROLS = re.compile(rb"[\x00-\x08\x0b\x10-\x1a\x1c-\x1f\x7f]")
_ZSTD = b"\x28\xb5\x2f\xfd"
_ZSTD_SKIPPABLE = b"\x2a\x4d\x18"  # after a first byte 0x50 to 0x5f


class Damaged(Exception):
    """Compressed data that cannot be read further. position: byte of the file at which the damaged member starts."""

    def __init__(self, position: int, why: str) -> None:
        super().__init__(why)
        self.position = position


def compression_of(start: bytes) -> str:
    """Returns `gzip`, `zstd`, `bz2`, `xz` or `plain`, by the first bytes of a file."""
    if start.startswith(_GZIP[:2]):
        return "gzip"
    if start.startswith(_ZSTD) or (start[1:4] == _ZSTD_SKIPPABLE and 0x50 <= start[0] <= 0x5F):
        return "zstd"
    if start.startswith(_BZ2) and start[3:4].isdigit():
        return "bz2"
    return "xz" if start.startswith(_XZ) else "plain"


def _decoder_of(compression: str) -> bz2.BZ2Decompressor | lzma.LZMADecompressor | None:
    """A decoder of one stream of a bz2 or xz file."""
    if compression == "bz2":
        return bz2.BZ2Decompressor()
    return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY_MAX) if compression == "xz" else None


class Stream:
    """The decompressed bytes of a file, with their position in the file.

    buffer: bytes that were read and not yet consumed. A *member* is a gzip member; any other file has one member.
    position: byte of the file at which the buffer (plain) or the current member (compressed) starts.
    """

    def __init__(self, path: Path, position: int = 0) -> None:
        """position: start of a member, from `position` of an earlier run; 0 for zstd, bz2 and xz. Raises OSError."""
        self._file: BinaryIO = path.open("rb")
        self.compression = compression_of(self._file.read(5))
        self.size = os.fstat(self._file.fileno()).st_size
        self._file.seek(position)
        self.buffer = bytearray()
        self._raw = b""  # read from the file and not decompressed yet
        self._raw_at = position  # position of the end of _raw
        self._taken_at = position  # plain: position of the buffer's start
        self._member_at = position
        self._ended = False
        self._delivered = 0  # bytes of the current member that have been in the buffer
        self._damage: Damaged | None = None  # raised once the bytes before it were returned
        self._inflater = zlib.decompressobj(31) if self.compression == "gzip" else None
        self._zstd = ZstdReader(self._file) if self.compression == "zstd" else None
        self._decoder = _decoder_of(self.compression)

    @property
    def position(self) -> int:
        return self._taken_at if self.compression == "plain" else self._member_at

    @property
    def fresh(self) -> bool:
        """Whether a new Stream at `position` has the bytes of the buffer: always, if the file is plain."""
        return self.compression == "plain" or self._delivered == len(self.buffer)

    @property
    def bytes_read(self) -> int:
        """Compressed bytes consumed, for a progress bar."""
        return self._file.tell() if self._zstd is not None else self._raw_at

    def fill(self) -> bool:
        """Appends at least one byte of the current member to the buffer; False at its end. Raises Damaged, OSError."""
        if self._ended:
            return False
        data = self._piece()
        self._ended = not data
        self._delivered += len(data)
        self.buffer += data
        return bool(data)

    def take(self, count: int) -> bytes:
        """Removes and returns the first `count` bytes of the buffer."""
        data = bytes(self.buffer[:count])
        del self.buffer[:count]
        self._taken_at += count
        return data

    def want(self, count: int) -> bool:
        """Fills the buffer up to `count` bytes; False if the member has fewer left."""
        while len(self.buffer) < count:
            if not self.fill():
                return False
        return True

    def skip(self, count: int) -> int:
        """Drops up to `count` bytes of the current member, in constant memory. Returns the number of dropped bytes."""
        left = count
        while left:
            if not self.buffer and self.compression == "plain":
                step = min(left, self.size - self._raw_at)
                self._raw_at = self._file.seek(self._raw_at + step)
                self._taken_at += step
                return count - left + step
            if not self.buffer and not self.fill():
                return count - left
            step = min(left, len(self.buffer))
            self.take(step)
            left -= step
        return count

    def next_member(self) -> bool:
        """Goes to the next gzip member after `fill` was False; False at the end of the file. Raises Damaged."""
        if self._inflater is None or not self._ended:
            return False
        self._raw = self._raw.lstrip(b"\0")  # zeros may pad a member
        while not self._raw:
            if not self._read_raw():
                return False
            self._raw = self._raw.lstrip(b"\0")
        self._start_member(self._raw_at - len(self._raw))
        while len(self._raw) < 3 and self._read_raw(keep=True):
            pass
        if not self._raw.startswith(_GZIP):
            raise Damaged(self._member_at, "what follows a gzip member is not one")
        return True

    def resume_after(self, position: int, fits: Callable[[bytes], bool]) -> bool:
        """After damage: goes to the first gzip member after `position` whose first bytes satisfy `fits`.

        False if there is none (always, where the file is not gzip).
        """
        if self._inflater is None:
            return False
        self.buffer.clear()
        at = self.first_member(position + 1, self.size, fits, _RESUME_TRIES_MAX)
        if at is not None:
            self._raw, self._raw_at = b"", at
            self._file.seek(at)
            self._start_member(at)
            return True
        self._ended, self._raw, self._raw_at = True, b"", self.size
        self._file.seek(0, os.SEEK_END)
        return False

    def first_member(self, start: int, stop: int, fits: Callable[[bytes], bool], tries_max: int) -> int | None:
        """Returns the first position in [start, stop) where by all appearances a gzip member starts that `fits`.

        Compressed data may contain the bytes of another gzip file, so only a reader that comes from before knows. Moves
        the file: `resume_after` and readers of nothing else call this. tries_max: most positions that are tried.
        """
        for at in islice(self._places(start, _GZIP, stop), tries_max):
            self._file.seek(at)
            with suppress(zlib.error):
                if fits(zlib.decompressobj(31).decompress(self._file.read(4096), 64)):
                    return at
        return None

    def close(self) -> None:
        self._file.close()

    def _start_member(self, at: int) -> None:
        self._member_at = at
        self._inflater = zlib.decompressobj(31)
        self._ended, self._delivered, self._damage = False, 0, None

    def _read_raw(self, keep: bool = False) -> bool:
        piece = self._file.read(_RAW_BYTES)
        self._raw = self._raw + piece if keep else piece
        self._raw_at += len(piece)
        return bool(piece)

    def _piece(self) -> bytes:
        """The next decompressed bytes of the current member, b"" at its end."""
        if self._damage is not None:
            raise self._damage
        if self._zstd is not None:
            try:
                return bytes(self._zstd.read(PIECE_BYTES))
            except _ZSTD_ERRORS as error:
                self._damage = Damaged(self._member_at, f"zstd: {error}")
                if salvaged := self._salvage():
                    return salvaged
                raise self._damage from error
        if self._decoder is not None:
            return self._decoded()
        if self._inflater is None:
            self._read_raw()
            data, self._raw = self._raw, b""
            return data
        while not self._inflater.eof:
            more = bool(self._raw) or self._read_raw()
            try:
                data = self._inflater.decompress(self._raw, PIECE_BYTES)
            except zlib.error as error:
                self._damage = Damaged(self._member_at, f"gzip: {error}")
                if salvaged := self._salvage():
                    return salvaged
                raise self._damage from error
            self._raw = self._inflater.unused_data if self._inflater.eof else self._inflater.unconsumed_tail
            if data:
                return data
            if not more and not self._inflater.eof:
                raise Damaged(self._member_at, "the gzip member is cut off")
        return b""

    def _decoded(self) -> bytes:
        """The next bytes of a bz2 or xz file, which may consist of several streams."""
        assert self._decoder is not None
        while True:
            if self._decoder.eof:
                self._raw = self._decoder.unused_data.lstrip(b"\0")  # zeros may pad a stream
                while not self._raw:
                    if not self._read_raw():
                        return b""
                    self._raw = self._raw.lstrip(b"\0")
                self._decoder = _decoder_of(self.compression)
                assert self._decoder is not None
            if self._decoder.needs_input and not self._raw and not self._read_raw():
                raise Damaged(self._member_at, f"the {self.compression} file is cut off")
            raw, self._raw = (self._raw, b"") if self._decoder.needs_input else (b"", self._raw)
            try:
                data = self._decoder.decompress(raw, PIECE_BYTES)
            except (OSError, ValueError, lzma.LZMAError) as error:
                self._damage = Damaged(self._member_at, f"{self.compression}: {error}")
                raise self._damage from error
            if data:
                return data

    def _salvage(self) -> bytes:
        """Returns the bytes before the damage that `fill` has not returned.

        An error of the decompressor loses a whole piece, so the member is decompressed again in smaller pieces.
        """
        out, given = bytearray(), self._delivered
        with suppress(zlib.error, *_ZSTD_ERRORS):
            for data in self._unzstd() if self._zstd is not None else self._ungzip():
                out += data[given:]
                given = max(0, given - len(data))
        return bytes(out)

    def _ungzip(self) -> Iterator[bytes]:
        """Decompresses the member again from its start, in small pieces."""
        inflater = zlib.decompressobj(31)
        self._file.seek(self._member_at)
        try:
            while piece := self._file.read(64):
                yield inflater.decompress(piece)
        finally:
            self._file.seek(self._raw_at)

    def _unzstd(self) -> Iterator[bytes]:
        """Decompresses the file again: delivered bytes in pieces, then single bytes: a failed read loses its bytes."""
        left = self._delivered
        with open(self._file.name, "rb") as file:
            reader = ZstdReader(file)
            while piece := bytes(reader.read(min(left, PIECE_BYTES) or 1)):
                yield piece
                left = max(0, left - len(piece))

    def _places(self, start: int, needle: bytes, stop: int) -> Iterator[int]:
        """Yields the positions of `needle` in the file, from `start` to before `stop`."""
        at, kept = start, b""
        while at < stop + len(needle):
            self._file.seek(at)
            piece = self._file.read(PIECE_BYTES)
            if not piece:
                return
            window, window_at = kept + piece, at - len(kept)
            found = window.find(needle)
            while found >= 0:
                if window_at + found >= stop:
                    return
                yield window_at + found
                found = window.find(needle, found + 1)
            at += len(piece)
            kept = window[-(len(needle) - 1) :]


def decode_body(body: bytes, coding: str, bound: int) -> bytes | None:
    """Decodes one Content-Encoding, up to `bound` bytes of output, since a small body may decompress to gigabytes.

    Returns the readable part of a damaged body; None if there is none, or the coding is unknown. A body that is not
    encoded although its header says so is returned unchanged: some crawlers decode bodies and keep the header.
    """
    coding = coding.strip().lower()
    if coding in ("", "identity") or body.startswith(_FILES):
        return body[:bound]
    if coding in ("gzip", "x-gzip", "deflate") and body.startswith(_GZIP[:2]):
        return _inflate(body, 31, bound)
    if coding in ("gzip", "x-gzip"):
        return _whole(body, 15, bound) or body[:bound]
    if coding == "deflate":
        # Senders mean zlib by it, some send raw deflate (RFC 9110, section 8.4.1.2). Text may begin as raw deflate.
        whole = _whole(body, 15, bound) or _whole(body, -15, bound)
        return whole or _if_text(body, bound) or _inflate(body, 15, bound) or _inflate(body, -15, bound)
    if coding == "br":
        return _if_text(body, bound) or _read_bounded(BrotliReader(BytesIO(body)), bound)
    if coding == "zstd":
        return _read_bounded(ZstdReader(BytesIO(body)), bound) if body.startswith(_ZSTD) else body[:bound]
    # Some servers name a charset here, or `none`; browsers show such a page.
    return _if_text(body, bound)


def is_text(body: bytes) -> bool:
    """Whether bytes are those of a text, in any charset, and not of a compressed stream: by their first 1,024 bytes.

    A kilobyte of a compressed stream without a control character does not occur. Of less than 64 bytes such a stream
    may have none, so these must be UTF-8.
    """
    start = body[:_TEXT_BYTES]
    if start.startswith(_UTF_16):
        return True
    if _CONTROLS.search(start):
        return False
    if len(start) >= _TEXT_BYTES_MIN:
        return True
    try:
        start.decode()
    except UnicodeDecodeError:
        return False
    return True


def _if_text(body: bytes, bound: int) -> bytes | None:
    return body[:bound] if body.lstrip()[:1] == b"<" or is_text(body) else None


def _whole(body: bytes, window_bits: int, bound: int) -> bytes | None:
    """Decodes a stream that is complete, or longer than the bound; None for another one."""
    out, inflater = bytearray(), zlib.decompressobj(window_bits)
    try:
        data = body
        while data and not inflater.eof and len(out) < bound:
            out += inflater.decompress(data, min(PIECE_BYTES, bound - len(out)))
            data = inflater.unconsumed_tail
    except zlib.error:
        return None
    ended = inflater.eof and not inflater.unused_data.strip(b"\r\n\0")
    return bytes(out) if out and (ended or len(out) >= bound) else None


def _inflate(body: bytes, window_bits: int, bound: int) -> bytes | None:
    out, at = bytearray(), 0
    for _ in range(_BODY_MEMBERS_MAX):
        inflater = zlib.decompressobj(window_bits)
        while at < len(body) and len(out) < bound and not inflater.eof:
            piece = body[at : at + 4096]  # in pieces, so that what precedes the damage is kept
            try:
                out += inflater.decompress(piece, bound - len(out))
            except zlib.error:
                return bytes(out) or None
            at += len(piece) - len(inflater.unused_data)
        if window_bits != 31 or len(out) >= bound or not body.startswith(_GZIP, at):
            break
    return bytes(out) or None


def _read_bounded(reader: BrotliReader | ZstdReader, bound: int) -> bytes | None:
    out = bytearray()
    while len(out) < bound:
        try:
            piece = reader.read(min(PIECE_BYTES, bound - len(out)))
        except (OSError, ValueError, EOFError):
            break
        if not piece:
            break
        out += piece
    return bytes(out) or None
