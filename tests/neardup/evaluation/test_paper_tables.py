"""Tables and plots of the paper against counts made by hand, from a crawl whose pairs are all known."""

import re
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import neardup
from neardup.evaluation import henzinger_pairs_tables
from neardup.evaluation import sections as sections_module
from neardup.evaluation.evaluation_report import answer, evaluate
from neardup.evaluation.henzinger_choice_tables import combined_section
from neardup.evaluation.henzinger_choices import DRAWS, find_knee, knee_draws, knee_warnings
from neardup.evaluation.henzinger_label_tables import kinds_of_difference, worst_sites
from neardup.evaluation.henzinger_pairs_tables import graph_section, hosts_section, levels_section
from neardup.evaluation.labels import Judgement, Label, join_labels, label_of
from neardup.evaluation.rule_tables import rules_section
from neardup.evaluation.run_tables import RunPages, RunStudy, run_section, run_sections
from neardup.evaluation.runs import CrawlRun, stream
from neardup.evaluation.sections import Cell, ResultTable, by_name
from neardup.evaluation.study import CrawlStudy
from neardup.report.plots import Axes, Series, plot
from neardup.report.reasons import Reason
from neardup.urls import host_of
from tests.neardup.evaluation.crawl import Crawl, crawl_of, manual, page, words


@pytest.fixture(scope="module")
def crawl() -> Crawl:
    return crawl_of([*manual(items=30), page("https://alone.example/", "Alone", words(99, 200))])


