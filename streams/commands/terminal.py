"""A progress bar on stderr."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from neardup.wording import counted
from streams.files.scan import Progress as Where


class Bar:
    """A progress bar with pages/s, bytes and time left. `update` is the scan's callback."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=None, rate="", what="reading")

    def update(self, now: Where) -> None:
        if now.phase == "digest":
            self._progress.update(self._task, completed=now.bytes_done, what="digesting")
            return
        rate = f"{counted(now.pages, 'page')}, {now.pages / now.seconds:,.0f}/s" if now.seconds else ""
        self._progress.update(
            self._task,
            completed=now.bytes_done,
            total=now.bytes_total or None,
            rate=rate,
            what=Path(now.path).name[:32],
        )

    def folded(self, done: int, total: int) -> None:
        """For folding a log again: messages done, of how many."""
        self._progress.update(self._task, completed=done, total=total or None, rate="messages", what="folding the log")

    def backfill(self, what: str, done: int, total: int, per_s: float) -> None:
        """For a backfill: how many of what are done, of how many (0: unknown), and how many a second."""
        rate = f"{done:,} of {total:,} {what}, {per_s:,.0f}/s" if total else what
        self._progress.update(self._task, completed=done, total=total or None, rate=rate, what="backfill")

    @property
    def watched(self) -> bool:
        """Whether anything is drawn."""
        return not self._progress.disable

    def phase(self, name: str, done: int, total: int) -> None:
        """For work in phases: how far the one called `name` is; total 0: unknown."""
        self._progress.update(self._task, completed=done, total=total or None, rate="", what=name)


@contextmanager
def bar(*, shown: bool, counts: bool = False) -> Iterator[Bar]:
    """A progress bar on stderr, which is removed at the end. Without a terminal nothing is drawn.

    counts: it is no bytes that are done, and its text says what. What is logged meanwhile stands above it.
    """
    console = Console(stderr=True)
    watched = shown and console.is_terminal
    progress = Progress(
        TextColumn("{task.fields[what]}", markup=False),
        BarColumn(),
        *([] if counts else [DownloadColumn()]),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not watched,
    )
    # Of rich 13.9 to 14.1 (seen) even one that is disabled ends with an empty line.
    with progress if watched else nullcontext():
        yield Bar(progress)
