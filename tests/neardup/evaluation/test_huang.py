"""The measurements of Huang 2008: rates and means on pairs and sets whose figures are known."""

import random
from dataclasses import replace

import pytest

from neardup.evaluation.huang_rates import at_recall, signature_section, slope_section, window_section
from neardup.evaluation.huang_steps import similar_shares, step_section
from neardup.evaluation.huang_study import NEVER, Exhausted, SystemSets, TextPair, exhaust
from neardup.evaluation.huang_systems import measure, mistake_section, relative_recall, system_section
from neardup.evaluation.item_truth import ItemTruth
from neardup.evaluation.labels import Judgement, label_of
from neardup.evaluation.sections import Section, shown
from neardup.partition.parameters import Parameters
from neardup.partition.trustable import compare
from tests.oracle import partition as oracle
from tests.oracle.lcs import lcs

WORDS = ["wool", "felt", "yarn", "loom", "warp", "weft", "spindle", "dye", "carding", "fleece", "shears", "bobbin"]


def text(seed: int, count: int = 60) -> str:
    rng = random.Random(seed)
    return "\n".join(f"{' '.join(rng.choices(WORDS, k=7))} {seed} {number}." for number in range(count))


def rows(section: Section, at: int = 0) -> dict:
    table = section.tables[at]
    return {row[0]: dict(zip(table.columns, row, strict=True)) for row in table.rows}


def without_sets(texts: int, documents: list[list[tuple[bool, int]]]) -> Exhausted:
    """Drawn documents that are in no perhaps-similar set."""
    return Exhausted(texts, documents, [[(0, 0)] * 16 for _ in documents])


def edited(seed: int) -> str:
    lines = text(seed).split("\n")
    lines[30] = "a line that stands in the edited text alone."
    return "\n".join(lines)


NEAR = [TextPair(text(i), edited(i), near=True, same_item=True) for i in range(4)]
APART = [TextPair(text(i), text(100 + i), near=False, same_item=False) for i in range(4)]


def test_figure_6_has_sixteen_points_by_documents_and_by_pairs() -> None:
    texts = [one for pair in NEAR + APART for one in (pair.a, pair.b)]
    exhausted = exhaust(list(dict.fromkeys(texts)), drawn=5, clock=float)
    found = rows(signature_section(NEAR + APART, exhausted))
    assert list(found) == [7 * rotations for rotations in range(1, 17)]
    for rates in ("shared", "pairs"):
        coverage = [one[f"coverage rate, {rates}"] for one in found.values()]
        assert coverage == sorted(coverage)
        assert coverage[-1] == found[112][f"trustable rate, {rates}"] == 1.0


def test_coverage_is_of_the_near_duplicates_that_exhaustive_comparison_finds() -> None:
    """A near-duplicate without a signature in common counts: one document has 1 of 2, the other its only one."""
    exhausted = without_sets(5, [[(True, 3), (True, NEVER), (False, 1)], [(True, 1)], [(False, 2)]])
    found = rows(signature_section([], exhausted))
    assert found[7]["coverage rate, shared"] == pytest.approx((0 + 1) / 2)
    assert found[21]["coverage rate, shared"] == pytest.approx((1 / 2 + 1) / 2)
    assert found[7]["trustable rate, shared"] == pytest.approx((0 + 1) / 2)
    assert found[21]["trustable rate, shared"] == pytest.approx((1 / 2 + 1 + 0) / 3)
    assert found[112]["coverage rate, shared"] == found[21]["coverage rate, shared"]


def test_figure_6_counts_perhaps_similar_sets_with_the_document_itself() -> None:
    """Four documents, recounted by hand.

    Of the first, one of two near-duplicates is among four others of its sets: 2 of 3 covered, 2 of 5 trusted. The
    second is in no set and has a near-duplicate: 1 of 2, 1 of 1. The third is alone: 1 of 1 and 1 of 1. The fourth has
    only strangers in its sets: 1 of 1, 1 of 3.
    """
    documents = [[(True, 1), (True, NEVER), (False, 1)], [(True, NEVER)], [], [(False, 1)]]
    sets = [[(4, 1)] * 16, [(0, 0)] * 16, [(0, 0)] * 16, [(2, 0)] * 16]
    row = rows(signature_section([], Exhausted(9, documents, sets)))[14]
    assert row["coverage rate, sets"] == pytest.approx((2 / 3 + 1 / 2 + 1 + 1) / 4)
    assert row["trustable rate, sets"] == pytest.approx((2 / 5 + 1 + 1 + 1 / 3) / 4)


