"""Facts of the health page: lag and consumers of each step, generations, disks, and problems as sentences.

`streams.views.stream_health` collects them from Kafka and from the roles' metrics, where `views_metrics` names these.
"""

from collections.abc import Collection, Sequence
from pathlib import Path

from neardup.report.samples import instant
from streams.process.shutdown import now_ms
from streams.views.lists import Facts

#: Records wait and no verdict was emitted for this time: a problem.
SILENT_MS_MAX = 60_000

_NO_KAFKA: Facts = {"steps": [], "newest_verdict": None, "generations": None, "live": None}


def of_stream(
    where: str,
    kafka: Facts | None,
    workers: Sequence[Facts],
    partitions: int,
    roles: Sequence[Facts],
    applied_ms: int | None,
    problem: str = "",
) -> Facts:
    """Return the facts of the stream's page.

    kafka: result of `StreamHealth.kafka_facts`; None with a problem. workers: workers of the views. roles: facts of the
    roles by their metrics. applied_ms: emit time of the newest applied verdict, ms since 1970.
    """
    kafka = kafka or _NO_KAFKA
    assigned = {partition for worker in workers for partition in worker["lag"] or ()}
    unread = sorted({str(partition) for partition in range(partitions)} - assigned, key=int)
    now = now_ms()
    problems = [problem] if problem else []
    problems += [
        *_of_steps(kafka["steps"], kafka["newest_verdict"], now),
        *_of_workers(workers, unread),
        *_of_roles(roles),
    ]
    return {
        "of": where,
        "at": now,
        "problems": problems,
        **kafka,
        "taken_verdict": applied_ms,
        "workers": list(workers),
        "unread": unread,
        "roles": list(roles),
        "disk": None,
    }


def _of_steps(steps: Sequence[Facts], newest_verdict: int | None, now: int) -> list[str]:
    out = []
    for step in steps:
        if step["readers"] == [] and step["behind"]:
            out.append(
                f"No sketcher consumes topic {step['reads']}, and {step['behind']:,} records wait: start neardup "
                "sketch."
            )
        if step["step"] == "match" and step["behind"] and now - (newest_verdict or 0) > SILENT_MS_MAX:
            last = f"since {instant(newest_verdict)}" if newest_verdict else "at all"
            out.append(
                f"{step['behind']:,} messages of topic {step['reads']} wait, and no verdict was emitted {last}: check "
                "that neardup match runs."
            )
    return out


def _of_workers(workers: Sequence[Facts], unread: Sequence[str]) -> list[str]:
    out = [str(worker["problem"]) for worker in workers if worker["problem"]]
    if unread:
        out.append(
            f"No worker of the views consumes partitions {', '.join(unread)} of the verdicts: they may be in "
            "reassignment."
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
            out.append(f"The {name} has stopped: {', '.join(role['stopped'])}. Its log names the action.")
        elif role["ready"] is False:
            out.append(f"The {name} is not ready: it is catching up, or has no partitions.")
        if role["write_stopped"]:
            out.append(f"RocksDB of the {name} has stopped writes.")
        if role["checkpoint_failed"]:
            out.append(f"The last checkpoint of the {name} has failed.")
    return out


def of_scan(where: str, path: Path, applied_ms: int | None, sources: Collection[bool]) -> Facts:
    """Return the facts of a scan's page. sources: whether each is finished."""
    parts = {part: _bytes_in(path / part) for part in ("log", "verdicts", "index")}
    unfinished = sum(not finished for finished in sources)
    problem = f"{unfinished:,} of {len(sources):,} sources are not finished: scan them again." if unfinished else ""
    disk = {"sources": len(sources), "unfinished": unfinished, "bytes": parts}
    kafka = _NO_KAFKA | {"newest_verdict": applied_ms}
    return of_stream(where, kafka, (), 0, (), applied_ms, problem) | {"disk": disk}


def _bytes_in(folder: Path) -> int:
    out = 0
    for path in folder.rglob("*"):
        try:
            out += path.stat().st_size if path.is_file() else 0
        except OSError:  # RocksDB has just deleted it
            continue
    return out


def ago(ms: int) -> str:
    """Format a time that has passed, for people."""
    seconds = max(0, ms) // 1000
    for name, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length:,} {name} ago"
    return f"{seconds} s ago"
