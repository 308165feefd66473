"""Measures what Huang 2008 measured, beside the paper's figures. README.md of `neardup.partition` has the terms.

Definitions (ours, where the paper's formulas are not known):

* coverage rate of N signatures, by documents: of a document's near-duplicates by TLCS with every other text, the share
  that has one of the first N signatures in common with it; the mean over documents with a near-duplicate;
* trustable rate of N signatures, by documents: of the texts that have one of the first N signatures in common with a
  document, the share that are its near-duplicates; the mean over documents with such a text;
* the same by pairs: over the pairs that the partition compared, each weighted by the pairs that it stands for;
* strain-away rate of a window: share of the characters strained away, in pairs that are no near-duplicates;
* reserve rate of a window: TLCS with that window as a share of the TLCS of the whole texts, in near-duplicates;
* precision of a document: the share of the documents found for it that are of its item; recall: the share of the
  documents of its item that are found. A system's figures are means over documents.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean

from neardup.evaluation.labels import Judgement, Label
from neardup.evaluation.measures import mean_share
from neardup.evaluation.sections import Cell, ResultTable, Section, count, figure, number, ratio, share, text
from neardup.partition.parameters import ROTATIONS_MAX, Parameters
from neardup.partition.signatures import signatures_of
from neardup.partition.texts import points, sentences
from neardup.partition.trustable import aligned, compare, filtered, resemblance
from neardup.report.plots import Axes, Series
from neardup.report.reasons import Reason

WINDOWS = (2, 4, 8, 16, 32, 64, 100)
SLOPES = (0.02, 0.04, 0.06, 0.08, 0.10, 0.12, 0.14, 0.16, 0.18, 0.20)
RECALL = 0.90
#: The paper's figures: strain-away and reserve rate at 16 bytes, precision at its best slope, the share of similar
#: pairs after steps, the three systems (precision, relative recall, precision on one site), kinds of false positives.
_WINDOW_PAPER = {16: (0.87, 0.975)}
_SLOPE_PAPER = {0.10: 0.948}
_STEPS_PAPER = (0.67, None, None, 0.95)
SYSTEMS_PAPER: Mapping[str, tuple[float, float, float]] = {
    "tlcs": (0.95, 1.86, 0.91),
    "simhash64": (0.71, 1.0, 0.50),
    "cosine": (0.82, 1.19, 0.63),
}
MISTAKES_PAPER: Mapping[Reason, float] = {
    Reason.SERIES: 0.60,
    Reason.BOILERPLATE: 0.20,
    Reason.SMALL_REPLIES: 0.15,
    Reason.TRANSITIVITY: 0.05,
}
#: A clock: returns processor time in seconds.
Clock = Callable[[], float]
#: A window that strains away only characters that the other text lacks, so its LCS is that of the whole texts.
_WHOLE = 1
_NEVER = ROTATIONS_MAX + 1
#: Seed of the resamplings for intervals.
_SEED = 0
_UNKNOWN = "The truth of these pages is unknown, or all pairs are of one kind: see --releases and --items."


@dataclass(frozen=True)
class TextPair:
    """Two compared texts.

    near, step: the partition's decision, and the step that made it. same_item: the truth, None if unknown.
    weight: the number of compared pairs that this one stands for in its sample.
    """

    a: str
    b: str
    near: bool
    same_item: bool | None = None
    weight: float = 1.0
    step: str = "trustable"


@dataclass(frozen=True)
class SystemSets:
    """The result of a system. sets: number of the set of each document. seconds: run time."""

    sets: Mapping[str, int]
    seconds: float


@dataclass
class Exhausted:
    """Drawn documents, each compared with every other text by TLCS.

    documents: per drawn document, (near, rotations) of each other text that is near or shares a signature with it.
    rotations: least number of rotations at which both texts have a common signature; _NEVER if they have none.
    seconds: time of all comparisons in seconds. signing: seconds per document for its signatures.
    """

    texts: int
    documents: list[list[tuple[bool, int]]] = field(default_factory=list)
    seconds: float = 0.0
    signing: float = 0.0

    @property
    def pairs(self) -> int:
        return len(self.documents) * (self.texts - 1)


def exhaust(texts: Sequence[str], drawn: int, clock: Clock) -> Exhausted:
    """Compares the first `drawn` texts with all others. texts: distinct, in random order."""
    out = Exhausted(len(texts))
    began = clock()
    levels = [_levels(text) for text in texts]
    out.signing = (clock() - began) / ROTATIONS_MAX / max(1, len(texts))
    for place in range(min(drawn, len(texts))):
        others = [other for other in range(len(texts)) if other != place]
        began = clock()
        near = [compare(texts[place], texts[other], Parameters()).similar for other in others]
        out.seconds += clock() - began
        meet = [_meeting(levels[place], levels[other]) for other in others]
        out.documents.append([one for one in zip(near, meet, strict=True) if one != (False, _NEVER)])
    return out


def _levels(text: str) -> dict[tuple[int, int], int]:
    """Maps each signature of a text's sentences to the least number of rotations that produces it."""
    parameters = Parameters(passage_words=0)  # the paper's signatures alone
    found = sentences(text, parameters)
    levels: dict[tuple[int, int], int] = {}
    for rotations in range(1, ROTATIONS_MAX + 1):
        for high, low in signatures_of(found, replace(parameters, rotations=rotations)).tolist():
            levels.setdefault((high, low), rotations)
    return levels


