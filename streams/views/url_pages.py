"""Facts of the pages about URLs and clusters. JSON twins return them unchanged."""

from collections.abc import Sequence
from dataclasses import replace

from neardup.canonical import Member, choose
from neardup.decider import Decider
from neardup.errors import BadInput, BadPage, NeardupError
from neardup.report import evidence_sentences
from neardup.standing import standing_of
from neardup.urls import name_of, normalise_url, one_named, site_of_verdict, url_of_id
from streams.formats.verdict_records import Verdict
from streams.views import comparing, entries
from streams.views.entries import Cursor, Row
from streams.views.lists import Facts
from streams.views.source import Source
from streams.views.view_rows import READ, cluster_id, cluster_of, url_of

MEMBERS_SHOWN = 100
URL_CHARS_MAX = 10_000


def url(source: Source, required: str, decider: Decider) -> Facts | None:
    """Return the verdicts on a URL, or None without a verdict. required: URL or id as a user types it.

    Raises BadInput for an id that several documents have.
    """
    row = _row(source, required)
    if row is None:
        return None
    verdict = row["verdict"]
    judged = row["judged"]
    standing = (verdict.get("standing") or {}).get("verdict")
    if verdict.get("reason") or not standing or not judged or judged["verdict"] != standing:
        judged = verdict
    words, known = evidence_words(judged, decider)
    return {
        "url": verdict["url"],
        "verdict": verdict,
        "judged": judged,
        "words": words,
        "thresholds_known": known,
        "flags": [words for flag, words in evidence_sentences.FLAGS.items() if verdict.get(flag)],
        "cluster": cluster_id(verdict),
        "history": [
            {
                "page_id": page_id,
                "n": n,
                "verdict": kind,
                "fetched_at": fetched_at,
                "changed_from": changed_from(row, page_id) if not n and kind != "unchanged" else None,
            }
            for page_id, n, kind, fetched_at in row["history"]
        ],
    }


def _row(source: Source, required: str) -> Row | None:
    """Returns the row of a URL or document. Raises BadInput for an id that several documents have."""
    text = required.strip()[:URL_CHARS_MAX]
    for each in _spellings(text):
        row = url_of(source.rows("urls", each))
        if row is not None:
            return row
    named = dict(source.documents(text)) if text else {}
    found = one_named(text, named, lambda each: bool(source.rows("urls", each)))
    return None if found is None else url_of(source.rows("urls", found))


def changed_from(row: Row, page_id: int) -> int | None:
    """Return the page id of the last readable fetch before a readable fetch; None without one in the kept history."""
    fetches = [each for each, n, kind, _ in row["history"] if not n and kind in READ]
    return max((each for each in fetches if each < page_id), default=None) if page_id in fetches else None


def _spellings(text: str) -> list[str]:
    out = [text]
    for full in (text, f"https://{text}", f"http://{text}", url_of_id(text)):
        try:
            out.append(normalise_url(full))
        except BadPage:
            continue
    return list(dict.fromkeys(out))


def evidence_words(verdict: Verdict, decider: Decider) -> tuple[list[str], bool]:
    """Return the evidence as sentences, and whether `decider` made the verdict: only then the thresholds are known.

    They are those of `neardup explain`, candidates that the index alone knows left out.
    """
    evidence = verdict.get("evidence") or {}
    words = [str(verdict["reason"])] if verdict.get("reason") else []
    if apart := evidence_sentences.kept_apart(evidence):
        words.append(apart)
    if replace(decider, scheme=str(verdict.get("scheme", ""))).digest != verdict.get("decider"):
        return words, not evidence
    if evidence.get("by"):
        words += evidence_sentences.sentences(evidence, decider, verdict["url"])
    if near := evidence.get("nearest"):
        words.append(
            f"Nearest candidate, rejected: page {near['page_id']}, {evidence_sentences.short(name_of(near['url']))}"
        )
        words += evidence_sentences.sentences(near, decider, verdict["url"])
    if not words:
        if verdict.get("shell"):
            words = ["Its words come from a script or another page, so it has exact copies alone. Render it."]
        elif verdict.get("thin"):
            words = ["It has too few words for anything but exact copies."]
        elif verdict["verdict"] == "unique":
            words = ["No earlier page shares an index key with it, so there was no candidate."]
        else:
            words = ["This verdict compares no pages."]
    return words, True


