"""The small web: seeded, mirrored, with its truth; and on it the papers' algorithms err as the papers found."""

import json
from pathlib import Path

import pytest

from neardup.decider import Decider
from neardup.evaluation.corpus import corpus_of
from neardup.evaluation.corpus_texts import Texts
from neardup.evaluation.graphs import b_graph, c_graph
from neardup.evaluation.henzinger_choice_tables import combined_section
from neardup.evaluation.henzinger_label_tables import b_judged, c_judged
from neardup.evaluation.henzinger_pairs_tables import between_section
from neardup.evaluation.labels import join_labels
from neardup.evaluation.rule_tables import rules_section
from neardup.evaluation.runs import stream
from neardup.evaluation.sections import by_name
from neardup.evaluation.study import CrawlStudy
from neardup.evaluation.truth import Documents, Items
from neardup.page import Page
from neardup.scheme import Scheme
from neardup.sketch.make_sketches import sketch_pages
from neardup.urls import hen_site, host_of
from neardup.verdict import Coordinates
from streams.evaluation.evaluate import EvaluatedCrawl, natural_labels
from tests.measure.gate.corpora import SETS, pages_of, table_of
from tests.measure.gate.web import Mirrors, Served, copied, documentation, framed, generated, ordinary, write_web

#: It tests a program that measures.
pytestmark = pytest.mark.whole

SCHEME = Scheme(seed=20060806)


def test_web_is_seeded_and_labels_its_pages(tmp_path: Path) -> None:
    pages = generated(600, 3)
    count = write_web(pages, tmp_path / "a", 3)
    for again in (ordinary, copied):
        assert again(40, 3) == again(40, 3) != again(40, 4)
    urls = [json.loads(line)["url"] for line in (tmp_path / "a" / "pages.jsonl").read_text().splitlines()]
    assert len(set(urls)) == len(urls) == count
    items = Items.read(tmp_path / "a" / "items.jsonl")
    assert set(items.items) == {Page(url, b"", "text/html").url for url in urls}
    sites: dict[str, set[str]] = {}
    for url, (item, _) in items.items.items():
        sites.setdefault(item, set()).add(hen_site(host_of(url)))
    assert sum(len(on) > 1 for on in sites.values()) > 50


def test_a_mirror_is_of_another_site_and_keeps_the_text() -> None:
    page = Served("http://www.a.com/x?y=1", "x", lambda: b"<html><BODY class=z><p>Text.</p></Body></html>")
    mirrors = Mirrors(1)
    found = [mirror for _ in range(60) for mirror in mirrors.of(page)]
    sites = {hen_site(host_of(mirror.url)) for mirror in found}
    assert sites == {"a.com", "www-a-com.mirror", "www-a-com.archive"}
    for mirror in found:
        body = mirror.body()
        assert body.startswith(b"<html><BODY class=z>")
        assert b"<p>Text.</p>" in body
        assert mirror.url.endswith("/x?y=1")
    assert framed(b"no body", "a", "b") == b"ano bodyb"


def test_documentation_becomes_sites_by_edition(tmp_path: Path) -> None:
    for edition in ("1.0", "1.1", "2.0"):
        for name in ("a b%.html", "c.html", "d.txt"):
            (tmp_path / "Manual" / edition).mkdir(parents=True, exist_ok=True)
            (tmp_path / "Manual" / edition / name).write_text(f"<body>{name} {edition}</body>")
    pages = documentation(tmp_path / "Manual", r"\d\.\d", 1)
    own = {
        page.url: (page.item, page.edition) for page in pages if not host_of(page.url).endswith(("mirror", "archive"))
    }
    assert own["http://manual.org/1.0/a%20b%25.html"] == ("manual */a b%.html", "1.0")
    assert own["http://manual-1-1.org/1.1/c.html"] == ("manual */c.html", "1.1")
    assert len(own) == 6
    assert {page.item for page in documentation(tmp_path / "Manual", r"\d\.\d", 1, pages_max=1)} < {
        item for item, _ in own.values()
    }


