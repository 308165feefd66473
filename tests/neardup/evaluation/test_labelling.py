"""A round of labelling: order, undo, resume, several labellers."""

import pytest

from neardup.errors import BadInput
from neardup.evaluation.graphs import b_graph, c_graph
from neardup.evaluation.labelling_page import home_html, pair_html, pair_view
from neardup.evaluation.labelling_rounds import Labelling, checked_name
from neardup.evaluation.labels import Label, current, parse_label
from neardup.evaluation.sampling import Drawn, draw
from tests.neardup.evaluation.crawl import Crawl, crawl_of, manual, page, words


@pytest.fixture(scope="module")
def crawl() -> Crawl:
    return crawl_of(manual(items=8))


class Round:
    """A labelling whose file is a list of lines, which can be begun again from it."""

    def __init__(self, crawl: Crawl, count: int = 5) -> None:
        self.crawl = crawl
        self.lines: list[bytes] = []
        self.draw("B", count)

    def draw(self, rule: str, count: int) -> None:
        corpus = self.crawl.corpus
        self.pairs = draw(corpus, b_graph(corpus), c_graph(corpus), rule=rule, count=count)
        self.begin()

    def urls(self, pair: Drawn) -> tuple[str, str]:
        one, other = sorted(self.crawl.corpus.urls[page] for page in (pair.a, pair.b))
        return one, other

    def labels(self) -> list[Label]:
        return current((str(number), parse_label(line)) for number, line in enumerate(self.lines))

    def places_of(self, sample: str) -> set[int]:
        """The places of this round's pairs that are labelled as drawn from a sample."""
        pairs = {label.pair for label in self.labels() if sample in label.samples}
        return {place for place, pair in enumerate(self.pairs) if self.urls(pair) in pairs}

    def begin(self) -> None:
        self.labelling = Labelling(self.pairs, self.crawl.corpus, self.labels(), self.lines.append)


def test_pairs_come_in_order_and_a_restart_goes_on(crawl: Crawl) -> None:
    r = Round(crawl)
    for at, place in enumerate((0, 1, 3)):
        r.labelling.record("ana", place, "correct", ["time_stamp"], at)
    assert r.labelling.next_for("ana") == 2
    assert r.labelling.next_for("ana", after=2) == 4
    assert r.labelling.next_for("ana", after=4) == 2
    assert r.labelling.next_for("bob") == 0
    r.begin()
    assert r.labelling.next_for("ana") == 2
    assert r.labelling.progress("ana").done == 3
    assert r.labelling.progress("ana").judgements == {"correct": 3}
    for place in (2, 4):
        r.labelling.record("ana", place, "incorrect", [], 9)
    assert r.labelling.next_for("ana") is None


def test_undo_removes_the_last_label_after_a_restart(crawl: Crawl) -> None:
    r = Round(crawl)
    r.labelling.record("ana", 0, "correct", [], 1)
    r.labelling.record("ana", 1, "correct", [], 2)
    r.labelling.record("bob", 4, "correct", [], 3)
    r.labelling.record("ana", 0, "undecided", ["minor_item"], 4)  # labelled again: now the last
    r.begin()
    assert r.labelling.undo("ana", 5) == 0
    assert r.labelling.label_by("ana", 0) is None
    r.begin()
    assert r.labelling.undo("ana", 6) == 1
    assert r.labelling.undo("ana", 7) is None
    assert r.labelling.labellers == ["bob"]
    assert len(r.lines) == 6


def test_label_that_was_not_written_is_not_shown(crawl: Crawl) -> None:
    r = Round(crawl)

    def full(line: bytes) -> None:
        raise BadInput("the disk is full")

    labelling = Labelling(r.pairs, crawl.corpus, [], full)
    with pytest.raises(BadInput, match="disk is full"):
        labelling.record("ana", 0, "correct", [], 1)
    assert labelling.label_by("ana", 0) is None
    assert labelling.labellers == []


@pytest.mark.parametrize(
    ("labeller", "place", "judgement", "reasons"),
    [
        ("", 0, "correct", []),
        ("x" * 61, 0, "correct", []),
        ("a\u202eb", 0, "correct", []),
        ("ana", 99, "correct", []),
        ("ana", -1, "correct", []),
        ("ana", 0, "yes", []),
        ("ana", 0, "withdrawn", []),
        ("ana", 0, "correct", ["prefilled_form"]),
        ("ana", 0, "incorrect", ["nonsense"]),
    ],
)
def test_bad_label_records_are_refused(
    crawl: Crawl, labeller: str, place: int, judgement: str, reasons: list[str]
) -> None:
    r = Round(crawl)
    with pytest.raises(BadInput):
        r.labelling.record(labeller, place, judgement, reasons, 1)
    assert r.lines == []


def test_labellers_agree_or_not(crawl: Crawl) -> None:
    r = Round(crawl)
    for place, (one, other) in enumerate(
        [("correct", "correct"), ("incorrect", "incorrect"), ("correct", "incorrect")]
    ):
        r.labelling.record("ana", place, one, [], place)
        r.labelling.record("bob", place, other, [], place)
    ((pair, (n, kappa)),) = r.labelling.agreement().items()
    assert (pair, n) == (("ana", "bob"), 3)
    assert kappa == pytest.approx(0.4)  # p_o 2/3, p_e (2*1 + 1*2) / 9
    assert r.labelling.disagreed() == [2]
    assert r.labelling.progress("ana").last == 2
    assert r.labelling.progress("zoe").last is None


