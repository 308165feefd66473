"""Log time of archives: moved by their dates, by no few wrong ones, and a function of the log alone."""

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from neardup.decider import Decider
from neardup.limits import DAY_MS
from neardup.sketch.header import Header
from streams.formats.message import Message, decode_entry
from streams.pipeline import batch_fold
from streams.ports import SourceProgress
from streams.scan import sketcher
from streams.scan.archive_time import DATES, MAJORITY, STEP_MS, ArchiveTime
from streams.scan.scan import scan
from streams.state.scan_directory import ScanDirectory
from tests.streams.archives import SCHEME, Sample, html, text, write_json_lines, write_warc

Y1970, Y2020, Y2024, Y2099 = 0, 1_577_836_800_000, 1_704_067_200_000, 4_070_908_800_000
MINUTE = 60_000
FAR = Y2020 + 400 * MINUTE


def times_of(dates: list[int], time: ArchiveTime | None = None) -> list[int]:
    """Log time at each page of an archive."""
    time = time or ArchiveTime()
    time.begin(dates[:DATES])
    return [time.advance(date) for date in dates]


def minutes(count: int, start: int = Y2020) -> list[int]:
    return [start + number * MINUTE for number in range(count)]


def with_wrong(dates: list[int], wrong: int, *places: int) -> list[int]:
    return [wrong if at in places else date for at, date in enumerate(dates)]


