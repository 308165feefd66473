"""The rows of the views: what each verdict changes in them. Pure; the stream and a scan's directory share it.

Three tables, whose rows are JSON objects:

urls      URL -> {last, verdict: the latest one, judged: the latest that weighed the page against others, or null,
          history: [[page_id, n, kind, fetched_at], ...] newest first}
clusters  cluster -> {last, members: [URL, ...] ever told to be in it, more: left out,
          told: {canonical, size, revision} or null, told_at: the id of the verdict that did}
counts    site -> {last, kinds: {kind: verdicts}, reasons: {reason: verdicts}}; under `EVERYTHING` those of the crawl

`last` is the id (page_id, n) of the newest verdict that a row has taken in, and a row takes only newer ones: after a
crash verdicts come again, and some rows have them already while others have not. It is enough, as a topic's partition
has them in ascending order, and each partition has rows of its own, which `url_of`, `cluster_of` and `counts_of` join.

A URL that leaves its cluster stays in the list of members, and its own row says where it is now: one row is the truth.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from neardup.report.prose import reason_kind

Row = dict[str, Any]
Verdict = Mapping[str, Any]

TABLES = ("urls", "clusters", "counts")
#: Kinds that say what the page is beside others; those that come later speak of the standing one.
JUDGEMENTS = ("unique", "exact_duplicate", "near_duplicate", "same_content")
#: No registrable domain has a star.
EVERYTHING = "*"

HISTORY_KEPT = 20
#: Of a cluster, in each partition: a row is written anew for each verdict, and a message of Kafka holds 1 MB.
MEMBERS_KEPT, MEMBER_CHARS_KEPT = 100, 50_000
REASONS_KEPT, REASON_CHARS_MAX = 100, 200
OTHER_REASONS = "other reasons"


class Rows(Protocol):
    """The rows of one partition, to be changed."""

    def get(self, table: str, key: str) -> Row | None: ...
    def put(self, table: str, key: str, row: Row) -> None: ...


class MemoryRows:
    """Rows in memory: of a scan, and for tests."""

    def __init__(self) -> None:
        self.tables: dict[str, dict[str, Row]] = {table: {} for table in TABLES}

    def get(self, table: str, key: str) -> Row | None:
        return self.tables[table].get(key)

    def put(self, table: str, key: str, row: Row) -> None:
        self.tables[table][key] = row


def apply(verdict: Verdict, rows: Rows) -> None:
    """Takes one verdict into all rows that it concerns. Raises KeyError, TypeError, ValueError for what is none."""
    at = [int(verdict["page_id"]), int(verdict["n"])]
    kind, url, site = str(verdict["verdict"]), str(verdict["url"]), str(verdict.get("site") or "")
    changes = [("urls", url, _url_row), ("counts", EVERYTHING, _counts_row), ("counts", site, _counts_row)]
    cluster = cluster_id(verdict)
    if cluster is not None:
        changes.append(("clusters", str(cluster), _cluster_row))
    for table, key, changed in changes:
        row = rows.get(table, key)
        if row is None or row["last"] < at:
            row = {**changed(row, verdict, kind), "last": at}
        # Also where nothing is new: a process killed here may have kept the row on its disk and not yet in Kafka.
        rows.put(table, key, row)


def cluster_id(verdict: Verdict) -> int | None:
    """The cluster that the verdict's URL is in, if any."""
    told = verdict.get("cluster")
    if told is None:
        told = (verdict.get("standing") or {}).get("cluster")
    return None if told is None else int(told)


def _url_row(row: Row | None, verdict: Verdict, kind: str) -> Row:
    entry = [verdict["page_id"], verdict["n"], kind, verdict.get("fetched_at")]
    history = [entry, *(row["history"] if row else ())]
    judged = dict(verdict) if kind in JUDGEMENTS else row["judged"] if row else None
    return {"verdict": dict(verdict), "judged": judged, "history": history[:HISTORY_KEPT]}


def _cluster_row(row: Row | None, verdict: Verdict, kind: str) -> Row:
    members, more, url = list(row["members"]) if row else [], row["more"] if row else 0, str(verdict["url"])
    if url not in members:
        if len(members) < MEMBERS_KEPT and sum(map(len, members)) + len(url) <= MEMBER_CHARS_KEPT:
            members.append(url)
        else:
            more += 1
    told: Row | None
    if verdict.get("canonical") is not None:
        told = {
            "canonical": verdict["canonical"],
            "size": verdict.get("cluster_size"),
            "revision": verdict.get("revision"),
        }
        told_at = [verdict["page_id"], verdict["n"]]
    else:
        told, told_at = (row["told"], row["told_at"]) if row else (None, [-1, 0])
    return {"members": members, "more": more, "told": told, "told_at": told_at}


def _counts_row(row: Row | None, verdict: Verdict, kind: str) -> Row:
    kinds = dict(row["kinds"]) if row else {}
    reasons = dict(row["reasons"]) if row else {}
    kinds[kind] = kinds.get(kind, 0) + 1
    if kind == "rejected":
        reason = reason_kind(verdict.get("reason"))[:REASON_CHARS_MAX]
        if reason not in reasons and len(reasons) >= REASONS_KEPT:
            reason = OTHER_REASONS
        reasons[reason] = reasons.get(reason, 0) + 1
    return {"kinds": kinds, "reasons": reasons}


def url_of(rows: Iterable[Row]) -> Row | None:
    """A URL's row from those of all partitions: the newest, should the topic have been given more partitions."""
    return max(rows, key=lambda row: row["last"], default=None)


def cluster_of(rows: Sequence[Row]) -> Row | None:
    """A cluster's row from those of all partitions: what was said last, and all members."""
    if not rows:
        return None
    told = max(rows, key=lambda row: row["told_at"])["told"]
    members = list(dict.fromkeys(url for row in rows for url in row["members"]))
    return {"told": told, "members": members, "more": sum(row["more"] for row in rows)}


def counts_of(rows: Iterable[Row]) -> tuple[Counter[str], Counter[str]]:
    """Verdicts by kind, and rejected ones by reason, over all partitions."""
    kinds: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    for row in rows:
        kinds.update(row["kinds"])
        reasons.update(row["reasons"])
    return kinds, reasons