def split_sentences(one: str) -> list[str]:
    """The sentences of these texts: lines without their stop, longer than 16 bytes."""
    return [line.removesuffix(".") for line in dict.fromkeys(one.split("\n")) if len(line) > 17]


@pytest.mark.parametrize("rotations", [1, 2, 16])
def test_figure_6_is_recounted_by_plain_code(rotations: int) -> None:
    """Signatures by hashlib, lists by dictionaries (`tests.oracle.partition`), and the rates by sets of numbers."""
    texts = []
    for seed in range(6):
        lines = text(seed).split("\n")
        texts += ["\n".join(lines), edited(seed), "\n".join(lines[:30] + text(50 + seed).split("\n")[:30])]
    texts += [text(90), text(91)]
    drawn = 12
    exhausted = exhaust(texts, drawn, clock=float)
    signatures = [set(oracle.signatures(split_sentences(one), rotations)) for one in texts]
    documents = {(len(own), place): ("", own) for place, own in enumerate(signatures)}
    held: dict[int, set[int]] = {place: {place} for place in range(len(texts))}
    for rep, items in oracle.sets(documents).items():
        members = {place for _, place in (rep, *items)}
        for place in members:
            held[place] |= members
    coverage = trustable = 0.0
    for place in range(drawn):
        near = {at for at, one in enumerate(texts) if at == place or compare(texts[place], one, Parameters()).similar}
        coverage += len(near & held[place]) / len(near) / drawn
        trustable += len(near & held[place]) / len(held[place]) / drawn
    row = rows(signature_section([], exhausted))[7 * rotations]
    assert row["coverage rate, sets"] == pytest.approx(coverage, abs=1e-12)
    assert row["trustable rate, sets"] == pytest.approx(trustable, abs=1e-12)
    assert max(map(len, held.values())) > 1


def test_rates_by_documents_have_an_interval_over_the_drawn_documents() -> None:
    """Half of the documents have all of their near-duplicates covered, half none; four times as many tell more."""
    widths = []
    for times in (5, 20):
        documents = [[(True, 1)], [(True, NEVER), (False, 1)]] * times
        row = rows(signature_section([], without_sets(5, documents)))[112]
        for rate in ("coverage", "trustable"):
            low, high = map(float, row[f"{rate} rate, shared, 95%"].split("-"))
            assert low < row[f"{rate} rate, shared"] == 0.5 < high
        widths.append(high - low)
    assert widths[1] < 0.6 * widths[0]
    none = rows(signature_section(NEAR, Exhausted(5)))[7]
    assert none["coverage rate, shared"] is none["coverage rate, shared, 95%"] is None


def test_texts_are_compared_exhaustively() -> None:
    texts = [text(1), edited(1), text(2)]
    exhausted = exhaust(texts, drawn=3, clock=float)
    assert exhausted.pairs == 6
    assert [[near for near, _ in found] for found in exhausted.documents] == [[True], [True], []]


def test_rates_by_pairs_are_of_the_collection_not_of_the_sample() -> None:
    """Half of the sample is near; of the collection, four in twelve."""
    shared = [TextPair(text(i), edited(i), near=False, same_item=False, weight=2.0) for i in range(4)]
    found = rows(signature_section(NEAR + shared, Exhausted(2)))
    assert found[112]["trustable rate, pairs"] == pytest.approx(4 / 12)


def test_coverage_by_pairs_is_weighted() -> None:
    """Of four near pairs of the collection, one has a signature in common; the sample has two of these pairs."""
    apart = TextPair(text(1), text(200), near=True, same_item=True, weight=3.0)
    found = rows(signature_section([NEAR[0], apart], Exhausted(2)))
    assert found[112]["coverage rate, pairs"] == pytest.approx(1 / 4)
    assert found[112]["trustable rate, pairs"] == 1.0


def test_the_papers_figures_are_shown_with_all_of_their_digits() -> None:
    """.975 and .948: two decimals would show others."""
    windows, slopes = window_section(NEAR + APART), slope_section([NEAR + APART])
    printed = [
        shown(cell, table.kinds[at])
        for table in (*windows.tables, *slopes.tables)
        for row in table.rows
        for at, cell in enumerate(row)
        if at in table.paper and cell is not None
    ]
    assert printed == ["0.87", "0.975", "0.948"]


