"""Replayed verdicts of a stretch of the log: the same bytes, whatever the stretch and the batches."""

import io
import json
import random
from pathlib import Path

import orjson
import pytest

from neardup.decider import Decider
from neardup.errors import BadInput
from neardup.index.memory import MemoryStore
from neardup.limits import PLACE_BITS
from neardup.matching.batch_verdicts import BatchVerdicts
from neardup.scheme import Scheme
from neardup.sketch.header import Header
from streams.errors import PositionLost
from streams.formats.message import NewDecider, decode_message, encode_control
from streams.pipeline.matcher import Matcher
from streams.scan.scan import scan
from streams.state.scan_directory import ScanDirectory
from streams.verdicts.replay import Present, Stretch, log_time_of, replay_scan, replayed
from tests.streams.archives import crawl, small_messages, write_warc
from tests.streams.shell import Shell

SCHEME = Scheme(seed=7)


@pytest.fixture(autouse=True)
def many_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    small_messages(monkeypatch)


def scanned(tmp_path: Path, pages: int = 40) -> Path:
    """A directory with two scans, of which the second repeats some of the first, and a change of the rule between."""
    path = tmp_path / "state"
    with ScanDirectory.open(path, scheme=SCHEME) as state:
        scan([write_warc(tmp_path / "a.warc", crawl(pages))], state)
    with ScanDirectory.open(
        path, decider=lambda scheme: Decider(scheme.digest, tape_min=0.9), new_decider=True
    ) as state:
        scan([write_warc(tmp_path / "b.warc", crawl(pages + 9)[7:])], state)
    return path


def lines(state: ScanDirectory) -> list[tuple[int, bytes]]:
    """(offset, line) of every verdict that is kept."""
    return [(verdict["page_id"] >> PLACE_BITS, orjson.dumps(verdict)) for verdict in state.verdicts()]


def again(state: ScanDirectory, stretch: Stretch) -> list[bytes]:
    out = io.BytesIO()
    done = replay_scan(state, stretch, out)
    values = out.getvalue().splitlines()
    assert (done.verdicts, done.kept, done.differing) == (len(values), len(values), 0)
    return values


@pytest.mark.slow
def test_any_stretch_is_replayed_byte_for_byte(tmp_path: Path) -> None:
    with ScanDirectory.open(scanned(tmp_path)) as state:
        kept, end = lines(state), state.log.end()
        assert end > 20, "enough messages"
        chance = random.Random(3)
        for _ in range(6):
            start, stop = sorted(chance.sample(range(end + 1), 2))
            assert again(state, Stretch(start, stop)) == [line for at, line in kept if start <= at < stop]
        assert again(state, Stretch()) == [line for _, line in kept]


@pytest.mark.slow
def test_a_stretch_of_log_time(tmp_path: Path) -> None:
    with ScanDirectory.open(scanned(tmp_path)) as state:
        times, latest = {}, 0
        for offset, data in state.log.read(0):
            latest = max(latest, log_time_of(data, offset))
            times[offset] = latest
            if data[1] == 0:
                headers = [Header(record) for record in decode_message(data, offset).records]
                assert log_time_of(data, offset) == max(header.log_time for header in headers)
        middle = sorted(times.values())[len(times) // 2]
        since = Stretch(since_ms=middle)
        assert again(state, since) == [line for at, line in lines(state) if times[at] >= middle]
        assert again(state, Stretch(until_ms=middle)) == [line for at, line in lines(state) if times[at] < middle]


def test_changed_verdicts_are_counted(tmp_path: Path) -> None:
    path = scanned(tmp_path)
    with ScanDirectory.open(path) as state:
        real = state.kept_lines
        state.kept_lines = lambda: lambda verdict: (real(), b"{}")[1]  # type: ignore[method-assign]
        done = replay_scan(state, Stretch(0, 3), io.BytesIO())
    assert done.differing == done.kept == done.verdicts > 0


def test_a_stretch_of_nothing_is_refused() -> None:
    for wrong in ({"start": 4, "stop": 4}, {"since_ms": 5, "until_ms": 3}):
        with pytest.raises(BadInput, match="holds nothing"):
            Stretch(**wrong)


def test_a_store_past_the_stretch_is_refused(tmp_path: Path) -> None:
    with ScanDirectory.open(scanned(tmp_path)) as state:
        matcher = Matcher(MemoryStore(), state.first_decider)
        list(replayed(state.log.read(0), matcher, Stretch(5, 9)))
        assert matcher.next_offset == 9
        with pytest.raises(PositionLost, match="past the stretch's start"):
            list(replayed(state.log.read(9), matcher, Stretch(5, 12)))


def test_void_control_record_changes_nothing(tmp_path: Path) -> None:
    with ScanDirectory.open(scanned(tmp_path, 8)) as state:
        stranger = Decider(state.scheme.digest, tape_min=0.5)
        state.log.append(encode_control(NewDecider(stranger, state.decider)))
        state.catch_up()
        assert again(state, Stretch()) == [line for _, line in lines(state)]


@pytest.mark.slow
def test_the_command(shell: Shell, tmp_path: Path) -> None:
    path = scanned(tmp_path, 12)
    result = shell("replay", str(path), "--from", "1", "--to", "3")
    assert {json.loads(line)["page_id"] >> PLACE_BITS for line in result.out.splitlines()} == {1, 2}
    assert result.err.endswith("different: 0\n")
    file = tmp_path / "again.jsonl"
    shell("replay", str(path), "--out", str(file))
    with ScanDirectory.open(path) as state:
        assert file.read_bytes().splitlines() == [line for _, line in lines(state)]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["nowhere"], "nowhere is no state directory"),
        (["--out", "x", "--to-topic", "t"], "choose one"),
        (["--from", "3", "--to", "3"], "holds nothing"),
        (["--since", "end"], "is no time"),
    ],
)
def test_bad_input(shell: Shell, options: list[str], words: str) -> None:
    result = shell("replay", *options)
    assert result.code == 2
    assert words in result.err


def test_present_lets_no_verdict_behind_a_newer_one_of_its_url(tmp_path: Path) -> None:
    """Whatever the topic has lost: after each replay its last verdict of each URL is the newest one."""
    with ScanDirectory.open(scanned(tmp_path)) as state:
        whole = [verdict for verdicts in replayed_of(state) for verdict in verdicts]
    assert len({verdict.url for verdict in whole}) < len(whole)
    newest = {verdict.url: verdict.to_json() for verdict in whole}
    log, chance = "", random.Random(5)
    for lost in (0.0, 0.5, 1.0, "compacted"):
        topic = [verdict for verdict in whole if not isinstance(lost, str) and chance.random() >= lost]
        if lost == "compacted":
            topic = list({verdict.url: verdict for verdict in whole}.values())
        for again in range(2):
            present = Present(log, "")
            for verdict in topic:
                present.add(orjson.loads(verdict.to_json()))
            present.add({"url": "http://x.example/", "page_id": 1 << 62, "n": 0, "log": log, "generation": "other"})
            lacking = present.missing(whole)
            assert not (again and lacking)
            assert lost != "compacted" or not lacking
            topic += lacking
        assert {verdict.url: verdict.to_json() for verdict in topic} == newest
        assert lost != 1.0 or topic == whole


def replayed_of(state: ScanDirectory) -> list[BatchVerdicts]:
    return list(replayed(state.log.read(0), Matcher(MemoryStore(), state.first_decider), Stretch()))
