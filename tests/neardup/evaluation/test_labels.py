"""Labels: their lines, contradictions, votes, kappa."""

import random
from pathlib import Path

import pytest

from neardup.errors import BadInput
from neardup.evaluation.henzinger_label_tables import agreement
from neardup.evaluation.labelling_judges import judges_section
from neardup.evaluation.labels import (
    REASONS,
    Judgement,
    Label,
    full_agreement,
    join_labels,
    kappa,
    label_of,
    parse_label,
    read_labels,
    united,
)
from neardup.evaluation.sections import by_name
from neardup.report.reasons import Reason
from tests.neardup.evaluation.crawl import crawl_of, page, words

A, B, C = (f"https://a.example/{name}" for name in "abc")


def labelled(labeller: str, judgement: str, a: str = A, b: str = B, at: int | None = None, *reasons: Reason) -> Label:
    return label_of(a, b, Judgement(judgement), labeller=labeller, labelled_at=at, reasons=reasons)


def test_a_label_survives_its_line() -> None:
    label = labelled("ana", "correct", B, A, 5, Reason.TIME_STAMP)
    assert label.pair == (A, B)
    assert parse_label(label.to_json()) == label
    assert label.to_json().endswith(b"}\n")
    assert parse_label(
        b'{"a": "HTTP://x.example:80/%7e", "b": {"url": "http://x.example/b"}, "label": "undecided"}'
    ).pair == (
        "http://x.example/b",
        "http://x.example/~",
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"nonsense", "not JSON"),
        (b"[]", "the value is an array, and an object is required"),
        (b'{"version": 2}', "version 2"),
        (b'{"version": "1"}', "version is text, and an integer is required"),
        (b'{"a": {"url": 1}, "b": {}, "label": "correct"}', r"a\.url is an integer, and text is required"),
        (b'{"a": "http://a.example/", "b": {}, "label": "correct"}', r"b\.url is missing"),
        (b'{"a": "", "b": "http://b.example/", "label": "correct"}', "a has a length out of range"),
        (b'{"a": 1, "b": {"url": "http://b.example/"}, "label": "correct"}', "a is an integer, and text or an object"),
        (b'{"a": {"url": "://b"}, "b": {"url": "http://b.example/"}, "label": "correct"}', "not an absolute URL"),
        (b'{"a": {"url": "http://b.example"}, "b": {"url": "http://b.example/"}, "label": "correct"}', "with itself"),
        (b'{"a": "http://a.example/", "b": "http://b.example/", "label": "yes"}', "correct, incorrect, undecided"),
        (b'{"a": "http://a.example/", "b": "http://b.example/"}', "label is missing"),
        (b'{"a": "http://a.example/", "b": "http://b.example/", "label": "correct", "reasons": ["x"]}', "reason 'x'"),
        (
            b'{"a": "http://a.example/", "b": "http://b.example/", "label": "correct", "reasons": "x"}',
            "reasons is text, and an array",
        ),
        (
            b'{"a": "http://a.example/", "b": "http://b.example/", "label": "correct", "reasons": ["main_item"]}',
            "reason 'main_item': with correct there is session_id",
        ),
        (
            b'{"a": "http://a.example/", "b": "http://b.example/", "label": "correct", "labelled_at": "x"}',
            "labelled_at is text, and an integer is required",
        ),
        (
            b'{"a": "http://a.example/", "b": "http://b.example/", "label": "correct", "labeller": 5}',
            "labeller is an integer, and text",
        ),
    ],
)
def test_bad_label_is_named_with_its_line(line: bytes, expected: str, tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_bytes(labelled("ana", "correct").to_json() + b"\n" + line + b"\n")
    with pytest.raises(BadInput, match=expected) as caught:
        read_labels(path)
    assert f"{path}:3:" in str(caught.value)


def test_a_repeated_reason_is_one() -> None:
    line = b'{"a": "http://a.example/", "b": "http://b.example/", "label": "correct", "reasons": ["rest", "rest"]}'
    assert parse_label(line).reasons == (Reason.REST,)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"nowhere\.jsonl"):
        read_labels(tmp_path / "nowhere.jsonl")


