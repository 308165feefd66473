"""The truth of documents is the truth of labelled pairs: editions of an item must have enough in common."""

from itertools import combinations

from neardup.evaluation import item_truth as module
from neardup.evaluation.item_truth import ItemTruth, certain_truth, item_truth
from neardup.evaluation.labels import Judgement
from neardup.evaluation.truth import Items, NaturalTruth, Releases
from tests.neardup.evaluation.crawl import Crawl, crawl_of, manual, page, words
from tests.oracle.lcs import lcs


def releases() -> Crawl:
    """Three releases of two items; the last release of each is rewritten to a half."""
    pages = []
    for item in range(2):
        text = words(item, 200)
        for release, kept in (("1.0", 200), ("1.1", 190), ("2.0", 100)):
            url = f"https://manual.example/{release}/{item}.html"
            pages.append(page(url, f"Item {item}", [*text[:kept], *words(50 + item, 200 - kept)]))
    return crawl_of(pages)


def test_documents_of_releases_are_judged_as_labelled_pairs_are() -> None:
    crawl = crawl_of(manual(items=4))
    urls = [one.url for one in crawl.pages]
    natural = NaturalTruth(crawl.corpus, crawl.texts, Releases())
    truth = item_truth(urls, Releases(), crawl.corpus, crawl.texts)
    kinds = set()
    for a, b in combinations(range(len(crawl.corpus)), 2):
        label = natural.label(a, b)
        assert label is not None
        assert truth.same(*label.pair) is (label.label is Judgement.CORRECT)
        kinds.add(label.label)
    assert kinds == {Judgement.CORRECT, Judgement.INCORRECT}
    assert truth.notes == []


def test_a_rewritten_edition_is_no_duplicate() -> None:
    """Counted by an LCS in plain Python over the words of the pages."""
    crawl = releases()
    truth = item_truth([one.url for one in crawl.pages], Releases(), crawl.corpus, crawl.texts)
    sequences = {one.url: tuple(crawl.texts.tokens(crawl.corpus.find(one.url)).words) for one in crawl.pages}  # type: ignore
    found = {}
    for one, other in combinations(crawl.pages, 2):
        a, b = sequences[one.url], sequences[other.url]
        common = lcs(a, b)
        same = one.url[-6:] == other.url[-6:]
        found[one.url, other.url] = same and common / (len(a) + len(b) - common) >= 0.75
    assert {pair: truth.same(*pair) for pair in found} == found
    assert sum(found.values()) == 2


def test_items_without_editions_need_no_texts() -> None:
    items = Items({"https://a.example/": ("x", ""), "https://b.example/": ("x", ""), "https://c.example/": ("y", "")})
    urls = [*items.items, "https://unknown.example/"]
    truth = certain_truth(urls, items)
    assert truth is not None
    assert truth.same(urls[0], urls[1])
    assert truth.same(urls[0], urls[2]) is False
    assert truth.same(urls[0], urls[3]) is None
    assert certain_truth(urls, Items({urls[0]: ("x", "1")})) is None
    assert certain_truth(urls, Releases()) is None


def test_documents_of_one_text_are_duplicates_whatever_their_edition() -> None:
    """The corpus keeps one page of equal texts; the documents are still compared by it."""
    text = words(1, 100)
    urls = [f"https://a.example/{n}" for n in range(3)]
    crawl = crawl_of([page(url, "One", text) for url in urls[:2]] + [page(urls[2], "One", words(2, 100))])
    items = Items({url: ("x", str(n)) for n, url in enumerate(urls)})
    truth = item_truth(urls, items, crawl.corpus, crawl.texts)
    assert truth.same(urls[0], urls[1])
    assert truth.same(urls[0], urls[2]) is truth.same(urls[1], urls[2]) is False


def test_pages_that_cannot_be_compared_are_reported(monkeypatch) -> None:
    monkeypatch.setattr(module, "ITEM_PAGES_MAX", 2)
    crawl = releases()
    urls = [one.url for one in crawl.pages]
    truth = item_truth([*urls, urls[0] + "?gone"], Releases(), crawl.corpus, crawl.texts)
    assert truth.left_out == 2
    assert set(truth.items) == {*urls[:2], *urls[3:5], urls[0] + "?gone"}
    lost = Items({urls[0]: ("x", "1"), "https://lost.example/": ("x", "2")})
    truth = item_truth(list(lost.items), lost, crawl.corpus, crawl.texts)
    assert truth.unread == 1
    assert truth.same(*lost.items) is False
    assert len(truth.notes) == 1
    assert ItemTruth({}, left_out=1).notes
