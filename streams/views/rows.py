"""The rows of the views: what each verdict changes in them. Pure; the stream and a scan's directory share it.

Four tables, whose rows are JSON objects:

urls      URL -> {last, verdict: the latest one, judged: the latest that weighed the page against others, or null,
          history: [[page_id, n, kind, fetched_at], ...] newest first, first: page id of the first one,
          own: {rel_canonical, score} by its newest fetch that could be read,
          forgot: id of the verdict by which the page was taken down last: nothing older is kept. Absent: never}
clusters  cluster -> {last, members: [URL, ...] ever told to be in it, more: left out,
          told: {canonical, size, revision} or null, told_at: the id of the verdict that did}
counts    site -> {last, at: when the newest was said, kinds: {kind: verdicts}, reasons: {reason: verdicts}}; under
          `EVERYTHING` those of the crawl;
          (site, day) -> {last, hours: {hour of the day: {kind: verdicts}}}
lists     what people look through, each list bounded: see `streams.views.lists`, `hot` and `suppressed`

`last` is the id (page_id, n) of the newest verdict that a row has taken in, and a row takes only newer ones: after a
crash verdicts come again, and some rows have them already while others have not. It is enough, as a topic's partition
has them in ascending order, and each partition has rows of its own, which `url_of`, `cluster_of` and `counts_of` join.

A URL that leaves its cluster stays in the list of members, and its own row says where it is now: one row is the truth.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from neardup.report.prose import reason_kind
from neardup.standing import DUPLICATES, SHOWN, standing_of
from neardup.verdict import TAKEN_DOWN
from streams.views import hot, lists, suppressed
from streams.views.lists import Closeness, Row, Verdict

TABLES = ("urls", "clusters", "counts", "lists")
#: Kinds that say what the page is beside others; those that come later speak of the standing one.
JUDGEMENTS = (*SHOWN, *DUPLICATES)
#: Kinds that a fetch has whose page could be read.
_READ = (*JUDGEMENTS, "unchanged", "edited")
#: No registrable domain has a star.
EVERYTHING = "*"

HOUR_MS = 3_600_000
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


def apply(verdict: Verdict, rows: Rows, said_at: int = 0, closeness: Closeness = lambda verdict: None) -> None:
    """Takes one verdict into all rows that it concerns. Raises KeyError, TypeError, ValueError for what is none.

    said_at: ms since the epoch, the same whenever the verdict comes again. closeness: see `streams.views.lists`.
    """
    at = [int(verdict["page_id"]), int(verdict["n"])]
    kind, url, site = str(verdict["verdict"]), str(verdict["url"]), str(verdict.get("site") or "")
    day, hour = divmod(int(said_at) // HOUR_MS, 24)
    changes: list[tuple[str, str, Callable[[Row | None], Row]]] = [
        ("urls", url, lambda row: _url_row(row, verdict, kind))
    ]
    for name in (EVERYTHING, site):
        changes.append(("counts", name, lambda row: _counts_row(row, verdict, kind, said_at)))
        changes.append(("counts", day_key(name, day), lambda row: _day_row(row, kind, str(hour))))
    cluster = cluster_id(verdict)
    if cluster is not None:
        changes.append(("clusters", str(cluster), lambda row: _cluster_row(row, verdict)))
    for key, changed in (
        *lists.changes(verdict, kind, site, day, closeness),
        *hot.changes(verdict, site),
        *suppressed.changes(verdict, kind, site),
    ):
        changes.append(("lists", key, changed))
    new = []
    for table, key, changed in changes:
        row = rows.get(table, key)
        new.append((table, key, {**changed(row), "last": at} if row is None or row["last"] < at else row))
    # What is no verdict was found by now, before a row has some of it. Rows are put also where nothing is new: a
    # process killed here may have kept the row on its disk and not yet in Kafka.
    for table, key, row in new:
        rows.put(table, key, row)


def cluster_id(verdict: Verdict) -> int | None:
    """The cluster that the verdict's URL is in, if any."""
    return standing_of(verdict).cluster


def _url_row(row: Row | None, verdict: Verdict, kind: str) -> Row:
    entry = [verdict["page_id"], verdict["n"], kind, verdict.get("fetched_at")]
    if kind == "gone" and verdict.get("reason") == TAKEN_DOWN:
        forgot = {"forgot": entry[:2]}
        row = None
    else:
        forgot = {"forgot": row["forgot"]} if row and "forgot" in row else {}
    history = [entry, *(row["history"] if row else ())]
    judged = dict(verdict) if kind in JUDGEMENTS else row["judged"] if row else None
    own = row["own"] if row else {}
    if not verdict["n"] and kind in _READ:
        own = {name: verdict[name] for name in ("rel_canonical", "score") if verdict.get(name) is not None}
    first = row["first"] if row else verdict["page_id"]
    return {
        "verdict": dict(verdict),
        "judged": judged,
        "history": history[:HISTORY_KEPT],
        "first": first,
        "own": own,
        **forgot,
    }


def _cluster_row(row: Row | None, verdict: Verdict) -> Row:
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


def _counts_row(row: Row | None, verdict: Verdict, kind: str, said_at: int) -> Row:
    kinds = dict(row["kinds"]) if row else {}
    reasons = row["reasons"] if row else {}
    kinds[kind] = kinds.get(kind, 0) + 1
    if kind == "rejected":
        reason = reason_kind(verdict.get("reason"))[:REASON_CHARS_MAX]
        if reason not in reasons and len(reasons) >= REASONS_KEPT:
            reason = OTHER_REASONS
        reasons = {**reasons, reason: reasons.get(reason, 0) + 1}
    return {"at": max(said_at, row["at"] if row else 0), "kinds": kinds, "reasons": reasons}


def _day_row(row: Row | None, kind: str, hour: str) -> Row:
    hours = dict(row["hours"]) if row else {}
    kinds = dict(hours.get(hour, {}))
    kinds[kind] = kinds.get(kind, 0) + 1
    return {"hours": {**hours, hour: kinds}}


def day_key(site: str, day: int) -> str:
    """day: since the epoch. No site has a line's end in its name."""
    return f"{site}\n{day}"


def url_of(rows: Iterable[Row]) -> Row | None:
    """A URL's row from those of all partitions: it has several once the topic was given more partitions."""
    held = list(rows)
    forgot = max((row["forgot"] for row in held if "forgot" in row), default=[-1, 0])
    held = [row for row in held if row["last"] >= forgot]
    if len(held) < 2:
        return held[0] if held else None
    judged = [told for row in held if (told := row["judged"]) and [told["page_id"], told["n"]] >= forgot]
    entries = [entry for row in held for entry in row["history"] if entry[:2] >= forgot]
    history = sorted(entries, key=lambda entry: entry[:2], reverse=True)
    return {
        **max(held, key=lambda row: row["last"]),
        "judged": max(judged, key=lambda verdict: (verdict["page_id"], verdict["n"]), default=None),
        "history": history[:HISTORY_KEPT],
        "first": max(min(row["first"] for row in held), forgot[0]),
        "own": max(held, key=_read_last)["own"],
    }


def _read_last(row: Row) -> int:
    """Page id of the URL's newest fetch that could be read, as far as its history is kept."""
    return max((page_id for page_id, n, kind, _ in row["history"] if not n and kind in _READ), default=-1)


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


def hours_of(rows: Iterable[Row]) -> dict[int, Counter[str]]:
    """Verdicts by kind of each hour of one day, over all partitions."""
    out: dict[int, Counter[str]] = {}
    for row in rows:
        for hour, kinds in row["hours"].items():
            out.setdefault(int(hour), Counter()).update(kinds)
    return out
