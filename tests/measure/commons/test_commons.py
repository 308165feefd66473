"""The benchmark's list keeps to its rules, its truth tells what it should, and its part without network stays right."""

import time
import zipfile
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from tests.measure.commons import packages, reading, rules, run, tables
from tests.measure.commons.pages import Served, read
from tests.measure.commons.truth import Relation, Truth
from tests.measure.gate.ablation import Labelled
from tests.measure.gate.editions import editions

#: It tests a program that measures.
pytestmark = pytest.mark.whole

DATA = Path(__file__).parents[4] / "shared" / "data"


def test_no_listed_package_is_reserved() -> None:
    found = packages.listed()
    assert not [one.name for one in found if packages.reserved(one.source)]
    assert len(found) >= 120
    assert len({one.generator for one in found}) >= 25
    assert sum(len(one.releases) > 1 for one in found) >= 40
    assert sum(len(one.releases) > 2 for one in found) >= 3
    assert len({(one.client, one.name) for one in found}) == len(found)


def test_a_reserved_package_in_the_list_is_an_error(tmp_path: Path) -> None:
    name = next(name for name in map(str, range(100)) if packages.reserved(name))
    (tmp_path / "list").write_text(f"debian\tsome-doc\t{name}\tbookworm\tby hand\n")
    with pytest.raises(ValueError, match="reserved"):
        packages.listed(tmp_path / "list")


def _page(key: str, release: str, main: str, title: str = "A") -> Served:
    html = f"<title>{title}</title><p>menu</p><p>{main}</p>".encode()
    return Served(f"http://a.example/{release}/{key}", key, release, html)


def _words(count: int, first: int = 0) -> str:
    return " ".join(f"w{i}" for i in range(first, first + count))


def test_relations_come_from_paths_releases_and_texts() -> None:
    truth = Truth(
        [
            _page("a", "1", _words(100)),
            _page("a", "2", _words(99) + " x"),
            _page("b", "1", _words(100)),
            _page("c", "1", _words(100) + " x"),
            _page("a", "3", _words(80)),
            _page("a", "4", _words(100, 200)),
            _page("d", "1", _words(100) + " 12 May 2020 10:11:12"),
            _page("e", "1", _words(100), "B"),
        ]
    )
    expected = {1: "same", 2: "same", 3: "other", 4: "edition", 5: "other", 6: "twin", 7: "other"}
    assert {other: truth.of(0, other).value for other in expected} == expected
    assert truth.repeats[1] == ("near", [0])
    assert truth.repeats[2] == ("exact", [0])
    assert truth.repeats[5] == ("distinct", [])


def test_pages_of_a_package_folder_that_moved_are_editions_and_languages_are_twins() -> None:
    def page(path: str, release: str, main: str, key: str = "") -> Served:
        return _page(key or path, release, main)._replace(path=path)

    truth = Truth(
        [
            page("a-dev/x.html", "1", _words(80)),
            page("a-doc/x.html", "2", _words(100)),
            page("a-doc/y.html", "2", _words(100)),
            page("a/us/x.html", "1", _words(100), "*/x.html"),
            page("a/fr/x.html", "1", _words(100) + " x"),
            page("a/x.ro.html", "1", _words(100) + " y"),
            page("a/x.ja.html", "1", _words(100) + " z"),
        ]
    )
    assert [truth.of(0, other) for other in (1, 2)] == [Relation.EDITION, Relation.OTHER]
    assert truth.of(3, 4) is truth.of(5, 6) is Relation.TWIN


def test_a_telling_title_or_the_words_of_a_path_name_a_page_in_two_releases() -> None:
    revised = [_page("x", "1", _words(100), "Credits 1.1"), _page("x", "2", _words(100, 200), "Credits 1.2")]
    assert Truth(revised).of(0, 1) is Relation.EDITION
    another = _page("y", "2", _words(100, 300), "Credits 5")
    assert Truth([*revised, another]).of(0, 1) is Relation.OTHER, "two pages have the title"
    numbered = [_page("node1", "1", _words(100), "Gif"), _page("node2", "2", _words(60), "Gif")]
    assert Truth(numbered).of(0, 1) is Relation.EDITION
    assert Truth([numbered[0], numbered[1]._replace(release="1")]).of(0, 1) is Relation.OTHER
    assert Truth([numbered[0], _page("node2", "2", _words(40), "Gif")]).of(0, 1) is Relation.OTHER
    paths = {"new/Map/Key/index.html": "edition", "new/Key/index.html": "other", "new/Map/Keys/index.html": "other"}
    for path, expected in paths.items():
        moved = [_page("api/Map.Key.html", "1", _words(100), "Key"), _page(path, "2", _words(60), "Map.Key")]
        assert Truth([moved[0], moved[1]._replace(alone=True)]).of(0, 1).value == expected


def test_signs_and_boilerplate_count_as_they_should() -> None:
    pages = [_page(f"{i}", "1", f"{_words(5, 10 * i)} +") for i in range(30)]
    truth = Truth([*pages, _page("x", "1", f"{_words(5)} *"), _page("7", "2", f"{_words(5, 70)} +")])
    assert truth.of(0, 30) is Relation.OTHER
    assert truth.of(7, 31) is Relation.SAME
    assert truth.likeness(0, 1) == 0.0, "a menu of all pages is no main content"


def test_counts_of_hidden_pages() -> None:
    truth = Truth([_page("a", "1", _words(100)), _page("b", "1", _words(99)), _page("a", "2", _words(99, 1), "A 2")])
    tally, wrong = run.counted(truth, {1: 0, 2: 0})
    assert (tally["distinct"], tally["wrong"], tally["near"], tally["near_found"]) == (2, 1, 1, 1)
    assert wrong == [(1, 0)]
    tally, _ = run.counted(truth, {2: 1})
    assert (tally["wrong"], tally["near_found"], tally["misled"]) == (0, 0, 1)