def test_the_later_label_of_a_labeller_counts_and_undo_takes_it_back(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    lines = [labelled("ana", "correct", at=1), labelled("ana", "incorrect", at=2), labelled("bob", "correct", at=3)]
    path.write_bytes(b"".join(label.to_json() for label in lines))
    assert [(label.labeller, label.label) for label in read_labels(path)] == [("ana", "incorrect"), ("bob", "correct")]
    with path.open("ab") as file:
        file.write(labelled("ana", "withdrawn", at=4).to_json())
    assert [label.labeller for label in read_labels(path)] == ["bob"]


def test_contradictions_of_one_labeller_without_times_name_both_lines(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_bytes(labelled("", "correct").to_json() + labelled("", "incorrect", B, A).to_json())
    with pytest.raises(BadInput) as caught:
        read_labels(path)
    for part in (f"{path}:1", f"{path}:2", A, B, "labelled_at"):
        assert part in str(caught.value)


def test_labels_meet_their_pages() -> None:
    text = words(1, 60)
    pages = [page(A, "A", text), page(B, "B", [*text, "b"]), page(C, "A", text), page("https://d.example/", "D", text)]
    corpus = crawl_of(pages).corpus
    labels = [
        labelled("ana", "correct"),
        labelled("bob", "correct"),
        labelled("eve", "incorrect"),
        labelled("ana", "correct", A, C),  # equal word for word
        labelled("ana", "correct", A, "https://gone.example/"),
        labelled("ana", "correct", A, "https://d.example/"),
        labelled("bob", "incorrect", A, "https://d.example/"),
    ]
    joined = join_labels(labels, corpus.find)
    assert [(corpus.urls[a], corpus.urls[b]) for a, b in zip(joined.a, joined.b, strict=True)] == [(A, B)]
    assert joined.labels[0].label is Judgement.CORRECT
    assert (joined.unknown, joined.identical, joined.split, joined.outvoted) == (["https://gone.example/"], 1, 1, 1)
    printed = "\n".join(joined.problems())
    for part in (
        "gone.example",
        "equal word for word",
        "contradict each other",
        "outvoted",
        "all labelled pairs are correct",
    ):
        assert part in printed


def test_an_adjudicator_decides_where_labellers_differ() -> None:
    pages = [page(url, url, words(at, 60)) for at, url in enumerate((A, B, C))]
    corpus = crawl_of(pages).corpus
    labels = [
        *(labelled(name, label) for name, label in (("ana", "correct"), ("bob", "correct"), ("max", "incorrect"))),
        *(
            labelled(name, label, A, C)
            for name, label in (("ana", "correct"), ("bob", "incorrect"), ("max", "correct"))
        ),
        *(labelled(name, "incorrect", B, C) for name in ("ana", "bob")),
    ]
    joined = join_labels(labels, corpus.find, "max")
    assert [str(label.label) for label in joined.labels] == ["incorrect", "correct", "incorrect"]
    assert [label.labeller for label in joined.labels] == ["max", "max", "ana"]
    assert (joined.split, joined.outvoted, joined.adjudicated) == (0, 0, 2)
    assert "the adjudicator decided: 2" in "\n".join(joined.problems())
    voted = join_labels(labels, corpus.find).labels
    assert [str(label.label) for label in voted] == ["correct", "correct", "incorrect"]


def test_a_single_judge_is_measured_against_the_final_label() -> None:
    """Of four pairs bob finds one of two duplicates, and one that is none; the one he leaves undecided counts not."""
    places = [f"{B}{number}" for number in range(5)]
    truth = ("correct", "correct", "incorrect", "incorrect", "correct")
    bob = ("correct", "incorrect", "correct", "incorrect", "undecided")
    labels = [labelled("ana", label, A, at) for label, at in zip(truth, places, strict=True)]
    labels += [labelled("bob", label, A, at) for label, at in zip(bob, places, strict=True)]
    urls = {url: number for number, url in enumerate((A, *places))}
    joined = join_labels(labels, urls.get, "ana")
    section = judges_section(labels, joined, "ana")
    assert section is not None
    assert [table.name for table in section.tables] == ["judges", "full-agreement", "labellers"]
    assert "no better" not in section.text
    assert section.tables[0].rows == [["ana", 5, 3, 1.0, 1.0, 1.0], ["bob", 4, 2, 0.5, 0.5, 0.5]]
    assert judges_section(labels[:5], joined, "ana") is None


def test_a_pair_labelled_through_a_twin_counts_for_the_page_kept() -> None:
    text = words(1, 60)
    corpus = crawl_of([page(A, "A", text), page(B, "B", [*text, "b"]), page(C, "A", text)]).corpus
    joined = join_labels([labelled("ana", "incorrect", C, B)], corpus.find)
    assert (joined.a, joined.b) == ([0], [1])


def test_kappa_of_a_known_table() -> None:
    # Of 50 pairs both say yes to 20 and no to 15; one alone says yes to 5, the other to 10: p_o .7, p_e .5, kappa .4.
    cells = [("correct", "correct")] * 20 + [("correct", "incorrect")] * 5
    cells += [("incorrect", "correct")] * 10 + [("incorrect", "incorrect")] * 15
    labels = []
    for i, (one, other) in enumerate(cells):
        labels += [labelled("ana", one, A, f"{B}{i}"), labelled("bob", other, A, f"{B}{i}")]
    assert kappa(labels) == {("ana", "bob"): (50, pytest.approx(0.4))}
    assert kappa([labelled("ana", "correct"), labelled("bob", "correct", A, C)]) == {("ana", "bob"): (0, None)}
    assert kappa([labelled("ana", "correct"), labelled("bob", "correct")]) == {("ana", "bob"): (1, None)}


def test_full_agreement_of_a_known_table() -> None:
    """Three judges. Of five duplicates they agree on three, of four others on two, and one pair has no majority."""
    votes = [*["ccc"] * 3, "cci", "cuc", *["iii"] * 1, "uuu", "iic", "iui", "ciu"]
    names = {"c": "correct", "i": "incorrect", "u": "undecided"}
    labels = [
        labelled(judge, names[vote], A, f"{B}{pair}")
        for pair, found in enumerate(votes)
        for judge, vote in zip(("ana", "bob", "eve"), found, strict=True)
    ]
    alone = labelled("ana", "correct", A, f"{B}alone")  # one judge agrees with nobody
    assert full_agreement([*labels, alone]) == {"all": (10, 5), "duplicates": (5, 3), "others": (5, 2)}
    assert full_agreement([alone]) == {"all": (0, 0), "duplicates": (0, 0), "others": (0, 0)}


def test_an_adjudicator_is_no_judge_of_full_agreement() -> None:
    """The adjudicator settles what a pair is, and disagrees with nobody."""
    labels = [labelled(judge, "correct", A, B) for judge in ("ana", "bob")]
    labels += [labelled("ana", "correct", A, C), labelled("bob", "incorrect", A, C), labelled("max", "correct", A, C)]
    labels.append(labelled("max", "incorrect", A, B))
    assert full_agreement(labels, "max") == {"all": (2, 1), "duplicates": (1, 0), "others": (1, 1)}
    assert full_agreement(labels) == {"all": (2, 0), "duplicates": (2, 0), "others": (0, 0)}


def test_full_agreement_is_recounted_by_asking_of_each_pair() -> None:
    rng = random.Random(5)
    judges = ("ana", "bob", "eve", "zoe")
    votes = {
        (f"{B}{pair}", judge): rng.choice(["correct", "correct", "incorrect", "undecided"])
        for pair in range(60)
        for judge in judges
        if rng.random() < 0.7
    }
    expected = {"all": [0, 0], "duplicates": [0, 0], "others": [0, 0]}
    for pair in range(60):
        given = sorted(vote for (other, _), vote in votes.items() if other == f"{B}{pair}")
        if len(given) > 1:
            duplicate = all(given.count("correct") > given.count(other) for other in ("incorrect", "undecided"))
            for kind in ("all", "duplicates" if duplicate else "others"):
                expected[kind][0] += 1
                expected[kind][1] += given[0] == given[-1]
    labels = [labelled(judge, vote, A, other) for (other, judge), vote in votes.items()]
    assert full_agreement(labels) == {kind: tuple(counts) for kind, counts in expected.items()}
    assert all(0 < agreed < pairs for pairs, agreed in expected.values())
    rows = {row["pairs of"]: row for row in by_name([agreement(labels)])["full-agreement"].to_json()}  # type: ignore
    for kind, (pairs, agreed) in expected.items():
        assert (rows[kind]["pairs"], rows[kind]["all judges agree"]) == (pairs, agreed)
        assert rows[kind]["share"] == agreed / pairs


def test_every_reason_goes_with_a_judgement() -> None:
    assert {reason for reasons in REASONS.values() for reason in reasons} == set(Reason)
    assert Reason.PREFILLED_FORM not in REASONS[Judgement.CORRECT]


def test_a_label_names_the_samples_of_its_pair() -> None:
    def samples(text: str) -> set[str]:
        return set(label_of(A, B, Judgement.CORRECT, sample=text).samples)

    assert samples("") == set()
    assert samples("B") == {"B"}
    assert samples("C: different sites") == {"C"}
    assert samples("B + C + items") == {"B", "C", "items"}


def drawn(labeller: str, judgement: str, sample: str, at: int | None = None) -> Label:
    return label_of(A, B, Judgement(judgement), labeller=labeller, labelled_at=at, sample=sample)


def test_samples_are_united_without_repeats() -> None:
    assert united("", "B", "C: same site", "B + run") == "B + C: same site + run"
    assert united("", "") == ""


def test_a_pair_drawn_twice_is_of_both_samples(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    lines = [
        drawn("ana", "correct", "B", at=1),
        drawn("bob", "correct", "B", at=2),
        drawn("ana", "correct", "C: same site", at=1),  # the same word: no new one
        drawn("bob", "withdrawn", "B", at=3),
        drawn("bob", "incorrect", "C", at=4),
    ]
    path.write_bytes(b"".join(label.to_json() for label in lines))
    ana, bob = read_labels(path)
    assert ana.samples == {"B", "C"}
    assert ana.sample == bob.sample
    assert (ana.labeller, ana.label, bob.labeller, bob.label) == ("ana", "correct", "bob", "incorrect")


def test_labels_of_a_pair_are_joined_with_all_its_samples() -> None:
    text = words(1, 60)
    corpus = crawl_of([page(A, "A", text), page(B, "B", [*text, "b"]), page(C, "A", text)]).corpus
    labels = [
        drawn("ana", "correct", "B"),
        drawn("bob", "correct", "C"),
        drawn("eve", "incorrect", "audit: rejected"),  # outvoted; the pair was drawn all the same
        label_of(C, B, Judgement.CORRECT, labeller="zoe", sample="combined"),  # through a twin of A
    ]
    (joined,) = join_labels(labels, corpus.find).labels
    assert joined.samples == {"B", "C", "audit", "combined"}
    assert joined.label is Judgement.CORRECT


def test_a_label_with_nan_beside_it_is_read() -> None:
    line = labelled("ana", "correct").to_json()
    assert parse_label(line.replace(b"{", b'{"seconds": NaN, ', 1)) == parse_label(line)
