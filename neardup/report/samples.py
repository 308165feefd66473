"""Builds sample pairs for people: pages read again from their sources, side by side, with differences marked."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from neardup.decider import Decider
from neardup.errors import NeardupError
from neardup.limits import BODY_BYTES_MAX
from neardup.page import Page
from neardup.report import evidence_sentences
from neardup.report.differ import Difference, compare_texts, text_words
from neardup.report.passages import Passages, passages
from neardup.report.reasons import Draft, draft_of
from neardup.report.verdict_counts import Verdict, nearest
from neardup.text.decoding import decode
from neardup.text.one_page_html import text_of, title_of
from neardup.urls import normalise_url, site_of_verdict

#: Reads the page at the coordinates of a verdict, None if it is gone.
ReadPage = Callable[[Mapping[str, Any]], Page | None]


@dataclass(slots=True)
class CardSide:
    """One page of a pair."""

    url: str
    page_id: int | None
    fetched_at: str
    title: str = ""


@dataclass(slots=True)
class Card:
    """One sample, as the template shows it.

    other: the representative or the nearest candidate; None: the page is shown alone. draft: the kind of difference;
    None if no word differs or a text cannot be read. by: the step that decided. site: site of the page.
    """

    kind: str
    page: CardSide
    other: CardSide | None = None
    other_role: str = ""
    sentences: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)
    difference: Difference | None = None
    passages: Passages | None = None
    draft: Draft | None = None
    by: str = ""
    site: str = ""

    def compare(self, left: str | None, right: str | None) -> None:
        """Compares the texts of both pages, if both are there."""
        if left is not None and right is not None:
            self.difference = compare_texts(text_words(left), text_words(right))
            self.passages = passages(self.difference)

    def labels(self) -> list[str]:
        """Returns two alternative lines for a label file (`neardup.evaluation.labels`): duplicate, not duplicate.

        Empty without two URLs.
        """
        if self.other is None or not self.page.url or self.other.url in ("", self.page.url):
            return []
        pair = {"a": {"url": self.page.url}, "b": {"url": self.other.url}}
        return [json.dumps({**pair, "label": label, "sample": "report"}) for label in ("correct", "incorrect")]


def instant(ms: Any) -> str:
    """Formats milliseconds since the epoch as UTC; as the number if it is out of range."""
    if not isinstance(ms, int):
        return ""
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return f"{ms} ms"


def page_text(page: Page) -> str | None:
    """Returns the text of a page as the sketch reads it, with the names of its images.

    None for a tombstone, or a body that is neither HTML nor text.
    """
    if page.body is None:
        return None
    decoded = decode(page.body[:BODY_BYTES_MAX], page.content_type)
    return None if decoded.opaque else text_of(decoded.utf8, decoded.mode, terms=True)


def card(verdict: Verdict, read_page: ReadPage, decider: Decider, *, against_nearest: bool = False) -> Card:
    """Builds a sample of a verdict. against_nearest: show the rejected candidate instead of the representative."""
    kind = str(verdict.get("verdict", ""))
    evidence, url = verdict.get("evidence") or {}, str(verdict.get("url") or "")
    out = Card(kind, _side(verdict), site=site_of_verdict(verdict))
    out.flags = [flag.replace("_", " ") for flag in evidence_sentences.FLAGS if verdict.get(flag)]
    other, evidence, out.other_role = _other(verdict, evidence, against_nearest or kind == "unique")
    out.sentences = evidence_sentences.sentences(evidence, decider, url)
    out.by = str(evidence.get("by") or "")
    if verdict.get("reason"):
        out.sentences.insert(0, str(verdict["reason"]))
    if other is None:
        return out
    out.other = _side(other)
    texts = []
    for side, place in (("this page", verdict), (f"the {out.other_role}", other)):
        text, note, title = _read(place, read_page)
        texts.append(text)
        if place is other and not out.other.title:
            out.other.title = title  # a verdict has its own page's title only
        if note:
            out.notes.append(f"The text of {side} cannot be shown: {note}.")
    out.compare(*texts)
    if out.difference is not None:
        out.draft = draft_of(out.difference, out.page.url, out.other.url)
        if out.draft and (sentence := out.draft.sentence()):
            out.sentences.append(sentence)
    return out


def _other(
    verdict: Verdict, evidence: Mapping[str, Any], against_nearest: bool
) -> tuple[Mapping[str, Any] | None, Mapping[str, Any], str]:
    """Selects the page to show beside this one: (page, evidence of the pair, role)."""
    if against_nearest:
        near = nearest(verdict)
        return (near, near, "nearest candidate") if near else (None, {}, "")
    holder = evidence.get("holder")
    if holder and holder.get("coordinates"):
        return holder, evidence, "page with the same words"
    for name, role in (("content_of", "page of the same content"), ("representative", "representative")):
        place = verdict.get(name)
        place = place or (verdict.get("standing") or {}).get(name)
        if isinstance(place, Mapping) and place.get("page_id") != verdict.get("page_id"):
            return place, evidence, role
    return None, evidence, ""


def _side(place: Mapping[str, Any]) -> CardSide:
    return CardSide(
        url=str(place.get("url") or ""),
        page_id=place.get("page_id"),
        fetched_at=instant(place.get("fetched_at")),
        title=str(place.get("title") or ""),
    )


def page_there(place: Mapping[str, Any], read_page: ReadPage) -> tuple[Page | None, str]:
    """Reads the page at a verdict's coordinates: (page, "") or (None, reason)."""
    coordinates = place.get("coordinates")
    if not coordinates:
        return None, "the verdict has no coordinates for it"
    try:
        page = read_page(coordinates)
    except (NeardupError, OSError) as error:
        return None, str(error)
    if page is None:
        return None, "its source is gone"
    try:
        here = normalise_url(page.url)
    except NeardupError:
        here = page.url
    if place.get("url") and here != place["url"]:
        return None, f"its source has changed and now holds {here[:200]} there"
    return page, ""


def _read(place: Mapping[str, Any], read_page: ReadPage) -> tuple[str | None, str, str]:
    """Reads a page: (text, "", title) or (None, reason, "")."""
    page, note = page_there(place, read_page)
    if page is None:
        return None, note, ""
    text = page_text(page)
    if text is None or page.body is None:
        return None, "it is neither HTML nor text", ""
    return text, "", title_of(decode(page.body[:BODY_BYTES_MAX], page.content_type).utf8)
