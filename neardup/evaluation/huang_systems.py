"""Measures table 1 of Huang 2008, the comparison of systems, and false positives by kind.

Definitions, of a document and a set that a system puts it into:

* true positives: other documents of the set that are its duplicates (`item_truth`);
* precision: true positives by other documents of the set; recall: true positives by its duplicates. A system's figures
  are means over documents for which they are defined;
* relative recall, the paper's: the mean over documents of the ratio of true positives to those of simhash64, for the
  documents for which simhash64 has one. The document itself does not count. With the document itself as a true positive
  of each system the ratio is defined for every document: the second figure;
* ratio of mean recalls (ours): recall by simhash64's recall.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import NamedTuple

from neardup.evaluation.huang_study import SystemSets, mean_of
from neardup.evaluation.item_truth import ItemTruth
from neardup.evaluation.labels import Judgement, Label
from neardup.evaluation.sections import Cell, ResultTable, Section, count, number, ratio, share, text
from neardup.report.reasons import Reason

#: The system that others are compared with.
BASE = "simhash64"
#: The paper's precision, relative recall, precision on one site, and hours of its cluster for 430 million pages.
SYSTEMS_PAPER: Mapping[str, tuple[float | None, float | None, float | None, str]] = {
    "tlcs": (0.95, 1.86, 0.91, "118"),
    "cosine": (0.82, 1.19, 0.63, "68"),
    "cosine, words segmented": (None, None, None, "602"),
    BASE: (0.71, 1.0, 0.50, "94"),
    "simhash64 at 58 bits": (None, None, None, "over 400"),
}
MISTAKES_PAPER: Mapping[Reason, float] = {
    Reason.SERIES: 0.60,
    Reason.BOILERPLATE: 0.20,
    Reason.SMALL_REPLIES: 0.15,
    Reason.TRANSITIVITY: 0.05,
}


class Found(NamedTuple):
    """A document in the sets of a system, without the document itself.

    right: its true positives. others: the other documents of its set whose item is known. duplicates: its duplicates.
    """

    right: int
    others: int
    duplicates: int


def found_in(sets: Mapping[str, Hashable], truth: ItemTruth) -> Iterator[tuple[str, Found]]:
    """Yields each document whose item and set are known, with what its set contains."""
    known = [url for url in truth.items if url in sets]
    size = Counter(sets[url] for url in known)
    of_item = Counter(truth.items[url] for url in known)
    joint = Counter((sets[url], truth.items[url]) for url in known)
    for url in known:
        mine, item = sets[url], truth.items[url]
        apart = [sets[other] for other in truth.apart.get(url, ()) if other in sets]
        right = joint[mine, item] - 1 - apart.count(mine)
        yield url, Found(right, size[mine] - 1, of_item[item] - 1 - len(apart))


def measure(sets: Mapping[str, Hashable], truth: ItemTruth) -> tuple[float | None, float | None]:
    """Computes (precision, recall) as means over documents.

    A document alone in its set does not count for precision; a document without a duplicate does not count for recall.
    """
    every = [found for _, found in found_in(sets, truth)]
    precision = mean_of(found.right / found.others for found in every if found.others)
    return precision, mean_of(found.right / found.duplicates for found in every if found.duplicates)


def relative_recall(right: Mapping[str, int], base: Mapping[str, int], *, itself: bool = False) -> float | None:
    """Computes the mean over documents of the ratio of true positives to those of the base.

    right, base: true positives of each document. itself: count the document itself as one, in both; else documents
    without a true positive of the base are left out.
    """
    return mean_of(
        (right[url] + itself) / (many + itself) for url, many in base.items() if url in right and many + itself
    )


def system_section(systems: Mapping[str, SystemSets], truth: ItemTruth, sites: Mapping[str, str]) -> Section:
    """Measures table 1, the comparison of systems.

    Args:
        systems: sets of each system, by name.
        truth: the duplicates among the documents.
        sites: site of each URL.
    """
    section = Section(
        "systems",
        "Table 1: the three systems",
        "Relative recall is the paper's: the mean over documents of the ratio of true positives to those of "
        f"{BASE}, where it has one; the document itself does not count. Beside it the mean over all documents if the "
        "document itself counts, and the ratio of mean recalls (ours). On one site, all true positives by all of "
        f"{BASE}'s; the paper has almost the same number. Hours are of the paper's cluster.",
    )
    if not truth.items:
        section.missing = "The truth of these pages is unknown: see --releases and --items."
        return section
    base = _figures(systems.get(BASE, SystemSets({}, 0.0)), truth, sites)
    rows: list[list[Cell]] = []
    for name in [*SYSTEMS_PAPER, *(name for name in systems if name not in SYSTEMS_PAPER)]:
        paper = SYSTEMS_PAPER.get(name, (None, None, None, None))
        if name not in systems:
            if not any(paper[:3]) and paper[3]:
                rows.append([name, *[None] * 9, *paper])
            continue
        one = _figures(systems[name], truth, sites)
        recalls = (
            relative_recall(one.right, base.right),
            relative_recall(one.right, base.right, itself=True),
            ratio(one.recall, base.recall),
        )
        same_site = one.same_site_precision, ratio(one.same_site_right, base.same_site_right)
        times = one.seconds, ratio(one.seconds, base.seconds)
        rows.append([name, one.precision, one.recall, *recalls, *same_site, *times, *paper])
    columns = text("system") | share("precision", "recall")
    columns |= number("relative recall", "relative recall, itself counted", "ratio of mean recalls")
    columns |= share("same site: precision") | number("same site: true positives, relative")
    columns |= number("seconds", "relative time") | share("paper: precision") | number("paper: relative recall")
    columns |= share("paper: same site") | text("paper: hours")
    note = (
        "At 58 bits the tables of 59 bits are read: they hold all pairs of 59 agreeing bits and a part of those of 58. "
        "Cosine here counts pairs of characters in scripts without spaces; the paper segmented words."
    )
    caption = f"Means over {len(truth.items):,} documents"
    section.tables.append(ResultTable("systems", caption, columns, rows, note))
    return section


class _Figures(NamedTuple):
    """Figures of a system. right: true positives of each document. same_site_right: true positives on one site."""

    precision: float | None
    recall: float | None
    right: Mapping[str, int]
    same_site_precision: float | None
    same_site_right: int
    seconds: float


def _figures(system: SystemSets, truth: ItemTruth, sites: Mapping[str, str]) -> _Figures:
    on_one_site = {url: (number, sites[url]) for url, number in system.sets.items()}
    precision, recall = measure(system.sets, truth)
    same_site, _ = measure(on_one_site, truth)
    same_site_right = sum(found.right for _, found in found_in(on_one_site, truth))
    right = {url: found.right for url, found in found_in(system.sets, truth)}
    return _Figures(precision, recall, right, same_site, same_site_right, system.seconds)


def mistake_section(labels: Iterable[Label]) -> Section:
    """Tabulates false positives by kind, from labels of pairs that were drawn from sets."""
    wrong = [label for label in labels if label.label is Judgement.INCORRECT and "sets" in label.sample]
    section = Section(
        "mistakes",
        "False positives by kind",
        "Pairs of one set that people labelled as incorrect, with their reason; see `neardup label --sets`.",
    )
    if not wrong:
        section.missing = "No labelled pair of a set is incorrect: see `neardup label --sets` and --labels."
        return section
    rows: list[list[Cell]] = []
    for reason, paper in MISTAKES_PAPER.items():
        many = sum(reason in label.reasons for label in wrong)
        rows.append([reason.replace("_", " "), many, many / len(wrong), paper])
    others = sum(not MISTAKES_PAPER.keys() & set(label.reasons) for label in wrong)
    rows.append(["another or none", others, others / len(wrong), None])
    columns = text("kind") | count("pairs") | share("share", "paper: share")
    caption = f"Of {len(wrong):,} incorrect pairs; a pair may have two reasons"
    section.tables.append(ResultTable("mistakes", caption, columns, rows))
    return section