@pytest.mark.parametrize("one", SETS, ids=lambda one: one.archive)
def test_halves_of_the_public_sets_share_no_page(one: object, tmp_path: Path) -> None:
    paths = {
        "kafka_site_3x": ["30/a.html", "34/a.html", "35/a.html", "39/b.html"],
        "installation_guide_9arch_19lang": [
            f"installation-guide-{arch}/doc/installation-guide-{arch}/{language}/a.html"
            for arch in ("amd64", "arm64")
            for language in ("ca", "de")
        ],
        "libreoffice_help_enUS_enGB": [
            f"libreoffice-help-en-{kind.lower()}_4%3a7/help/en-{kind}/text/{name}.html"
            for kind in ("GB", "US")
            for name in ("a", "b")
        ],
    }[one.archive]  # type: ignore[attr-defined]
    for path in paths:
        file = tmp_path / one.archive / path  # type: ignore[attr-defined]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(path)
    found = list(pages_of(tmp_path, one))  # type: ignore[arg-type]
    assert sorted(tuned for tuned, _ in found) == [False, False, True, True]
    assert len({page.url for _, page in found}) == 4
    halves = [{page.item for tuned, page in found if tuned is half} for half in (True, False)]
    if one.archive != "kafka_site_3x":  # type: ignore[attr-defined]
        assert [len(half) for half in halves] == [1, 1]
        assert halves[0].isdisjoint(halves[1])


def test_the_table_of_the_public_sets_has_every_rule() -> None:
    row = {"precision": 0.5, "precision 95%": "0.4-0.6", "recall": None, "recall 95%": None}
    row |= {"F1": 0.25, "F1 95%": None}
    tables = {
        "rules": {"tables": {"rules-all": [{"rule": "tape", "accepted": 5, **row}]}},
        "ablations": {"tables": {"ablations-all": [{"variant": "yardstick: exact Jaccard of 5-shingles", **row}]}},
    }
    lines = table_of("A set", {"labels": {"correct": 2000, "incorrect": 3}, "corpus": {"pages": 7}, "sections": tables})
    assert "2,000 pairs correct, 3 incorrect" in lines
    assert "| tape | 5 | 0.500 | 0.4-0.6 | - | - | 0.250 | - |" in lines
    assert "| yardstick: exact Jaccard of 5-shingles | - | 0.500 |" in lines


def test_the_papers_algorithms_err_as_the_papers_found(tmp_path: Path) -> None:
    """Henzinger 2006, sections 3.1 to 3.5: the orderings, not the figures, which are a web's own."""
    mirrors = Mirrors(1)
    samples = [*ordinary(1100, 7), *copied(250, 8)]
    served = [one for sample in samples for one in mirrors.of(Served(sample.url, sample.item, lambda s=sample: s.html))]  # type: ignore[misc]
    pages = [Page(one.url, one.body(), "text/html") for one in served]
    corpus = corpus_of(sketch_pages(pages, SCHEME, coordinates=[Coordinates(offset=i) for i in range(len(pages))]))
    texts, documents = Texts(corpus, lambda at: pages[at.offset], SCHEME), Documents(corpus.places, {})
    crawl = EvaluatedCrawl(corpus, texts, Decider(SCHEME.digest), documents)
    b, c = b_graph(corpus), c_graph(corpus)
    editions = Items({Page(one.url, b"", "text/html").url: (one.item, "") for one in served})
    run = stream(corpus.records, crawl.decider)
    labels = join_labels(natural_labels(crawl, [b, c], editions, 0.75, 1, run), corpus.find)
    study = CrawlStudy(corpus, crawl.texts, crawl.decider, b, c, None, labels, 1, 50, run=run)
    parts = (b_judged, c_judged, between_section, combined_section, rules_section)
    tables = by_name([part(study) for part in parts])

    judged = {name: {row[0]: row[2] for row in tables[name].rows} for name in ("3-b-judged", "4-c-judged", "10-s2")}
    for name, shares in judged.items():
        assert shares["same site"] < shares["all"] < shares["different sites"], name
    b_shares, c_shares, combined = judged.values()
    assert b_shares["same site"] < 0.5 * b_shares["different sites"]
    assert b_shares["all"] < c_shares["all"] < combined["all"]
    assert b_shares["same site"] < combined["same site"]
    levels = [b_shares[f"B-similarity {level}"] for level in range(2, 7)]
    assert levels == sorted(levels)
    means = [row[2] for row in tables["9-c-for-b"].rows if row[0] != "all"]
    assert means == sorted(means)
    f1 = {row[0]: row[8] for row in tables["rules-all"].rows}
    assert max(f1["shingling"], f1["simhash"]) < f1["combined"] < f1["verified, as a stream"]