def compare(source: Source, a: str, b: str, decider: Decider, *, shown: int, page_id: int | None = None) -> Facts | str:
    """Compare two URLs, or return an error text. Reads the pages again: call it in a thread.

    shown: differing passages at most. page_id: a fetch of the URL `a`, which is compared with the one before it.
    """
    found = []
    for text in (a, b):
        try:
            row = _row(source, text)
        except BadInput as error:
            return str(error)
        if row is None:
            return f"No verdict about {text.strip()[:300]}"
        found.append(row)
    if page_id is not None:
        before = changed_from(found[0], page_id)
        if before is None:
            return f"No earlier fetch of the page is known to compare fetch {page_id} with"
        one, other = (comparing.fetch(found[0], each) for each in (before, page_id))
        return comparing.compared(source.origin, one, other, decider, shown=shown) | {"changed": True}
    one, other = comparing.fetches(*found)
    return comparing.compared(source.origin, one, other, decider, shown=shown)


def cluster(source: Source, number: int, cursor: Cursor = Cursor()) -> Facts | None:  # noqa: B008
    """Return a cluster's latest figures, present members (by their own rows) and canonical URL.

    The members of its row are the first page, and decide the canonical URL; a cursor leads to the others, by URL.
    """
    row = cluster_of(source.rows("clusters", str(number)))
    if row is None:
        return None
    latest = row["figures"] or {"canonical": None, "size": None, "revision": None}
    rows = _present(source, row["members"], number)
    policy, problem = _policy(source)
    canonical, why = _chosen(policy, latest["canonical"], rows, problem)
    more, cursors = _further(source, number, cursor, bool(row["more"]))
    members = [_member(each, canonical) for each in (rows if more is None else _present(source, more, number))]
    if more is None:
        members.sort(key=lambda member: (not member["canonical"], member["page_id"], member["url"]))
    return {
        "cluster": number,
        **latest,
        "canonical": canonical,
        "policy": list(policy),
        "why": why,
        "members": members,
        "complete": not row["more"],
        **cursors,
    }


#: Cursors before the first and behind the last URL of the members that are entries.
_FIRST, _START = "first", " "


def _further(source: Source, number: int, cursor: Cursor, more: bool) -> tuple[list[str] | None, Facts]:
    """Return the URLs of a page behind the first one, None for the first one; and {previous, next}."""
    if not more or (not cursor.after and cursor.before in ("", _FIRST)):
        return None, {"previous": None, "next": _START if more else None}
    held, cursors = entries.page_of(source, entries.of_members(number), cursor, MEMBERS_SHOWN)
    # The page before the first entries is that of the row.
    cursors["previous"] = _FIRST if cursor.after == _START else cursors["previous"] or _FIRST
    return [url for url, _ in held], cursors


def _present(source: Source, urls: Sequence[str], number: int) -> list[Row]:
    held = [url_of(source.rows("urls", text)) for text in urls]
    return [each for each in held if each is not None and cluster_id(each["verdict"]) == number]


def _policy(source: Source) -> tuple[Sequence[str], str]:
    """Return the policy, or the reason why it is unknown."""
    try:
        return source.policy(), ""
    except NeardupError as error:
        return (), f"named by a verdict; the policy is unknown: {error}"


def _member(row: Row, canonical: str | None) -> Facts:
    verdict = row["verdict"]
    return {
        "url": verdict["url"],
        "verdict": standing_of(verdict).kind,
        "page_id": verdict["page_id"],
        "site": site_of_verdict(verdict),
        "canonical": verdict["url"] == canonical,
    }


def _chosen(
    policy: Sequence[str], named: str | None, rows: Sequence[Row], problem: str = ""
) -> tuple[str | None, Facts | None]:
    """Return the canonical URL of a cluster and the reason.

    named: canonical URL of the newest verdict. rows: rows of the present members. problem: reason why the policy is
    unknown.
    """
    members = [_candidate(row) for row in rows]
    choice = choose(members, policy) if policy else None
    if choice is not None:
        steps = [{"criterion": step.criterion, "members": step.members} for step in choice.steps]
        return choice.url, {"by": choice.by, "words": choice.words, "steps": steps}
    if named is None:
        return None, None
    row = next((row for row in rows if row["verdict"]["url"] == named), None)
    words = "the representative names it by rel=canonical"
    if row is None:
        words = "named by a verdict"
    elif standing_of(row["verdict"]).shown:
        words = "it is the representative, which names no other member by rel=canonical"
    return named, {"by": "verdict", "words": problem or words, "steps": []}


def _candidate(row: Row) -> Member:
    own, verdict = row["own"], row["verdict"]
    return Member(
        url=verdict["url"],
        first_seen=row["first"],
        site=site_of_verdict(verdict),
        rel_canonical=own.get("rel_canonical"),
        score=own.get("score"),
        fetched_at=verdict.get("fetched_at") or 0,
    )
