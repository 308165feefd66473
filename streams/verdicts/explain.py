"""Explains a verdict: folds the log again up to the page, and records all comparisons of the page."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from neardup.decider import Decider
from neardup.errors import BadInput, InvariantBroken
from neardup.fold import Candidate, Trace
from neardup.index.memory import MemoryStore
from neardup.limits import PLACE_BITS
from neardup.page import Page
from neardup.report.evidence_sentences import KINDS, found_through, kept_apart, sentences
from neardup.report.reasons import Draft
from neardup.report.samples import CardSide, card, instant
from neardup.rules import why_refused
from neardup.urls import name_of, one_named
from neardup.verdict import TAKEN_DOWN, Coordinates
from streams.pipeline.folded_takedowns import is_named, without
from streams.pipeline.follow import Batch, batched, follow
from streams.pipeline.matcher import Matcher
from streams.process.terminal import folded
from streams.state.named_documents import urls_named
from streams.state.scan_reader import ScanReader

#: Verdicts about the URL that are listed, the latest.
HISTORY_MAX = 20
#: Candidates shown in a terminal; JSON has them all.
CANDIDATES_SHOWN = 20


@dataclass(frozen=True)
class Explanation:
    """A verdict and all comparisons behind it. history: (page id, verdict) about this URL, oldest first.

    decider: the one that decided. difference: the page that it repeats, or its nearest candidate, and the kind of their
    difference; None if one of the two cannot be read any more, or no word differs.
    """

    verdict: Mapping[str, Any]
    trace: Trace
    history: list[tuple[int, str]]
    decider: Decider
    difference: tuple[CardSide, Draft] | None = None

    @property
    def winner(self) -> int | None:
        """Page id of the candidate that the page repeats."""
        for name in ("content_of", "representative"):
            place = self.verdict.get(name)
            if place and any(one.page_id == place["page_id"] and one.ruling.kind for one in self.trace.candidates):
                return int(place["page_id"])
        return None

    def to_json(self) -> dict[str, Any]:
        """Returns plain values only."""
        trace = self.trace
        return {
            "url": trace.url,
            "page_id": trace.page_id,
            "verdict": dict(self.verdict),
            "history": [{"page_id": page_id, "verdict": kind} for page_id, kind in self.history],
            "holder": trace.holder,
            "checks": [
                {
                    "of": one.of,
                    "page_id": one.page_id,
                    "held": one.held,
                    "by": one.ruling.by,
                    "pair": one.pair._asdict(),
                }
                for one in trace.checks
            ],
            "candidates": [
                {
                    "page_id": one.page_id,
                    "url": one.url,
                    "cluster": one.cluster,
                    "shared_keys": one.families,
                    "pair": one.pair._asdict(),
                    "verdict": one.ruling.kind,
                    "by": one.ruling.by,
                    "chosen": one.page_id == self.winner,
                }
                for one in trace.candidates
            ],
            "candidates_cut": trace.candidates_cut,
            "difference": self.difference
            and {"page_id": self.difference[0].page_id, "url": self.difference[0].url, **self.difference[1].to_json()},
        }

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        verdict, trace = self.verdict, self.trace
        kind = str(verdict["verdict"])
        name, meaning = KINDS.get(kind, (kind, ""))
        yield Text.assemble((name.upper(), "bold"), "  ", folded(name_of(trace.url)))
        yield Text(f"page {trace.page_id}, fetched {instant(verdict.get('fetched_at')) or 'at an unknown time'}")
        if verdict.get("title"):
            yield folded(str(verdict["title"]))
        yield ""
        evidence = verdict.get("evidence") or {}
        yield Text(meaning)
        if why := kept_apart(evidence):
            yield Text(why)
        if verdict.get("reason"):
            yield folded(str(verdict["reason"]))
        if verdict.get("standing"):
            yield self._standing(verdict["standing"])
        for role in ("representative", "content_of"):
            if verdict.get(role):
                other = "the representative" if role == "representative" else "the page with the same content"
                yield Text.assemble(
                    f"{other}: page {verdict[role]['page_id']}, ", folded(name_of(verdict[role]["url"]))
                )
        for sentence in sentences(evidence, self.decider, trace.url):
            yield folded(sentence)
        near = evidence.get("nearest")
        if near:
            yield Text.assemble(f"nearest candidate: page {near['page_id']}, ", folded(name_of(near["url"])))
            for sentence in sentences(near, self.decider, trace.url):
                yield folded(sentence)
        if self.difference and (sentence := self.difference[1].sentence()):
            yield Text(sentence)
        yield from self._comparisons()
        if len(self.history) > 1:
            kinds = ", ".join(f"{KINDS.get(kind, (kind,))[0]} (page {page_id})" for page_id, kind in self.history)
            yield ""
            yield Text(f"All verdicts about this URL: {kinds}.")

    def _standing(self, standing: dict[str, Any]) -> Text:
        """The effective verdict of the URL after this verdict."""
        kind = str(standing["verdict"])
        other = standing.get("representative") or {}
        effective = f"The URL stands as: {KINDS.get(kind, (kind,))[0]}"
        if other and other["url"] != self.trace.url:
            return Text.assemble(
                f"{effective}, represented by page {other['page_id']}, ", folded(name_of(other["url"]))
            )
        return Text(f"{effective}.")

    def _comparisons(self) -> RenderResult:
        trace = self.trace
        if trace.holder is not None:
            yield Text(f"Page {trace.holder} has the same words, which settles it before any candidate is scored.")
        for check in trace.checks:
            against = "its previous fetch" if check.of == "previous" else "its cluster's founding page"
            held = "still matches" if check.held else f"does not match: {why_refused(check.ruling.by)}"
            pair = check.pair
            numbers = f"tape {pair.tape_score:.4f}, B {pair.b_similarity}, C {pair.c_similarity}"
            yield Text(f"Against {against} (page {check.page_id}) it {held} ({numbers}).")
        if trace.candidates:
            yield ""
            yield self._candidates()
            more = len(trace.candidates) - CANDIDATES_SHOWN
            if more > 0:
                yield Text(f"and {more} more candidates (all of them with --json)", style="dim")
        elif trace.holder is None and not trace.checks and self.verdict["verdict"] == "unique":
            thin = "It has too few words for anything but exact copies." if self.verdict.get("thin") else ""
            yield Text(thin or "No earlier page shares an index key with it, so there was no candidate.")
        if trace.candidates_cut:
            yield Text("There were more candidates than are scored; those that share the fewest keys were left out.")

    def _candidates(self) -> Table:
        table = Table("", "page", box=None, pad_edge=False, header_style="bold")
        for column in ("tape", "content", "B of 6", "C of 384"):
            table.add_column(column, justify="right", no_wrap=True)
        table.add_column("candidate, keys that it shares, ruling", ratio=1)
        # The chosen one first, then in the order of comparison.
        order = sorted(self.trace.candidates, key=lambda one: one.page_id != self.winner)
        for one in order[:CANDIDATES_SHOWN]:
            chosen = one.page_id == self.winner
            pair = one.pair
            table.add_row(
                Text("=" if chosen else ("~" if one.ruling.kind else "x")),
                Text(str(one.page_id), no_wrap=True),
                f"{pair.tape_score:.4f}",
                f"{pair.content_score:.2f}",
                str(pair.b_similarity),
                str(pair.c_similarity),
                Text.assemble(
                    folded(name_of(one.url)),
                    ("\n" + found_through(one.families, self.decider) + "\n", "dim"),
                    (_ruling(one, chosen), "green" if one.ruling.kind else "yellow"),
                    overflow="fold",
                ),
            )
        return table


def _ruling(one: Candidate, chosen: bool) -> str:
    if one.ruling.kind is None:
        return f"{one.ruling.by}: {why_refused(one.ruling.by)}"
    return f"{one.ruling.kind.replace('_', ' ')} by {one.ruling.by}" + (
        ", chosen" if chosen else ", but another is nearer"
    )


def explain_command(
    state: ScanReader,
    url: str,
    *,
    page_id: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Explanation:
    """Judge a page of `url` again, on the index as it was then, in memory. Takes as long as folding the log up to it.

    page_id: page id of the verdict; by default the latest verdict.
    progress: function that receives the number of folded messages, and of all messages.

    Raises BadInput if there is no such verdict; InvariantBroken if the page now gets another verdict, so that log,
    verdicts and program contradict each other.
    """
    stored, history = _stored(state, url, page_id)
    offset, first = stored["page_id"] >> PLACE_BITS, state.first_decider
    matcher = Matcher(MemoryStore(), first)
    for _ in follow(batched((*message, False) for message in state.log.read(0, offset)), matcher):
        progress(matcher.next_offset, offset)
    decider, traces = matcher.decider, dict[int, Trace]()
    matcher.trace = lambda trace: traces.update({trace.page_id: trace})
    (judged,) = follow([Batch(list(state.log.read(offset, offset + 1)))], matcher)
    assert judged is not None
    (verdict,) = (one for one in judged.verdicts if (one.page_id, one.n) == (stored["page_id"], 0))
    takedowns = state.takedowns_after(offset)
    again = without(takedowns, orjson.loads(verdict.to_json()))
    assert again is not None, "no verdict of a page that was taken down is explained"
    different = sorted(name for name in again.keys() | stored.keys() if again.get(name) != stored.get(name))
    if different:
        changes = "; ".join(
            f"{name} was {stored.get(name)!r:.300}, is {again.get(name)!r:.300}" for name in different[:5]
        )
        raise InvariantBroken(
            f"page {stored['page_id']} ({stored['url']}) gets another verdict than before: {changes}. Log, verdicts "
            "and program contradict each other"
        )
    trace = traces[verdict.page_id]
    for one in trace.candidates:
        if is_named(takedowns, one.url):
            one.url = TAKEN_DOWN
    return Explanation(stored, trace, history, decider, _difference(state, stored, decider))


def listed(state: ScanReader, prefix: str) -> list[dict[str, Any]]:
    """The last verdict of each URL that begins with `prefix`, by URL, as rows of a table."""
    latest = {verdict["url"]: verdict for verdict in state.verdicts() if verdict["url"].startswith(prefix)}
    return [
        {
            "page_id": verdict["page_id"],
            "verdict": verdict["verdict"],
            "url": name_of(url),
            "representative": name_of((verdict.get("representative") or {}).get("url", "")),
        }
        for url, verdict in sorted(latest.items())
    ]


def _difference(state: ScanReader, verdict: dict[str, Any], decider: Decider) -> tuple[CardSide, Draft] | None:
    shown = card(verdict, lambda place: state.read_page(Coordinates(**place)), decider)
    return None if shown.other is None or shown.draft is None else (shown.other, shown.draft)


def page_of(state: ScanReader, name: str) -> Page:
    """Read a page of a scan again from its source.

    Args:
        state: the scan.
        name: URL or id of the page. Its latest fetch with a verdict of its own is read.

    Raises BadInput if there is no such page, or its source is gone or has changed.
    """
    stored, _ = _stored(state, name, None)
    return state.read_page(Coordinates(**stored["coordinates"]))


def _stored(state: ScanReader, url: str, page_id: int | None) -> tuple[dict[str, Any], list[tuple[int, str]]]:
    """The verdict to explain, and the latest verdicts about the URL."""
    named = urls_named(url, state.sources.values(), state.scheme.url_bytes_max)
    named.setdefault(url, url)  # a rejected page has the URL that it came with
    newest: dict[str, dict[str, Any]] = {}
    histories: dict[str, list[tuple[int, str]]] = {}
    for verdict in state.verdicts():
        about = verdict["url"]
        if about not in named:
            continue
        histories[about] = [*histories.get(about, ()), (verdict["page_id"], verdict["verdict"])][-HISTORY_MAX:]
        # A promotion (n > 0) is caused by another page, and explained by that page's verdict.
        if verdict["n"] == 0 and page_id in (None, verdict["page_id"]):
            newest[about] = verdict
    meant = newest if page_id is not None and newest else histories
    required = one_named(url, named, meant.__contains__) or next(iter(named))
    found, history = newest.get(required), histories.get(required, [])
    if history and history[-1][1] == "gone" and found is None and page_id is None:
        raise BadInput(f"{name_of(required)}: taken down; no other verdict of it is kept")
    if found is None and history:
        raise BadInput(
            f"no verdict of page {page_id} about {name_of(required)}; there are {', '.join(str(i) for i, _ in history)}"
        )
    if found is None:
        first = next(iter(state.verdicts()), None)
        example = f"; it names pages as {name_of(first['url'])}" if first else ""
        raise BadInput(f"no verdict about {name_of(required)} in {state.path}{example}")
    return found, history
