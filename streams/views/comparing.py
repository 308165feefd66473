"""Compares two pages: the result of each rule on their sketches, and the differences of their texts.

Figures come from the sketches in the log, as for the verdict; texts from the pages. Either may be unavailable
(retention, a moved file); the rest is shown without it. `neardup.report.differ` bounds texts and differences.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from msgspec.structs import asdict

from neardup.decider import Decider
from neardup.errors import NeardupError
from neardup.page import Page
from neardup.pairs.scoring import compare
from neardup.report.differ import Difference, compare_texts, text_words
from neardup.report.evidence_sentences import found_through
from neardup.report.passages import passages
from neardup.report.reasons import draft_of
from neardup.report.samples import page_text, page_there
from neardup.sketch.layout import RecordKind
from neardup.sketch.sketch_record import Sketch
from neardup.urls import site_named
from neardup.verdict import TAKEN_DOWN, Coordinates, Kind
from streams.verdicts.compare import decision_text, rule_results, veto_names
from streams.views.entries import Row
from streams.views.lists import Facts
from streams.views.source import Origin
from streams.views.view_rows import JUDGEMENTS, judged_of

PASSAGES_SHOWN, PASSAGES_MAX = 12, 500


@dataclass(slots=True)
class _Side:
    """One page.

    fetch: verdict on the page, or the entry of another verdict about the page. missing: reasons why sketch or text are
    unavailable.
    """

    fetch: Mapping[str, Any]
    record: bytes | None = None
    sketch: Sketch | None = None
    page: Page | None = None
    text: str | None = None
    missing: dict[str, str] = field(default_factory=dict)

    def read(self, origin: Origin) -> None:
        if _taken_down(self.fetch):  # its verdict still names where the page lies
            self.missing = dict.fromkeys(("sketch", "text"), "the page was taken down")
            return
        try:
            record = origin.record(int(self.fetch["page_id"]), self.fetch.get("log"))
            sketch = Sketch(record)
            if sketch.url != self.fetch["url"]:
                self.missing["sketch"] = f"the log holds {sketch.url[:200]} at its position"
            elif sketch.kind is not RecordKind.PAGE:
                self.missing["sketch"] = sketch.reason or "it was not readable as a page"
            else:
                self.record, self.sketch = record, sketch
                self.fetch = {"coordinates": asdict(sketch.coordinates), **self.fetch}
        except (NeardupError, OSError) as error:
            self.missing["sketch"] = str(error)
        self.page, note = page_there(self.fetch, lambda place: origin.page(Coordinates(**place)))
        if self.page is not None:
            note = self.page.problem or ""
            self.text = page_text(self.page)
            if self.text is None:
                note = note or "it is neither HTML nor text"
        if note:
            self.missing["text"] = note

    def facts(self) -> Facts:
        sketch = self.sketch
        return {
            "url": self.fetch["url"],
            "page_id": self.fetch["page_id"],
            "fetched_at": self.fetch.get("fetched_at"),
            "verdict": self.fetch.get("verdict"),
            "title": sketch.title if sketch else self.fetch.get("title"),
            "site": site_named(self.fetch["url"], sketch.site if sketch else self.fetch.get("site")),
            "tokens": sketch.tokens if sketch else None,
            "digest": sketch.digest.hex() if sketch else None,
            "missing": self.missing,
        }


def fetches(a: Row, b: Row) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Select the fetches to compare: the one that the other was judged against, else the latest readable one."""
    one, other = _own(a), _own(b)
    return _judged_against(b, a, one["url"]) or one, _judged_against(a, b, other["url"]) or other


def _taken_down(fetch: Mapping[str, Any]) -> bool:
    return fetch.get("verdict") == Kind.GONE and fetch.get("reason") == TAKEN_DOWN


