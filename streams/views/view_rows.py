"""The rows of the views, and how each verdict changes them. Pure; the stream and a scan's directory share it.

Five tables, whose rows are JSON objects:

urls      URL -> {last, verdict: the latest one, judged: the latest JUDGEMENT or null, true if it is the latest verdict
          (`judged_of`), first: page id of the first one,
          history: [[page_id, n, kind, fetched_at], ...] newest first,
          own: {rel_canonical, score} of its newest readable fetch,
          taken_down: id of the verdict of its latest takedown, only if there was one; nothing older is kept}
clusters  cluster -> {last, members: [URL, ...] ever assigned to it, more: members that are entries,
          figures: {canonical, size, revision} or null, figures_at: id of the verdict with these}
counts    site -> {last, at, first: emit times of the newest and oldest dated verdict, kinds: {kind: verdicts},
          kept_apart: pages, reasons: {reason: verdicts}}; of the whole crawl under `EVERYTHING`;
          (site, day) -> {last, hours: {hour of the day: {kind: verdicts}}};
          (site, block of BLOCK_DAYS days) -> {last, days: {day of the block: {kind: verdicts}}}
lists     see `streams.views.lists`
entries   see `streams.views.entries`: most rows are without `last`

`last` is the id (page_id, n) of the newest verdict applied to a row. A row applies only newer verdicts: after a crash
verdicts come again, and some rows have them while others do not. One id is enough because a partition delivers its
verdicts in ascending order and has rows of its own; `url_of`, `cluster_of` and `counts_of` join the partitions' rows.

A URL that leaves its cluster stays in the list of members; its own row names its present cluster.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

from neardup.report.evidence_sentences import reason_kind
from neardup.standing import DUPLICATES, SHOWN, standing_of
from neardup.urls import site_of_verdict
from neardup.verdict import TAKEN_DOWN
from streams.formats.verdict_records import Verdict
from streams.views import entries, lists
from streams.views.entries import Row
from streams.views.lists import Change, Closeness

TABLES = ("urls", "clusters", "counts", "lists", entries.TABLE)
#: Raised when the rows change: tables of another version are not touched, and are built from the first verdict.
ROWS_VERSION = 2
#: Kinds that compare the page with others. Later kinds refer to the standing one.
JUDGEMENTS = (*SHOWN, *DUPLICATES)
#: Kinds of a fetch whose page was readable.
READ = (*JUDGEMENTS, "unchanged", "edited")
#: Not a registrable domain.
EVERYTHING = "*"

HOUR_MS = 3_600_000
#: Days whose counts share a row, so that a chart of a year takes 12 lookups.
BLOCK_DAYS = 32
HISTORY_KEPT = 20
#: For each cluster and partition: each verdict rewrites the row, and a message of Kafka holds 1 MB.
MEMBERS_KEPT, MEMBER_CHARS_KEPT = 100, 50_000
REASONS_KEPT, REASON_CHARS_MAX = 100, 200
OTHER_REASONS = "other reasons"


class ViewRows(Protocol):
    """The rows of one partition."""

    def get(self, table: str, key: str) -> Row | None: ...
    def put(self, table: str, key: str, row: Row) -> None: ...


def apply(verdict: Verdict, rows: ViewRows, emitted_ms: int = 0, closeness: Closeness = lambda verdict: None) -> None:
    """Apply one verdict to all rows that it concerns. Raises KeyError, TypeError, ValueError if it is not a verdict.

    emitted_ms: ms since the epoch; equal whenever the verdict comes again.
    """
    last = [int(verdict["page_id"]), int(verdict["n"])]
    # Everything that can raise has run once this list is complete: a change only adds what was computed here.
    changes = list(_changes(verdict, rows, int(emitted_ms), closeness))
    items = list(lists.items(verdict, last))
    for table, key, change in changes:
        row = rows.get(table, key)
        if row is None or row["last"] < last:
            row = change(row)
            row["last"] = last  # the last field, see `streams.views.changelogs`
        # Unchanged rows are put as well: a process killed here may have the row on its disk but not in Kafka.
        rows.put(table, key, row)
        if table == "clusters" and (url := str(verdict["url"])) not in row["members"]:
            rows.put(entries.TABLE, entries.of_members(key) + url, {})
    for key, item in items:
        rows.put(entries.TABLE, key, item)


def _changes(
    verdict: Verdict, rows: ViewRows, emitted_ms: int, closeness: Closeness
) -> Iterator[tuple[str, str, Change]]:
    """Yield (table, key, change) of each row. A change may write into the row that it is given, and returns it."""
    kind, url = str(verdict["verdict"]), str(verdict["url"])
    site = site_of_verdict(verdict)
    day, hour = divmod(emitted_ms // HOUR_MS, 24)
    apart = lists.kept_apart(verdict)
    reason = reason_kind(verdict.get("reason"))[:REASON_CHARS_MAX] if kind == "rejected" else None
    block, hours, days = day // BLOCK_DAYS, str(hour), str(day % BLOCK_DAYS)
    counted = lambda row: _counts_row(row, kind, apart, reason, emitted_ms)  # noqa: E731
    of_day = lambda row: _span_row(row, kind, "hours", hours)  # noqa: E731
    of_block = lambda row: _span_row(row, kind, "days", days)  # noqa: E731
    yield "urls", url, lambda row: _url_row(row, verdict, kind)
    for name in (EVERYTHING, site):
        yield "counts", name, counted
        yield "counts", day_key(name, day), of_day
        yield "counts", block_key(name, block), of_block
    if (cluster := cluster_id(verdict)) is not None:
        member = entries.of_members(cluster) + url
        known = lambda: rows.get(entries.TABLE, member) is not None  # noqa: E731
        yield "clusters", str(cluster), lambda row: _cluster_row(row, verdict, url, known)
    for key, change in lists.changes(verdict, kind, site, day, closeness):
        yield "lists", key, change
    # The founder of a cluster is alone in it: no entry can be there to be replaced.
    if (listed := lists.cluster_entry(verdict)) is not None and (listed[1] > 1 or kind != "unique"):
        number, size, canonical, _ = listed
        row_of = lambda row: {"cluster": int(number), "size": size, "canonical": canonical}  # noqa: E731
        yield entries.TABLE, entries.CLUSTERS + entries.newest(int(number)), row_of


def cluster_id(verdict: Verdict) -> int | None:
    """Return the cluster that the verdict's URL is in, if any."""
    return standing_of(verdict).cluster


