"""Measures what Huang 2008 measured, on pairs of a partition, beside the paper's figures.

Definitions of the rates (ours):

* coverage rate of N signatures: share of the near-duplicate pairs, found with all signatures, that have one of the
  first N in common;
* trustable rate of N signatures: share of the compared pairs with one of the first N in common that are
  near-duplicates;
* strain-away rate of a window: share of the characters strained away, in pairs that are no near-duplicates;
* reserve rate of a window: LCS of the sketches as a share of the LCS of the whole texts, in near-duplicates.

Rates of texts are means over pairs. Precision and recall of a system are means over documents. Precision is the share
of the other documents in a document's set that are of its item. Recall is the share of the others of its item that are
in its set.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from neardup.evaluation.figures.sections import Cell, ResultTable, Section
from neardup.partition.parameters import Parameters
from neardup.partition.signatures import signatures
from neardup.partition.texts import points
from neardup.partition.trustable import compare, filtered, script

ROTATIONS = (1, 2, 4, 8, 16)
WINDOWS = (2, 4, 8, 16, 32, 64, 100)
SLOPES = (0.02, 0.04, 0.06, 0.08, 0.10, 0.12, 0.14, 0.16, 0.18, 0.20)
RECALL = 0.90
#: The paper's figures: strain-away and reserve rate at 16 bytes, precision at its best slope, and the three systems.
_WINDOW_PAPER = {16: (0.87, 0.975)}
_SLOPE_PAPER = {0.10: 0.948}
SYSTEMS_PAPER: Mapping[str, tuple[float, float, float]] = {
    "tlcs": (0.95, 1.86, 0.91),
    "simhash64": (0.71, 1.0, 0.50),
    "cosine": (0.82, 1.13, 0.63),
}


@dataclass(frozen=True)
class TextPair:
    """Two compared texts. near: the partition's decision. same_item: the truth, None if unknown."""

    a: str
    b: str
    near: bool
    same_item: bool | None = None


@dataclass(frozen=True)
class SystemSets:
    """The result of a system: set of each document, and run time in seconds."""

    sets: Mapping[str, int]
    seconds: float


def signature_section(pairs: Sequence[TextPair]) -> Section:
    """Measures coverage and trustable rate by number of signatures."""
    rows: list[list[Cell]] = []
    for rotations in ROTATIONS:
        parameters = Parameters(rotations=rotations, passage_words=0)  # the paper's signatures alone
        meet = [_meet(pair, parameters) for pair in pairs]
        near = [met for met, pair in zip(meet, pairs, strict=True) if pair.near]
        true = [pair.near for met, pair in zip(meet, pairs, strict=True) if met]
        rows.append([rotations * parameters.subsets, _mean(near), _mean(true)])
    text = "The paper's two rates are equal at 14 signatures."
    columns, kinds = ("signatures", "coverage rate", "trustable rate"), ("count", "share", "share")
    table = ResultTable("signatures", f"Of {len(pairs):,} compared pairs", columns, kinds, rows)
    return Section("signatures", "How many signatures", text, [table])


def window_section(pairs: Sequence[TextPair]) -> Section:
    """Measures strain-away and reserve rate by window."""
    near = [(points(pair.a), points(pair.b)) for pair in pairs if pair.near]
    apart = [(points(pair.a), points(pair.b)) for pair in pairs if not pair.near]
    whole = [_common(a, b) for a, b in near]
    rows: list[list[Cell]] = []
    for window in WINDOWS:
        away, reserved = [], []
        for a, b in apart:
            keep_a, keep_b = filtered(a, b, window)
            away.append(1 - (int(keep_a.sum()) + int(keep_b.sum())) / (len(a) + len(b)))
        for (a, b), common in zip(near, whole, strict=True):
            keep_a, keep_b = filtered(a, b, window)
            reserved.append(_common(a[keep_a], b[keep_b]) / common if common else 1.0)
        rows.append([window, _mean(away), _mean(reserved), *_WINDOW_PAPER.get(window, (None, None))])
    columns = ("window", "strain-away rate", "reserve rate", "paper: strain-away", "paper: reserve")
    kinds = ("count", "share", "share", "share", "share")
    caption = f"Of {len(apart):,} pairs that are no near-duplicates, and {len(near):,} that are"
    table = ResultTable("windows", caption, columns, kinds, rows, paper=(3, 4))
    return Section("windows", "Windows of the filtered sketch", tables=[table])


