"""Natural truth: what is a release, what follows for pairs."""

from pathlib import Path

import pytest

from neardup.errors import BadInput
from neardup.evaluation.labels import Judgement
from neardup.evaluation.truth import Items, NaturalTruth, Releases
from tests.measure.layouts import LAYOUTS
from tests.neardup.evaluation.crawl import crawl_of, manual, page, words


@pytest.mark.parametrize(
    ("url", "item", "release"),
    [
        ("https://a.example/1.13.1/docs/x.html", "a.example/*/docs/x.html", "1.13.1"),
        ("https://a.example/docs/latest/x.html", "a.example/docs/*/x.html", "latest"),
        ("https://a.example/v2/api/3/x.html", "a.example/*/api/3/x.html", "v2"),
        ("https://a.example/en-4.1/x.html", "a.example/en-4.1/x.html", ""),
        ("https://a.example/20-tips/x.html", "a.example/20-tips/x.html", ""),
        ("https://a.example/x-1.0.html", "a.example/x-1.0.html", ""),
    ],
)
def test_folders_that_read_as_releases(url: str, item: str, release: str) -> None:
    assert Releases.by(None).split(url) == (item, release)


@pytest.mark.parametrize(
    ("corpus", "one", "other"),
    [
        ("kafka_site_3x", "https://k.example/30/javadoc/a.html", "https://k.example/39/javadoc/a.html"),
        (
            "installation_guide_9arch_19lang",
            "https://g.example/installation-guide-amd64/usr/share/doc/installation-guide-amd64/de/a.html",
            "https://g.example/installation-guide-s390x/usr/share/doc/installation-guide-s390x/de/a.html",
        ),
        (
            "libreoffice_help_enUS_enGB",
            "https://h.example/libreoffice-help-en-gb_4%3A7/usr/share/help/en-GB/text/a.html",
            "https://h.example/libreoffice-help-en-us_4%3A7/usr/share/help/en-US/text/a.html",
        ),
    ],
)
def test_layouts_of_the_public_corpora(corpus: str, one: str, other: str) -> None:
    releases = Releases.by(LAYOUTS[corpus])
    assert releases.split(one)[0] == releases.split(other)[0]
    assert releases.split(one)[1] != releases.split(other)[1]
    assert releases.split(one)[0] != releases.split(one.replace("a.html", "b.html"))[0]


def test_releases_of_a_page_are_judged_by_their_texts_and_others_by_their_paths() -> None:
    text = words(1, 200)
    far = words(2, 100) + text[:100]
    pages = [
        page("https://a.example/1.0/x.html", "X", text),
        page("https://a.example/1.1/x.html", "X", [*text[:195], *words(3, 5)]),
        page("https://a.example/2.0/x.html", "X", far),
        page("https://a.example/1.0/y.html", "X", [*text, "y"]),
    ]
    crawl = crawl_of(pages)
    truth = NaturalTruth(crawl.corpus, crawl.texts, Releases())
    labels = truth.labels({(0, 2): "B", (0, 3): "B + C", (0, 1): ""})
    assert [label.label for label in labels] == [Judgement.CORRECT, Judgement.INCORRECT, Judgement.INCORRECT]
    assert sorted(truth.items()) == [(0, 1), (0, 2), (1, 2)]
    lenient = NaturalTruth(crawl.corpus, crawl.texts, Releases(), ratio_min=0.2)
    found = lenient.label(0, 2)
    assert found is not None
    assert found.label is Judgement.CORRECT


def test_pairs_of_different_items_are_drawn_on_one_site() -> None:
    crawl = crawl_of(manual(items=6))
    truth = NaturalTruth(crawl.corpus, crawl.texts, Releases())
    pairs = truth.others(40, seed=1)
    assert pairs == truth.others(40, seed=1) != truth.others(40, seed=2)
    assert len(pairs) == 40
    for a, b in pairs:
        assert crawl.corpus.sites[a] == crawl.corpus.sites[b]
        assert crawl.corpus.urls[a].rpartition("/")[2] != crawl.corpus.urls[b].rpartition("/")[2]
    alone = crawl_of(manual(items=1, releases=("1",), sites=("a.example",)))
    assert NaturalTruth(alone.corpus, alone.texts, Releases()).others(5, seed=0) == []


def test_an_unreadable_page_gives_no_label() -> None:
    pages = manual(items=1, sites=("a.example",))
    crawl = crawl_of(pages, read=lambda place: None)
    truth = NaturalTruth(crawl.corpus, crawl.texts, Releases())
    assert truth.labels(dict.fromkeys(truth.items(), "")) == []
    assert "its source is gone" in crawl.texts.problems[0]


def test_a_page_that_has_changed_since_is_not_compared() -> None:
    pages = manual(items=1, sites=("a.example",))
    crawl = crawl_of(pages, read=lambda place: page(pages[place.offset].url, "Other", ["text"]))
    assert crawl.texts.tokens(0) is None
    assert "another text" in crawl.texts.problems[0]


def test_a_bad_pattern_is_refused() -> None:
    with pytest.raises(BadInput, match="no regular expression"):
        Releases.by("(")


def test_a_file_of_items_is_believed_and_editions_are_compared(tmp_path: Path) -> None:
    text = words(1, 200)
    urls = [f"https://a.example/{name}" for name in ("one", "print", "next", "rewritten", "other", "unknown")]
    texts = [text, words(9, 200), [*text[:195], *words(3, 5)], words(4, 200), [*text, "y"], [*text, "z"]]
    crawl = crawl_of([page(url, "X", one) for url, one in zip(urls, texts, strict=True)])
    path = tmp_path / "items.jsonl"
    path.write_text(
        f'{{"url": "{urls[0]}", "item": "x", "edition": "1"}}\n{{"url": "{urls[1]}", "item": "x"}}\n\n'
        f'{{"url": "{urls[2]}", "item": "x", "edition": "2"}}\n{{"url": "{urls[3]}", "item": "x", "edition": "3"}}\n'
        f'{{"url": "HTTPS://A.example/other", "item": "y"}}\n'
    )
    truth = NaturalTruth(crawl.corpus, crawl.texts, Items.read(path))
    assert truth.known == 5
    pairs = [(0, 1), (0, 2), (0, 3), (0, 4), (0, 5)]
    found = [truth.label(*pair) for pair in pairs]
    assert [label and str(label.label) for label in found] == ["correct", "correct", "incorrect", "incorrect", None]
    assert sorted(truth.items()) == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    assert all(5 not in pair for pair in truth.others(20, seed=1))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "names no page"),
        ("{", "items.jsonl:1"),
        ('{"url": "https://a.example/"}', "items.jsonl:1.*item is missing"),
        ('{"url": "https://a.example/", "item": 7}', "item is an integer, and text is required"),
        ('{"url": "://nowhere", "item": "x"}', "items.jsonl:1"),
        ('{"url": "https://a.example/", "item": ""}', "item has a length out of range"),
        ('{"url": "https://a.example/", "item": "x"}\n{"url": "https://a.example", "item": "y"}', ":2.*another item"),
    ],
)
def test_items_that_are_none_are_named(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    path.write_text(text)
    with pytest.raises(BadInput, match=message):
        Items.read(path)


def test_items_with_nan_beside_them_are_read(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    path.write_text('{"url": "http://a.example/", "item": "1", "weight": NaN}\n')
    assert Items.read(path).split("http://a.example/") == ("1", "")
