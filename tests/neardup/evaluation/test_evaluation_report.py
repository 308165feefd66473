"""A whole evaluation: every table of the paper, from known labels, and from nothing at all."""

import csv
import html
import json
import re
import xml.etree.ElementTree as xml
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest

from neardup.errors import BadInput
from neardup.evaluation.evaluation_report import Evaluation, Paper, evaluate, to_html, write
from neardup.evaluation.labels import Judgement, Label, label_of
from neardup.evaluation.runs import stream
from neardup.evaluation.sections import ResultTable, by_name, shown
from neardup.report.plots import Axes, Series, plot, standalone
from neardup.report.reasons import Reason
from tests.neardup.evaluation.crawl import Crawl, crawl_of, manual, page, words

KEYS = [str(number) for number in range(1, 12)]
HOSTILE = '"><script>window.hurt = 1</script><img src=x onerror="window.hurt=2">'


def labels_of(crawl: Crawl) -> list[Label]:
    """Pairs of one item are correct, others incorrect, with some undecided: enough of each to fill every table."""
    out = []
    urls = crawl.corpus.urls
    for a, b in combinations(range(len(urls)), 2):
        one, other = urls[a], urls[b]
        same = one.rpartition("/")[2] == other.rpartition("/")[2]
        if not same and (a + b) % 7:
            continue
        judgement = Judgement.CORRECT if same else Judgement.INCORRECT
        reasons: tuple[Reason, ...] = ()
        if same and (a * b) % 11 == 3:
            judgement, reasons = Judgement.UNDECIDED, (Reason.PREFILLED_FORM,)
        elif same and (a * b) % 5 == 2:
            reasons = (Reason.OWN_URL,)
        out.append(label_of(one, other, judgement, reasons=reasons, labeller="ana"))
    return out


@pytest.fixture(scope="module")
def crawl() -> Crawl:
    return crawl_of(manual(items=14))


@pytest.fixture(scope="module")
def evaluation(crawl: Crawl) -> Evaluation:
    return evaluate(crawl.study(labels_of(crawl)))


def test_all_eleven_and_the_added_ones_are_there(evaluation: Evaluation) -> None:
    assert [section.key for section in evaluation.sections] == ["rules", "hosts", *KEYS, "t", "ablations"]
    plots = {made.name for section in evaluation.sections for made in section.plots}
    assert {"1-degrees-b", "1-degrees-c", "7-differences-b", "7-differences-c", "9-c-for-b", "10-precision"} <= plots
    for section in evaluation.sections:
        assert section.tables, section.key


def test_tables_agree_with_the_graph_and_the_labels(crawl: Crawl, evaluation: Evaluation) -> None:
    tables = by_name(evaluation.sections)
    study = crawl.study(labels_of(crawl))
    counts = {row[0]: row[1] for row in tables["2-b-similarity"].rows}
    assert counts["all"] == study.b.edges == sum(counts[level] for level in range(2, 7))
    b = {row[0]: row for row in tables["3-b-judged"].rows}
    assert list(b["all"][7:]) == [1910, 0.38, 0.53, 0.09, 0.04, 0.42]
    similar = [label for label, pair in zip(study.labels.labels, study.numbers, strict=True) if pair.b_similarity >= 2]
    assert b["all"][1] == len(similar) == b["same site"][1] + b["different sites"][1]
    assert b["all"][2] == sum(label.label is Judgement.CORRECT for label in similar) / len(similar)
    assert sum(b["all"][2:5]) == pytest.approx(1)
    assert b["all"][5] == sum(Reason.PREFILLED_FORM in label.reasons for label in similar) / len(similar) > 0
    assert b["all"][6] == pytest.approx(b["all"][2] + b["all"][5])
    c = {row[0]: row for row in tables["4-c-judged"].rows}
    assert c["all"][12] == 0.68
    kinds = {row[0]: row[1] for row in tables["5-differences-b"].rows}
    assert kinds["all"] == sum(kinds.values()) - kinds["all"]
    assert kinds["URL only"] >= sum(label.reasons == (Reason.OWN_URL,) for label in similar) > 0
    assert kinds["combination"] + kinds["time stamp only"] + kinds["rest"] > 0
    terms = {row[0]: row[1:] for row in tables["7-differences"].rows}
    assert list(terms["pairs looked at"]) == [study.b.edges, study.c.edges]
    assert {row[0] for row in tables["11-sites-c"].rows} <= set(crawl.corpus.sites)
    rules = {row[0]: row for row in tables["rules-all"].rows}
    papers = {"shingling", "simhash", "combined", "site-split", "simhash64"}
    assert set(rules) == papers | {"tape", "verified"}
    variants = {row[0]: row for row in tables["ablations-all"].rows}
    # The published variants, computed from tokens, say what the sketches say.
    assert list(variants["B, as published (k 8, B >= 2)"][3:9]) == list(rules["shingling"][4:10])
    assert list(variants["C, as published (384 bits, C >= 372)"][3:9]) == list(rules["simhash"][4:10])
    assert list(variants["combined, as published (B >= 2, C >= 355)"][3:9]) == list(rules["combined"][4:10])