def _meeting(one: Mapping[tuple[int, int], int], other: Mapping[tuple[int, int], int]) -> int:
    return min((max(one[key], other[key]) for key in one.keys() & other.keys()), default=_NEVER)


def signature_section(pairs: Sequence[TextPair], exhausted: Exhausted) -> Section:
    """Measures figure 6: coverage and trustable rate by number of signatures, at all 16 numbers of rotations."""
    meets = [_meeting(_levels(pair.a), _levels(pair.b)) for pair in pairs]
    rows: list[list[Cell]] = []
    for rotations in range(1, ROTATIONS_MAX + 1):
        coverage, trust = [], []
        for found in exhausted.documents:
            met = [near for near, meet in found if meet <= rotations]
            if near := sum(near for near, _ in found):
                coverage.append(sum(met) / near)
            if met:
                trust.append(sum(met) / len(met))
        here = [(pair, meet <= rotations) for pair, meet in zip(pairs, meets, strict=True)]
        covered = _share((pair.weight, met) for pair, met in here if pair.near)
        trusted = _share((pair.weight, pair.near) for pair, met in here if met)
        means = [mean_share(shares, _SEED) for shares in (coverage, trust)]
        by_documents = [cell for mean in means for cell in (mean.value, mean.bounds)]
        rows.append([rotations * Parameters().subsets, *by_documents, covered, trusted])
    columns = count("signatures")
    for name in ("coverage rate, documents", "trustable rate, documents"):
        columns |= share(name) | text(f"{name}, 95%")
    columns |= share("coverage rate, pairs", "trustable rate, pairs")
    caption = (
        f"{len(exhausted.documents):,} documents against all of {exhausted.texts:,} texts, and {len(pairs):,} compared "
        "pairs"
    )
    table = ResultTable("signatures", caption, columns, rows)
    about = (
        "The paper's two rates are equal at 14 signatures. By documents: its words, every text compared. By pairs: of "
        "those that all signatures bring together, weighted to the collection. Intervals are 95% bootstrap percentiles "
        "over the drawn documents."
    )
    names = list(columns)
    series = [Series(names[at], [(float(row[0] or 0), float(row[at] or 0)) for row in rows]) for at in (1, 3)]
    axes = Axes("signatures", "rate", y_range=(0, 1))
    plots = figure("signatures", "Rates by documents", series, axes, columns, rows)
    return Section("signatures", "Figure 6: how many signatures", about, [table], plots)


def window_section(pairs: Sequence[TextPair]) -> Section:
    """Measures strain-away and reserve rate by window."""
    near, apart = ([pair for pair in pairs if pair.near is kind] for kind in (True, False))
    whole = [_trusted(pair, _WHOLE) for pair in near]
    rows: list[list[Cell]] = []
    for window in WINDOWS:
        away = []
        for pair in apart:
            keep = filtered(points(pair.a), points(pair.b), window)
            away.append(1 - sum(int(kept.sum()) for kept in keep) / (len(pair.a) + len(pair.b)))
        reserved = [_trusted(pair, window) / most for pair, most in zip(near, whole, strict=True) if most]
        rows.append([window, _mean(away), _mean(reserved), *_WINDOW_PAPER.get(window, (None, None))])
    columns = (
        count("window") | share("strain-away rate", "reserve rate") | number("paper: strain-away", "paper: reserve")
    )
    caption = f"Of {len(apart):,} pairs that are no near-duplicates, and {len(near):,} that are"
    table = ResultTable("windows", caption, columns, rows)
    return Section("windows", "Windows of the filtered sketch", tables=[table])


