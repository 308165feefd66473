"""Builds tables 3 to 6 and 8: labels of algorithms B and C (Henzinger 2006, sections 3.1 to 3.4)."""

from collections import Counter
from collections.abc import Sequence
from itertools import compress

import numpy as np

from neardup.evaluation.figures.sections import Cell, ResultTable, Section, count, ratio, share, text
from neardup.evaluation.henzinger import published
from neardup.evaluation.pairs import levels
from neardup.evaluation.pairs.labels import Judgement, Label, kappa
from neardup.evaluation.pairs.study import NO_LABELS, CrawlStudy, LabelledStudy, Mask
from neardup.evaluation.rules.rule_tables import sites
from neardup.report.reasons import Reason

_JUDGED = ("correct", "not correct", "undecided", "(forms)", "correct with forms")
_SITES = text("what differs") | count("pairs") | share("share") | count("same site") | share("same site: share")
#: Most pairs with an automatic draft, which aligns words in Python at some 20 ms per pair.
DRAFTS_MAX = 1000


def b_judged(study: LabelledStudy) -> Section:
    """Builds table 3: algorithm B, judged."""
    similar = study.of_b
    masks = by_site(study, similar)
    masks |= {f"B-similarity {level}": similar & (study.b_similarity == level) for level in range(2, 7)}
    caption = f"Labelled pairs {study.graph_words.format('B')}"
    table = judged_table(study, "3-b-judged", caption, masks, published.B_ROWS)
    return Section("3", "Algorithm B, judged", _shares(study, "B"), [table], missing=_missing(study, similar, "B"))


def c_judged(study: LabelledStudy) -> Section:
    """Builds table 4: algorithm C, judged."""
    similar = study.of_c
    masks = by_site(study, similar)
    for low, high in levels.C_LEVELS:
        in_range = similar & (study.c_similarity >= low) & (study.c_similarity <= high)
        masks[levels.c_level_name(low, high)] = in_range
    caption = f"Labelled pairs {study.graph_words.format('C')}"
    table = judged_table(study, "4-c-judged", caption, masks, published.C_ROWS)
    return Section("4", "Algorithm C, judged", _shares(study, "C"), [table], missing=_missing(study, similar, "C"))


def by_site(study: LabelledStudy, mask: Mask) -> dict[str, Mask]:
    return {where: mask & pairs for where, pairs in sites(study).items()}


def _shares(study: LabelledStudy, name: str) -> str:
    """States how far the rows represent the whole graph."""
    samples: set[str] = set().union(*(label.samples for label in study.labels.labels))
    about = "Shares of the labelled pairs of each row; no row is weighted."
    if name in samples:
        about += f" Only pairs that were drawn from the {name} graph count, as others would not stand for it."
        return about + drawn_evenly(study, name)
    if samples:
        return about + f" None of them was drawn from the {name} graph as such, so they need not stand for it."
    return about


def drawn_evenly(study: LabelledStudy, name: str) -> str:
    """Warns if pairs of algorithm `name` were sampled by level of similarity or by site."""
    if not any(f"{name}: " in label.sample for label in study.labels.labels):
        return ""
    return " They were drawn evenly over levels or sites: what mixes these need not stand for the graph."


def _missing(study: LabelledStudy, mask: Mask, name: str) -> str:
    if not len(study.labels):
        return NO_LABELS
    return "" if mask.any() else f"None of the {len(study.labels):,} labelled pairs is {name}-similar."


def judged_table(
    study: LabelledStudy, name: str, caption: str, masks: dict[str, Mask], beside: dict[str, published.PaperRow]
) -> ResultTable:
    """Tabulates shares of the judgements for each mask, with the paper's row of the same name."""
    columns = text("") | count("labelled pairs") | share(*_JUDGED)
    columns |= count("paper: pairs") | share(*(f"paper: {each}" for each in _JUDGED))
    rows: list[list[Cell]] = []
    for row, mask in masks.items():
        theirs = beside.get(row)
        more: tuple[Cell, ...] = (*theirs, theirs.with_forms) if theirs else (None,) * (1 + len(_JUDGED))
        rows.append([row, *judged(study, mask), *more])
    return ResultTable(name, caption, columns, rows)