def test_a_view_shows_texts_and_differences_and_says_nothing_of_rules(crawl: Crawl) -> None:
    r = Round(crawl)
    view = pair_view(r.labelling, crawl.texts, 0)
    assert view.left.url == crawl.corpus.urls[r.pairs[0].a]
    assert view.left.whole != view.right.whole
    assert view.passages is not None
    assert view.removed + view.added > 0
    assert view.changes
    assert checked_name("  Ana  Maria ") == "Ana Maria"


def test_a_pair_of_a_query_is_shown_with_it_and_the_papers_criterion(crawl: Crawl) -> None:
    """Huffman 2007: duplicates have the same content for the query. Other pairs keep Henzinger's criterion."""
    query = "<wool> & felt"
    pairs = [Drawn(0, 1, "queries", (query, "yarn"))]
    labelling = Labelling(pairs, crawl.corpus, [], lambda line: None)
    page = pair_html(labelling, pair_view(labelling, crawl.texts, 0), "ana", "", "")
    assert "&lt;wool&gt; &amp; felt" in page
    assert "yarn" in page
    assert query not in page
    assert page.count("the same content for the query") == 2, "among the criteria and beside the choice"
    assert "the same content for the query" in home_html(labelling, "")
    plain = Round(crawl)
    page = pair_html(plain.labelling, pair_view(plain.labelling, crawl.texts, 0), "ana", "", "")
    assert "for the query" not in page
    assert "Query" not in page
    assert "for the query" not in home_html(plain.labelling, "")


def test_the_start_page_has_the_shares_of_full_agreement(crawl: Crawl) -> None:
    r = Round(crawl)
    for place, judgements in enumerate((("correct", "correct"), ("correct", "incorrect"), ("incorrect", "incorrect"))):
        for name, judgement in zip(("ana", "bob"), judgements, strict=True):
            r.labelling.record(name, place, judgement, [], 10 * place)
    page = " ".join(home_html(r.labelling, "").split())
    assert "2 of 3 pairs (0.67); of duplicates 1 of 1 (1.00), of others 1 of 2 (0.50)" in page


def test_a_view_says_where_texts_are_cut() -> None:
    text = words(5, 60_000)
    pages = [page(f"https://a.example/{i}", "Long", text, f"visitor {i}") for i in (1, 2)]
    long = crawl_of(pages)
    view = pair_view(Round(long).labelling, long.texts, 0)
    assert view.removed + view.added == 0  # the difference lies behind the part that is shown
    assert "Only the first 200,000 characters" in view.notes[0]
    assert view.changes == [("1", "2")]
    assert view.draft is not None


def test_a_pair_with_a_missing_source_can_be_opened(crawl: Crawl) -> None:
    gone = crawl_of(crawl.pages, read=lambda place: None)
    r = Round(gone)
    view = pair_view(r.labelling, gone.texts, 0)
    assert view.passages is None
    assert len(view.notes) == 2
    assert "source is gone" in view.notes[0]


def test_a_second_round_says_of_which_samples_its_pairs_are(crawl: Crawl) -> None:
    """What was judged in the first round is not asked again, and counts for the second as far as that has come."""
    r = Round(crawl, count=20)
    for place in range(20):
        r.labelling.record("ana", place, "correct", ["time_stamp"], place)
    r.draw("C", 30)
    count, first = len(r.pairs), r.labelling.next_for("ana")
    known = {place for place in range(count) if r.labelling.label_by("ana", place)}
    assert first is not None
    assert min(known) < first < max(known), "by this seed there are pairs of both rounds before and behind"
    assert r.places_of("C") == set(range(first))
    while (place := r.labelling.next_for("ana")) is not None:
        r.labelling.record("ana", place, "incorrect", ["main_item"], 100 + place)
        following = r.labelling.next_for("ana")
        assert r.places_of("C") == set(range(count if following is None else following)), "a beginning, without holes"
    of_b = [label for label in r.labels() if "B" in label.samples]
    assert len(of_b) == 20
    assert {(label.label, label.reasons) for label in of_b} == {("correct", ("time_stamp",))}
    lines = len(r.lines)
    r.begin()
    assert len(r.lines) == lines, "a restart has nothing to add"
    # A line that adds a sample is no word that could be taken back.
    assert r.labelling.undo("ana", 999) == max(set(range(count)) - known)


def test_a_round_of_known_pairs_alone_is_written_at_its_beginning(crawl: Crawl) -> None:
    r = Round(crawl, count=3)
    for place in range(3):
        r.labelling.record("ana", place, "correct", [], place)
    r.draw("combined", 3)
    known = [place for place in range(3) if r.labelling.label_by("ana", place)]
    assert known == [0, 1, 2], "by this seed both samples are the same pairs"
    assert all(label.samples == {"B", "combined"} for label in r.labels())