def test_moved_pages_keep_their_key(tmp_path: Path) -> None:
    package = packages.Package("maven", "org.some:lib", "lib", ("1.0", "2.0"), "javadoc")
    files = {"1.0": ["api/A.html", "lib-1.0/B.html", "old/C.html", "x/D.html", "y/D.html"], "2.0": ["api/A.html"]}
    files["2.0"] += ["lib-2.0/B.html", "new/C.html", "z/D.html", "E.html", "no-page.css"]
    for release, paths in files.items():
        (tmp_path / "maven").mkdir(exist_ok=True)
        with zipfile.ZipFile(tmp_path / "maven" / f"lib-{release}-javadoc.jar", "w") as jar:
            for path in paths:
                jar.writestr(path, f"<p>{path}")
    found = read("lib", packages.archives_of(package, tmp_path))
    keys = {(page.release, page.key): page.alone for page in found}
    both = {key for release, key in keys if release == "1.0"} & {key for release, key in keys if release == "2.0"}
    assert both == {"api/A.html", "lib-*/B.html", "*/C.html"}
    assert not any(keys["1.0", key] for key in both)
    assert keys["1.0", "x/D.html"]
    assert keys["2.0", "*/E.html"]
    assert len(found) == 10
    assert read("lib", packages.archives_of(package, tmp_path), 2)[0].url.startswith("http://lib.example/")


def _generated() -> Truth:
    """Generated manuals in two or three releases, related by paths and texts."""
    pages = []
    for sample in editions(60, 31):
        release = sample.url.split("/")[3]
        pages.append(Served(sample.url, sample.url.replace(f"/{release}/", "/*/"), release, sample.html))
    return Truth(pages)


def test_generated_releases_are_found_and_results_are_kept(tmp_path: Path) -> None:
    stream = run.Stream("generated releases", "none", "releases", _generated)
    reported: list[str] = []
    for forms in (["verified"], ["verified", "tape", "texts"], ["verified", "tape", "texts"]):
        (result,) = run.results([stream], forms, tmp_path, 1, 600, reported.append)
    assert reported == ["1 of 1: generated releases"] * 2, "nothing is measured twice"
    for form in ("verified", "tape", "exact Jaccard"):
        tally = Counter(result["counts"][form])
        assert tally["wrong"] == 0
        assert tally["near"] + tally["reframed"] + tally["distinct"] == 60
    assert tables.share(Counter(result["counts"]["verified"])) > 0.95


def test_judgements_name_relations() -> None:
    judged = reading.judged()
    assert judged.keys() <= {relation.value for relation in Relation}
    assert sum(map(Counter.total, judged.values())) >= 60
    assert {found for counts in judged.values() for found in counts} <= {"right", "wrong", "unclear"}


def test_exact_jaccard_hides_equal_shingles() -> None:
    words = list(range(100))
    found = rules.jaccard([words, words[50:] + words[:50], [*words[:99], 7], list(range(200, 300)), []])
    assert found == {1: 0, 2: 0}


def _result(generator: str, wrong: int, without: int) -> dict[str, object]:
    usual = {"pages": 10, "distinct": 10, "wrong": wrong, "near": 4, "near_found": 4}
    counts = {rules.DEFAULT: usual, "tape": usual}
    for name in rules.forms():
        counts.setdefault(name, usual | ({"wrong": without} if name == "without names" else {}))
    return {"stream": generator, "generator": generator, "kind": "package", "counts": counts, "pairs": {}}


def test_a_step_is_judged_where_it_was_not_chosen() -> None:
    results = [_result("one", 0, 5), _result("two", 0, 0), _result("three", 1, 0)]
    line = next(line for line in tables.left_out(results).splitlines() if line.startswith("| names"))
    cells = [cell.strip() for cell in line.strip("| ").split("|")]
    # Without "one" the others would drop the step, which would cost "one" its five pages.
    assert cells[1:4] == ["+4", "+0", "2 of 3"]
    assert cells[4] == "-3"
    assert "| one |" in tables.report(results)


@pytest.mark.skipif(not DATA.is_dir(), reason="needs the public sets in ../shared/data beside the repository")
@pytest.mark.parametrize("name", ["help, two kinds of English", "real web pages"])
def test_public_streams(name: str) -> None:
    stream = next(one for one in run.of_made(DATA, 60) if one.name == name)
    tally = Counter(run.measured(stream, [rules.DEFAULT])["counts"][rules.DEFAULT])
    assert tables.per_1000(tally) <= 3
    assert name == "real web pages" or tables.share(tally) > 0.9


def test_the_ceiling_is_that_of_the_best_threshold() -> None:
    ceiling = pytest.importorskip("tests.measure.commons.ceiling", reason="needs scikit-learn")
    twice, parted = _words(60), f"{_words(30)} {_words(30, 100)}"
    rows = [Labelled(_words(60), twice, True), Labelled(_words(60), parted, False)] * 10
    found = dict(ceiling.ceilings(rows, range(1, 2), 5))
    assert [f1 for name, f1 in found.items() if "best threshold" in name] == [1.0, 1.0]
    assert all(f1 == 1.0 for name, f1 in found.items() if "rule" in name)


def test_a_stream_that_does_not_end_is_left_out_of_the_report(tmp_path: Path) -> None:
    stuck = run.Stream("stuck", "none", "package", partial(time.sleep, 3600))  # type: ignore[arg-type]
    assert run.results([stuck], ["verified"], tmp_path, 2, 0.01, print) == []