def test_wider_windows_strain_more_away_and_reserve_less() -> None:
    found = rows(window_section(NEAR + APART))
    away = [one["strain-away rate"] for one in found.values()]
    assert away == sorted(away)
    assert away[0] < 0.2 < 0.5 < away[-1]
    assert found[16]["paper: strain-away"] == 0.87


def test_rates_of_windows_part_pairs_by_the_truth_and_weigh_them() -> None:
    """Two pairs that TLCS misjudges stand for three and one pairs of the collection; the recount takes substrings."""
    wrong = TextPair(text(1), edited(1), near=True, same_item=False, weight=3.0)
    missed = TextPair(text(2, 10), text(2, 5) + "\n" + text(7, 5), near=False, same_item=True, weight=1.0)
    pairs = [wrong, replace(APART[0], weight=2.0), missed, replace(NEAR[2], weight=4.0), TextPair("a", "b", near=False)]
    row = rows(window_section(pairs))[16]

    def away(pair: TextPair) -> float:
        kept = [len(oracle.kept(one, other, 16)) for one, other in ((pair.a, pair.b), (pair.b, pair.a))]
        return 1 - sum(kept) / (len(pair.a) + len(pair.b))

    def reserved(pair: TextPair) -> float:
        one, other = (compare(pair.a, pair.b, Parameters(window_bytes=each, resemblance_min=0)) for each in (16, 1))
        return one.trusted / other.trusted

    assert row["strain-away rate"] == pytest.approx((3 * away(wrong) + 2 * away(APART[0])) / 5)
    assert row["reserve rate"] == pytest.approx((reserved(missed) + 4 * reserved(NEAR[2])) / 5)
    own = (2 * away(APART[0]) + away(missed) + away(pairs[4])) / 4
    assert row["strain-away rate, own decision"] == pytest.approx(own)
    assert row["reserve rate, own decision"] == pytest.approx((3 * reserved(wrong) + 4 * reserved(NEAR[2])) / 7)


def test_without_truth_rates_of_windows_are_of_the_own_decision_alone() -> None:
    row = rows(window_section([replace(pair, same_item=None) for pair in NEAR + APART]))[16]
    assert row["strain-away rate"] is row["reserve rate"] is None
    assert row["strain-away rate, own decision"] > row["paper: reserve"] - 1


def test_the_reserve_rate_is_of_the_tlcs() -> None:
    """The second half shares scattered words alone, which belong to the LCS and to no trustable region."""
    half, second, other = (text(seed, count=20) for seed in (1, 2, 3))
    pair = TextPair(f"{half}\n{second}", f"{half}\n{other}", near=True, same_item=True)
    whole, sketch = (compare(pair.a, pair.b, Parameters(window_bytes=window, resemblance_min=0)) for window in (1, 100))
    rate = rows(window_section([pair]))[100]["reserve rate"]
    assert rate == sketch.trusted / whole.trusted != sketch.kept_b / lcs(pair.a, pair.b)


def test_precision_at_a_recall_needs_truth_and_holds_the_recall() -> None:
    assert slope_section([[TextPair("a", "b", near=True)]]).missing
    assert slope_section([NEAR]).missing
    found = rows(slope_section([NEAR + APART]))
    assert all(one["recall"] >= 0.9 for one in found.values())
    assert found[0.1]["precision at recall 0.90"] == 1.0


def test_figure_8_counts_documents_not_pairs() -> None:
    """A document with one wrong pair and one with three right ones: precision 1/2, though three of four are right."""
    wrong = [TextPair(text(9), text(9), near=True, same_item=False)]
    found = rows(slope_section([wrong, NEAR[:3]]))
    assert found[0.1]["precision at recall 0.90"] == 0.5


def test_a_recall_is_reached_by_the_highest_threshold_and_equal_scores_go_together() -> None:
    found = [(0.9, 1, True), (0.8, 1, False), (0.8, 2, True), (0.8, 3, False), (0.5, 2, False)]
    assert at_recall(found) == (pytest.approx((1 / 2 + 1 + 0) / 3), 1.0, 0.8)