def labels_of(crawl: Crawl) -> list[Label]:
    """Every pair of both graphs, judged by a rule that has nothing to do with their texts."""
    study, urls = crawl.study(), crawl.corpus.urls
    judgements = [Judgement.CORRECT, Judgement.CORRECT, Judgement.INCORRECT, Judgement.UNDECIDED]
    drawn: dict[tuple[int, int], str] = {}
    for name, graph in (("B", study.b), ("C", study.c)):
        for pair in zip(graph.a.tolist(), graph.b.tolist(), strict=True):
            drawn[pair] = f"{drawn[pair]} + {name}" if pair in drawn else name
    out = []
    for (a, b), sample in drawn.items():
        judgement = judgements[(a + b // 3) % 4]
        reasons = (Reason.PREFILLED_FORM,) if judgement is Judgement.UNDECIDED and a % 2 else ()
        out.append(label_of(urls[a], urls[b], judgement, reasons=reasons, sample=sample))
    return out


@pytest.fixture(scope="module")
def study(crawl: Crawl) -> CrawlStudy:
    return crawl.study(labels_of(crawl), run=stream(crawl.corpus.records, crawl.study().decider))


def rows_of(table: ResultTable) -> dict[Cell, dict[str, Cell]]:
    return {row[0]: dict(zip(table.columns, row, strict=True)) for row in table.rows}


def test_degrees_are_of_pages_with_an_edge_and_of_at_least_a_number(study: CrawlStudy) -> None:
    rows = rows_of(graph_section(study).tables[0])
    for graph, column in ((study.b, "B graph"), (study.c, "C graph")):
        degrees = [degree for degree in graph.degrees.tolist() if degree]
        assert len(degrees) < len(study.corpus), "there are pages without an edge"
        for least in (2, 3, 5):
            values = rows[f"of the pages with an edge, the share of degree {least} or more"][column]
            assert values == sum(degree >= least for degree in degrees) / len(degrees)


def test_pairs_at_twelve_bits_are_counted_among_all_pairs(study: CrawlStudy) -> None:
    assert study.wide is not None
    found, every = (int(graph.joint[:, :, 372].sum()) for graph in (study.c, study.wide))
    assert f"of the {every:,} pairs at 12 they found {found:,}." in graph_section(study).tables[0].note


def test_pairs_of_both_algorithms_are_reported_by_level_and_site(study: CrawlStudy) -> None:
    tables = by_name([levels_section(study)])
    c = study.c
    same = study.corpus.site[c.a] == study.corpus.site[c.b]
    rows = rows_of(tables["2-c-similarity"])
    for name, low, high in (("382-384", 382, 384), ("379-381", 379, 381), ("372-375", 372, 375)):
        here = (c.c_similarity >= low) & (c.c_similarity <= high)
        assert rows[name]["pairs"] == int(here.sum()) > 0
        assert rows[name]["of them on one site"] == pytest.approx(float(same[here].mean()))
    assert rows["all"]["of them on one site"] == pytest.approx(float(same.mean()))
    assert rows["all"]["paper: on one site"] == pytest.approx(0.744)
    assert rows_of(tables["2-b-similarity"])["all"]["paper: on one site"] == pytest.approx(0.92)


def test_pages_are_identified_by_host() -> None:
    urls = [f"https://www.a.example/{i}" for i in range(6)] + [f"https://a.example:444/{i}" for i in range(3)]
    urls += [f"https://h{i}.example/" for i in range(9)]
    section = hosts_section(urls)
    rows = rows_of(section.tables[0])
    assert [rows[name]["here"] for name in ("hosts", "pages", "median", "pages of the largest host")] == [11, 18, 1, 6]
    assert rows["share of the hosts with one page"]["here"] == 9 / 11
    assert rows["power-law exponent"]["here"] is None
    assert section.tables[1].rows[:2] == [["www.a.example", 6, 6 / 18], ["a.example", 3, 3 / 18]]
    assert section.plots[0].rows == [(1, 9), (3, 1), (6, 1)]
    assert "one host" in hosts_section(["https://a.example/"]).missing
    assert "no page" in hosts_section([]).missing


def test_the_cutoff_is_judged_on_s2_by_site(study: CrawlStudy) -> None:
    knee = find_knee(study)
    tables = by_name([combined_section(study)])
    cutoff = knee.chosen or 355
    correct = study.judged(Judgement.CORRECT)
    rows = rows_of(tables["10-alternatives"])
    ways = {f"combined, cutoff {cutoff}": study.c_similarity >= cutoff}
    ways["B with B-similarity of at least 3"] = study.b_similarity >= 3
    columns = {"R": correct, "R, same site": study.same_site, "R, different sites": ~study.same_site}
    for way, kept in ways.items():
        for column, mask in columns.items():
            of_b = knee.s2 & correct & mask
            assert rows[way][column] == int((of_b & kept).sum()) / int(of_b.sum())
        assert len({rows[way][column] for column in columns}) == 3
    assert rows[f"combined, cutoff {cutoff}"]["paper: R"] == 0.79


def plain_knee(pairs: list[tuple[int, bool]]) -> int | None:
    """The knee of labelled pairs (C-similarity, correct), in plain Python: the point farthest above the chord."""
    right = sum(correct for _, correct in pairs)
    points = []
    for cutoff in range(300, 385):
        kept = [correct for level, correct in pairs if level >= cutoff]
        if len(kept) >= 10:
            points.append((sum(kept) / right, sum(kept) / len(kept), cutoff))
    (x0, x1), (y0, y1) = ((min(p[at] for p in points), max(p[at] for p in points)) for at in (0, 1))
    scaled = [((x - x0) / (x1 - x0), (y - y0) / (y1 - y0), cutoff) for x, y, cutoff in points]
    (ax, ay, _), (bx, by, _) = scaled[0], scaled[-1]
    above = [((ax - bx) * (y - ay) - (ay - by) * (x - ax), -cutoff) for x, y, cutoff in scaled]
    farthest = max(above, key=lambda one: (round(one[0], 12), one[1]))
    return -farthest[1] if farthest[0] > 1e-12 else None


def test_the_knee_is_drawn_again_from_other_halves(study: CrawlStudy) -> None:
    """Each draw is recounted: its halves part the labelled B pairs, and its knee is that of the first half."""
    correct = study.judged(Judgement.CORRECT)
    draws = knee_draws(study)
    assert len(draws) == DRAWS == 200
    assert draws[0].chosen == find_knee(study).chosen
    for draw in draws[:20]:
        assert not (draw.s1 & draw.s2).any()
        assert ((draw.s1 | draw.s2) == study.of_b).all()
        assert abs(int(draw.s1.sum()) - int(draw.s2.sum())) <= 1
        pairs = [(int(study.c_similarity[at]), bool(correct[at])) for at in np.flatnonzero(draw.s1)]
        assert draw.chosen == plain_knee(pairs)
    assert len({draw.s1.tobytes() for draw in draws}) == DRAWS


def test_the_interval_of_the_knee_is_printed_and_a_wide_one_warned_of(study: CrawlStudy) -> None:
    knees = sorted(draw.chosen for draw in knee_draws(study) if draw.chosen is not None)
    tables = by_name([combined_section(study)])
    row = rows_of(tables["10-draws"])["cutoff at the knee"]
    low, high = (float(np.quantile(knees, share)) for share in (0.025, 0.975))
    assert (row["median"], row["2.5%"], row["97.5%"]) == (float(np.median(knees)), low, high)
    assert (row["this draw"], row["paper"]) == (find_knee(study).chosen, 355)
    common = rows_of(tables["10-draws-cutoffs"])
    counts = Counter(knees)
    assert {cutoff: each["draws"] for cutoff, each in common.items()} == dict(
        sorted(counts.items(), key=lambda one: (-one[1], one[0]))[:20]
    )
    (warning,) = knee_warnings(study)
    assert f"{low:g} to {high:g}" in warning
    assert f"{int(study.of_b.sum()):,} labelled B pairs" in warning
    assert warning in evaluate(study).notes


def test_the_site_split_is_estimated_from_its_parts(crawl: Crawl, study: CrawlStudy) -> None:
    """All pairs of C are labelled, so C's part is a count; the combined algorithm's is scaled up from S2."""
    knee = find_knee(study)
    cutoff = knee.chosen or 355
    rows = rows_of(by_name([combined_section(study)])["10-site-split"])
    correct, site = study.judged(Judgement.CORRECT), crawl.corpus.site
    c_two = int((site[study.c.a] != site[study.c.b]).sum())
    right = int((correct & study.of_c & ~study.same_site).sum())
    two = rows["on two sites by algorithm C"]
    assert (two["pairs of the crawl"], two["labelled"]) == (c_two, c_two)
    assert two["correct pairs"] == pytest.approx(right)
    kept = (site[study.b.a] == site[study.b.b]) & (study.b.c_similarity >= cutoff)
    sampled = knee.s2 & study.same_site & (study.c_similarity >= cutoff)
    one = rows[f"on one site by the combined algorithm, cutoff {cutoff}"]
    assert (one["pairs of the crawl"], one["labelled"]) == (int(kept.sum()), int(sampled.sum()))
    share = int((sampled & correct).sum()) / int(sampled.sum())
    assert one["precision"] == pytest.approx(share)
    split = rows["site split"]
    assert split["correct pairs"] == pytest.approx(right + share * int(kept.sum()))
    assert split["precision"] == pytest.approx((right + share * int(kept.sum())) / (c_two + int(kept.sum())))
    of_b = int((correct & study.of_b).sum())
    assert rows["algorithm B"]["correct pairs"] == pytest.approx(of_b)
    assert split["of B's correct pairs"] == pytest.approx((right + share * int(kept.sum())) / of_b)


def test_no_site_split_from_labels_of_one_graph(crawl: Crawl) -> None:
    of_b = [label for label in labels_of(crawl) if label.sample == "B"]
    rows = rows_of(by_name([combined_section(crawl.study(of_b))])["10-site-split"])
    assert rows["site split"]["precision"] is None
    assert rows["algorithm C"]["correct pairs"] is None


def test_sites_are_reported_of_all_pairs(crawl: Crawl, study: CrawlStudy) -> None:
    tables = by_name([worst_sites(study)])
    counts: Counter[str] = Counter()
    for a, b in zip(study.b.a.tolist(), study.b.b.tolist(), strict=True):
        counts.update({crawl.corpus.sites[a], crawl.corpus.sites[b]})
    rows = rows_of(tables["11-pairs-b"])
    assert {site: row["pairs"] for site, row in rows.items()} == counts
    wrong: Counter[str] = Counter()
    for place in np.flatnonzero(study.judged(Judgement.INCORRECT)):
        wrong.update(study.sites(place))
    every = rows_of(tables["11-sites-all"])
    assert {site: row["incorrect pairs"] for site, row in every.items()} == wrong
    (name,) = {site for site in wrong if site.startswith("manual")}
    assert every[name]["share of all labelled pairs"] == wrong[name] / len(study.labels)


def test_pairs_that_differ_in_urls_alone_are_counted_by_c_similarity(crawl: Crawl) -> None:
    """Of the C pairs, judged by turns: URL alone, URL and time, time alone, incorrect."""
    given = [(Reason.OWN_URL,), (Reason.OWN_URL, Reason.TIME_STAMP), (Reason.TIME_STAMP,), None]
    study, urls = crawl.study(), crawl.corpus.urls
    labels, turns = [], []
    for turn, (a, b) in enumerate(zip(study.c.a.tolist(), study.c.b.tolist(), strict=True)):
        reasons = given[turn % 4]
        what = Judgement.INCORRECT if reasons is None else Judgement.CORRECT
        labels.append(label_of(urls[a], urls[b], what, reasons=reasons or (), sample="C"))
        turns.append((int(study.c.c_similarity[turn]), turn % 4))
    rows = rows_of(by_name([kinds_of_difference(crawl.study(labels))])["5-urls-by-c"])
    for name, low, high in (("376-378", 376, 378), ("379-381", 379, 381), (">= 382", 382, 384), ("< 376", 0, 375)):
        here = [turn for level, turn in turns if low <= level <= high]
        row = rows[f"C-similarity {name}"]
        assert row["labelled pairs"] == len(here) > (4 if low == 376 else 0)
        assert row["differ in URLs alone"] == here.count(0)
        assert row["share"] == here.count(0) / len(here)
        assert row["share of the correct pairs"] == here.count(0) / (len(here) - here.count(3))


def test_pairs_without_a_known_difference_are_estimated(crawl: Crawl, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the correct pairs have no reason, and no text to draft one from: the known half stands for them."""
    monkeypatch.setattr(CrawlStudy, "draft", lambda self, place: None)
    study, urls = crawl.study(), crawl.corpus.urls
    labels = []
    for turn, (a, b) in enumerate(zip(study.c.a.tolist(), study.c.b.tolist(), strict=True)):
        reasons = ((Reason.OWN_URL,), (Reason.TIME_STAMP,), (), ())[turn % 4]
        labels.append(label_of(urls[a], urls[b], Judgement.CORRECT, reasons=reasons, sample="C"))
    row = rows_of(by_name([kinds_of_difference(crawl.study(labels))])["5-urls-by-c"])["all"]
    known = sum(bool(label.reasons) for label in labels)
    assert row["difference known"] == known
    assert row["share"] == pytest.approx(sum(label.reasons == (Reason.OWN_URL,) for label in labels) / known)


def test_an_undecided_pair_is_not_a_correct_one(study: CrawlStudy) -> None:
    rows = rows_of(by_name([rules_section(study)])["rules-all"])
    similar = (study.b_similarity >= 2).tolist()
    correct = study.judged(Judgement.CORRECT).tolist()
    assert study.labels.count(Judgement.UNDECIDED) > 10
    assert rows["shingling"]["pairs"] == len(study.labels)
    both = sum(one and other for one, other in zip(similar, correct, strict=True))
    assert rows["shingling"]["precision"] == both / sum(similar)


def test_the_last_range_of_c_similarities_is_as_wide_as_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Series] = []
    monkeypatch.setattr(
        sections_module, "plot", lambda title, series, axes: (seen.extend(series), plot(title, series, axes))[1]
    )
    for low, step in ((352, 4), (301, 8), (384, 4)):
        joint = np.zeros((7, 385), np.int64)
        joint[2, low:] = 1  # as many pairs of each similarity
        assert henzinger_pairs_tables._c_for_b(joint, 2)
        x, shares = zip(*seen.pop().points, strict=True)
        assert x[-1] == 384 - (step - 1) / 2
        assert {right - left for left, right in pairwise(x)} <= {step}
        assert shares[-1] == min(step / (385 - low), 1), "of a whole range, not of 384 alone"
        assert sum(shares) == pytest.approx(1)


def test_the_90_percent_point_is_the_least_size_that_nine_of_ten_do_not_exceed() -> None:
    for sizes, point in (
        ([7], 7),
        ([1, 2], 2),
        (list(range(1, 11)), 9),
        (list(range(11, 0, -1)), 10),
        ([2] * 9 + [500], 2),
    ):
        assert henzinger_pairs_tables.point_of(sizes, 90) == point


def test_term_differences_stand_on_an_axis_of_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[Series, Axes]] = []

    def plotted(title: str, series: list[Series], axes: Axes) -> object:
        seen.append((series[0], axes))
        return plot(title, series, axes)

    monkeypatch.setattr(sections_module, "plot", plotted)
    (made,) = henzinger_pairs_tables._histogram("B", [1, 2, 2, 3, 4, 199, 200, 201, 5000])
    ((series, axes),) = seen
    assert axes.x == "term difference"
    assert axes.x_range == (0, 201)
    assert series.points == [(1, 3), (3, 2), (199, 2)]  # 1 and 2, 3 and 4, 199 and 200
    assert series.hints[0] == "1 to 2 terms: 3 pairs"
    assert made is not None
    assert "2 pairs lie beyond 200 terms" in made.note
    widths = [float(width) for width in re.findall(r'<rect[^>]* width="([0-9.]+)"', str(made.svg))]
    lefts = [float(left) for left in re.findall(r'<rect[^>]* x="([0-9.]+)"', str(made.svg))]
    assert lefts[1] - lefts[0] == pytest.approx(widths[0] + 0.5, abs=0.11), "two terms wide, side by side"


def test_the_answer_comes_first(study: CrawlStudy) -> None:
    sections = [rules_section(study), run_section(study.run, study)]  # type: ignore[arg-type]
    response = answer(sections)
    rows = rows_of(sections[0].tables[0])
    best = max((row for row in rows.values() if row["F1"]), key=lambda row: float(row["F1"] or 0))
    assert f"On {len(study.labels):,} labelled pairs “{best['rule']}” has the best F1: {best['F1']:.2f}" in response[0]
    near = [row for row in rows.values() if str(row["F1 95%"]).split("-")[1] >= str(best["F1 95%"]).split("-")[0]]
    assert len(near) > 1
    assert all(f"“{row['rule']}”" in response[0] for row in near)
    kinds = rows_of(sections[1].tables[0])
    near = kinds["near_duplicate"]["pages"]
    assert response[1].startswith(
        f"The run emitted {len(study.corpus):,} verdicts: {near:,} near-duplicates. An index would show "
    )
    assert "its F1 is" in response[1]
    assert answer([rules_section(crawl_of(manual(items=2)).study())])[0].startswith("No labelled pair")


def test_a_run_that_knows_few_of_the_pairs_is_no_rival(crawl: Crawl) -> None:
    labels = labels_of(crawl)
    right, wrong = ({"label": judgement, "reasons": ()} for judgement in (Judgement.CORRECT, Judgement.INCORRECT))
    few = {url for label in labels[:5] for url in label.pair}
    labels = [replace(label, **(wrong if few.isdisjoint(label.pair) else right)) for label in labels]
    strangers = next(label.pair for label in labels if label.label is Judgement.INCORRECT)
    part = CrawlRun("a part of a run", clusters={**dict.fromkeys(few, 1), **dict(zip(strangers, (2, 3), strict=True))})
    sections = [rules_section(crawl.study(labels, run=part)), run_section(part)]
    ran = sections[0].tables[0].to_json()[-1]
    assert (ran["rule"], ran["F1"], ran["pairs"] < len(labels)) == (part.name, 1, True)
    response = answer(sections)
    assert response[0].startswith(f"On {len(labels):,} labelled pairs ")
    assert part.name not in response[0]
    assert "On the labelled pairs that the run contains, its F1 is 1.00" in response[1]
    alone = RunPages(part)
    study = RunStudy(part, alone, join_labels(labels, alone.find))
    assert answer(run_sections(study))[0].startswith("The run emitted "), "of one row none is the best"


CITED = re.compile(r"Henzinger 2006,\s+(?:algorithm [BC][,:]?\s*)?sections?\s+([0-9][0-9. to,and]*)")
#: The paper's sections: site 1, tokens and algorithms 2, evaluation 3.1 to 3.4, combined and site split 3.5.
SECTIONS = {"1", "2", "3.1", "3.2", "3.3", "3.4", "3.5"}


def test_the_paper_is_cited_by_its_own_sections() -> None:
    root = Path(neardup.__file__).parent
    cited = {
        (path.relative_to(root).as_posix(), number)
        for path in root.rglob("*.py")
        for sections in CITED.findall(path.read_text(encoding="utf-8"))
        for number in re.findall(r"[0-9]+(?:\.[0-9]+)?", sections)
    }
    assert len(cited) > 15
    assert {place for place in cited if place[1] not in SECTIONS} == set()
    assert ("urls.py", "1") in cited


def test_hosts_of_a_crawl_are_all_reported(study: CrawlStudy) -> None:
    rows = hosts_section(study.corpus.urls).tables[1].rows
    assert {row[0]: row[1] for row in rows} == Counter(map(host_of, study.corpus.urls))
