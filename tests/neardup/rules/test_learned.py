"""The rule signals: a learned model decides on what sketches tell, and the decider carries it."""

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from neardup import open_index
from neardup.decider import Decider
from neardup.errors import BadInput
from neardup.page import Page
from neardup.pairs.pair import Pair
from neardup.report.evidence_sentences import sentences
from neardup.rules import RULES
from neardup.rules.base import ruling_of
from neardup.scheme import Scheme
from neardup.signals.model import HALF, Branch, Condition, Leaf, Model
from neardup.signals.of_sketches import TEXT_MAX, online_model, online_text, sketch_signals
from neardup.verdict import Kind
from tests.neardup.pairs.some_pairs import some_pair

SCHEME = Scheme(seed=7)
NEAR = Branch(
    "tape",
    0.30005,
    Branch("same_title", 0.5, Leaf(False, 20, 3), Leaf(True, 50, 48)),
    Branch("content_tape", 0.10005, Leaf(True, 5, 4), Leaf(False, 90, 1)),
)
NAMES = ("tape", "same_title", "content_tape")
RULES_OF = ((Condition("tape", True, 0.30005), Condition("same_title", False, 0.5)),)
MODEL = Model(NAMES, NEAR, RULES_OF, measured={"pairs": 165})
WORDS = [f"word{i}" for i in range(300)]


def decider(model: Model = MODEL) -> Decider:
    return Decider(SCHEME.digest, rule="signals", model=online_text(model, "m"))


@pytest.mark.parametrize("by", ["tree", "rules"])
def test_rulings_are_the_decisions_of_the_model(by: str) -> None:
    random, model = Random(by), MODEL.decided_by(by)
    pairs = [some_pair(random) for _ in range(2000)]
    rulings = RULES["signals"].rulings(np.array(pairs, np.float64), decider(model))
    for pair, record in zip(pairs, rulings, strict=True):
        ruling, wanted = ruling_of(record), model.decide(sketch_signals(pair))
        thin = min(pair.tokens_a, pair.tokens_b) < 20
        kind = Kind.NEAR_DUPLICATE if wanted.duplicate and not thin else None
        assert ruling[:2] == (kind, "thin" if thin else "signals")
        assert (repr(ruling.score), ruling.demand) == (repr(wanted.score), HALF)
        assert ruling.rank == ((0, pair.tape_score) if kind else (0, 0.0))
        assert record.nearness == pair.tape_score
    assert 100 < np.count_nonzero(rulings["kind"]) < 1900


def test_the_score_is_on_the_side_of_the_leaf() -> None:
    for leaf in (Leaf(True, 4, 2), Leaf(True), Leaf(False, 4, 2), Leaf(False), Leaf(False, 9, 9)):
        ruling = RULES["signals"].decide(_pair(), decider(Model((), leaf)))
        assert (ruling.kind is not None) == leaf.duplicate == (ruling.score >= ruling.demand)


def _pair(**changed: object) -> Pair:
    pair = some_pair(Random(1))
    return pair._replace(**{"tokens_a": 300, "tokens_b": 300, **changed})


def test_thin_pages_are_left_to_equal_digests() -> None:
    always = decider(Model((), Leaf(True, 9, 9)))
    assert RULES["signals"].decide(_pair(), always).kind is Kind.NEAR_DUPLICATE
    assert RULES["signals"].decide(_pair(tokens_a=19), always).by == "thin"


def test_without_a_model_only_equal_digests_are_duplicates() -> None:
    assert RULES["signals"].decide(_pair(tape_score=1.0), Decider("0" * 32, rule="signals")).kind is None


def test_the_model_is_of_the_decider_and_named_by_its_digest() -> None:
    one = decider()
    assert Decider.from_json(one.to_json()) == one
    other = Model(NAMES, replace(NEAR, bound=0.31005), RULES_OF)
    assert decider(other).digest != one.digest
    assert decider(replace(MODEL, measured={}, versions={"zlib": "9"})).digest == one.digest
    assert online_model(one.model).decide({"tape": 0.1, "same_title": 1.0, "content_tape": 1.0}).duplicate


def test_a_model_that_sketches_do_not_suffice_for_is_refused() -> None:
    with pytest.raises(BadInput, match="mcd_fetched, which sketches do not have"):
        online_text(Model(("tape", "mcd_fetched"), NEAR), "m.json")
    rule = tuple(Condition("tape", True, at / 1000) for at in range(100))
    with pytest.raises(BadInput, match="a decider takes at most"):
        online_text(Model(("tape",), Leaf(False), (rule,) * (TEXT_MAX // 1000), "rules"), "m.json")


def page(url: str, title: str, words: list[str]) -> Page:
    return Page(url, f"<title>{title}</title><p>{' '.join(words)}".encode(), "text/html")


def test_pages_are_judged_by_the_model_and_evidence_names_the_rule() -> None:
    chosen = decider()
    pages = [
        page("https://a.example/1", "Wool", WORDS),
        page("https://a.example/2", "Wool", [*WORDS[:150], "new", *WORDS[151:]]),
        page("https://a.example/3", "Felt", [*WORDS[:70], "other", *WORDS[71:]]),
        page("https://a.example/4", "Wool", WORDS),
    ]
    with open_index(scheme=SCHEME, decider=chosen) as index:
        verdicts = list(index.add(pages))
    assert [verdict.verdict for verdict in verdicts] == ["unique", "near_duplicate", "unique", "exact_duplicate"]
    evidence = verdicts[1].evidence
    assert evidence["by"] == "signals"
    assert evidence["learned_score"] == round(49 / 52, 4)
    assert sentences(evidence, chosen)[0] == (
        "The learned model is sure of a duplicate by 94.2%: tape <= 0.30005 and same_title > 0.5."
    )
    nearest = verdicts[2].evidence["nearest"]
    assert nearest["by"] == "signals"