def test_steps_are_of_the_collection_and_stand_beside_the_paper() -> None:
    pairs = [
        *(TextPair(text(i), text(50 + i), False, False, weight=3.0, step="length") for i in range(2)),
        TextPair(text(3), text(60), False, True, weight=3.0, step="edits"),
        *NEAR,
        TextPair(text(4), text(5), True, False),
    ]
    truth = ItemTruth({"a": "x", "b": "x", "c": "y", "d": "y", "e": "y"})
    exhausted = Exhausted(20, [[], []], seconds=1.9, signing=0.001)
    sets = [["a", "b", "c"], ["a", "c", "d", "e"]]
    section = step_section(pairs, sets, truth, 0.8125, exhausted, documents=20, clock=float)
    found = rows(section)
    left = [(one["pairs left"], one["pairs of one item"]) for one in found.values()]
    assert left == [(14, 0.5), (8, pytest.approx(7 / 8)), (5, 0.8), (5, 0.8)]
    assert [one["paper: similar"] for one in found.values()] == [0.67, None, None, 0.95]
    assert [one["similar"] for one in found.values()] == [pytest.approx((2 / 3 + 3 / 4) / 2), None, None, 0.8125]
    by_representative = [one["similar, by the representative"] for one in found.values()]
    assert by_representative == [pytest.approx((2 / 3 + 1 / 4) / 2), None, None, None]
    costs = list(rows(section, 1).values())
    assert [one["pairs"] for one in costs] == [14, 190, 14]
    assert costs[1]["processor seconds"] == pytest.approx(190 * 1.9 / 38)
    assert [one["ratio"] for one in costs] == [1.0, pytest.approx(190 * 0.05 / 0.02), 1.0]


def test_similar_shares_of_sets_are_recounted_pair_by_pair() -> None:
    """Random sets and items, a third of the pairs of an item apart, some items unknown; all by asking of each pair."""
    rng = random.Random(3)
    urls = [f"u{number}" for number in range(60)]
    items = {url: str(rng.randrange(8)) for url in urls if rng.random() < 0.8}
    apart: dict[str, set[str]] = {}
    for a in items:
        for b in items:
            if a < b and items[a] == items[b] and rng.random() < 0.3:
                apart.setdefault(a, set()).add(b)
                apart.setdefault(b, set()).add(a)
    truth = ItemTruth(items, {url: frozenset(others) for url, others in apart.items()})
    sets = [rng.sample(urls, rng.randint(2, 20)) for _ in range(12)]
    most, representative = [], []
    for one in sets:
        known = [url for url in one if url in items]
        alike = {a: sum(a == b or bool(truth.same(a, b)) for b in known) for a in known}
        if known:
            most.append(max(alike.values()) / len(known))
        if one[0] in alike:
            representative.append(alike[one[0]] / len(known))
    found = similar_shares(sets, truth)
    assert found == (pytest.approx(sum(most) / len(most)), pytest.approx(sum(representative) / len(representative)))
    assert len(representative) < len(most)
    assert similar_shares([["unknown", "too"]], truth) == (None, None)


def test_false_positives_are_counted_by_kind() -> None:
    kinds = [("series",), ("series",), ("boilerplate", "transitivity"), ("main_item",)]
    made = [
        label_of(f"https://a.example/{at}", "https://b.example/", Judgement.INCORRECT, reasons=reasons, sample="sets")
        for at, reasons in enumerate(kinds)
    ]
    made.append(replace(made[0], sample="B"))
    found = rows(mistake_section(made))
    assert {kind: (one["pairs"], one["paper: share"]) for kind, one in found.items()} == {
        "series": (2, 0.60),
        "boilerplate": (1, 0.20),
        "small replies": (0, 0.15),
        "transitivity": (1, 0.05),
        "another or none": (1, None),
    }
    assert mistake_section(made[-1:]).missing


def test_precision_and_recall_are_means_over_documents() -> None:
    items = {"a": "x", "b": "x", "c": "x", "d": "y"}
    assert measure({"a": 1, "b": 1, "c": 2, "d": 1}, ItemTruth(items)) == (
        pytest.approx((1 / 2 + 1 / 2 + 0) / 3),
        pytest.approx((1 / 2 + 1 / 2 + 0) / 3),
    )
    assert measure({"a": 1, "b": 2}, ItemTruth({"a": "x", "b": "y"})) == (None, None)


