"""All rules side by side on labelled pairs, with intervals."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from neardup.evaluation.figures.sections import Cell, ResultTable, Section
from neardup.evaluation.pairs.labels import Judgement
from neardup.evaluation.pairs.measures import Interval, Measured, measure
from neardup.evaluation.pairs.runs import CrawlRun
from neardup.evaluation.pairs.study import NO_LABELS, CrawlStudy, LabelledStudy, Mask
from neardup.rules import RULES, Ruling, rules_for
from neardup.rules.posted import similarity_keys
from neardup.sketch.header import Header
from neardup.verdict import Kind

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


#: A rule that tells the same main content in other surroundings apart gets a second row, in which that counts, too.
CONTENT_TOO = ", same content too"


def rulings(study: CrawlStudy, rule: str) -> list[Ruling]:
    """What a rule says of each labelled pair, by its numbers alone."""
    decider = replace(study.decider, rule=rule)
    return [RULES[rule].decide(pair, decider) for pair in study.numbers]


def accepted(study: CrawlStudy) -> dict[str, Mask]:
    """Which labelled pairs each rule calls near-duplicates."""
    out: dict[str, Mask] = {}
    for rule in rules_for(study.decider):
        kinds = [ruling.kind for ruling in rulings(study, rule)]
        out[rule] = np.array([kind is Kind.NEAR_DUPLICATE for kind in kinds], dtype=bool)
        if Kind.SAME_CONTENT in kinds:
            out[rule + CONTENT_TOO] = np.array([kind is not None for kind in kinds], dtype=bool)
    return out


class Clustered(NamedTuple):
    """Labelled pairs that a run knows, and those whose pages it left in one cluster: bool[labels] each."""

    known: Mask
    accepted: Mask


def clustered(study: LabelledStudy, run: CrawlRun, urls: Callable[[int], tuple[str, str]]) -> Clustered:
    """What a run made of the labelled pairs. urls: of the pair at a place."""
    same = [run.says(*urls(place)) for place in range(len(study.labels))]
    return Clustered(np.array([one is not None for one in same], bool), np.array([one is True for one in same], bool))


def found_by(study: CrawlStudy, rule: str) -> Mask:
    """Which labelled pairs share an index key that the rule posts, so that an index would let them meet."""
    decider = replace(study.decider, rule=rule)
    keys = {
        page: set(similarity_keys(Header(study.corpus.records[page]), decider))
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
    return None if one.low is None or one.high is None else f"{one.low:.3f}-{one.high:.3f}"


def sites(study: LabelledStudy) -> Mapping[str, Mask]:
    """The labelled pairs: all, on one site, on two."""
    return {
        "all": np.ones(len(study.labels), bool),
        "same site": study.same_site,
        "different sites": ~study.same_site,
    }


RUN_TEXT = (
    "The run's row is what its verdicts did: pages that it left in one cluster count as duplicates of each other, "
    "whether or not they were compared, and its index, its caps and the order of the crawl had their say."
)


def rules_section(study: CrawlStudy) -> Section:
    """All rules of the program on the labelled pairs."""
    section = Section(
        "rules",
        "All rules side by side",
        "Every labelled pair is put to every rule; an undecided pair counts as not correct. Recall is of the labelled "
        "correct pairs, however they were drawn: pairs drawn through algorithms B and C flatter the recall of these "
        "two, and a rule from whose pairs none were drawn is more precise here than it is. Intervals are 95% bootstrap "
        "percentiles; pairs that hang together by correct pairs, as those of the releases of one page do, are drawn "
        "together. The last column is the share of correct pairs that share an index key of the rule: a rule cannot "
        "take in a stream what its index does not find. Here no rule knows how many pages of a site go by one name, as "
        "it does in a stream.",
    )
    correct = study.judged(Judgement.CORRECT)
    section.missing = not_measured(study)
    if not study.labels.decided:
        return section
    masks = accepted(study)
    found = {rule: found_by(study, rule) for rule in rules_for(study.decider)}
    run = None if study.run is None else clustered(study, study.run, study.urls)
    if run is not None:
        section.text += " " + RUN_TEXT
    for text, mask in sites(study).items():
        if not mask.any():
            continue
        meeting = correct & mask
        rows: list[list[Cell]] = []
        for name, taken in masks.items():
            row = measured_row(name, measure(taken[mask], correct[mask], study.seed, groups=study.groups[mask]))
            keys = found[name.removesuffix(CONTENT_TOO)]
            rows.append([*row, float(keys[meeting].mean()) if meeting.any() else None])
        if run is not None and study.run is not None:
            here = mask & run.known
            measured = measure(run.accepted[here], correct[here], study.seed, groups=study.groups[here])
            rows.append([*measured_row(study.run.name, measured), None])
        section.tables.append(rules_table(text, rows, found=True))
    return section


def not_measured(study: LabelledStudy) -> str:
    """Why rules cannot be measured by these labels, or only in part; empty where they can."""
    if not len(study.labels):
        return NO_LABELS
    correct = study.labels.count(Judgement.CORRECT)
    if not study.labels.decided:
        return "All labelled pairs are undecided."
    if correct == len(study.labels):
        return "All labelled pairs are correct: what needs both kinds is left out."
    return "" if correct else "No labelled pair is correct: what needs both kinds is left out."


def rules_table(sites: str, rows: list[list[Cell]], *, found: bool) -> ResultTable:
    """A table of measured rows, of the pairs of `sites`. found: each row ends in what an index finds."""
    columns: tuple[str, ...] = _COLUMNS
    kinds: tuple[str, ...] = _KINDS
    if found:
        columns, kinds = (*columns, "correct ones an index finds"), (*kinds, "share")
    return ResultTable("rules-" + sites.replace(" ", "-"), f"Labelled pairs: {sites}", columns, kinds, rows)