def fetch(row: Row, page_id: int) -> Mapping[str, Any]:
    """Return what locates one fetch of a URL's history."""
    kind, fetched_at = next(entry[2:] for entry in row["history"] if entry[0] == page_id and not entry[1])
    verdict = row["verdict"]
    held = {"url": verdict["url"], "page_id": page_id, "verdict": kind, "fetched_at": fetched_at}
    return held | {name: verdict[name] for name in ("log", "scheme") if name in verdict}


def _own(row: Row) -> Mapping[str, Any]:
    verdict, judged = row["verdict"], judged_of(row)
    if verdict["n"]:  # another page's fetch caused it
        kept = verdict.get("representative") or {}
        if kept.get("url") == verdict["url"]:
            return {**verdict, **kept}
    elif verdict["verdict"] in (*JUDGEMENTS, "unchanged", "edited", "stale"):
        return dict(verdict)
    return dict(judged or verdict)


def _judged_against(row: Row, other: Row, url: str) -> Mapping[str, Any] | None:
    """The fetch of the other URL that a row's judgement names, unless it was taken down since."""
    judged, (taken_down, _) = judged_of(row) or {}, other.get("taken_down", (-1, 0))
    evidence = judged.get("evidence") or {}
    for place in (
        judged.get("representative"),
        judged.get("content_of"),
        evidence.get("holder"),
        evidence.get("nearest"),
    ):
        if place and place.get("url") == url and place.get("coordinates") and place["page_id"] > taken_down:
            return {**place, "log": judged.get("log")}
    return None


def compared(
    origin: Origin, one: Mapping[str, Any], other: Mapping[str, Any], decider: Decider, *, shown: int = PASSAGES_SHOWN
) -> Facts:
    """Compare two fetches. shown: differing passages at most. Reads files or topics, which takes time."""
    sides = _Side(one), _Side(other)
    for side in sides:
        side.read(origin)
    a, b = sides
    difference = None
    if a.text is not None and b.text is not None:
        difference = compare_texts(text_words(a.text), text_words(b.text))
    out: Facts = {"a": a.facts(), "b": b.facts(), "decider": decider.digest, "changed": False}
    return out | _figures(a, b, decider, difference) | _differences(a, b, difference, shown)


def _figures(a: _Side, b: _Side, decider: Decider, difference: Difference | None) -> Facts:
    """Return the results of the rules, if both sketches are available."""
    out: Facts = {"pair": None, "same_digest": None, "rules": [], "names": []}
    if a.sketch is None or b.sketch is None or a.record is None or b.record is None:
        return out
    decider = replace(decider, scheme=str(a.fetch.get("scheme") or decider.scheme))
    pair = compare(a.sketch, b.sketch)
    out["pair"], out["same_digest"] = pair._asdict(), pair.same_digest
    for one in rule_results((a.record, b.record), pair, decider):
        found = found_through(one.shared, replace(decider, rule=one.rule)) if one.shared else "no common key"
        out["rules"].append(
            {
                **one.to_json(pair.same_digest),
                "decision": decision_text(one, pair.same_digest),
                "found_through": found,
            }
        )
    if difference is not None:
        out["names"] = veto_names(difference, (a.sketch, b.sketch), pair)
    return out


def _differences(a: _Side, b: _Side, difference: Difference | None, shown: int) -> Facts:
    if difference is None:
        return {"differences": None}
    found = passages(difference, count_max=shown)
    draft = draft_of(difference, a.fetch["url"], b.fetch["url"])
    return {
        "differences": {
            "only_a": difference.removed,
            "only_b": difference.added,
            "words": [len(difference.left.words), len(difference.right.words)],
            "equal": not difference.changes,
            "aligned": not difference.coarse,
            "cut": difference.left.cut or difference.right.cut,
            "kind": (draft.sentence() or None) if draft else None,
            "passages": [
                {
                    "same_before": one.same_before,
                    "left": [segment._asdict() for segment in one.left],
                    "right": [segment._asdict() for segment in one.right],
                }
                for one in found.shown
            ],
            "more": found.more,
            "same_after": max(0, found.same_after),
        }
    }