def slope_section(pairs: Sequence[TextPair]) -> Section:
    """Measures precision at a recall of .90 by slope; varies the threshold of resemblance, with containment off."""
    section = Section("slopes", "Slope of a trustable region")
    known = [pair for pair in pairs if pair.same_item is not None]
    relevant = sum(bool(pair.same_item) for pair in known)
    if not relevant or relevant == len(known):
        section.missing = (
            "The truth of these pages is unknown, or all pairs are of one kind: see --releases and --items."
        )
        return section
    rows: list[list[Cell]] = []
    for slope in SLOPES:
        parameters = replace(Parameters(), slope_max=slope, resemblance_min=0.0, containment_min=1.0)
        found = sorted(
            ((compare(pair.a, pair.b, parameters).resemblance, bool(pair.same_item)) for pair in known), reverse=True
        )
        threshold, precision, recall = _at_recall(found, relevant)
        rows.append([slope, precision, recall, threshold, _SLOPE_PAPER.get(slope)])
    columns = ("slope", f"precision at recall {RECALL:.2f}", "recall", "resemblance at least", "paper: precision")
    kinds = ("number", "share", "share", "share", "share")
    section.tables.append(ResultTable("slopes", f"Of {len(known):,} compared pairs", columns, kinds, rows, paper=(4,)))
    return section


def system_section(systems: Mapping[str, SystemSets], items: Mapping[str, str], sites: Mapping[str, str]) -> Section:
    """Compares the systems. items: by URL, if known; sites: by URL."""
    section = Section("systems", "The three systems", "Recall is relative to that of simhash64, as in the paper.")
    if not items:
        section.missing = "The truth of these pages is unknown: see --releases and --items."
        return section
    measured = {name: (measure(one.sets, items), _same_site(one.sets, items, sites)) for name, one in systems.items()}
    base = measured["simhash64"][0][1] if "simhash64" in measured else None
    rows: list[list[Cell]] = []
    for name, ((precision, recall), (site_precision, _)) in measured.items():
        relative = recall / base if base and recall is not None else None
        paper = SYSTEMS_PAPER.get(name, (None, None, None))
        rows.append([name, precision, recall, relative, site_precision, systems[name].seconds, *paper])
    columns = (
        *("system", "precision", "recall", "relative recall", "same site: precision", "seconds"),
        *("paper: precision", "paper: relative recall", "paper: same site"),
    )
    kinds = ("text", "share", "share", "number", "share", "number", "share", "number", "share")
    section.tables.append(
        ResultTable("systems", f"Means over {len(items):,} documents", columns, kinds, rows, paper=(6, 7, 8))
    )
    return section


def measure(sets: Mapping[str, int], items: Mapping[str, str]) -> tuple[float | None, float | None]:
    """Computes (precision, recall) as means over documents; a document alone in its set, or of its item, does not
    count.
    """
    known = [url for url in items if url in sets]
    size = Counter(sets[url] for url in known)
    of_item = Counter(items[url] for url in known)
    both = Counter((sets[url], items[url]) for url in known)
    precision = [(both[sets[u], items[u]] - 1) / (size[sets[u]] - 1) for u in known if size[sets[u]] > 1]
    recall = [(both[sets[u], items[u]] - 1) / (of_item[items[u]] - 1) for u in known if of_item[items[u]] > 1]
    return _mean(precision), _mean(recall)


def _same_site(
    sets: Mapping[str, int], items: Mapping[str, str], sites: Mapping[str, str]
) -> tuple[float | None, float | None]:
    """Computes `measure` among documents of one site."""
    numbers: dict[tuple[int, str], int] = {}
    apart = {url: numbers.setdefault((number, sites[url]), len(numbers)) for url, number in sets.items()}
    return measure(apart, items)


def _meet(pair: TextPair, parameters: Parameters) -> bool:
    one, other = ({(int(h), int(low)) for h, low in signatures(text, parameters)} for text in (pair.a, pair.b))
    return not one.isdisjoint(other)


def _common(a: object, b: object) -> int:
    found = script(a, b)  # type: ignore[arg-type]
    return 0 if found is None else int((found >= 0).sum())


def _at_recall(found: Sequence[tuple[float, bool]], relevant: int) -> tuple[float, float, float]:
    """Finds (threshold, precision, recall) of the highest threshold that reaches RECALL. Equal scores go together."""
    right = taken = 0
    for place, (score, good) in enumerate(found):
        taken, right = taken + 1, right + good
        last = place + 1 == len(found) or found[place + 1][0] < score
        if last and right >= RECALL * relevant:
            return score, right / taken, right / relevant
    return 0.0, right / max(1, taken), right / relevant


def _mean(values: Iterable[float]) -> float | None:
    known = list(values)
    return fmean(known) if known else None