def judged(study: LabelledStudy, mask: Mask) -> list[Cell]:
    """Counts labelled pairs in `mask`, and their shares of correct, incorrect, undecided ones and forms.

    Forms: undecided pairs of prefilled, erasable forms. The last share counts them as correct: an index that drops such
    a page loses nothing.
    """
    n, correct, incorrect, undecided, forms = _counted(study, mask)
    return [n, *(ratio(count, n) for count in (correct, incorrect, undecided, forms, correct + forms))]


def _counted(study: LabelledStudy, mask: Mask) -> list[int]:
    """Counts labelled pairs in `mask`: all, correct, incorrect, undecided, and forms among the undecided."""
    chosen = list(compress(study.labels.labels, mask.tolist()))
    tally = Counter(label.label for label in chosen)
    forms = sum(label.label is Judgement.UNDECIDED and Reason.PREFILLED_FORM in label.reasons for label in chosen)
    kinds = (Judgement.CORRECT, Judgement.INCORRECT, Judgement.UNDECIDED)
    return [len(chosen), *(tally[kind] for kind in kinds), forms]


_DIFFERENCE_ROWS: tuple[tuple[str, Reason], ...] = (
    ("URL only", Reason.OWN_URL),
    ("time stamp only", Reason.TIME_STAMP),
    ("combination", Reason.COMBINATION),
    ("execution time only", Reason.EXECUTION_TIME),
    ("visitor count only", Reason.VISITOR_COUNT),
    ("message id only", Reason.MESSAGE_ID),
    ("session id only", Reason.SESSION_ID),
    ("server name only", Reason.SERVER_NAME),
    ("invisible", Reason.INVISIBLE),
    ("entry pages", Reason.ENTRY_PAGES),
    ("rest", Reason.REST),
)


def kinds_of_difference(study: LabelledStudy) -> Section:
    """Builds table 5: kinds of difference of correct pairs."""
    tables, drafted = [], 0
    correct = study.judged(Judgement.CORRECT)
    groups = {"B": correct & study.of_b, "C": correct & study.of_c}
    kinds: dict[int, Reason] = {}
    silent: list[int] = []
    for place in np.flatnonzero(groups["B"] | groups["C"]).tolist():
        given = study.labels.labels[place].reasons
        if given:
            kinds[place] = given[0] if len(given) == 1 else Reason.COMBINATION
        else:
            silent.append(place)
    for place in study.chosen(silent, DRAFTS_MAX):
        made = study.draft(place)
        if made is not None:
            kinds[place] = made.kind
            drafted += 1
    for name, mask in groups.items():
        places = [place for place in np.flatnonzero(mask).tolist() if place in kinds]
        here = [place for place in places if study.same_site[place]]
        counts, same = (Counter(kinds[place] for place in some) for some in (places, here))
        rows: list[list[Cell]] = [
            [row, counts[kind], ratio(counts[kind], len(places)), same[kind], ratio(same[kind], len(here))]
            for row, kind in _DIFFERENCE_ROWS
        ]
        rows.append(["all", len(places), 1.0 if places else None, len(here), 1.0 if here else None])
        caption = f"Correct pairs of algorithm {name}"
        tables.append(ResultTable(f"5-differences-{name.lower()}", caption, _SITES, rows))
    about = (
        "The labellers' reasons; for a pair without any, the automatic draft, which patterns on differing words make."
    )
    if drafted:
        about += f" {drafted:,} of these pairs have only the draft."
    if len(silent) > DRAFTS_MAX:
        about += f" Of {len(silent):,} pairs without a reason {DRAFTS_MAX:,} are looked at, chosen by seed."
    return Section("5", "Kinds of difference of the correct pairs", about, tables, missing=_none(study, correct))


