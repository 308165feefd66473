"""Scans that are stopped, that fail, or that must not start: their errors, and what the next scan finds."""

import os
import resource
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from neardup.errors import BadInput, InvariantBroken, StateError
from neardup.fold import fold
from streams.formats.compressed import Stream
from streams.pipeline import batch_fold
from streams.ports import SourceProgress
from streams.process.disk import written_alone
from streams.process.shutdown import stopped_by_signals
from streams.scan import blocks
from streams.scan.scan import scan
from streams.state.scan_directory import VerdictLog
from tests.oracle.fold.listed import ListedVerdicts
from tests.streams.archives import crawl, opened, records, small_messages, verdicts_in, write_folder, write_warc


def test_a_damaged_archive_does_not_stop_the_others(tmp_path: Path) -> None:
    bad = write_warc(tmp_path / "a.warc.gz", crawl(10))
    bad.write_bytes(bad.read_bytes()[:-30])
    good = write_warc(tmp_path / "b.warc.gz", crawl(10), base="http://b.example/")
    with opened(tmp_path / "state") as state:
        result = scan([bad, good], state)
        assert all(source.finished for source in state.sources.values())
        again = scan([good, bad, bad], state)
        assert (again.pages, again.problems, again.problems_total) == (0, result.problems, 1)
        assert scan([good], state).problems == []
    assert result.pages in (2 * len(crawl(10)) - 1, 2 * len(crawl(10)))
    assert len(result.problems) == result.problems_total == 1
    assert str(bad) in result.problems[0]


def test_a_bad_path_changes_nothing(tmp_path: Path) -> None:
    good = write_warc(tmp_path / "a.warc", crawl(3))
    with opened(tmp_path / "state") as state:
        with pytest.raises(BadInput, match=r"missing\.warc: no such file"):
            scan([good, tmp_path / "missing.warc"], state)
        assert (state.sources, state.log.end()) == ({}, 0)


def test_a_source_that_fails_while_read_is_left_unfinished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = write_warc(tmp_path / "a.warc", crawl(10))
    other = write_warc(tmp_path / "b.warc", crawl(3), base="http://b.example/")
    whole = Stream._piece

    def failing(stream: Stream) -> bytes:
        opens = threading.current_thread().name.startswith("neardup-digest")
        if stream._file.name.endswith("a.warc") and not opens:
            raise OSError(5, "Input/output error", "a.warc")
        return whole(stream)

    monkeypatch.setattr(Stream, "_piece", failing)
    with opened(tmp_path / "state") as state:
        result = scan([archive, other], state)
        assert "Input/output error" in result.problems[0]
        assert [source.finished for source in sorted(state.sources.values(), key=lambda s: s.path)] == [False, True]
        monkeypatch.setattr(Stream, "_piece", whole)
        assert scan([archive], state).pages == len(crawl(10))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_scan_and_the_next_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    small_messages(monkeypatch)
    archive = write_warc(tmp_path / "a.warc.gz", crawl(20))
    with opened(None) as state:
        scan([archive], state, out=str(tmp_path / "whole"))
    before = signal.getsignal(number)
    with opened(tmp_path / "state") as state:
        reported_at = []

        def interrupt(now: SourceProgress) -> None:
            if now.phase == "scan" and now.pages >= 6 and not reported_at:
                reported_at.append(now.pages)
                os.kill(os.getpid(), number)

        result = scan([archive], state, out=str(tmp_path / "out"), progress=interrupt)
        assert result.interrupted
        assert 6 <= result.pages < len(crawl(20))
        assert signal.getsignal(number) == before
        rest = scan([archive], state, out=str(tmp_path / "out"))
        assert rest.resumed == [str(archive)]
        assert not rest.interrupted
    assert (tmp_path / "out").read_bytes() == (tmp_path / "whole").read_bytes()


def test_damage_before_an_interruption_is_reported_after_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_messages(monkeypatch)
    parts = records(crawl(20), base="http://a.example/")
    archive = tmp_path / "a.warc"
    archive.write_bytes(parts[0] + b"no record\r\n\r\n" + b"".join(parts[1:]))

    def interrupt(now: SourceProgress) -> None:
        if now.phase == "scan" and now.pages >= 6:
            os.kill(os.getpid(), signal.SIGTERM)

    with opened(tmp_path / "state") as state:
        assert scan([archive], state, progress=interrupt).interrupted
    with opened(tmp_path / "state") as state:
        rest = scan([archive], state)
        assert rest.problems_total == len(rest.problems) == 1
        assert "no WARC record starts here" in rest.problems[0]
        (source,) = state.sources.values()
        assert (source.problems, source.problems_total) == (rest.problems, 1)


@pytest.mark.parametrize("broken", ["sketcher", "matcher"])
def test_an_error_in_either_thread_ends_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    small_messages(monkeypatch)
    archive = write_warc(tmp_path / "a.warc.gz", crawl(20))
    calls = []

    def fail(*given: Any, **named: Any) -> Any:
        calls.append(1)
        if len(calls) > 2:
            raise InvariantBroken("as planned")
        return real(*given, **named)

    where: tuple[Any, str] = (blocks, "contained_sketches") if broken == "sketcher" else (VerdictLog, "emit")
    real = getattr(*where)
    with opened(tmp_path / "state") as state:
        with monkeypatch.context() as patch:
            patch.setattr(*where, fail)
            with pytest.raises(InvariantBroken, match="as planned"):
                scan([archive], state)
        assert "neardup-sketcher" not in [thread.name for thread in threading.enumerate()]
        scan([archive], state)
        assert len(list(state.verdicts())) == len(crawl(20))