def test_only_pairs_drawn_from_a_graph_stand_for_it(crawl: Crawl) -> None:
    plain = labels_of(crawl)
    study = crawl.study(plain)
    similar = {label.pair for label, b in zip(study.labels.labels, study.b_similarity, strict=True) if b >= 2}
    assert len(similar) > 10
    chosen = set(sorted(similar)[::3])
    drawn = [replace(label, sample="items + B" if label.pair in chosen else "C: same site") for label in plain]
    evaluation = evaluate(crawl.study(drawn))
    evenly = {section.key: "drawn evenly" in section.text for section in evaluation.sections}
    assert [key for key, values in evenly.items() if values] == ["4"]
    by_level = [replace(label, sample="B: B-similarity 3") for label in plain]
    assert "drawn evenly" in next(one.text for one in evaluate(crawl.study(by_level)).sections if one.key == "10")
    tables = by_name(evaluation.sections)
    assert {row[0]: row[1] for row in tables["3-b-judged"].rows}["all"] == len(chosen)
    kept = {row[0]: row[1] for row in tables["10-alternatives"].rows}["B alone"]
    assert kept == len(chosen) // 2  # S2 is the smaller half
    # Nothing was drawn from the C graph itself in the first study: there all labels count.
    assert crawl.study(plain).of_b.sum() == len(similar)


def test_far_pairs_are_those_over_two_hundred_terms(crawl: Crawl) -> None:
    from neardup.evaluation.henzinger_label_tables import far_apart

    study = crawl.study(labels_of(crawl))
    table = far_apart(study, least=3).tables[0]
    sizes = study.differences(zip(study.labels.a, study.labels.b, strict=True))
    similar = [pair.b_similarity >= 2 for pair in study.numbers]
    far = sum((size or 0) > 3 and near for size, near in zip(sizes, similar, strict=True))
    assert table.rows[0][1] == far > 0


