"""Models as JSON: what they say of a pair, what they refuse to read, the words of a rule."""

import copy
import json
from pathlib import Path

import numpy as np
import pytest

from neardup.errors import BadInput, OtherVersion
from neardup.signals.idf import Idf
from neardup.signals.model import (
    DEPTH_MAX,
    MODEL_BYTES_MAX,
    Branch,
    Condition,
    Leaf,
    Model,
    along,
    any_rule,
    model_of,
    read_model,
)

TREE = Branch(
    "mcd",
    0.30005,
    Branch("mcd", 0.10005, Leaf(True, 40, 39), Branch("title", 0.5, Leaf(False, 9, 2), Leaf(True, 12, 8))),
    Leaf(False, 100, 0),
)
RULES = ((Condition("mcd", True, 0.10005),), (Condition("mcd", True, 0.30005), Condition("title", False, 0.5)))
MODEL = Model(("mcd", "title"), TREE, RULES, "tree", Idf(9, {"wool": 3}), {"f": 0.9}, {"neardup": "0.1.0"})
VALUES = [(mcd, title) for mcd in (0.0, 0.1, 0.1001, 0.3, 0.3001, 1.0) for title in (0.0, 1.0)]


def test_a_model_is_the_same_after_json(tmp_path: Path) -> None:
    file = tmp_path / "model.json"
    file.write_text(json.dumps(MODEL.to_json(), indent=1))
    assert read_model(file) == MODEL
    assert read_model(file).decided_by("rules").by == "rules"


@pytest.mark.parametrize("by", ["tree", "rules"])
def test_many_pairs_are_decided_as_one_by_one(by: str) -> None:
    model = MODEL.decided_by(by)
    columns = {name: np.array([value[at] for value in VALUES]) for at, name in enumerate(("mcd", "title"))}
    singly = [model.decide({"mcd": mcd, "title": title}).duplicate for mcd, title in VALUES]
    found = any_rule(model.rules, columns) if by == "rules" else along(model.tree, columns)[0]
    assert found.tolist() == singly
    assert singly == [mcd <= 0.1 or (mcd <= 0.3 and title == 1) for mcd, title in VALUES]


def test_a_decision_names_the_conditions_that_made_it() -> None:
    decision = MODEL.decide({"mcd": 0.2, "title": 1.0})
    assert decision.rule == "mcd <= 0.30005 and mcd > 0.10005 and title > 0.5"
    assert decision.score == 9 / 14
    assert MODEL.decide({"mcd": 0.05, "title": 0.0}).rule == "mcd <= 0.10005"
    rules = MODEL.decided_by("rules")
    assert rules.decide({"mcd": 0.2, "title": 1.0}).rule == "mcd <= 0.30005 and title > 0.5"
    assert rules.decide({"mcd": 0.9, "title": 1.0}) == (False, "no rule holds", 0.0)


def test_the_text_has_every_leaf_and_every_rule() -> None:
    text = MODEL.text()
    assert "duplicate if mcd <= 0.10005   (39 of 40 were duplicates)" in text
    assert "different if mcd > 0.30005   (0 of 100 were duplicates)" in text
    assert text.count("\n  ") == 4 + 2
    assert "no rule was learned" in Model((), Leaf(False)).text()


def test_a_tree_of_one_leaf_and_a_rule_without_conditions_always_hold() -> None:
    assert Model((), Leaf(True, 3, 3)).decide({}).rule == "always"
    assert Model((), Leaf(False), ((),), "rules").decide({}) == (True, "always", 1.0)


def broken() -> list[tuple[str, object]]:
    good = MODEL.to_json()

    def changed(*path: object, to: object) -> object:
        out = copy.deepcopy(good)
        at = out
        for step in path[:-1]:
            at = at[step]  # type: ignore[index]
        at[path[-1]] = to  # type: ignore[index]
        return out

    deep: dict = {"duplicate": True}
    for _ in range(DEPTH_MAX + 1):
        deep = {"signal": "mcd", "at_most": 0.5, "then": deep, "else": {"duplicate": False}}
    return [
        ("not a model", []),
        ("not a model", {}),
        ("is not a list of names", changed("signals", to="mcd")),
        ("not among", changed("signals", to=["mcd"])),
        ("not a number", changed("tree", "at_most", to="0.3")),
        ("neither a leaf", changed("tree", "then", to=7)),
        ("duplicates among", changed("tree", "else", "duplicates", to=101)),
        ("deep", changed("tree", to=deep)),
        ('"rules" is not a list', changed("rules", to={})),
        ("is not a list of at most", changed("rules", 0, to={})),
        ("has neither", changed("rules", 0, 0, to={"signal": "mcd"})),
        ("by 'luck'", changed("by", to="luck")),
        ('"idf" is not a table', changed("idf", to=[])),
        ("documents is text, and an integer is required", changed("idf", "documents", to="9")),
        ("terms is a fraction, and an integer is required", changed("idf", "terms", "wool", to=1.5)),
        ("number of documents", changed("idf", "terms", "wool", to=10)),
        ("is not an object", changed("measured", to=[])),
    ]


@pytest.mark.parametrize(("why", "value"), broken(), ids=[why for why, _ in broken()])
def test_bad_model_is_refused_with_the_reason(why: str, value: object) -> None:
    with pytest.raises(BadInput, match=why):
        model_of(json.dumps(value), "m.json")


def test_unreadable_and_newer_models_are_reported(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="No such file"):
        read_model(tmp_path / "none.json")
    with pytest.raises(BadInput, match="not JSON"):
        model_of("{", "m.json")
    with pytest.raises(OtherVersion, match="version 2"):
        model_of(json.dumps(MODEL.to_json() | {"version": 2}), "m.json")
    (tmp_path / "huge.json").write_bytes(b" " * (MODEL_BYTES_MAX + 1))
    with pytest.raises(BadInput, match="at most"):
        read_model(tmp_path / "huge.json")
