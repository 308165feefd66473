"""Output of commands: JSON, tables, messages, progress bars, and the wait for the compiler."""

import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neardup.wording import counted
from streams.errors import without_credentials
from streams.process.logs import printable
from streams.process.result_json import result_json

if TYPE_CHECKING:  # takes longer to import than most answers take
    from rich.progress import Progress

    from neardup.warm import Need
    from streams.ports import SourceProgress

#: Problems of an input that are printed one by one.
PROBLEMS_SHOWN = 10


def echo(text: str, *, err: bool = False) -> None:
    """Prints a line."""
    (sys.stderr if err else sys.stdout).write(f"{text}\n")


def complain(text: str) -> None:
    """Prints lines to stderr. Names and URLs in it come from strangers, and may hold credentials."""
    echo(f"neardup: {printable(without_credentials(text))}", err=True)


def announce_serving(url: str) -> None:
    """Prints the address of a server of web pages to stderr."""
    echo(f"neardup: serving {url}, end with Ctrl-C", err=True)


def complain_of(problems: Sequence[str]) -> None:
    """Prints the first problems, and the number of the others."""
    for problem in problems[:PROBLEMS_SHOWN]:
        complain(problem)
    if len(problems) > PROBLEMS_SHOWN:
        complain(f"and {len(problems) - PROBLEMS_SHOWN:,} more")


def print_json(value: Any) -> None:
    """Prints JSON; ASCII alone on a terminal, because text of strangers may hold control characters."""
    import json

    text = result_json(value)
    if sys.stdout.isatty():
        text = json.dumps(json.loads(text), indent=2).encode()
    sys.stdout.buffer.write(text + b"\n")


def print_rich(*parts: Any) -> None:
    """Prints tables and styled text."""
    from rich.console import Console

    console = Console()
    for part in parts:
        console.print(part)


def print_rows(rows: Sequence[Mapping[str, Any]], *, as_json: bool = False) -> None:
    """Prints rows of the same names: a table on a terminal, lines with tabs in a pipe; or JSON."""
    if as_json:
        print_json(list(rows))
    elif not sys.stdout.isatty():
        for cells in [[*rows[0]], *([*row.values()] for row in rows)] if rows else []:
            echo("\t".join(printable(str(cell)).replace("\t", " ") for cell in cells))
    else:
        from streams.process.terminal import safe, table_of

        table = table_of(*(rows[0] if rows else ()))
        for row in rows:
            table.add_row(*(safe(str(cell)) for cell in row.values()))
        print_rich(table)


def show(result: Any, *, as_json: bool) -> None:
    """Prints a result: something that rich prints, with `to_json`."""
    if as_json:
        print_json(result.to_json())
    else:
        print_rich(result)


def print_table(made: Any) -> None:
    """Prints a table of an evaluation. One that is too wide for the terminal is printed in parts, words whole."""
    from rich.console import Console
    from rich.table import Table

    from neardup.evaluation.sections import shown

    names = list(made.columns)
    cells = [[shown(cell, kind) for cell, kind in zip(row, made.kinds, strict=True)] for row in made.rows]
    widths = [max(map(len, [*name.split(), *(row[at] for row in cells)]), default=0) for at, name in enumerate(names)]
    whole = [max(len(name), width) for name, width in zip(names, widths, strict=True)]
    most = Console().width
    for number, part in enumerate(_parts(widths, most)):
        shares = whole if sum(whole[at] + 2 for at in part) - 2 <= most else widths
        title = made.caption if not number else f"{made.caption}, continued"
        table = Table(title=title, title_justify="left", box=None, pad_edge=False)
        for at in part:
            kind = made.kinds[at]
            justify: Any = "left" if kind == "text" else "right"
            # names of rows stay whole in a narrow terminal: they differ at their ends; headings are wrapped
            # the exact width: where widths add up to the terminal's, rich would give one column more, another less
            table.add_column(names[at], justify=justify, no_wrap=not at, overflow="fold", width=shares[at])
        for row in cells:
            table.add_row(*(row[at] for at in part))
        print_rich(table)


def _parts(widths: Sequence[int], most: int) -> list[list[int]]:
    """Divides columns into parts that fit into `most` characters, each with the first column, two blanks between."""
    parts: list[list[int]] = []
    for at in range(1, len(widths)):
        if parts and sum(widths[one] + 2 for one in [*parts[-1], at]) - 2 <= most:
            parts[-1].append(at)
        else:
            parts.append([0, at])
    return parts or [[0]]


def show_evaluation(evaluation: Any, out: Path, *, as_json: bool) -> int:
    """Prints every table of an evaluation, what is missing, and the place of its page; returns the exit code."""
    code = 3 if evaluation.unread else 0
    if as_json:
        print_json(evaluation.to_json())
        return code
    for section in evaluation.sections:
        for table in section.tables:
            print_table(table)
        if section.missing:
            complain(f"{section.title}: {section.missing}")
    for note in evaluation.notes:
        complain(note)
    echo(f"evaluation: {out / 'evaluation.html'}")
    return code


class Bar:
    """A progress bar with pages/s, bytes and time left. `update` is the scan's callback."""

    def __init__(self, progress: "Progress") -> None:
        self._progress = progress
        self._task = progress.add_task("", total=None, rate="", what="reading")

    def update(self, now: "SourceProgress") -> None:
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

    counts: whether the bar counts other things than bytes, which its text names. Log lines stand above the bar.
    """
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

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


def announce_compiler(*needs: "Need", quiet: bool = False) -> None:
    """Compiles the kernels that a command needs (by default all), and says on stderr what the wait is for."""
    from neardup.warm import ALL, make_ready, notice

    needs = needs or ALL
    if quiet or not notice(needs):
        make_ready(lambda text: None if quiet else complain(text), needs)
        return
    began = time.monotonic()
    with _compiling(needs):
        make_ready(complain, needs)
    complain(f"compiled, in {time.monotonic() - began:.0f} s")


@contextmanager
def _compiling(needs: Sequence["Need"]) -> Iterator[None]:
    """Shows a progress bar on a terminal: the share that is compiled, the time so far, and an estimate of the rest."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    from neardup.kernels import KEPT
    from neardup.warm import share_done

    console, done = Console(stderr=True), threading.Event()
    if not console.is_terminal or not KEPT:  # progress is seen in the cache alone
        yield
        return
    columns = (BarColumn(), TaskProgressColumn(), TimeElapsedColumn(), TextColumn("{task.fields[left]}"))
    with Progress(TextColumn("compiling"), *columns, console=console, transient=True) as progress:
        before, began = share_done(needs), time.monotonic()
        task = progress.add_task("", total=100, completed=int(100 * before), left="")

        def update() -> None:
            last, ends = before, 0.0
            while not done.wait(0.5):
                share, now = share_done(needs), time.monotonic()
                if share > last:
                    last, ends = share, now + (now - began) * (1 - share) / (share - before)
                left = f"about {ends - now:.0f} s more" if ends > now else ""
                progress.update(task, completed=int(100 * share), left=left)

        updater = threading.Thread(target=update, name="neardup-compiling", daemon=True)
        updater.start()
        try:
            yield
        finally:
            done.set()
            updater.join()
