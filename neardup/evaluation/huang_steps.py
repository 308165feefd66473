"""Measures table 2 of Huang 2008: the share of similar documents after each step, and the cost without steps.

Similar documents, the paper's: after step 1 the mean over perhaps-similar sets of the share of documents that are of
the item of the set, after step 3 the precision of table 1. The item of a set is the one with the most documents there,
or that of its representative; the paper does not say which. The share of compared pairs that are of one item is ours.
"""

from collections import Counter
from collections.abc import Sequence

from neardup.evaluation.huang_study import UNKNOWN, WHOLE_WINDOW, Clock, Exhausted, TextPair, mean_of, weighted_share
from neardup.evaluation.item_truth import ItemTruth
from neardup.evaluation.sections import Cell, ResultTable, Section, count, number, ratio, share, text
from neardup.partition.parameters import Parameters
from neardup.partition.trustable import compare

_STEPS_PAPER = (0.67, None, None, 0.95)


def similar_shares(sets: Sequence[Sequence[str]], truth: ItemTruth) -> tuple[float | None, float | None]:
    """Computes the mean over sets of the share of documents of the set's item: (by most documents, by representative).

    By most documents: the greatest number of documents of the set that one of them is a duplicate of, itself included.

    sets: URLs of each perhaps-similar set, the representative first. Documents of no known item are left out.
    """
    by_most, by_representative = [], []
    for urls in sets:
        known = [url for url in urls if url in truth.items]
        of_item, members = Counter(truth.items[url] for url in known), set(known)
        alike = [of_item[truth.items[url]] - len(members & truth.apart.get(url, frozenset())) for url in known]
        if known:
            by_most.append(max(alike) / len(known))
        if urls[0] in members:
            by_representative.append(alike[0] / len(known))
    return mean_of(by_most), mean_of(by_representative)


def step_section(
    pairs: Sequence[TextPair],
    sets: Sequence[Sequence[str]],
    truth: ItemTruth,
    precision: float | None,
    exhausted: Exhausted,
    documents: int,
    clock: Clock,
) -> Section:
    """Measures table 2: what is similar after each step, and the cost without steps 1 and 2.

    Args:
        pairs: compared pairs.
        sets: URLs of each perhaps-similar set, the representative first.
        truth: the duplicates among the documents.
        precision: precision of TLCS in table 1.
        exhausted: drawn documents that were compared with every text.
        documents: number of distinct texts of the collection.
        clock: processor time.
    """
    section = Section(
        "steps",
        "Table 2: what each step leaves, and what it saves",
        "Similar, the paper's: after step 1 the mean over perhaps-similar sets of the share of documents that are of "
        "the set's item (the one with the most documents; beside it that of the representative), after step 3 the "
        "precision of table 1. The share of compared pairs that are of one item is ours.",
    )
    by_most, by_representative = similar_shares(sets, truth)
    similar = ((by_most, by_representative), (None, None), (None, None), (precision, None))
    compared = sum(pair.weight for pair in pairs)
    after = (
        ("1: signatures in common", pairs),
        ("2: filtered sketches long enough", [pair for pair in pairs if pair.step != "length"]),
        ("LCS of the sketches long enough", [pair for pair in pairs if pair.step == "trustable"]),
        ("3: trustable LCS", [pair for pair in pairs if pair.near]),
    )
    rows: list[list[Cell]] = []
    for (name, left), shares, paper in zip(after, similar, _STEPS_PAPER, strict=True):
        known = [(pair.weight, pair.same_item) for pair in left if pair.same_item is not None]
        rows.append([name, *shares, paper, round(sum(pair.weight for pair in left)), weighted_share(known)])
    columns = text("after step") | share("similar", "similar, by the representative", "paper: similar")
    columns |= count("pairs left") | share("pairs of one item")
    note = "Pairs are estimated from the sample, which is weighted to the collection."
    caption = f"What is similar after each step; {len(sets):,} perhaps-similar sets"
    section.tables.append(ResultTable("steps", caption, columns, rows, note))
    with_sketch, without = (_seconds(pairs, window, clock) for window in (Parameters().window_bytes, WHOLE_WINDOW))
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
    note = (
        f"Step 1 itself takes {1000 * exhausted.signing:.2f} ms a document. Times are of one processor. The paper's "
        "hours on its cluster: 71 against 21 without step 1, 33 for indexing and clustering, over 5,700 without step 2."
    )
    section.tables.append(ResultTable("costs", "Cost of the comparison", columns, cost_rows, note))
    if not any(pair.same_item is not None for pair in pairs):
        section.missing = UNKNOWN
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