def _none(study: LabelledStudy, mask: Mask) -> str:
    if not len(study.labels):
        return NO_LABELS
    return "" if mask.any() else "No labelled pair is of this kind."


def reasons_of_undecided(study: LabelledStudy) -> Section:
    """Builds table 6: reasons of undecided pairs."""
    undecided = study.judged(Judgement.UNDECIDED)
    rows: list[list[Cell]] = []
    for name, mask in (("B", undecided & study.of_b), ("C", undecided & study.of_c)):
        chosen = list(compress(study.labels.labels, mask.tolist()))
        here = list(compress(study.labels.labels, (mask & study.same_site).tolist()))
        for words, reason in (
            ("prefilled, erasable form", Reason.PREFILLED_FORM),
            ("different minor item", Reason.MINOR_ITEM),
            ("cannot be evaluated", Reason.CANNOT_EVALUATE),
            ("other, or no reason given", None),
        ):
            counts = [_with(some, reason) for some in (chosen, here)]
            shares = [ratio(found, len(some)) for found, some in zip(counts, (chosen, here), strict=True)]
            rows.append([f"{name}: {words}", counts[0], shares[0], counts[1], shares[1]])
    columns = text("reason") | count("pairs") | share("share") | count("same site") | share("same site: share")
    table = ResultTable("6-undecided", "Undecided pairs", columns, rows)
    return Section("6", "Reasons of the undecided pairs", "", [table], missing=_none(study, undecided))


def _with(labels: Sequence[object], reason: Reason | None) -> int:
    known = (Reason.PREFILLED_FORM, Reason.MINOR_ITEM, Reason.CANNOT_EVALUATE)
    reasons = [getattr(label, "reasons", ()) for label in labels]
    if reason is None:
        return sum(not any(one in known for one in given) for given in reasons)
    return sum(reason in given for given in reasons)


def far_apart(study: CrawlStudy, least: int = 200) -> Section:
    """Builds table 8: pairs whose token sequences differ by more than `least` terms."""
    similar = study.of_b | study.of_c
    far = np.zeros(len(study.labels), bool)
    places = study.chosen(np.flatnonzero(similar).tolist(), study.differences_max)
    found = study.differences((study.labels.a[place], study.labels.b[place]) for place in places)
    far[places] = [size is not None and size > least for size in found]
    rows: list[list[Cell]] = []
    for name, mask in (("B", study.of_b & far), ("C", study.of_c & far)):
        for where, part in by_site(study, mask).items():
            rows.append([f"{name}: {where}", *_counted(study, part)])
    caption = f"Numbers of labelled pairs with a term difference over {least}"
    table = ResultTable("8-far-apart", caption, text("") | count("labelled pairs", *_JUDGED[:-1]), rows)
    about = ""
    if len(places) < int(similar.sum()):
        about = f"Of {int(similar.sum()):,} labelled similar pairs {len(places):,} are read, chosen by seed."
    missing = _none(study, similar) or ("" if far.any() else f"No labelled pair has a term difference over {least}.")
    return Section("8", f"Pairs with a term difference over {least}", about, [table], missing=missing)


def agreement(labels: Sequence[Label]) -> Section | None:
    """Measures agreement of every two labellers, before votes are counted. None for fewer than two labellers."""
    names = sorted({label.labeller for label in labels})
    if len(names) < 2:
        return None
    rows: list[list[Cell]] = [
        [" and ".join(name or "(no name)" for name in pair), n, value] for pair, (n, value) in kappa(labels).items()
    ]
    columns = text("labellers") | count("pairs both labelled") | share("Cohen's kappa")
    note = "A dash: no common pairs, or both always say the same one thing. Undecided is a label like the others."
    table = ResultTable("labellers", "Agreement of labellers", columns, rows, note)
    return Section("labellers", "How far the labellers agree", "", [table])
