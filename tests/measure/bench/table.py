"""Timing both sides of a row in turn, and the table that comes of it."""

import json
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


@dataclass
class Row:
    """One line of the table. ours, peer: medians in `unit`; ratio: how many times better than the peer, above 1 is.

    reach: the ratio or number aimed at, in words. void: why the row does not count, if so. check: what each side found.
    """

    name: str
    unit: str
    ours: float
    peer: float | None = None
    peer_name: str = ""
    ratio: float | None = None
    reach: str = ""
    check: str = ""
    void: str = ""
    notes: dict[str, float | str] = field(default_factory=dict)


def seconds(run: Callable[[], object]) -> float:
    """Wall time of one call."""
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def in_turn(sides: Sequence[Callable[[], float]], repeats: int) -> list[float]:
    """Median of each side; every side runs once before any runs again, so that a busy minute falls on all of them."""
    taken: list[list[float]] = [[] for _ in sides]
    for _ in range(repeats):
        for side, times in zip(sides, taken, strict=True):
            times.append(side())
    return [statistics.median(times) for times in taken]


def machine() -> dict[str, str | int]:
    """Enough to know what the numbers are of."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line.partition(":")[2].strip() for line in info.read_text().splitlines() if "model name" in line]
        model = names[0] if names else model
    return {
        "cpu": model,
        "cores": os.cpu_count() or 1,
        "system": f"{platform.system()} {platform.release()}",
        "load": f"{os.getloadavg()[0]:.1f}",
        "python": platform.python_version(),
    }


def versions(names: Sequence[str]) -> dict[str, str]:
    found = {}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def commit() -> str:
    result = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False)
    return result.stdout.strip() or "unknown"


def _number(value: float | None) -> str:
    if value is None:
        return ""
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


_HEADER = ["| what | unit | neardup | peer | ratio | reach | check |", "|---|---|---|---|---|---|---|"]


def line(row: Row) -> str:
    """One row of the table for people."""
    peer = f"{_number(row.peer)} ({row.peer_name})" if row.peer is not None else ""
    ratio = f"void: {row.void}" if row.void else f"{row.ratio:.2f} x" if row.ratio is not None else ""
    notes = "; ".join(f"{k} {_number(v) if isinstance(v, float) else v}" for k, v in row.notes.items())
    check = "; ".join(part for part in (row.check, notes) if part)
    return f"| {row.name} | {row.unit} | {_number(row.ours)} | {peer} | {ratio} | {row.reach} | {check} |"


def markdown(rows: Sequence[Row], about: Mapping[str, object]) -> str:
    """The table for people."""
    lines = ["# How fast", "", *(f"* {name}: {value}" for name, value in about.items()), "", *_HEADER]
    return "\n".join([*lines, *map(line, rows)]) + "\n"


class Sheet:
    """The table in two files, `name`.md and `name`.json, written anew with each row: a run that is stopped leaves what
    it has measured, and the files say that it is not all.
    """

    def __init__(self, about: Mapping[str, object], folder: Path, name: str) -> None:
        """about: what the numbers are of. folder: made if missing."""
        self.path = folder / f"{name}.md"
        self.rows: list[Row] = []
        self.seconds: dict[str, int] = {}
        self._about = dict(about)
        folder.mkdir(parents=True, exist_ok=True)
        print("\n".join(_HEADER), flush=True)
        self._write(finished=False)

    def add(self, row: Row) -> None:
        """The row also goes to the terminal."""
        self.rows.append(row)
        self._write(finished=False)
        print(line(row), flush=True)

    def finish(self) -> None:
        self._write(finished=True)

    def _write(self, *, finished: bool) -> None:
        about = {**self._about, "seconds": sum(self.seconds.values())}
        if not finished:
            about["stopped"] = f"before its end; whole groups: {', '.join(self.seconds) or 'none'}"
        whole = {"about": about, "seconds": self.seconds, "rows": [asdict(row) for row in self.rows]}
        _replace(self.path, markdown(self.rows, about))
        _replace(self.path.with_suffix(".json"), json.dumps(whole, indent=1) + "\n")


def _replace(path: Path, text: str) -> None:
    """A stop during the write leaves the text as it was."""
    part = path.with_suffix(".part")
    part.write_text(text)
    part.replace(path)


def seconds_of(path: Path) -> dict[str, int]:
    """How long the groups took whose rows a `Sheet` has written there; none if there is no such file."""
    try:
        return dict(json.loads(path.with_suffix(".json").read_text())["seconds"])
    except (OSError, ValueError, KeyError, TypeError):
        return {}
