"""Compares all rules on labelled pairs, with intervals."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from neardup.evaluation.labels import Judgement
from neardup.evaluation.measures import Measured, measure
from neardup.evaluation.runs import CrawlRun
from neardup.evaluation.sections import Cell, ResultTable, Section, count, share, text
from neardup.evaluation.study import NO_LABELS, CrawlStudy, LabelledStudy, Mask
from neardup.pairs.scoring import numbers_of_pairs
from neardup.rules import rules_for
from neardup.rules.posted_keys import similarity_keys
from neardup.rules.records import NEAR_DUPLICATE, NO_KIND, SAME_CONTENT
from neardup.sketch.header import Header

#: Columns of `measures`.
MEASURES = {
    each: kind for name in ("precision", "recall", "F1") for each, kind in (share(name) | text(f"{name} 95%")).items()
}
#: Suffix of a rule's second row, in which the verdict same content also counts as a duplicate.
CONTENT_TOO = ", same content too"


def accepted(study: CrawlStudy) -> dict[str, Mask]:
    """Returns the labelled pairs that each rule calls near-duplicates, by their numbers alone."""
    out: dict[str, Mask] = {}
    numbers = numbers_of_pairs(study.numbers)
    for name, rule in rules_for(study.decider).items():
        decider = replace(study.decider, rule=name)
        kinds = rule.rulings(numbers, decider)["kind"]
        out[name] = kinds == NEAR_DUPLICATE
        if (kinds == SAME_CONTENT).any():
            out[name + CONTENT_TOO] = kinds != NO_KIND
    return out


def run_row(study: LabelledStudy, run: CrawlRun, mask: Mask) -> list[Cell]:
    """Measures a run on the labelled pairs in `mask` that it contains; pages in one cluster are duplicates."""
    alike = [run.says(*study.urls(place)) for place in np.flatnonzero(mask).tolist()]
    here = np.flatnonzero(mask)[[one is not None for one in alike]]
    found = np.array([one for one in alike if one is not None], bool)
    correct = study.judged(Judgement.CORRECT)[here]
    return measured_row(run.name, measure(found, correct, study.seed, groups=study.groups[here]))


def found_by(study: CrawlStudy, rule: str) -> Mask:
    """Marks labelled pairs that share an index key of the rule, so that an index would find them."""
    decider = replace(study.decider, rule=rule)
    keys = {
        page: set(similarity_keys(Header(study.corpus.records[page]), decider))
        for page in {*study.labels.a, *study.labels.b}
    }
    pairs = zip(study.labels.a, study.labels.b, strict=True)
    return np.array([not keys[a].isdisjoint(keys[b]) for a, b in pairs], dtype=bool)


def measures(found: Measured) -> list[Cell]:
    """Returns precision, recall and F1, each with its interval."""
    return [cell for one in (found.precision, found.recall, found.f1) for cell in (one.value, one.bounds)]


def measured_row(name: str, found: Measured) -> list[Cell]:
    """Formats a row of `rules_table`."""
    return [name, found.pairs, found.correct, found.accepted, *measures(found)]


def sites(study: LabelledStudy) -> Mapping[str, Mask]:
    """Masks of the labelled pairs: all, on one site, on two. Documents without sites have the first alone."""
    found = {"all": np.ones(len(study.labels), bool)}
    if study.has_sites or not len(study.labels):
        found |= {"same site": study.same_site, "different sites": ~study.same_site}
    return found


RUN_TEXT = (
    "The run's row measures its verdicts: pages in one cluster count as duplicates of each other, compared or not. The "
    "row includes the effects of its index, its limits and the order of the crawl."
)


def rules_section(study: CrawlStudy) -> Section:
    """Measures all rules of the program on the labelled pairs."""
    section = Section(
        "rules",
        "Comparison of all rules",
        "Every rule judges every labelled pair; an undecided pair counts as not correct. Recall is over all labelled "
        "correct pairs, however they were sampled. Samples from algorithms B and C overstate the recall of these two, "
        "and the precision of a rule whose own pairs were not sampled. Intervals are 95% bootstrap percentiles; pairs "
        "connected by correct pairs, such as the releases of one page, are resampled together. The last column is the "
        "share of correct pairs with a common index key of the rule: in a stream a rule cannot merge pairs that its "
        "index does not find. Unlike in a stream, rules here do not know how many pages of a site share a name.",
    )
    correct = study.judged(Judgement.CORRECT)
    section.missing = not_measured(study)
    if not study.labels.decided:
        return section
    masks = accepted(study)
    found = {rule: found_by(study, rule) for rule in rules_for(study.decider)}
    if study.run is not None:
        section.text += " " + RUN_TEXT
    for where, mask in sites(study).items():
        if not mask.any():
            continue
        meeting = correct & mask
        rows: list[list[Cell]] = []
        for name, taken in masks.items():
            row = measured_row(name, measure(taken[mask], correct[mask], study.seed, groups=study.groups[mask]))
            keys = found[name.removesuffix(CONTENT_TOO)]
            rows.append([*row, float(keys[meeting].mean()) if meeting.any() else None])
        if study.run is not None:
            rows.append([*run_row(study, study.run, mask), None])
        section.tables.append(rules_table(where, rows, "correct ones an index finds"))
    return section


def not_measured(study: LabelledStudy) -> str:
    """Explains why these labels cannot measure rules, or only in part; empty if they can."""
    if not len(study.labels):
        return NO_LABELS
    correct = study.labels.count(Judgement.CORRECT)
    if not study.labels.decided:
        return "All labelled pairs are undecided."
    if correct == len(study.labels):
        return "All labelled pairs are correct: figures that need both kinds are left out."
    return "" if correct else "No labelled pair is correct: figures that need both kinds are left out."


def rules_table(sites: str, rows: list[list[Cell]], *shares: str) -> ResultTable:
    """Builds a table of measured rows for the pairs of `sites`. shares: names of further columns of the rows."""
    columns = text("rule") | count("pairs", "correct", "accepted") | MEASURES | share(*shares)
    return ResultTable("rules-" + sites.replace(" ", "-"), f"Labelled pairs: {sites}", columns, rows)
