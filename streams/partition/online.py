"""Partitions by an online rule: runs a scan in a temporary index whose clusters are the sets.

Each cluster is a star: its members were verified against its representative. One process judges the pages in order; the
index is on disk.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson

from neardup.decider import Decider
from neardup.scheme import FIXED_SEED, Scheme
from neardup.standing import standing_of
from streams.files.not_read import NotRead
from streams.partition.partition_command import PartitionOptions, finish, plan_of
from streams.partition.partition_results import Summary, named, summed_up
from streams.partition.reading import sources_of
from streams.partition.workers import WorkStopped
from streams.partition.workspace import PartitionWorkspace
from streams.ports import Progress, SourceProgress
from streams.scan.scan import scan
from streams.state.scan_directory import ScanDirectory

#: Its seed is fixed, so the same files give the same sets.
SCHEME = Scheme(seed=FIXED_SEED)


def partition_online(
    paths: Sequence[Path],
    rule: Mapping[str, Any],
    options: PartitionOptions,
    *,
    progress: Progress,
) -> Summary:
    """Partitions the pages of some files by an online rule. rule: the fields of a decider that select it.

    Raises like `partition_command`.
    """
    started = time.monotonic()

    def decider(scheme: Scheme) -> Decider:
        return Decider(scheme=scheme.digest, **rule)

    sources = sources_of(paths, options.reading, NotRead())  # the scan notes them
    plan = plan_of(asdict(decider(SCHEME)), sources)

    def shown(now: SourceProgress) -> None:
        progress("scan", now.bytes_done, now.bytes_total)

    with PartitionWorkspace(options.out) as workspace:
        workspace.open_plan(plan, again=options.again)
        with ScanDirectory.open(workspace.work / "state", scheme=SCHEME, decider=decider) as state:
            result = scan(paths, state, reading=options.reading, threads=options.workers, progress=shown)
            if result.interrupted:
                raise WorkStopped("interrupted; the same command continues from here")
            clusters = clusters_of(state)
        lines = [_line(*one) for _, one in sorted(clusters.items()) if len(one[1]) > 1]
        with workspace.whole(workspace.path / "sets.jsonl") as file:
            file.write_bytes(b"".join(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE) for line in lines))
        summary = summed_up((line["representative"]["url"], line["size"]) for line in lines)
        verdicts = [verdict["verdict"] for _, members in clusters.values() for verdict in members.values()]
        summary.counts.documents, summary.counts.repeats = len(verdicts), verdicts.count("exact_duplicate")
        summary.counts.alone = sum(
            bool(one.get("thin")) for _, members in clusters.values() for one in members.values()
        )
        summary.rejected, summary.reasons = sum(result.reasons.values()), result.reasons
        summary.problems, summary.problems_total = result.problems, result.problems_total
        summary.passed_over = result.passed_over
        summary.note_not_read(options.not_read)
        summary.plan, summary.seconds = plan, time.monotonic() - started
        finish(workspace, summary, sources)
    return summary


def clusters_of(state: ScanDirectory) -> dict[int, tuple[str, dict[str, dict[str, Any]]]]:
    """Returns the clusters of URLs after all verdicts of a state: (representative, URL -> its latest verdict).

    representative: representative of the newest verdict that names one; empty if no verdict names one.
    """
    members: dict[int, dict[str, dict[str, Any]]] = {}
    shown: dict[int, str] = {}
    where: dict[str, int] = {}
    for verdict in state.verdicts():
        kind, url, standing = verdict["verdict"], verdict["url"], standing_of(verdict)
        if kind in ("stale", "rejected"):
            continue
        if url in where:
            before = members[where.pop(url)].pop(url)
            if kind in ("unchanged", "edited"):
                verdict = before | {"page_id": verdict["page_id"]}
            elif kind == "promoted":  # its page id is that of the page which caused it
                verdict = before
        if standing.cluster is None or not standing.live:
            continue
        members.setdefault(standing.cluster, {})[url] = verdict
        where[url] = standing.cluster
        if standing.shown:
            shown[standing.cluster] = url
    return {cluster: (shown.get(cluster, ""), urls) for cluster, urls in members.items()}


def _line(representative: str, members: dict[str, dict[str, Any]]) -> dict[str, Any]:
    chosen = representative if representative in members else next(iter(members))
    return {
        "representative": _place(members[chosen]),
        "size": len(members),
        "members": [_member(one, members) for url, one in members.items() if url != chosen],
    }


def _member(verdict: dict[str, Any], members: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """A member with its verdict; a near-duplicate also with the page that it was compared with, if that is in the set,
    and their tape score."""
    evidence = verdict.get("evidence") or {}
    out = _place(verdict) | {"verdict": verdict["verdict"], "by": evidence.get("by")}
    near = (verdict.get("representative") or {}).get("url")
    if verdict["verdict"] == "near_duplicate" and near in members and "tape_score" in evidence:
        out |= {"near": near, "score": evidence["tape_score"]}
    return out


def _place(verdict: dict[str, Any]) -> dict[str, Any]:
    at = verdict["coordinates"]
    return {**named(verdict["url"]), "source": at["source"], "offset": at["offset"]}
