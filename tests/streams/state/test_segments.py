"""The segment log: what was appended is read, whatever was torn off."""

import os
import resource
import signal
import threading
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from neardup.errors import CorruptRecord, StateError
from streams.state.segments import MAGIC, SegmentLog

PAYLOADS = [bytes([i]) * (i * 37 % 200) for i in range(40)]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[SegmentLog]:
    log = SegmentLog(tmp_path / "log", segment_bytes=1000)
    for payload in PAYLOADS:
        log.append(payload)
    yield log
    log.close()


def segments(log: SegmentLog) -> list[Path]:
    return sorted(log.directory.iterdir())


def test_appended_messages_are_read_from_any_offset(log: SegmentLog) -> None:
    assert len(segments(log)) > 3, "the log must have rolled"
    for start in range(len(PAYLOADS) + 1):
        assert list(log.read(start)) == list(enumerate(PAYLOADS))[start:]
    assert list(log.read(5, 9)) == list(enumerate(PAYLOADS))[5:9]


def test_a_log_opened_again_goes_on(log: SegmentLog) -> None:
    log.close()
    again = SegmentLog(log.directory, segment_bytes=1000)
    assert (again.end(), again.warnings) == (len(PAYLOADS), [])
    assert again.append(b"more") == len(PAYLOADS)
    assert list(again.read(len(PAYLOADS) - 1)) == [(39, PAYLOADS[39]), (40, b"more")]
    again.close()


@pytest.mark.slow
def test_a_log_torn_at_any_byte_keeps_its_whole_frames(tmp_path: Path) -> None:
    whole = SegmentLog(tmp_path / "whole")
    ends = []
    for payload in PAYLOADS[:6]:
        whole.append(payload)
        ends.append(segments(whole)[0].stat().st_size)
    whole.close()
    data = segments(whole)[0].read_bytes()
    for size in range(len(data)):
        torn = tmp_path / f"torn{size}"
        torn.mkdir()
        (torn / f"{0:020d}.segment").write_bytes(data[:size])
        log = SegmentLog(torn)
        kept = sum(end <= size for end in ends)
        assert [payload for _, payload in log.read()] == PAYLOADS[:kept], size
        assert len(log.warnings) == (size not in (*ends, len(MAGIC))), size
        assert log.append(b"next") == kept, size
        assert [payload for _, payload in log.read()] == [*PAYLOADS[:kept], b"next"], size
        log.close()


def test_a_tail_of_rubbish_is_cut(log: SegmentLog) -> None:
    log.close()
    with segments(log)[-1].open("ab") as file:
        file.write(bytes(300))
    again = SegmentLog(log.directory)
    assert again.end() == len(PAYLOADS)
    assert "cut 300 bytes" in again.warnings[0]
    again.close()


def test_damage_before_the_tail_is_reported_not_cut(log: SegmentLog) -> None:
    log.append(b"a" * 50)
    log.append(b"b" * 50)
    log.close()
    last = segments(log)[-1]
    data = bytearray(last.read_bytes())
    data[len(data) - 60 - 20] ^= 1  # in the frame before the last
    last.write_bytes(data)
    with pytest.raises(CorruptRecord, match=r"byte \d+ \(offset 40\)"):
        SegmentLog(log.directory)
    assert last.read_bytes() == data


def test_damage_in_an_older_segment_is_found_on_reading(log: SegmentLog) -> None:
    log.close()
    first = segments(log)[0]
    data = bytearray(first.read_bytes())
    data[-1] ^= 1
    first.write_bytes(data)
    again = SegmentLog(log.directory)
    with pytest.raises(CorruptRecord, match=r"0\.segment: the frame at byte"):
        list(again.read())
    again.close()


def test_a_lost_segment_is_found_on_reading(log: SegmentLog) -> None:
    log.close()
    segments(log)[1].unlink()
    again = SegmentLog(log.directory)
    with pytest.raises(CorruptRecord):
        list(again.read())
    again.close()


def test_a_file_that_is_no_segment(tmp_path: Path) -> None:
    (tmp_path / f"{0:020d}.segment").write_bytes(b"something else entirely")
    with pytest.raises(CorruptRecord, match="not a segment"):
        SegmentLog(tmp_path)


@pytest.mark.parametrize("offset", [0, 1, 7, 20, 39, 40, 99])
def test_truncate_cuts_later_messages(log: SegmentLog, offset: int) -> None:
    log.truncate(offset)
    kept = min(offset, len(PAYLOADS))
    assert [payload for _, payload in log.read()] == PAYLOADS[:kept]
    assert log.append(b"new") == kept
    log.close()
    again = SegmentLog(log.directory)
    assert [payload for _, payload in again.read()] == [*PAYLOADS[:kept], b"new"]
    again.close()


def test_no_room_takes_the_half_written_frame_back(tmp_path: Path) -> None:
    log = SegmentLog(tmp_path)
    log.append(b"first")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, before[1]))
        with pytest.raises(StateError, match=r"make room, then run the same command again"):
            log.append(b"x" * 5000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert log.append(b"second") == 1
    log.close()
    again = SegmentLog(tmp_path)
    assert (list(again.read()), again.warnings) == ([(0, b"first"), (1, b"second")], [])
    again.close()


def test_sync_makes_appended_messages_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = SegmentLog(tmp_path / "log")
    log.append(b"first")
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    for payload in (b"second", b"third"):
        log.append(payload)
        log.sync()
        log.sync()  # nothing new
    assert len(synced) == 2
    log.close()


def test_a_length_that_is_damage_is_not_allocated(tmp_path: Path) -> None:
    log = SegmentLog(tmp_path / "log")
    log.append(b"whole")
    log.close()
    with segments(log)[0].open("ab") as file:
        file.write(b"\xff\xff\xff\x3f" + (1).to_bytes(8, "little") + bytes(40))
    tracemalloc.start()
    again = SegmentLog(log.directory)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (list(again.read()), peak < 10_000_000) == ([(0, b"whole")], True)
    again.close()


def test_a_frame_may_be_as_large_as_the_verdicts_of_a_takedown(tmp_path: Path) -> None:
    """A takedown of a site has a verdict for each of its pages, in one frame, and each open of the log folds it."""
    log, large = SegmentLog(tmp_path), bytes(65 << 20)
    for payload in (b"before", large, b"behind"):
        log.append(payload)
    log.close()
    again = SegmentLog(tmp_path)
    assert (again.end(), again.warnings) == (3, [])
    assert [payload for _, payload in again.read()] == [b"before", large, b"behind"]
    again.truncate(2)
    assert list(again.read(1)) == [(1, large)]
    again.close()


def test_a_reader_in_another_thread_sees_whole_frames(tmp_path: Path) -> None:
    log = SegmentLog(tmp_path, segment_bytes=500)
    seen: list[list[tuple[int, bytes]]] = []
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            seen.append(list(log.read()))

    reader = threading.Thread(target=read)
    reader.start()
    for payload in PAYLOADS * 5:
        log.append(payload)
    stop.set()
    reader.join()
    assert seen
    assert all(got == list(enumerate(PAYLOADS * 5))[: len(got)] for got in seen)
    log.close()