def _trusted(pair: TextPair, window: int) -> int:
    parameters = Parameters(window_bytes=window, resemblance_min=0.0, containment_min=0.0)
    return compare(pair.a, pair.b, parameters).trusted


def slope_section(documents: Sequence[Sequence[TextPair]]) -> Section:
    """Measures figure 8: precision at a recall of .90 by slope. Varies the threshold of resemblance alone.

    documents: the compared pairs of each drawn document.
    """
    section = Section("slopes", "Figure 8: slope of a trustable region")
    known = [
        (document, pair) for document, pairs in enumerate(documents) for pair in pairs if pair.same_item is not None
    ]
    if len({pair.same_item for _, pair in known}) < 2:
        section.missing = _UNKNOWN
        return section
    scores = zip(*(_resemblances(pair) for _, pair in known), strict=True)
    rows: list[list[Cell]] = []
    for slope, of_slope in zip(SLOPES, scores, strict=True):
        found = [
            (score, document, bool(pair.same_item)) for score, (document, pair) in zip(of_slope, known, strict=True)
        ]
        rows.append([slope, *at_recall(found), _SLOPE_PAPER.get(slope)])
    columns = number("slope") | share(f"precision at recall {RECALL:.2f}", "recall", "resemblance at least")
    columns |= number("paper: precision")
    caption = f"Means over {len({document for document, _ in known}):,} documents with {len(known):,} compared pairs"
    section.tables.append(ResultTable("slopes", caption, columns, rows))
    return section


def _resemblances(pair: TextPair) -> list[float]:
    """Computes the resemblance at each slope from one alignment of the texts."""
    longer, shorter = sorted((points(pair.a), points(pair.b)), key=len, reverse=True)
    made = aligned(longer, shorter, 1, Parameters().window_bytes)
    return [resemblance(made, longer, shorter, Parameters(slope_max=slope)) for slope in SLOPES]


def at_recall(found: Sequence[tuple[float, int, bool]]) -> tuple[float | None, float, float]:
    """Finds (precision, recall, threshold) of the highest threshold whose mean recall over documents reaches RECALL.

    found: (score, document, whether the other text is of the document's item). Pairs of equal score are accepted
    together. A document without a pair of its item counts for precision only. A document without an accepted pair
    counts for recall only.
    """
    relevant = Counter(document for _, document, good in found if good)
    taken: Counter[int] = Counter()
    right: Counter[int] = Counter()
    recall = threshold = 0.0
    ordered = sorted(found, key=lambda one: -one[0])
    for place, (score, document, good) in enumerate(ordered):
        taken[document] += 1
        right[document] += good
        last = place + 1 == len(ordered) or ordered[place + 1][0] < score
        if last:
            threshold = score
            recall = fmean(right[document] / many for document, many in relevant.items())
            if recall >= RECALL:
                break
    return _mean(right[document] / many for document, many in taken.items()), recall, threshold


