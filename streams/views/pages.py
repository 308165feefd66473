"""What the pages say: each as one JSON object, which its template shows and its `.json` twin gives out as it is."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib import resources
from typing import Any

from markupsafe import Markup

from neardup.decider import Decider
from neardup.errors import BadPage, NeardupError
from neardup.evaluation.rules.audits import SAMPLES
from neardup.page import normalise_url
from neardup.report import environment, prose
from neardup.report.samples import instant
from neardup.rules import why_refused
from neardup.standing import standing_of
from streams.views import comparing
from streams.views.canonical import chosen
from streams.views.charts import over_time
from streams.views.health import ago
from streams.views.hot import family_words
from streams.views.lists import Row, Verdict
from streams.views.rows import cluster_id, cluster_of, url_of
from streams.views.source import Source

Facts = dict[str, Any]

MEMBERS_SHOWN = 100
URL_CHARS_MAX = 10_000

_FLAGS = prose.FLAGS


def url(source: Source, wanted: str, decider: Decider) -> Facts | None:
    """A URL's life: as it was typed, else as the crawl writes it. None if nothing was said of it."""
    row = _row(source, wanted)
    if row is None:
        return None
    verdict = row["verdict"]
    judged = row["judged"]
    standing = (verdict.get("standing") or {}).get("verdict")
    if verdict.get("reason") or not standing or not judged or judged["verdict"] != standing:
        judged = verdict
    words, judged_here = evidence_words(judged, decider)
    return {
        "url": verdict["url"],
        "verdict": verdict,
        "judged": judged,
        "words": words,
        "thresholds_known": judged_here,
        "flags": [told for flag, told in _FLAGS.items() if verdict.get(flag)],
        "cluster": cluster_id(verdict),
        "history": [
            {"page_id": page_id, "n": n, "verdict": kind, "fetched_at": fetched_at}
            for page_id, n, kind, fetched_at in row["history"]
        ],
    }


def _row(source: Source, wanted: str) -> Row | None:
    for text in _spellings(wanted.strip()[:URL_CHARS_MAX]):
        row = url_of(source.rows("urls", text))
        if row is not None:
            return row
    return None


def _spellings(text: str) -> list[str]:
    out = [text]
    for full in (text, f"https://{text}", f"http://{text}"):
        try:
            out.append(normalise_url(full))
        except BadPage:
            continue
    return list(dict.fromkeys(out))


def evidence_words(verdict: Verdict, decider: Decider) -> tuple[list[str], bool]:
    """The evidence in words, and whether `decider` is the one that judged: only then its thresholds are told."""
    evidence = verdict.get("evidence") or {}
    words = [str(verdict["reason"])] if verdict.get("reason") else []
    if replace(decider, scheme=str(verdict.get("scheme", ""))).digest != verdict.get("decider"):
        return words, False
    return words + (prose.sentences(evidence, decider) if evidence.get("by") else []), True


def compare(source: Source, a: str, b: str, decider: Decider, *, shown: int) -> Facts | str:
    """Two URLs side by side, or which of them is not known. Reads the pages again: call it in a thread.

    shown: passages of differences.
    """
    found = []
    for text in (a, b):
        row = _row(source, text)
        if row is None:
            return f"No verdict was said of {text.strip()[:300]}"
        found.append(row)
    one, other = comparing.places(*found)
    return comparing.compared(source.origin, one, other, decider, shown=shown)


def cluster(source: Source, number: int) -> Facts | None:
    """A cluster: what was said of it last; by the members' own rows who is in it now, and whom an index should show."""
    row = cluster_of(source.rows("clusters", str(number)))
    if row is None:
        return None
    told = row["told"] or {"canonical": None, "size": None, "revision": None}
    held = [url_of(source.rows("urls", text)) for text in row["members"]]
    rows = [each for each in held if each is not None and cluster_id(each["verdict"]) == number]
    policy, problem = _policy(source)
    canonical, why = chosen(policy, told["canonical"], rows, problem)
    members = [_member(each, canonical) for each in rows]
    members.sort(key=lambda member: (not member["canonical"], member["page_id"], member["url"]))
    left_out = max(0, len(members) - MEMBERS_SHOWN)
    return {
        "cluster": number,
        **told,
        "canonical": canonical,
        "policy": list(policy),
        "why": why,
        "members": members[:MEMBERS_SHOWN],
        # Beyond what rows and pages hold; those who left since are among the first kind.
        "complete": not row["more"] and not left_out,
    }


def _policy(source: Source) -> tuple[Sequence[str], str]:
    """The policy that holds, or why it is not known."""
    try:
        return source.policy(), ""
    except NeardupError as error:
        return (), f"a verdict said so; whether another policy holds is not known: {error}"


def _member(row: Row, canonical: str | None) -> Facts:
    verdict = row["verdict"]
    return {
        "url": verdict["url"],
        "verdict": standing_of(verdict).kind,
        "page_id": verdict["page_id"],
        "site": verdict.get("site"),
        "canonical": verdict["url"] == canonical,
    }


_environment = environment("streams.views")
_environment.filters["instant"] = instant
_environment.globals |= {"kinds": prose.KINDS, "samples": SAMPLES, "form_token": "", "sent": (), "labels_taken": False}


def _share(part: int, whole: int) -> str:
    return prose.percent(part / whole) if whole else ""


_environment.globals["hours_chart"] = lambda spans: over_time("Verdicts an hour", _labelled(spans, "%a %H:00"))
_environment.globals["days_chart"] = lambda spans: over_time("Verdicts a day", _labelled(spans, "%d %b"))
_environment.globals["share"] = _share
_environment.globals["family_words"] = family_words
_environment.globals["ago"] = ago
_environment.globals["refusal"] = why_refused


def _labelled(spans: Sequence[Facts], form: str) -> list[tuple[str, Facts]]:
    return [(datetime.fromtimestamp(span["from"] / 1000, UTC).strftime(form), span["kinds"]) for span in spans]


def html(template: str, facts: Facts | None, **more: Any) -> str:
    """template: the name of a page. facts: what the functions above say; None: nothing is known."""
    return _environment.get_template(f"{template}.html.j2").render(facts=facts, **more)


def style() -> str:
    """The report's looks, and what the views add."""
    report = resources.files("neardup.report").joinpath("report.css").read_text(encoding="utf-8")
    return Markup(report + resources.files("streams.views").joinpath("views.css").read_text(encoding="utf-8"))