def test_dates_in_order_are_log_time() -> None:
    dates = minutes(400)
    times = times_of(dates)
    assert times[DATES // 2 :] == dates[DATES // 2 :]
    assert set(times[: DATES // 2]) == {dates[DATES // 2]}  # the median that the log began with


@pytest.mark.parametrize("place", [0, 1, 31, 62, 63, 200, 399])
@pytest.mark.parametrize("wrong", [Y1970, Y2020 + 2 * DAY_MS, Y2024, Y2099, (1 << 63) - 1])
def test_one_wrong_date_moves_log_time_no_further_than_the_others(place: int, wrong: int) -> None:
    times = times_of(with_wrong(minutes(400), wrong, place))
    assert times == sorted(times)
    assert Y2020 <= times[0] <= Y2020 + DATES * MINUTE
    assert FAR - 2 * MINUTE <= times[-1] < FAR


def test_a_minority_of_wrong_dates_does_not_move_log_time() -> None:
    for seed in range(20):
        chance = random.Random(seed)
        wrong = chance.sample(range(400), 60)  # of 63 in a row 9 or 10 on average
        dates = minutes(400)
        for at in wrong:
            dates[at] = chance.choice([Y1970, Y2024, Y2099, Y2099 + at])
        times = times_of(dates)
        assert times[0] >= Y2020
        assert times[-1] < FAR


def test_one_date_within_a_step_moves_log_time_by_no_more_than_the_step() -> None:
    times = times_of(with_wrong(minutes(400), Y2020 + 100 * MINUTE + STEP_MS, 100))
    assert max(times) <= FAR + STEP_MS


def test_a_second_archive_years_later_moves_log_time() -> None:
    time = ArchiveTime()
    times_of(minutes(400), time)
    later = times_of(minutes(400, Y2024), time)
    assert set(later[: MAJORITY - 1]) == {Y2020 + 399 * MINUTE}
    assert later[MAJORITY:] == minutes(400, Y2024)[MAJORITY:]


def test_small_archives_move_log_time_together() -> None:
    """Each a month after the one before."""
    time = ArchiveTime()
    for month in range(12):
        times_of(minutes(10, Y2020 + month * 30 * DAY_MS), time)
    assert Y2020 + 7 * 30 * DAY_MS < time.log_time <= Y2020 + 11 * 30 * DAY_MS


def test_small_archives_of_each_day_move_log_time_at_once() -> None:
    time = ArchiveTime()
    for day in range(12):
        times_of(minutes(10, Y2020 + day * DAY_MS), time)
    assert time.log_time == Y2020 + 11 * DAY_MS + 9 * MINUTE


def test_an_archive_in_no_order_of_time() -> None:
    """Log time lies among its dates, and is late rather than early: what it drops is old."""
    dates = [Y2020 + at * 4 * DAY_MS for at in range(400)]
    random.Random(1).shuffle(dates)
    times = times_of(dates)
    assert times == sorted(times)
    assert sorted(dates)[200] <= times[-1] <= max(dates)


def test_a_log_that_begins_with_old_dates_catches_up() -> None:
    dates = [Y1970] * 40 + minutes(400)
    assert times_of(dates)[-1] == dates[-1]


# ---- scans ----------------------------------------------------------------------------------------------------------


def pages(count: int, start: int = Y2020, first: int = 0) -> list[Sample]:
    return [Sample(f"{n}.html", html(f"t{n}", text(n)), start + n * MINUTE) for n in range(first, first + count)]


def dated(samples: list[Sample], wrong: int, *places: int) -> list[Sample]:
    return [replace(one, ms=wrong) if at in places else one for at, one in enumerate(samples)]


def opened(path: Path, expiry_days: int = 30) -> ScanDirectory:
    return ScanDirectory.open(
        path, scheme=SCHEME, decider=lambda scheme: Decider(scheme.digest, expiry_days=expiry_days)
    )


def log_of(state: ScanDirectory) -> list[tuple[int, bytes]]:
    return list(state.log.read())


def headers(state: ScanDirectory) -> list[Header]:
    entries = [decode_entry(data, offset) for offset, data in log_of(state)]
    return [Header(record) for entry in entries if isinstance(entry, Message) for record in entry.records]


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_fold, "PAGES_BETWEEN", 10)
    monkeypatch.setattr(sketcher, "MESSAGE_PAGES_MAX", 7)


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("wrong", [Y2099, Y1970])
@pytest.mark.parametrize("merge", [False, True], ids=["one after the other", "merged"])
def test_one_wrong_date_empties_no_index(tmp_path: Path, wrong: int, merge: bool) -> None:
    first = dated(pages(100), wrong, 40)
    copies = [replace(one, path=f"copy-{one.path}", ms=one.ms + 200 * MINUTE) for one in pages(100)]
    paths = [write_warc(tmp_path / "a.warc", first), write_warc(tmp_path / "b.warc", copies, base="http://b.example/")]
    with opened(tmp_path / "state") as state:
        result = scan(paths, state, merge=merge)
        assert result.counts == {"unique": 100, "exact_duplicate": 100}
        assert state.matcher.log_time < Y2020 + DAY_MS


@pytest.mark.usefixtures("often")
def test_a_second_archive_years_later_drops_the_first(tmp_path: Path) -> None:
    with opened(tmp_path / "state") as state:
        scan([write_warc(tmp_path / "a.warc", pages(100))], state)
        scan([write_warc(tmp_path / "b.warc", pages(200, Y2024, first=100), base="http://b.example/")], state)
        assert state.matcher.log_time == Y2024 + 299 * MINUTE
        again = scan([write_warc(tmp_path / "c.warc", pages(100, Y2024 + DAY_MS), base="http://c.example/")], state)
        assert again.counts == {"unique": 100}


class Killed(Exception):
    pass


def interrupted(paths: list[Path], folder: Path, after: int, **options: Any) -> None:
    """A scan that is killed after some messages: its log has more than its index."""
    left = [after]

    def progress(now: SourceProgress) -> None:
        left[0] -= now.phase == "scan"
        if not left[0]:
            raise Killed

    with opened(folder) as state, pytest.raises(Killed):
        scan(paths, state, progress=progress, **options)


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("after", [1, 5, 12, 20])
def test_a_scan_that_was_killed_gives_the_same_log(tmp_path: Path, after: int) -> None:
    wild = dated(dated(pages(60), Y2099, 0, 7, 30), Y1970, 1, 20)
    paths = [
        write_warc(tmp_path / "a.warc", wild),
        write_json_lines(tmp_path / "b.jsonl", pages(50)),
        write_warc(tmp_path / "c.warc", dated(pages(60, Y2024), Y2020, 3, 5), base="http://c.example/"),
    ]
    logs = []
    for folder in (tmp_path / "whole", tmp_path / "killed"):
        if folder.name == "killed":
            interrupted(paths, folder, after)
        with opened(folder) as state:
            scan(paths, state)
            logs.append(log_of(state))
            assert state.matcher.log_time >= Y2024
    assert logs[0] == logs[1]


def test_a_page_without_a_date_counts_as_its_file_and_moves_log_time_as_others_do(tmp_path: Path) -> None:
    line = b'{"url": "http://a.example/%d", "body": "<p>wool"}'
    path = tmp_path / "a.jsonl"
    with opened(tmp_path / "state") as state:
        scan([write_warc(tmp_path / "a.warc", pages(100))], state)
        path.write_bytes(b"\n".join(line % number for number in range(40)))
        scan([path], state)
        mtime = path.stat().st_mtime_ns // 1_000_000
        found = headers(state)[100:]
        assert {header.fetched_at for header in found} == {mtime}
        assert [header.log_time for header in found] == [Y2020 + 99 * MINUTE] * (MAJORITY - 1) + [mtime] * (
            41 - MAJORITY
        )
