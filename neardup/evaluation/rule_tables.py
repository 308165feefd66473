"""All rules side by side on labelled pairs, with intervals."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from neardup.evaluation.figures import Cell, Section, Table
from neardup.evaluation.label_tables import NO_LABELS
from neardup.evaluation.labels import Judgement
from neardup.evaluation.measures import Interval, Measured, measure
from neardup.evaluation.study import Mask, Study
from neardup.index.keys import similarity_keys
from neardup.record import Head
from neardup.rules import RULES

_COLUMNS = (
    "rule",
    "pairs",
    "correct",
    "accepted",
    "precision",
    "precision 95%",
    "recall",
    "recall 95%",
    "F1",
    "F1 95%",
)
_KINDS = ("text", "count", "count", "count", "share", "text", "share", "text", "share", "text")


def accepted_by(study: Study, rule: str) -> Mask:
    """Which labelled pairs a rule calls duplicates, by its numbers alone."""
    decider = replace(study.decider, rule=rule)
    return np.array([RULES[rule](pair, decider).kind is not None for pair in study.numbers], dtype=bool)


def found_by(study: Study, rule: str) -> Mask:
    """Which labelled pairs share an index key that the rule posts, so that an index would let them meet."""
    decider = replace(study.decider, rule=rule)
    keys = {
        page: set(similarity_keys(Head(study.corpus.records[page]), decider))
        for page in {*study.labels.a, *study.labels.b}
    }
    pairs = zip(study.labels.a, study.labels.b, strict=True)
    return np.array([not keys[a].isdisjoint(keys[b]) for a, b in pairs], dtype=bool)


def measured_row(name: str, found: Measured) -> list[Cell]:
    """A row of the tables of this module and of the ablations."""
    row: list[Cell] = [name, found.pairs, found.correct, found.accepted]
    for one in (found.precision, found.recall, found.f1):
        row += [one.value, range_text(one)]
    return row


def range_text(one: Interval) -> str | None:
    return None if one.low is None or one.high is None else f"{one.low:.2f}-{one.high:.2f}"


def sites(study: Study, decided: Mask) -> Mapping[str, Mask]:
    """The decided pairs: all, on one site, on two."""
    return {
        "all": decided,
        "same site": decided & study.same_site,
        "different sites": decided & ~study.same_site,
    }


def rules_section(study: Study) -> Section:
    """All rules of the program on the labelled pairs."""
    section = Section(
        "rules",
        "All rules side by side",
        "Every labelled pair is put to every rule; undecided pairs are left out. Recall is of the labelled correct "
        "pairs, however they were drawn: pairs drawn through algorithms B and C flatter these two. Intervals are 95% "
        "bootstrap percentiles over pairs. The last column is the share of correct pairs that share an index key of "
        "the rule: a rule cannot take in a stream what its index does not find.",
    )
    correct, incorrect = study.judged(Judgement.CORRECT), study.judged(Judgement.INCORRECT)
    decided = correct | incorrect
    if not decided.any():
        section.missing = NO_LABELS if not len(study.labels) else "All labelled pairs are undecided."
        return section
    accepted = {rule: accepted_by(study, rule) for rule in RULES}
    found = {rule: found_by(study, rule) for rule in RULES}
    for text, mask in sites(study, decided).items():
        if not mask.any():
            continue
        rows: list[list[Cell]] = []
        for rule in RULES:
            row = measured_row(rule, measure(accepted[rule][mask], correct[mask], study.seed))
            meeting = correct & mask
            row.append(float(found[rule][meeting].mean()) if meeting.any() else None)
            rows.append(row)
        name = "rules-" + text.replace(" ", "-")
        columns, kinds = (*_COLUMNS, "correct ones an index finds"), (*_KINDS, "share")
        section.tables.append(Table(name, f"Labelled pairs: {text}", columns, kinds, rows))
    if not correct.any() or not incorrect.any():
        kind = "correct" if correct.any() else "incorrect"
        section.missing = f"All decided pairs are {kind}: what needs both kinds is left out."
    return section


def measured_table(name: str, caption: str, rows: list[list[Cell]], note: str = "") -> Table:
    """A table of `measured_row` rows."""
    return Table(name, caption, _COLUMNS, _KINDS, rows, note)
