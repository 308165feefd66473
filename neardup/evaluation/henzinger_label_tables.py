"""Builds tables 3 to 6, 8 and 11: labels of algorithms B and C (Henzinger 2006, sections 3.1 to 3.4)."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from neardup.evaluation import henzinger_published as published
from neardup.evaluation.corpus import Corpus
from neardup.evaluation.graphs import Graph
from neardup.evaluation.henzinger_pairs_tables import FAR, most
from neardup.evaluation.labels import Judgement, Label, full_agreement, kappa
from neardup.evaluation.rule_tables import sites
from neardup.evaluation.sections import Cell, ResultTable, Section, count, ratio, share, text
from neardup.evaluation.study import NO_LABELS, CrawlStudy, LabelledStudy, Mask
from neardup.report.reasons import Reason

_JUDGED = ("correct", "not correct", "undecided", "(forms)", "correct with forms")
#: Columns of `_part`.
_PARTS = count("pairs") | share("share") | count("same site") | share("same site: share")
#: Most pairs with an automatic draft, which aligns words in Python at some 20 ms per pair.
DRAFTS_MAX = 1000


def b_judged(study: LabelledStudy) -> Section:
    """Builds table 3: algorithm B, judged."""
    rows = {f"B-similarity {level}": study.b_similarity == level for level in range(2, 7)}
    return _graph_judged(study, "3", "B", study.of_b, rows, published.B_ROWS)


def c_judged(study: LabelledStudy) -> Section:
    """Builds table 4: algorithm C, judged."""
    c = study.c_similarity
    rows = {published.c_level_name(low, high): (c >= low) & (c <= high) for low, high in published.C_LEVELS}
    return _graph_judged(study, "4", "C", study.of_c, rows, published.C_ROWS)


def _graph_judged(
    study: LabelledStudy,
    key: str,
    name: str,
    similar: Mask,
    by_level: Mapping[str, Mask],
    beside: Mapping[str, published.PaperRow],
) -> Section:
    masks = by_site(study, similar) | {level: similar & mask for level, mask in by_level.items()}
    caption = f"Labelled pairs {study.graph_words.format(name)}"
    table = judged_table(study, f"{key}-{name.lower()}-judged", caption, masks, beside)
    missing = _missing(study, similar, f"None of the {len(study.labels):,} labelled pairs is {name}-similar.")
    return Section(key, f"Algorithm {name}, judged", _shares(study, name), [table], missing=missing)


def by_site(study: LabelledStudy, mask: Mask) -> dict[str, Mask]:
    return {where: mask & pairs for where, pairs in sites(study).items()}


def _part(study: LabelledStudy, whole: Mask, part: Mask) -> list[Cell]:
    """Counts a part of some pairs and its share; the same on one site."""
    cells: list[Cell] = []
    for pairs in (whole, whole & study.same_site):
        n = int((pairs & part).sum())
        cells += [n, ratio(n, int(pairs.sum()))]
    return cells


def _missing(study: LabelledStudy, mask: Mask, why: str = "No labelled pair is of this kind.") -> str:
    if not len(study.labels):
        return NO_LABELS
    return "" if mask.any() else why


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


def judged_table(
    study: LabelledStudy,
    name: str,
    caption: str,
    masks: Mapping[str, Mask],
    beside: Mapping[str, published.PaperRow],
) -> ResultTable:
    """Tabulates shares of the judgements for each mask, with the paper's row of the same name.

    Forms: undecided pairs of prefilled, erasable forms. The last share counts them as correct: an index that drops such
    a page loses nothing.
    """
    columns = text("") | count("labelled pairs") | share(*_JUDGED)
    columns |= count("paper: pairs") | share(*(f"paper: {each}" for each in _JUDGED))
    rows: list[list[Cell]] = []
    for row, mask in masks.items():
        n, correct, incorrect, undecided, forms = _counted(study, mask)
        shares = [ratio(part, n) for part in (correct, incorrect, undecided, forms, correct + forms)]
        theirs = beside.get(row)
        more: tuple[Cell, ...] = (*theirs, theirs.with_forms) if theirs else (None,) * (1 + len(_JUDGED))
        rows.append([row, n, *shares, *more])
    return ResultTable(name, caption, columns, rows)


def _counted(study: LabelledStudy, mask: Mask) -> list[int]:
    """Counts labelled pairs in `mask`: all, correct, incorrect, undecided, and forms among the undecided."""
    judged = [study.judged(kind) for kind in (Judgement.CORRECT, Judgement.INCORRECT, Judgement.UNDECIDED)]
    parts = (mask, *judged, judged[2] & study.reasoned(Reason.PREFILLED_FORM))
    return [int((mask & part).sum()) for part in parts]


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
    correct = study.judged(Judgement.CORRECT)
    kinds: list[Reason | None] = [None] * len(study.labels)
    silent: list[int] = []
    for place in np.flatnonzero(correct & (study.of_b | study.of_c)).tolist():
        given = study.labels.labels[place].reasons
        if given:
            kinds[place] = given[0] if len(given) == 1 else Reason.COMBINATION
        else:
            silent.append(place)
    drafts = {place: study.draft(place) for place in study.chosen(silent, DRAFTS_MAX)}
    for place, made in drafts.items():
        kinds[place] = None if made is None else made.kind
    masks = {row: np.array([kind is one for one in kinds], bool) for row, kind in _DIFFERENCE_ROWS}
    masks["all"] = np.array([one is not None for one in kinds], bool)
    tables = []
    for name, graph in (("B", study.of_b), ("C", study.of_c)):
        whole = correct & graph & masks["all"]
        rows: list[list[Cell]] = [[row, *_part(study, whole, mask)] for row, mask in masks.items()]
        caption = f"Correct pairs of algorithm {name}"
        tables.append(ResultTable(f"5-differences-{name.lower()}", caption, text("what differs") | _PARTS, rows))
    tables.append(_urls_by_c(study, correct, masks["URL only"], masks["all"]))
    about = (
        "The labellers' reasons; for a pair without any, the automatic draft, which patterns on differing words make."
    )
    if drafted := sum(made is not None for made in drafts.values()):
        about += f" {drafted:,} of these pairs have only the draft."
    if len(silent) > DRAFTS_MAX:
        about += f" Of {len(silent):,} pairs without a reason {DRAFTS_MAX:,} are looked at, chosen by seed."
    return Section("5", "Kinds of difference of the correct pairs", about, tables, missing=_missing(study, correct))


def _urls_by_c(study: LabelledStudy, correct: Mask, urls: Mask, known: Mask) -> ResultTable:
    """Tabulates the pairs of algorithm C that differ in URLs alone, by C-similarity.

    correct: correct pairs. urls: those that differ in URLs alone. known: those whose difference is known.
    """
    c = study.c_similarity
    levels = {published.c_level_name(low, high): (c >= low) & (c <= high) for low, high in published.C_LEVELS}
    rows: list[list[Cell]] = []
    for name, level in {**levels, "all": c >= 0}.items():
        here = study.of_c & level
        numbers = [int((here & part).sum()) for part in (c >= 0, correct, known, urls)]
        of_correct = ratio(numbers[3], numbers[2])
        of_all = None if of_correct is None else ratio(of_correct * numbers[1], numbers[0])
        rows.append([name, *numbers, 0.0 if numbers[0] and not numbers[1] else of_all, of_correct])
    columns = text("") | count("labelled pairs", "correct", "difference known", "differ in URLs alone")
    columns |= share("share", "share of the correct pairs")
    note = (
        "Such a pair is correct, so its share of all labelled pairs is its share of the correct ones whose difference "
        "is known, times the share of correct pairs. The paper names it for 376 to 378, the range with the most "
        "undecided pairs."
    )
    return ResultTable("5-urls-by-c", "Pairs of algorithm C that differ in URLs alone", columns, rows, note)


def reasons_of_undecided(study: LabelledStudy) -> Section:
    """Builds table 6: reasons of undecided pairs."""
    undecided = study.judged(Judgement.UNDECIDED)
    masks = {words: study.reasoned(reason) for words, reason in _UNDECIDED_ROWS}
    masks["other, or no reason given"] = ~study.reasoned(*(reason for _, reason in _UNDECIDED_ROWS))
    rows: list[list[Cell]] = [
        [f"{name}: {words}", *_part(study, undecided & graph, mask)]
        for name, graph in (("B", study.of_b), ("C", study.of_c))
        for words, mask in masks.items()
    ]
    table = ResultTable("6-undecided", "Undecided pairs", text("reason") | _PARTS, rows)
    return Section("6", "Reasons of the undecided pairs", "", [table], missing=_missing(study, undecided))


_UNDECIDED_ROWS: tuple[tuple[str, Reason], ...] = (
    ("prefilled, erasable form", Reason.PREFILLED_FORM),
    ("different minor item", Reason.MINOR_ITEM),
    ("cannot be evaluated", Reason.CANNOT_EVALUATE),
)


def far_apart(study: CrawlStudy, least: int = FAR) -> Section:
    """Builds table 8: pairs whose token sequences differ by more than `least` terms."""
    similar = study.of_b | study.of_c
    far = np.zeros(len(study.labels), bool)
    places = study.chosen(np.flatnonzero(similar).tolist(), study.differences_max)
    found = study.differences((study.labels.a[place], study.labels.b[place]) for place in places)
    far[places] = [size is not None and size > least for size in found]
    rows: list[list[Cell]] = [
        [f"{name}: {where}", *_counted(study, part)]
        for name, mask in (("B", study.of_b & far), ("C", study.of_c & far))
        for where, part in by_site(study, mask).items()
    ]
    caption = f"Numbers of labelled pairs with a term difference over {least}"
    table = ResultTable("8-far-apart", caption, text("") | count("labelled pairs", *_JUDGED[:-1]), rows)
    about = ""
    if len(places) < int(similar.sum()):
        about = f"Of {int(similar.sum()):,} labelled similar pairs {len(places):,} are read, chosen by seed."
    missing = _missing(study, similar) or ("" if far.any() else f"No labelled pair has a term difference over {least}.")
    return Section("8", f"Pairs with a term difference over {least}", about, [table], missing=missing)


def worst_sites(study: LabelledStudy) -> Section:
    """Builds table 11: sites of incorrect pairs, and of all pairs if the graphs are known."""
    incorrect = study.judged(Judgement.INCORRECT)
    groups = {
        "b": ("labelled pairs of algorithm B", study.of_b),
        "c": ("labelled pairs of algorithm C", study.of_c),
        "all": ("all labelled pairs, however they were drawn", np.ones(len(study.labels), bool)),
    }
    tables = [_worst(study, f"11-sites-{name}", words, mask, incorrect) for name, (words, mask) in groups.items()]
    if isinstance(study, CrawlStudy):
        tables += [_busiest(study, graph, mask) for graph, mask in ((study.b, study.of_b), (study.c, study.of_c))]
    missing = NO_LABELS if not len(study.labels) else "" if incorrect.any() else "No pair is labelled incorrect."
    if len(study.labels) and not study.has_sites:
        tables, missing = [], "Documents with ids are on no site."
    return Section("11", "Sites that cause the most incorrect pairs", "", tables, missing=missing)


def _by_site(study: LabelledStudy, mask: Mask) -> Counter[str]:
    counts: Counter[str] = Counter()
    for place in np.flatnonzero(mask).tolist():
        counts.update(study.sites(place))
    return counts


_NOTE = "A pair of two sites counts for both."
_LABELLED = count("its labelled pairs") | share("incorrect of these")


def _worst(study: LabelledStudy, name: str, words: str, mask: Mask, incorrect: Mask) -> ResultTable:
    n, wrong = int(mask.sum()), int((mask & incorrect).sum())
    labelled = _by_site(study, mask)
    rows: list[list[Cell]] = [
        [site, pairs, ratio(pairs, wrong), labelled[site], ratio(pairs, labelled[site]), ratio(pairs, n)]
        for site, pairs in most(_by_site(study, mask & incorrect))
    ]
    columns = text("site") | count("incorrect pairs") | share("share of them") | _LABELLED
    columns |= share("share of all labelled pairs")
    return ResultTable(name, f"Incorrect pairs by site: {words}", columns, rows, _NOTE)


def _busiest(study: CrawlStudy, graph: Graph, mask: Mask) -> ResultTable:
    """Tabulates sites by all pairs of a graph, to show the weight of a few sites."""
    pairs = _pairs_by_site(study.corpus, graph)
    labelled, wrong = (_by_site(study, some) for some in (mask, mask & study.judged(Judgement.INCORRECT)))
    rows: list[list[Cell]] = [
        [site, many, ratio(many, len(graph.a)), labelled[site], ratio(wrong[site], labelled[site])]
        for site, many in most(pairs)
    ]
    columns = text("site") | count("pairs") | share("share of all") | _LABELLED
    note = _NOTE if graph.whole else f"{_NOTE} Of {graph.edges:,} pairs {len(graph.a):,} are read, chosen by seed."
    caption = f"All pairs of the {graph.name} graph by site"
    return ResultTable(f"11-pairs-{graph.name.lower()}", caption, columns, rows, note)


def _pairs_by_site(corpus: Corpus, graph: Graph) -> Counter[str]:
    one, other = corpus.site[graph.a], corpus.site[graph.b]
    numbers = np.concatenate([one, other[other != one]])
    names = dict(zip(corpus.site.tolist(), corpus.sites, strict=True))
    return Counter({names[site]: n for site, n in enumerate(np.bincount(numbers).tolist()) if n and names[site]})


def agreement(labels: Sequence[Label], adjudicator: str = "") -> Section | None:
    """Measures agreement of all judges and of every two labellers, before votes are counted.

    None for fewer than two labellers. adjudicator: labeller that settles pairs.
    """
    names = sorted({label.labeller for label in labels})
    if len(names) < 2:
        return None
    rows: list[list[Cell]] = [
        [" and ".join(name or "(no name)" for name in pair), n, value] for pair, (n, value) in kappa(labels).items()
    ]
    columns = text("labellers") | count("pairs both labelled") | share("Cohen's kappa")
    note = "A dash: no common pairs, or both always say the same one thing. Undecided is a label like the others."
    table = ResultTable("labellers", "Agreement of every two labellers", columns, rows, note)
    about = "Full agreement as in Huffman 2007: all judges of a pair say the same. Beside it Cohen's kappa (ours)."
    return Section("labellers", "How far the labellers agree", about, [_full_agreement(labels, adjudicator), table])


def _full_agreement(labels: Sequence[Label], adjudicator: str) -> ResultTable:
    rows: list[list[Cell]] = [
        [kind, pairs, agreed, ratio(agreed, pairs)]
        for kind, (pairs, agreed) in full_agreement(labels, adjudicator).items()
    ]
    columns = text("pairs of") | count("pairs", "all judges agree") | share("share")
    note = (
        "Pairs that two judges or more labelled. Duplicates by the final label, the majority's or the adjudicator's; "
        "others have another final label, or none. The adjudicator is no judge."
    )
    return ResultTable("full-agreement", "Full agreement of judges", columns, rows, note)
