"""How the line is: who reads what, how far each step is behind, generations, disks. What is wrong is told in words.

What Kafka knows is asked by `streams.views.line`; what only a role knows, as batches and RocksDB, comes from its
metrics where `views_metrics` names them.
"""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from neardup.report.samples import instant
from streams.process.shutdown import SystemClock

Facts = dict[str, Any]

#: Behind, and nothing new came out for so long: somebody should look.
SILENT_MS_MAX = 60_000


def of_stream(
    where: str,
    line: Facts | None,
    workers: Sequence[Facts],
    partitions: int,
    roles: Sequence[Facts],
    taken_at: int | None,
    problem: str = "",
) -> Facts:
    """All of the page. line: of `LineHealth`, or None and a problem. workers: of the views; roles: of their metrics.

    taken_at: when the newest verdict that the tables have was said, in ms since the epoch.
    """
    line = line or {"steps": [], "newest_verdict": None, "generations": None, "live": None}
    read = {partition for worker in workers for partition in worker["lag"] or ()}
    nobody = sorted({str(partition) for partition in range(partitions)} - read, key=int)
    now = SystemClock().now_ms()
    problems = [problem] if problem else []
    problems += [
        *_of_steps(line["steps"], line["newest_verdict"], now),
        *_of_workers(workers, nobody),
        *_of_roles(roles),
    ]
    return {
        "of": where,
        "at": now,
        "problems": problems,
        **line,
        "taken_verdict": taken_at,
        "workers": list(workers),
        "unread": nobody,
        "roles": list(roles),
        "disk": None,
    }


def _of_steps(steps: Sequence[Facts], newest_verdict: int | None, now: int) -> list[str]:
    out = []
    for step in steps:
        if step["readers"] == [] and step["behind"]:
            out.append(
                f"Nobody reads topic {step['reads']}, and {step['behind']:,} records wait: start neardup sketch."
            )
        if step["step"] == "match" and step["behind"] and now - (newest_verdict or 0) > SILENT_MS_MAX:
            last = f"since {instant(newest_verdict)}" if newest_verdict else "at all"
            out.append(
                f"{step['behind']:,} messages of topic {step['reads']} wait, and no verdict came {last}: does neardup "
                "match run?"
            )
    return out


def _of_workers(workers: Sequence[Facts], nobody: Sequence[str]) -> list[str]:
    out = [str(worker["problem"]) for worker in workers if worker["problem"]]
    if nobody:
        out.append(
            f"No worker of the views reads partitions {', '.join(nobody)} of the verdicts: just being given out?"
        )
    return out


def _of_roles(roles: Sequence[Facts]) -> list[str]:
    out = []
    for role in roles:
        if role["problem"]:
            out.append(str(role["problem"]))
            continue
        name = f"{role['role']} at {role['url']}"
        if role["stopped"]:
            out.append(f"The {name} has stopped for good: {', '.join(role['stopped'])}. Its log says what to do.")
        elif role["ready"] is False:
            out.append(f"The {name} is not ready: it catches up, or has nothing assigned.")
        if role["write_stopped"]:
            out.append(f"RocksDB of the {name} takes no writes.")
        if role["checkpoint_failed"]:
            out.append(f"The last checkpoint of the {name} has failed.")
    return out


def of_scan(where: str, path: Path, taken_at: int | None, sources: Collection[bool]) -> Facts:
    """The page of a scan's directory. sources: whether each was finished."""
    parts = {part: _bytes_in(path / part) for part in ("log", "verdicts", "index")}
    unfinished = sum(not finished for finished in sources)
    problems = [f"{unfinished:,} of {len(sources):,} sources are not finished: scan them again."] if unfinished else []
    return {
        "of": where,
        "at": SystemClock().now_ms(),
        "problems": problems,
        "steps": [],
        "newest_verdict": taken_at,
        "generations": None,
        "live": None,
        "taken_verdict": taken_at,
        "workers": [],
        "unread": [],
        "roles": [],
        "disk": {"sources": len(sources), "unfinished": unfinished, "bytes": parts},
    }


def _bytes_in(folder: Path) -> int:
    out = 0
    for path in folder.rglob("*"):
        try:
            out += path.stat().st_size if path.is_file() else 0
        except OSError:  # RocksDB has just taken it away
            continue
    return out


def ago(ms: int) -> str:
    """A span of time that has passed, for people."""
    seconds = max(0, ms) // 1000
    for name, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length:,} {name} ago"
    return f"{seconds} s ago"
