"""What crashed crawlers and hostile people leave in WARC files: what can be read is read."""

import random
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.streams.archives import http, record
from tests.streams.formats.warcs import BODIES, PACKINGS, RECORDS, ZIPPED, gz, read, source, zstd


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("cut", [1, 3, 5, 20, 60, 100, 150])
def test_a_cut_archive_loses_its_last_record_alone(tmp_path: Path, zipped: bool, cut: int) -> None:
    data = b"".join(ZIPPED if zipped else RECORDS)[:-cut]
    pages, problems = read(tmp_path, data)
    assert [page.body for page in pages[:5]] == BODIES[:5]
    if not zipped and cut <= 4:
        assert (len(pages), problems) == (6, [])  # only line ends are missing
        return
    assert all(page.problem for page in pages[5:])
    assert len(problems) == 1
    assert problems[0].startswith(f"{len(b''.join((ZIPPED if zipped else RECORDS)[:5]))}: ")


@pytest.mark.parametrize("claim", [10**15, 10**30, -5, "many", ""])
def test_an_absurd_length_costs_its_record_alone(tmp_path: Path, claim: int | str) -> None:
    bad = record("http://a.example/bad", http(b"x"), length=claim)
    for pack in ("plain", "gzip per record", "one gzip member"):
        pages, problems = read(tmp_path, PACKINGS[pack]([*RECORDS[:2], bad, *RECORDS[3:]]))
        assert [page.url[-3:] for page in pages] == ["e/0", "e/1", "bad", "e/3", "e/4", "e/5"]
        assert "Content-Length" in pages[2].problem
        assert len(problems) == 1


def test_a_length_beyond_the_file_costs_its_record_alone(tmp_path: Path) -> None:
    bad = record("http://a.example/bad", http(b"x"), length=1_000_000)
    for pack in ("plain", "gzip per record"):
        pages, problems = read(tmp_path, PACKINGS[pack]([*RECORDS[:2], bad, *RECORDS[3:]]))
        assert [page.url[-3:] for page in pages] == ["e/0", "e/1", "bad", "e/3", "e/4", "e/5"]
        assert "has only" in pages[2].problem
        assert len(problems) == 1


@pytest.mark.parametrize(
    "garbage", [b"garbage", b"\r\n" * 50, bytes(3000), b"WARC", b"x\r\n\r\nWARC/\r\n", b"{}" * 40_000]
)
def test_garbage_between_records_is_stepped_over(tmp_path: Path, garbage: bytes) -> None:
    blank = not garbage.strip(b"\r\n")
    for pieces in (RECORDS, ZIPPED):
        padded = not pieces[0].startswith(b"WARC") and not garbage.strip(b"\0")
        pages, problems = read(tmp_path, b"".join([*pieces[:3], garbage, b"\r\n", *pieces[3:]]))
        assert [page.body for page in pages] == BODIES
        if pieces is RECORDS:
            assert len(problems) == (not blank)
        else:
            assert len(problems) == 1 or padded


@pytest.mark.slow
def test_a_damaged_member_costs_its_record_alone(tmp_path: Path) -> None:
    for at in range(10, len(ZIPPED[2])):
        bad = bytearray(ZIPPED[2])
        bad[at] ^= 0x55
        pages, problems = read(tmp_path, b"".join([*ZIPPED[:2], bad, *ZIPPED[3:]]))
        urls = [page.url for page in pages if not page.problem]
        assert urls == [f"http://a.example/{i}" for i in (0, 1, 3, 4, 5)], at
        assert len(problems) == 1, at


@pytest.mark.parametrize("many", [False, True])
def test_records_before_the_damage_of_a_zstd_file_are_read(tmp_path: Path, many: bool) -> None:
    bodies = [random.Random(i).randbytes(400_000 if many else 400) for i in range(6)]
    frames = [zstd(record(f"http://a.example/{i}", http(body))) for i, body in enumerate(bodies)]
    data = b"".join(frames)[:-200]
    archive = source(tmp_path, data, "x.warc.zst")
    archive._bound = 1_000_000
    pages = [page.page for page in archive.read()]
    good = [page.body for page in pages if not page.problem]
    # The record before the damage has nothing after it that would prove it.
    assert (good, len(pages) >= 5) == (bodies[: len(good)], True)
    assert len(good) >= 4
    assert ["zstd" in problem.what for problem in archive.problems] == [True]


def test_records_before_the_damage_of_a_shared_member_are_read(tmp_path: Path) -> None:
    bodies = [random.Random(i).randbytes(300).hex().encode() for i in range(20)]
    whole = gz(b"".join(record(f"http://a.example/{i}", http(body)) for i, body in enumerate(bodies)))
    bad = bytearray(whole)
    bad[len(bad) * 3 // 4] ^= 0x55
    pages, problems = read(tmp_path, bytes(bad))
    assert [page.body for page in pages if not page.problem][:12] == bodies[:12]
    assert problems


@pytest.mark.parametrize(
    "data", [b"", bytes(1000), b"WARC/1.0\r\n", b"WARC/", b"\x1f\x8b", b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd"]
)
def test_files_that_hold_nothing(tmp_path: Path, data: bytes) -> None:
    pages, problems = read(tmp_path, data)
    assert pages == []
    assert len(problems) == 1


def test_a_header_without_an_end(tmp_path: Path) -> None:
    pages, problems = read(tmp_path, b"WARC/1.0\r\n" + b"x" * 1_000_000 + b"\r\n\r\n" + RECORDS[0])
    assert [page.body for page in pages] == BODIES[:1]
    assert len(problems) == 1


@pytest.mark.slow
def test_a_header_is_read_up_to_its_bound(tmp_path: Path) -> None:
    archive = source(tmp_path, gz(b"WARC/1.0\r\n" + b"x" * 20_000_000 + b"\r\n\r\n" + RECORDS[0]), "x.warc.gz")
    tracemalloc.start()
    pages = list(archive.read())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (len(pages), peak < 5_000_000) == (1, True)


@pytest.mark.slow
def test_file_of_apparent_gzip_members_ends(tmp_path: Path) -> None:
    pages, problems = read(tmp_path, ZIPPED[0] + b"\x1f\x8b\x08\x00" * 300_000)
    assert len(pages) == 1
    assert problems


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.data())
def test_any_damage_is_survived(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    pack = data.draw(st.sampled_from(sorted(PACKINGS)))
    whole = bytearray(PACKINGS[pack](RECORDS))
    first = len(PACKINGS[pack](RECORDS[:1])) if pack in ("plain", "gzip per record") else 0
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(first, len(whole) - 1))
        if data.draw(st.booleans()):
            whole[at] = data.draw(st.integers(0, 255))
        elif data.draw(st.booleans()):
            del whole[at : at + data.draw(st.integers(1, 200))]
        else:
            whole[at:at] = data.draw(st.binary(max_size=50))
        if first >= len(whole):
            break
    pages, _ = read(tmp_path_factory.mktemp("warc"), bytes(whole))
    if first:
        assert pages[0].body == BODIES[0]
    assert len(pages) <= 12
