"""An append-only log in files: the sketch log and the verdicts of a scan.

The log is a directory of segments, named by the offset of their first frame: `00000000000000000000.segment`. A segment
is MAGIC, then frames, little-endian: payload bytes u32, offset u64, XXH64 of (those two fields, payload) u64, payload.
Offsets ascend by one over all segments. A crash can leave one torn frame at the end of the last segment, which the next
opening cuts. Damage anywhere else is reported, never cut, because readers have used those frames.
"""

import os
import struct
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import xxhash

from neardup.errors import CorruptRecord
from streams.process.disk import state_error, state_errors, sync

MAGIC = b"neardup segment 1\n"
_FRAME = struct.Struct("<IQQ")
_SUMMED = struct.Struct("<IQ")
#: Greatest length of a frame. A message of the log has about 1 MB at most, but the verdicts of a takedown grow with its
#: pages. A length beyond the end of the file is damage, and is not allocated.
PAYLOAD_BYTES_MAX = (1 << 32) - 1
SEGMENT_BYTES = 256 << 20


class SegmentLog:
    """A log with one writer. Readers in other threads see every frame whose `append` has returned."""

    def __init__(self, directory: Path, *, segment_bytes: int = SEGMENT_BYTES) -> None:
        """Opens or creates the log. A torn tail is cut, with an entry in `warnings`.

        Raises CorruptRecord if frames are damaged before the tail, StateError if the directory cannot be written.
        """
        self.directory = directory
        self.warnings: list[str] = []
        self._segment_bytes = segment_bytes
        self._file: BinaryIO | None = None
        self._unsynced = False
        with state_errors("open the log", directory):
            directory.mkdir(parents=True, exist_ok=True)
            self._starts = sorted(int(p.stem) for p in directory.glob("*.segment"))
            self._end = self._check_last()

    def end(self) -> int:
        """The offset after the last frame."""
        return self._end

    def append(self, payload: bytes) -> int:
        """Writes one frame and returns its offset. It is durable after `sync`.

        Raises StateError if nothing was written.
        """
        assert len(payload) <= PAYLOAD_BYTES_MAX, "the length of a frame has 32 bits"
        file = self._writable()
        offset, before = self._end, file.tell()
        head = _FRAME.pack(len(payload), offset, _checksum(len(payload), offset, payload))
        try:
            _write_all(file, head + payload)
        except OSError as error:
            self._take_back(file, before)
            raise state_error("write to", Path(file.name), error) from error
        self._end = offset + 1
        self._unsynced = True
        return offset

    def sync(self) -> None:
        """Makes every appended frame durable."""
        if self._file is None or not self._unsynced:
            return
        with state_errors("sync", Path(self._file.name)):
            os.fsync(self._file.fileno())
        self._unsynced = False

    def read(self, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, bytes]]:
        """Yields (offset, payload) of the frames from `start` to before `stop`, at most to the log's end at the call.

        Raises CorruptRecord with file, byte and offset.
        """
        yield from read_frames(self.directory, start, self._end if stop is None else min(stop, self._end))

    def truncate(self, offset: int) -> None:
        """Cuts all frames from `offset` on. A no-op at or beyond the end."""
        if offset >= self._end:
            return
        with state_errors("cut", self.directory):
            self._close_file()
            while self._starts and self._starts[-1] >= offset and self._starts[-1] > 0:
                _path(self.directory, self._starts.pop()).unlink()
            if self._starts:
                with _path(self.directory, self._starts[-1]).open("r+b") as file:
                    _check_magic(file)
                    for at in range(self._starts[-1], offset):
                        if _next(file, at, skip=True) is None:
                            raise CorruptRecord(f"{file.name}: the frame of offset {at} is damaged")
                    file.truncate()
                    os.fsync(file.fileno())
        self._end = offset

    def close(self) -> None:
        self.sync()
        self._close_file()

    def _close_file(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _writable(self) -> BinaryIO:
        """The open file of the last segment; a new one if the last one is full."""
        with state_errors("write to", self.directory):
            if self._file is not None and self._file.tell() < self._segment_bytes:
                return self._file
            if self._file is not None or not self._starts:
                self.sync()
                self._close_file()
                self._make_segment(self._end)
            path = _path(self.directory, self._starts[-1])
            # Unbuffered: `append` returns after its bytes are in the kernel, so only a loss of power can undo it.
            self._file = path.open("r+b", buffering=0)
            self._file.seek(0, os.SEEK_END)
            return self._file

    def _make_segment(self, first: int) -> None:
        path = _path(self.directory, first)
        with path.open("wb", buffering=0) as file:
            _write_all(file, MAGIC)
            os.fsync(file.fileno())
        sync(self.directory)
        self._starts.append(first)

    def _take_back(self, file: BinaryIO, size: int) -> None:
        """Removes a half-written frame. If that fails, too, the next opening of the log cuts it."""
        try:
            file.truncate(size)
            file.seek(size)
        except OSError:
            self._close_file()

    def _check_last(self) -> int:
        """Checks the frames of the last segment, cuts a torn tail, and returns the log's end."""
        while self._starts:
            first = self._starts[-1]
            path = _path(self.directory, first)
            if path.stat().st_size >= len(MAGIC):
                break
            # Left by a crash between the creation of the file and its first sync.
            self.warnings.append(f"{path}: cut a segment that never got a frame")
            path.unlink()
            self._starts.pop()
        else:
            return 0
        with path.open("r+b") as file:
            _check_magic(file)
            offset, good = first, len(MAGIC)
            while _next(file, offset) is not None:
                offset, good = offset + 1, file.tell()
            size = file.seek(0, os.SEEK_END)
            if good < size:
                if _frame_follows(file, good, offset, size):
                    raise CorruptRecord(
                        f"{path}: the frame at byte {good} (offset {offset}) is damaged, and whole ones follow it; "
                        "restore this file from a copy, or scan the sources into a new state directory"
                    )
                self.warnings.append(f"{path}: cut {size - good} bytes of an unfinished frame at byte {good}")
                file.truncate(good)
                os.fsync(file.fileno())
        return offset


def read_frames(directory: Path, start: int, stop: int) -> Iterator[tuple[int, bytes]]:
    """Yields (offset, payload) of frames of a log that another process may be writing. Changes nothing.

    stop: offset before which reading ends, at most the durable end of the log. Raises CorruptRecord with file, byte and
    offset.
    """
    starts = sorted(int(p.stem) for p in directory.glob("*.segment"))
    if start >= stop:
        return
    if not starts or start < starts[0]:
        raise CorruptRecord(f"the log {directory} does not hold offset {start}")
    offset = None
    for first in starts[bisect_right(starts, start) - 1 :]:
        if offset is not None and first != offset:
            raise CorruptRecord(f"the log {directory} holds nothing from offset {offset} to {first}")
        offset = first
        with _path(directory, first).open("rb") as file:
            _check_magic(file)
            while offset < stop:
                at = file.tell()
                payload = _next(file, offset, skip=offset < start)
                if payload is None:
                    if at != file.seek(0, os.SEEK_END):
                        raise CorruptRecord(f"{file.name}: the frame at byte {at} (offset {offset}) is damaged")
                    break
                if offset >= start:
                    yield offset, payload
                offset += 1
        if offset >= stop:
            return
    raise CorruptRecord(f"the log {directory} ends at offset {offset}, and {stop} was expected")


def _path(directory: Path, first: int) -> Path:
    return directory / f"{first:020d}.segment"


def _next(file: BinaryIO, offset: int, skip: bool = False) -> bytes | None:
    """The payload of the frame at this place; None if there is no whole frame of that offset; b"" if skipped."""
    head = file.read(_FRAME.size)
    if len(head) < _FRAME.size:
        return None
    length, number, checksum = _FRAME.unpack(head)
    if number != offset or length > os.fstat(file.fileno()).st_size - file.tell():
        return None
    if skip:
        file.seek(length, os.SEEK_CUR)
        return b""
    payload = file.read(length)
    if len(payload) < length or _checksum(length, number, payload) != checksum:
        return None
    return payload


def _checksum(length: int, offset: int, payload: bytes) -> int:
    return xxhash.xxh64_intdigest(payload, xxhash.xxh64_intdigest(_SUMMED.pack(length, offset)))


def _write_all(file: BinaryIO, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]


def _check_magic(file: BinaryIO) -> None:
    found = file.read(len(MAGIC))
    if found != MAGIC:
        raise CorruptRecord(f"{file.name} is not a segment of version 1: it starts with {found[:20]!r}")


def _frame_follows(file: BinaryIO, at: int, offset: int, size: int) -> bool:
    """Whether a whole frame of a later offset follows the bad one at `at`, so that it is not a torn tail."""
    file.seek(at)
    head = file.read(_FRAME.size)
    if len(head) < _FRAME.size:
        return False
    length, number, _ = _FRAME.unpack(head)
    if number != offset or at + _FRAME.size + length + _FRAME.size > size:
        return False
    file.seek(at + _FRAME.size + length)
    following, number, checksum = _FRAME.unpack(file.read(_FRAME.size))
    if number != offset + 1 or following > size - file.tell():
        return False
    payload = file.read(following)
    return len(payload) == following and bool(_checksum(following, number, payload) == checksum)