def _url_row(row: Row | None, verdict: Verdict, kind: str) -> Row:
    entry = [verdict["page_id"], verdict["n"], kind, verdict.get("fetched_at")]
    if kind == "gone" and verdict.get("reason") == TAKEN_DOWN:
        taken_down = {"taken_down": entry[:2]}
        row = None
    else:
        taken_down = {"taken_down": row["taken_down"]} if row and "taken_down" in row else {}
    history = [entry, *(row["history"] if row else ())]
    # The latest verdict is most often the judgement: it is stored once.
    judged: Verdict | bool | None = True if kind in JUDGEMENTS else judged_of(row) if row else None
    own = row["own"] if row else {}
    if not verdict["n"] and kind in READ:
        own = {name: verdict[name] for name in ("rel_canonical", "score") if verdict.get(name) is not None}
    first = row["first"] if row else verdict["page_id"]
    return {
        "verdict": dict(verdict),
        "judged": judged,
        "history": history[:HISTORY_KEPT],
        "first": first,
        "own": own,
        **taken_down,
    }


def judged_of(row: Row) -> Verdict | None:
    """Return the latest judgement of a URL's row, None if it has none."""
    judged: Verdict | None = row["verdict"] if row["judged"] is True else row["judged"]
    return judged


def _cluster_row(row: Row | None, verdict: Verdict, url: str, known: Callable[[], bool]) -> Row:
    """known: whether the URL is an entry, which is asked only once the row is full."""
    if row is None:
        row = {"members": [], "more": 0, "figures": None, "figures_at": [-1, 0]}
    if url not in row["members"]:
        if not row["more"] and _fits(row["members"], url):
            row["members"].append(url)
        elif not known():
            row["more"] += 1
    if verdict.get("canonical") is not None:
        row["figures"] = {
            "canonical": verdict["canonical"],
            "size": verdict.get("cluster_size"),
            "revision": verdict.get("revision"),
        }
        row["figures_at"] = [verdict["page_id"], verdict["n"]]
    return row