def test_verdicts_that_do_not_add_up_stop_the_scan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(*given: Any, **more: Any) -> Any:
        outcome = fold(*given, **more)
        outcome.verdicts = ListedVerdicts(outcome.verdicts[:-1])
        return outcome

    monkeypatch.setattr(batch_fold, "fold", forgetful)
    with opened(tmp_path / "state") as state, pytest.raises(InvariantBroken, match="page verdicts came out"):
        scan([write_warc(tmp_path / "a.warc", crawl(3))], state)


@pytest.mark.slow
@pytest.mark.parametrize("full", ["state", "out"])
def test_a_full_disk_is_reported_and_the_scan_goes_on_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full: str
) -> None:
    small_messages(monkeypatch)
    archive = write_warc(tmp_path / "a.warc.gz", crawl(60))
    with opened(None) as state:
        scan([archive], state, out=str(tmp_path / "whole"))
    room = 60_000 if full == "state" else 10_000
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with opened(tmp_path / "state") as state:
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, before[1]))
            with pytest.raises(StateError, match="make room, then run the same command again"):
                scan([archive], state, out=str(tmp_path / "out") if full == "out" else None)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
            signal.signal(signal.SIGXFSZ, ignored)
    with opened(tmp_path / "state") as state:
        scan([archive], state, out=str(tmp_path / "out"))
    assert (tmp_path / "out").read_bytes() == (tmp_path / "whole").read_bytes()


def test_out_that_cannot_be_written(tmp_path: Path) -> None:
    archive = write_warc(tmp_path / "a.warc", crawl(3))
    with opened(tmp_path / "state") as state, pytest.raises(StateError, match=r"cannot write .*/nowhere/out"):
        scan([archive], state, out=str(tmp_path / "nowhere" / "out"))


def test_out_is_never_a_file_to_scan(tmp_path: Path) -> None:
    archive = write_warc(tmp_path / "a.warc", crawl(3))
    (tmp_path / "link").symlink_to(archive)
    held = archive.read_bytes()
    with opened(tmp_path / "state") as state:
        for paths, out in (([archive], archive), ([tmp_path], archive), ([archive], tmp_path / "link")):
            with pytest.raises(BadInput, match="would be overwritten"):
                scan(paths, state, out=str(out))
        assert (archive.read_bytes(), state.sources) == (held, {})
        scan([archive], state)
        copy = tmp_path / "copy.warc"
        copy.write_bytes(held)  # known under another name
        with pytest.raises(BadInput, match="would be overwritten"):
            scan([copy], state, out=str(copy))


def test_nothing_is_written_over_a_page_of_a_folder(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "pages", crawl(3))
    page = folder / "page1.html"
    held = page.read_bytes()
    with opened(None) as state:
        for written in ({"out": str(page)}, {"written": [page]}):
            with pytest.raises(BadInput, match=r"page1\.html is one of the files to scan"):
                scan([folder], state, **written)  # type: ignore[arg-type]
        assert scan([folder], state, out=str(folder / "new.html")).pages == len(crawl(3))
    assert page.read_bytes() == held


def test_the_second_signal_ends_the_process_at_once() -> None:
    before = signal.getsignal(signal.SIGTERM)
    stop = threading.Event()
    with stopped_by_signals(stop):
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.wait(10)
        assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == [signal.SIG_DFL] * 2
    assert signal.getsignal(signal.SIGTERM) is before


def test_two_scans_do_not_write_one_file(tmp_path: Path) -> None:
    """The second one is refused, and the first one's verdicts are all there."""
    first = write_warc(tmp_path / "a.warc", crawl(10))
    second = write_warc(tmp_path / "b.warc", crawl(10), base="http://b.example/")
    out = tmp_path / "out"
    refused: list[str] = []

    def both(now: SourceProgress) -> None:
        if now.phase == "scan" and not refused:
            with opened(tmp_path / "other") as state, pytest.raises(StateError) as caught:
                scan([second], state, out=str(out))
            refused.append(str(caught.value))

    with opened(tmp_path / "state") as state:
        result = scan([first], state, out=str(out), progress=both)
    assert "is being written by another process; wait for it to end, or name another file" in refused[0]
    assert len(verdicts_in(out)) == result.pages == len(crawl(10))
    with opened(tmp_path / "other") as state:
        scan([second], state, out=str(out))
    assert len(verdicts_in(out)) == len(crawl(10))


def test_scans_may_share_an_out_that_is_no_file(tmp_path: Path) -> None:
    archive = write_warc(tmp_path / "a.warc", crawl(3))
    with written_alone(Path(os.devnull)), opened(None) as state:
        assert scan([archive], state, out=os.devnull).pages == len(crawl(3))
