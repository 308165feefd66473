"""Progress of a backfill: on a bar, or in the log."""

import io
import logging
import sys

import pytest

from streams.commands.output import bar
from streams.process import logs
from streams.roles.backfill import LOG_SECONDS, BackfillProgress


class Steps:
    """A clock that advances by some seconds with each call."""

    def __init__(self, seconds: float) -> None:
        self.now, self._seconds = 0.0, seconds

    def __call__(self) -> float:
        self.now += self._seconds
        return self.now


def test_a_bar_gets_each_report_with_the_rate_of_its_phase() -> None:
    reported: list[tuple[str, int, int, float]] = []
    progress = BackfillProgress(lambda *expected: reported.append(expected), Steps(2.0))
    for what, done, total in (("bytes of archives", 50, 90), ("bytes of archives", 90, 90), ("pages", 3, 8)):
        progress.report(what, done, total)
    progress.report("pages", 7, 8)
    progress.report_live()
    assert reported[:4] == [
        ("bytes of archives", 50, 90, 0.0),
        ("bytes of archives", 90, 90, 20.0),
        ("pages", 3, 8, 0.0),
        ("pages", 7, 8, 2.0),
    ]
    assert reported[4][0] == "caught up, follows the live topic"


def test_without_a_bar_the_log_gets_a_line_at_intervals(caplog: pytest.LogCaptureFixture) -> None:
    progress = BackfillProgress(None, Steps(LOG_SECONDS / 2))
    with caplog.at_level(logging.INFO):
        for done in range(0, 50, 10):
            progress.report("pages", done, 100)
    values = [record.fields for record in caplog.records]  # type: ignore[attr-defined]
    assert values == [
        {"of": "pages", "done": 10, "total": 100, "per_s": 2, "left_s": 45},
        {"of": "pages", "done": 30, "total": 100, "per_s": 2, "left_s": 35},
    ]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_person_sees_rate_and_time_left_and_lines_of_the_log_above(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    with bar(shown=True, counts=True) as drawn:
        assert drawn.watched
        handler = logs.configure()
        drawn.backfill("pages", 300, 1000, 25.0)
        logs.get("backfill").info("something happened")
        logs.release(handler)
    seen = screen.getvalue()
    assert "300 of 1,000 pages, 25/s" in seen
    assert "-:--:--" in seen, "the time left, once it is known"
    (line,) = [each for each in seen.splitlines() if "something happened" in each]
    assert "pages" not in line
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with bar(shown=True, counts=True) as drawn:
        assert not drawn.watched
