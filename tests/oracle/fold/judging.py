"""Folds a batch: one record after another."""

from collections.abc import Callable

from neardup.decider import Decider
from neardup.index.column_families import Reader
from neardup.matching.batch_records import Pages, Records
from neardup.matching.outcome import Candidate, ComparedPage, Outcome, Trace
from neardup.rules.key_families import found_by, key_name
from neardup.verdict import FOUND_BY, Verdict
from tests.oracle.fold.lifecycle import Judged, Lifecycle
from tests.oracle.fold.listed import ListedVerdicts
from tests.oracle.fold.overlay import Overlay
from tests.oracle.fold.search import families
from tests.oracle.fold.verdict_builder import VerdictBuilder


def fold(
    batch: Records,
    store: Reader,
    decider: Decider,
    *,
    trace: Callable[[Trace], None] | None = None,
    keep_compared: bool = False,
    emit: bool = True,
) -> Outcome:
    """Judges a batch against a store, and writes nothing: as `neardup.fold.fold`."""
    pages, outcome = Pages(batch), Outcome()
    overlay = Overlay(pages, store, decider)
    life = Lifecycle(overlay, VerdictBuilder(overlay) if emit else None)
    verdicts: list[Verdict] = []
    for i, page_id in enumerate(pages.page_ids):
        turned = len(overlay.turned)
        judged = life.apply(i)
        found = judged.search
        scored = len(found.candidates) if found is not None else 0
        outcome.scored_by_page.append(scored)
        outcome.scored += scored
        for name in found.found_by if found is not None else ():
            outcome.candidates_by[FOUND_BY.index(name)] += 1
        outcome.cut += found is not None and found.cut
        if trace is not None:
            trace(_trace(overlay, page_id, judged))
        if keep_compared and found is not None and found.candidates:
            headers = [overlay.header(candidate) for candidate in found.candidates]
            outcome.compared.append(ComparedPage(page_id, pages[page_id], found.choice(), headers))
        if judged.verdicts and len(overlay.turned) > turned:
            names = [key_name(key) for key in sorted(overlay.turned[turned:])]
            judged.verdicts[0].evidence = {**judged.verdicts[0].evidence, "turned_hot": names}
        verdicts += judged.verdicts
    outcome.verdicts = ListedVerdicts(verdicts)  # type: ignore[assignment]
    outcome.writes = overlay.writes()
    for verdict in verdicts:
        if "keys" in verdict.evidence:
            outcome.repeats_by[FOUND_BY.index(found_by(verdict.evidence["keys"]))] += 1
    outcome.hot_turned = len(overlay.turned)
    return outcome


def _trace(overlay: Overlay, page_id: int, judged: Judged) -> Trace:
    found = judged.search
    compared = []
    for one in found.scored if found is not None else ():
        other = overlay.header(one.page_id)
        cluster = overlay.urls.need(other.url_hash).cluster
        shared = families(overlay, page_id, one.page_id)
        compared.append(Candidate(one.page_id, other.url, cluster, one.pair, one.ruling, shared))
    cut = found is not None and found.cut
    return Trace(page_id, overlay.header(page_id).url, compared, list(judged.checks), judged.holder, cut)