def test_editions_that_differ_too_much_are_no_true_positives() -> None:
    """Of three editions in one set the third is apart from the first: precisions 1/2, 1, 1/2, recalls 1, 1, 1."""
    truth = ItemTruth(dict.fromkeys("abc", "x"), {"a": frozenset("c"), "c": frozenset("a")})
    assert measure(dict.fromkeys("abc", 1), truth) == (pytest.approx((1 / 2 + 1 + 1 / 2) / 3), 1.0)
    assert measure({"a": 1, "b": 2, "c": 1}, truth) == (0.0, 0.0)


def test_recall_is_relative_to_simhash64() -> None:
    """By hand: simhash64 has a true positive for a and for b, cosine for c and d, tlcs for all four."""
    truth = ItemTruth({"a": "x", "b": "x", "c": "y", "d": "y"})
    systems = {
        "tlcs": SystemSets({"a": 1, "b": 1, "c": 2, "d": 2}, 3.0),
        "cosine": SystemSets({"a": 1, "b": 2, "c": 3, "d": 3}, 2.0),
        "simhash64": SystemSets({"a": 1, "b": 1, "c": 2, "d": 3}, 1.0),
    }
    section = system_section(systems, truth, {"a": "s", "b": "s", "c": "t", "d": "t"})
    found = rows(section)
    names = ("relative recall", "relative recall, itself counted", "ratio of mean recalls")
    assert [found["tlcs"][name] for name in names] == [1.0, (1 + 1 + 2 + 2) / 4, 2.0]
    assert [found["cosine"][name] for name in names] == [0.0, (1 / 2 + 1 / 2 + 2 + 2) / 4, 1.0]
    assert [found["simhash64"][name] for name in names] == [1.0, 1.0, 1.0]
    assert [found[name]["same site: true positives, relative"] for name in systems] == [2.0, 1.0, 1.0]
    assert found["tlcs"]["same site: precision"] == 1.0
    assert found["tlcs"]["relative time"] == 3.0
    assert system_section(systems, ItemTruth({}), {}).missing


def test_relative_recall_is_recounted_by_asking_of_each_pair() -> None:
    rng = random.Random(11)
    urls = [f"u{number}" for number in range(80)]
    truth = ItemTruth({url: str(rng.randrange(25)) for url in urls if rng.random() < 0.9})
    sites = {url: str(rng.randrange(2)) for url in urls}
    systems = {
        name: SystemSets({url: rng.randrange(many) for url in urls}, 1.0)
        for name, many in (("tlcs", 3), ("cosine", 5), ("simhash64", 6))
    }

    def right(name: str, url: str, on_one_site: bool = False) -> int:
        sets = systems[name].sets
        return sum(
            other != url
            and sets[other] == sets[url]
            and truth.items[other] == truth.items[url]
            and (not on_one_site or sites[other] == sites[url])
            for other in truth.items
        )

    found = rows(system_section(systems, truth, sites))
    for name in systems:
        ratios = [right(name, url) / many for url in truth.items if (many := right("simhash64", url))]
        counted = [(right(name, url) + 1) / (right("simhash64", url) + 1) for url in truth.items]
        assert found[name]["relative recall"] == pytest.approx(sum(ratios) / len(ratios), abs=1e-12)
        assert found[name]["relative recall, itself counted"] == pytest.approx(sum(counted) / len(counted), abs=1e-12)
        on_site, base = (sum(right(each, url, True) for url in truth.items) for each in (name, "simhash64"))
        assert found[name]["same site: true positives, relative"] == on_site / base
        assert len(ratios) < len(counted)
    assert relative_recall({}, {}) is None


def test_hours_of_the_paper_stand_in_table_1() -> None:
    """Cosine with segmented words is a row of the paper alone; simhash of 58 bits is measured if it was run."""
    truth, sites = ItemTruth({"a": "x", "b": "x"}), {"a": "s", "b": "s"}
    systems = {name: SystemSets({"a": 1, "b": 1}, 1.0) for name in ("tlcs", "cosine", "simhash64")}
    found = rows(system_section(systems, truth, sites))
    assert {name: row["paper: hours"] for name, row in found.items()} == {
        "tlcs": "118",
        "cosine": "68",
        "cosine, words segmented": "602",
        "simhash64": "94",
        "simhash64 at 58 bits": "over 400",
    }
    assert found["simhash64 at 58 bits"]["precision"] is found["cosine, words segmented"]["precision"] is None
    wider = systems | {"simhash64 at 58 bits": SystemSets({"a": 1, "b": 1}, 1.5)}
    assert rows(system_section(wider, truth, sites))["simhash64 at 58 bits"]["relative time"] == 1.5