def _fits(members: Sequence[str], url: str) -> bool:
    return len(members) < MEMBERS_KEPT and sum(map(len, members)) + len(url) <= MEMBER_CHARS_KEPT


def _counts_row(row: Row | None, kind: str, apart: bool, reason: str | None, emitted_ms: int) -> Row:
    if row is None:
        row = {"at": 0, "first": emitted_ms, "kinds": {}, "kept_apart": 0, "reasons": {}}
    kinds, reasons = row["kinds"], row["reasons"]
    kinds[kind] = kinds.get(kind, 0) + 1
    if reason is not None:
        if reason not in reasons and len(reasons) >= REASONS_KEPT:
            reason = OTHER_REASONS
        reasons[reason] = reasons.get(reason, 0) + 1
    row["at"] = max(emitted_ms, row["at"])
    if emitted_ms:
        row["first"] = min(row["first"] or emitted_ms, emitted_ms)
    row["kept_apart"] += apart
    return row


def _span_row(row: Row | None, kind: str, unit: str, number: str) -> Row:
    """unit: "hours" of a day's row, "days" of a block's."""
    if row is None:
        row = {unit: {}}
    kinds = row[unit].setdefault(number, {})
    kinds[kind] = kinds.get(kind, 0) + 1
    return row


def day_key(site: str, day: int) -> str:
    """Return the key of a site's day. day: days since 1970. Names of sites contain no line feed."""
    return f"{site}\n{day}"


def block_key(site: str, block: int) -> str:
    """Return the key of a site's block of BLOCK_DAYS days. block: number of the block since 1970."""
    return f"{site}\n\n{block}"


def url_of(rows: Iterable[Row]) -> Row | None:
    """Join a URL's rows of all partitions: it has several once partitions were added to the topic."""
    held = [{**row, "judged": judged_of(row)} for row in rows]
    taken_down = max((row["taken_down"] for row in held if "taken_down" in row), default=[-1, 0])
    held = [row for row in held if row["last"] >= taken_down]
    if len(held) < 2:
        return held[0] if held else None
    judged = [each for row in held if (each := row["judged"]) and [each["page_id"], each["n"]] >= taken_down]
    entered = [entry for row in held for entry in row["history"] if entry[:2] >= taken_down]
    history = sorted(entered, key=lambda entry: entry[:2], reverse=True)
    return {
        **max(held, key=lambda row: row["last"]),
        "judged": max(judged, key=lambda verdict: (verdict["page_id"], verdict["n"]), default=None),
        "history": history[:HISTORY_KEPT],
        "first": max(min(row["first"] for row in held), taken_down[0]),
        "own": max(held, key=_read_last)["own"],
        **({"taken_down": taken_down} if taken_down[0] >= 0 else {}),
    }


def _read_last(row: Row) -> int:
    """Page id of the URL's newest readable fetch in the kept history."""
    return max((page_id for page_id, n, kind, _ in row["history"] if not n and kind in READ), default=-1)


def cluster_of(rows: Sequence[Row]) -> Row | None:
    """Join a cluster's rows of all partitions: the newest figures, and all members."""
    if not rows:
        return None
    figures = max(rows, key=lambda row: row["figures_at"])["figures"]
    members = list(dict.fromkeys(url for row in rows for url in row["members"]))
    return {"figures": figures, "members": members, "more": sum(row["more"] for row in rows)}


def counts_of(rows: Iterable[Row]) -> tuple[Counter[str], Counter[str]]:
    """Join rows of counts: verdicts by kind, and rejected ones by reason."""
    kinds: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    for row in rows:
        kinds.update(row["kinds"])
        reasons.update(row["reasons"])
    return kinds, reasons


def spans_of(rows: Iterable[Row], unit: str) -> dict[int, Counter[str]]:
    """Join rows of one day ("hours") or block ("days"): verdicts by kind of each hour or day in it."""
    out: dict[int, Counter[str]] = {}
    for row in rows:
        for number, kinds in row[unit].items():
            out.setdefault(int(number), Counter()).update(kinds)
    return out
