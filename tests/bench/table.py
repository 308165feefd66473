"""Timing both sides of a row in turn, and the table that comes of it."""

import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
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
    told = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False)
    return told.stdout.strip() or "unknown"


def _number(value: float | None) -> str:
    if value is None:
        return ""
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def markdown(rows: Sequence[Row], about: dict[str, object]) -> str:
    """The table for people."""
    lines = ["# How fast", ""]
    lines += [f"* {name}: {value}" for name, value in about.items()]
    lines += ["", "| what | unit | neardup | peer | ratio | reach | check |", "|---|---|---|---|---|---|---|"]
    for row in rows:
        peer = f"{_number(row.peer)} ({row.peer_name})" if row.peer is not None else ""
        ratio = f"void: {row.void}" if row.void else f"{row.ratio:.2f} x" if row.ratio is not None else ""
        notes = "; ".join(f"{k} {_number(v) if isinstance(v, float) else v}" for k, v in row.notes.items())
        check = "; ".join(part for part in (row.check, notes) if part)
        lines.append(f"| {row.name} | {row.unit} | {_number(row.ours)} | {peer} | {ratio} | {row.reach} | {check} |")
    return "\n".join(lines) + "\n"


def write(rows: Sequence[Row], about: dict[str, object], folder: Path, name: str) -> None:
    """`name`.md and `name`.json in a folder, made if missing; the table also goes to the terminal."""
    folder.mkdir(parents=True, exist_ok=True)
    text = markdown(rows, about)
    (folder / f"{name}.md").write_text(text)
    (folder / f"{name}.json").write_text(
        json.dumps({"about": about, "rows": [asdict(row) for row in rows]}, indent=1) + "\n"
    )
    sys.stdout.write(text)