def test_files_hold_the_same_data(evaluation: Evaluation, tmp_path: Path) -> None:
    paths = write(evaluation, tmp_path / "out")
    names = {path.name for path in paths}
    assert {"evaluation.html", "evaluation.json", "table-3-b-judged.csv", "plot-9-c-for-b.svg"} <= names
    with (tmp_path / "out/table-2-b-similarity.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    table = by_name(evaluation.sections)["2-b-similarity"]
    assert rows[0] == list(table.columns)
    assert [row[1] for row in rows[1:]] == [str(row[1]) for row in table.rows]
    value = json.loads((tmp_path / "out/evaluation.json").read_text())
    assert value["corpus"]["pages"] == evaluation.counts.pages
    assert "NaN" not in (tmp_path / "out/evaluation.json").read_text()
    for path in paths:
        if path.suffix == ".svg":
            assert xml.parse(path).getroot().tag == "{http://www.w3.org/2000/svg}svg"
    alone = (tmp_path / "out/plot-9-c-for-b.svg").read_text()
    (made,) = (plot for section in evaluation.sections for plot in section.plots if plot.name == "9-c-for-b")
    assert len(made.legend) > 1
    assert all(text in alone for text in [made.caption, *(name for _, name in made.legend)]), (
        "alone it would say little"
    )
    again = [path.read_bytes() for path in write(evaluation, tmp_path / "again")]
    assert again == [path.read_bytes() for path in paths]
    with pytest.raises(BadInput, match="cannot write"):
        write(evaluation, tmp_path / "out/evaluation.html")


EMPTY = {
    "none": [],
    "one": [page("https://a.example/", "One", words(1, 80))],
    "unlike": manual(items=9, releases=("1",)),
}


@pytest.mark.parametrize("name", EMPTY)
def test_nothing_is_made_up_where_there_is_nothing(name: str, tmp_path: Path) -> None:
    crawl = crawl_of(EMPTY[name][:9])
    evaluation = evaluate(crawl.study())
    assert [made for section in evaluation.sections for made in section.plots] == []
    text = to_html(evaluation)
    assert "nan" not in re.sub(r"<[^>]*>", " ", text).lower().split()
    missing = {section.key: section.missing for section in evaluation.sections}
    assert all(missing.values()), missing
    for section in evaluation.sections:
        for table in section.tables:
            shares = [
                cell for row in table.rows for cell, kind in zip(row, table.kinds, strict=True) if kind == "share"
            ]
            ours = [cell for cell in shares if isinstance(cell, float)]
            assert all(0 <= cell <= 1 for cell in ours)


@pytest.mark.parametrize("judgement", [Judgement.CORRECT, Judgement.INCORRECT, Judgement.UNDECIDED])
def test_labels_of_one_kind_say_so(crawl: Crawl, judgement: Judgement) -> None:
    urls = crawl.corpus.urls
    pairs = crawl.study().b
    labels = [label_of(urls[a], urls[b], judgement) for a, b in zip(pairs.a[:40], pairs.b[:40], strict=True)]
    evaluation = evaluate(crawl.study(labels))
    sections = {section.key: section for section in evaluation.sections}
    assert sections["rules"].missing
    text = "no pair is labelled" if judgement is Judgement.INCORRECT else f"all labelled pairs are {judgement}"
    assert any(text in note for note in evaluation.notes)
    for row in sections["rules"].tables[0].rows if sections["rules"].tables else []:
        assert row[4] is None  # precision
        assert row[8] is None  # F1


def test_strangers_text_stays_text(tmp_path: Path) -> None:
    evaluation = Evaluation([], crawl_of([]).corpus.counts, "", notes=[HOSTILE, "turned \u202e around"])
    text = to_html(evaluation, Paper(HOSTILE, HOSTILE))
    assert "<script>" not in text
    assert html.escape(HOSTILE).replace("&#x27;", "&#39;").replace("&quot;", "&#34;") in text
    assert "\u202e" not in text
    table = ResultTable("x", "x", {"site": "text", "n": "count"}, [["=cmd()", 1], ["-1+2", 2], ["plain", 3]])
    assert "'=cmd()" in table.to_csv()
    assert "'-1+2" in table.to_csv()
    assert "\nplain,3" in table.to_csv()


def test_table_rows_of_another_width_raise() -> None:
    with pytest.raises(ValueError, match="lengths"):
        ResultTable("x", "x", {"a": "text", "b": "text"}, [["a"]])


@pytest.mark.parametrize(
    ("cell", "kind", "text"),
    [
        (None, "share", "–"),
        (0.5, "share", "0.50"),
        (1234, "count", "1,234"),
        (0.00001234, "number", "1.2e-05"),
        (100_390, "number", "100,390"),
        (30645.93, "number", "30,646"),
        (6.139, "number", "6.139"),
        (2.0, "number", "2"),
        ("x", "text", "x"),
    ],
)
def test_cells_for_people(cell: object, kind: str, text: str) -> None:
    assert shown(cell, kind) == text  # type: ignore[arg-type]


def test_plots_need_points() -> None:
    assert plot("t", [Series("s", [])], Axes("x", "y")) is None
    assert plot("t", [Series("s", [(0, 0)])], Axes("x", "y", x_log=True)) is None
    one = plot("t <", [Series("s", [(1, 1)])], Axes("x", "y", x_log=True, y_log=True))
    assert one is not None
    assert xml.fromstring(standalone(one)).attrib["aria-label"].startswith("t <")
    many = xml.fromstring(standalone(one, "<b>", [("s0", f"<i> the {i}th name of all") for i in range(9)]))
    _, top, width, height = map(int, many.attrib["viewBox"].split())
    texts = [text for text in many.iter("{http://www.w3.org/2000/svg}text") if "th name" in (text.text or "")]
    assert len(texts) == 9
    assert all(0 < float(text.attrib["x"]) < width - 100 for text in texts)
    assert all(float(text.attrib["y"]) < top + height for text in texts)


def test_the_page_opens_with_the_answer(crawl: Crawl) -> None:
    run = stream(crawl.corpus.records, crawl.study().decider)
    evaluation = evaluate(crawl.study(labels_of(crawl), run=run))
    text = html.unescape(to_html(evaluation))
    summary, _, rest = text.partition("<table")
    assert len(evaluation.answer) == 3
    places = [summary.index(sentence) for sentence in evaluation.answer]
    assert places == sorted(places)
    assert summary.index('<section id="summary">') < places[0] < summary.index('<dl class="figures">')
    tables = re.findall(r'id="table-([a-z0-9-]+)"', rest)
    first = [name for name in tables if name.startswith(("rules-", "run-"))]
    assert first[0] == "rules-all"
    assert tables[: len(first)] == first, "what proves it comes after"


@pytest.mark.parametrize("width", [360, 1200])
def test_the_page_loads_nothing_and_fits(browser, evaluation: Evaluation, tmp_path: Path, width: int) -> None:
    evaluation.notes.append(HOSTILE)
    path = tmp_path / "evaluation.html"
    path.write_text(to_html(evaluation), encoding="utf-8")
    evaluation.notes.pop()
    complaints, requests = [], []
    view = browser.new_page(viewport={"width": width, "height": 900})
    view.on("console", lambda message: complaints.append(message.text))
    view.on("request", lambda request: requests.append(request.url))
    view.goto(path.as_uri())
    assert complaints == []
    assert requests == [path.as_uri()]
    assert view.evaluate("window.hurt") is None
    assert view.evaluate("document.documentElement.scrollWidth") <= width
    for target in view.eval_on_selector_all("nav a", "links => links.map(a => a.getAttribute('href'))"):
        assert view.locator(target).count() == 1
    assert view.locator("figure svg").first.is_visible()
    assert view.locator("polyline.s0").first.evaluate("e => getComputedStyle(e).fill") == "none"
    view.close()


@pytest.mark.parametrize(
    ("ends", "expected"), [((372, 384), {"375", "380"}), ((0, 12), {"0", "5", "10"}), ((0, 1), {"0.2"})]
)
def test_an_axis_of_whole_numbers_names_whole_numbers(ends: tuple[float, float], expected: set[str]) -> None:
    picture = plot("Any", [Series("any", [(end, 0.5) for end in ends])], Axes("x", "y", y_range=(0, 1)))
    names = set(re.findall(r"<text[^>]*>([0-9.]+)</text>", str(picture)))
    assert expected <= names
    assert not {name for name in names if float(name) > 1 and "." in name}
