"""Compares single judges with the final label, as Huffman 2007 had several judges label each pair."""

from collections.abc import Sequence

import numpy as np

from neardup.evaluation.henzinger_label_tables import agreement
from neardup.evaluation.labels import Judgement, Label, LabelledPairs
from neardup.evaluation.sections import Cell, ResultTable, Section, count, share, text
from neardup.signals.learning import measured

_DECIDED = (Judgement.CORRECT, Judgement.INCORRECT)


def judges_section(labels: Sequence[Label], joined: LabelledPairs, adjudicator: str = "") -> Section | None:
    """Measures each judge as a classifier, and their agreement. None for fewer than two judges.

    labels: labels of every judge. joined: final label of each pair. adjudicator: labeller that settles pairs.
    """
    section = agreement(labels, adjudicator)
    if section is None:
        return None
    final = {label.pair: label.label for label in joined.labels}
    rows: list[list[Cell]] = []
    for name in sorted({label.labeller for label in labels}):
        own = {label.pair: label.label for label in labels if label.labeller == name}
        pairs = [pair for pair, label in own.items() if label in _DECIDED and final.get(pair) in _DECIDED]
        found = np.array([own[pair] is Judgement.CORRECT for pair in pairs], np.bool_)
        truth = np.array([final[pair] is Judgement.CORRECT for pair in pairs], np.bool_)
        shares: tuple[Cell, ...] = measured(found, found.astype(np.float64), truth)[:3] if pairs else (None, None, None)
        rows.append([name or "(no name)", len(pairs), int(truth.sum()), *shares])
    columns = text("judge") | count("pairs", "duplicates") | share("precision", "recall", "F")
    note = "Pairs decided by the judge and by the final label. A judge's own vote is part of the final label."
    section.tables.insert(0, ResultTable("judges", "Each judge against the final label", columns, rows, note))
    section.key, section.title = "judges", "Single judges"
    section.text = (
        f"{section.text} A single judge against the final label is no bound for a classifier: the final label has "
        "fewer errors than each judge, so a classifier that learned from it may do better than a judge."
    )
    return section