def step_section(pairs: Sequence[TextPair], exhausted: Exhausted, documents: int, clock: Clock) -> Section:
    """Measures table 2: the share of similar pairs after each step, and the cost without steps 1 and 2.

    documents: number of distinct texts of the collection.
    """
    section = Section("steps", "Table 2: what each step leaves, and what it saves")
    compared = sum(pair.weight for pair in pairs)
    after = (
        ("1: signatures in common", pairs),
        ("2: filtered sketches long enough", [pair for pair in pairs if pair.step != "length"]),
        ("LCS of the sketches long enough", [pair for pair in pairs if pair.step == "trustable"]),
        ("3: trustable LCS", [pair for pair in pairs if pair.near]),
    )
    rows: list[list[Cell]] = []
    for (name, left), paper in zip(after, _STEPS_PAPER, strict=True):
        known = [(pair.weight, pair.same_item) for pair in left if pair.same_item is not None]
        rows.append([name, round(sum(pair.weight for pair in left)), _share(known), paper])
    columns = text("after step") | count("pairs left") | share("of one item", "paper: similar")
    note = "Pairs are estimated from the sample, which is weighted to the collection."
    section.tables.append(ResultTable("steps", "Pairs after each step", columns, rows, note))
    with_sketch, without = (_seconds(pairs, window, clock) for window in (Parameters().window_bytes, _WHOLE))
    signing = exhausted.signing * documents
    every = documents * (documents - 1) / 2
    exhaustive = ratio(exhausted.seconds, exhausted.pairs) or 0.0
    cost_rows: list[list[Cell]] = []
    for name, many, each, before in (
        ("steps 1 to 3", compared, with_sketch, signing),
        ("without step 1: all pairs", every, exhaustive, 0.0),
        ("without step 2: LCS of whole texts", compared, without, signing),
    ):
        seconds = before + each * many
        cost_rows.append([name, round(many), 1000 * each, seconds, ratio(seconds, signing + with_sketch * compared)])
    columns = text("way") | count("pairs") | number("ms a pair", "processor seconds", "ratio")
    note = f"Step 1 itself takes {1000 * exhausted.signing:.2f} ms a document. Times are of one processor."
    section.tables.append(ResultTable("costs", "Cost of the comparison", columns, cost_rows, note))
    if not any(pair.same_item is not None for pair in pairs):
        section.missing = _UNKNOWN
    return section


def _seconds(pairs: Sequence[TextPair], window: int, clock: Clock) -> float:
    """Measures the seconds of a comparison, as the weighted mean over pairs."""
    parameters = Parameters(window_bytes=window)
    total = 0.0
    for pair in pairs:
        began = clock()
        compare(pair.a, pair.b, parameters)
        total += pair.weight * (clock() - began)
    return total / max(1.0, sum(pair.weight for pair in pairs))


def system_section(systems: Mapping[str, SystemSets], items: Mapping[str, str], sites: Mapping[str, str]) -> Section:
    """Measure table 1, the comparison of systems.

    Args:
        systems: sets of each system, by name.
        items: item of each URL whose item is known.
        sites: site of each URL.
    """
    section = Section(
        "systems",
        "Table 1: the three systems",
        "Recall and time are relative to simhash64's, as recall is in the paper. Hours of the paper's cluster are not "
        "repeated here.",
    )
    if not items:
        section.missing = "The truth of these pages is unknown: see --releases and --items."
        return section
    base = systems.get("simhash64", SystemSets({}, 0.0))
    _, base_recall = measure(base.sets, items)
    rows: list[list[Cell]] = []
    for name, one in systems.items():
        precision, recall = measure(one.sets, items)
        on_one_site, _ = measure({url: (number, sites[url]) for url, number in one.sets.items()}, items)
        relative = ratio(recall, base_recall)
        paper = SYSTEMS_PAPER.get(name, (None, None, None))
        rows.append(
            [name, precision, recall, relative, on_one_site, one.seconds, ratio(one.seconds, base.seconds), *paper]
        )
    columns = text("system") | share("precision", "recall") | number("relative recall") | share("same site: precision")
    columns |= number("seconds", "relative time") | share("paper: precision") | number("paper: relative recall")
    columns |= share("paper: same site")
    section.tables.append(ResultTable("systems", f"Means over {len(items):,} documents", columns, rows))
    return section


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


def measure(sets: Mapping[str, Hashable], items: Mapping[str, str]) -> tuple[float | None, float | None]:
    """Computes (precision, recall) as means over documents.

    A document alone in its set does not count for precision; the only document of an item does not count for recall.
    """
    known = [url for url in items if url in sets]
    size = Counter(sets[url] for url in known)
    of_item = Counter(items[url] for url in known)
    joint = Counter((sets[url], items[url]) for url in known)
    precision = [(joint[sets[u], items[u]] - 1) / (size[sets[u]] - 1) for u in known if size[sets[u]] > 1]
    recall = [(joint[sets[u], items[u]] - 1) / (of_item[items[u]] - 1) for u in known if of_item[items[u]] > 1]
    return _mean(precision), _mean(recall)


def _share(weighed: Iterable[tuple[float, bool | None]]) -> float | None:
    """Computes the share of true values. weighed: (weight, value); None counts as false."""
    known = list(weighed)
    return ratio(sum(each for each, true in known if true), sum(each for each, _ in known))


def _mean(values: Iterable[float]) -> float | None:
    known = list(values)
    return fmean(known) if known else None
