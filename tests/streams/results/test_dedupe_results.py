"""`neardup dedupe-results`: groups of each query's results, with the rule that decided."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from neardup.signals.model import Branch, Condition, Leaf, Model
from streams.results import query_results
from tests.streams.shell import Shell

TREE = Branch("mcd_rendered", 0.2, Leaf(True, 9, 9), Leaf(False, 9, 0))
RULES = ((Condition("same_title_fetched", False, 0.5),),)
MODEL = Model(("mcd_rendered", "same_title_fetched"), TREE, RULES)


def text(name: str, words: int = 150) -> str:
    return " ".join(f"{name}{i}" for i in range(words))


def one(query: str, name: str, body: str, **more: Any) -> dict[str, Any]:
    return {"query": query, "url": f"https://a.example/{name}", "body": body, "content_type": "text/html", **more}


#: Two queries, their lines mixed.
LINES = [
    one("wool", "1", f"<title>x</title>{text('wool')}"),
    one("tin", "4", f"<title>x</title>{text('tin')}"),
    one("wool", "2", f"<title>y</title>{text('felt')}"),
    one("wool", "3", "<title>Moved</title>", rendered=f"<title>x</title>{text('wool')} 9:41"),
    one("tin", "1", f"<title>x</title>{text('wool')}"),
    one("wool", "1", "said again"),
]


def given(shell: Shell, lines: Sequence[dict[str, Any] | str], model: Model = MODEL) -> None:
    answer = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    (shell.folder / "results.jsonl").write_text("\n".join(answer) + "\n")
    (shell.folder / "model.json").write_text(json.dumps(model.to_json()))


def groups(out: str) -> dict[str, list[list[str]]]:
    answer = [json.loads(line) for line in out.splitlines()]
    return {
        line["query"]: [
            [end["url"].rpartition("/")[2] for end in (group, *group["duplicates"])] for group in line["groups"]
        ]
        for line in answer
    }


def test_results_are_grouped_query_by_query(shell: Shell) -> None:
    given(shell, LINES)
    ended = shell("dedupe-results", "results.jsonl", "--model", "model.json")
    assert ended.code == 0, ended.err
    assert groups(ended.out) == {"wool": [["1", "3"], ["2"]], "tin": [["4"], ["1"]]}
    assert "2 queries, 5 results, 1 duplicate" in ended.err
    first = json.loads(ended.out.splitlines()[0])["groups"][0]
    assert first["duplicates"][0]["rule"] == "mcd_rendered <= 0.2"
    assert first["duplicates"][0]["signals"]["mcd_rendered"] < 0.2


def test_rules_may_decide_instead_of_the_tree(shell: Shell) -> None:
    given(shell, LINES)
    command = (
        "dedupe-results",
        "results.jsonl",
        "--model",
        "model.json",
        "--by",
        "rules",
        "--out",
        "groups.jsonl",
    )
    ended = shell(*command)
    assert ended.code == 0, ended.err
    assert groups((shell.folder / "groups.jsonl").read_text()) == {"wool": [["1"], ["2"], ["3"]], "tin": [["4", "1"]]}
    assert shell(*command[:-3], "luck").code == 2


def test_a_member_is_like_the_first_of_its_group_and_chains_are_none(shell: Shell) -> None:
    """1 is like 2, and 2 like 3, but 3 is not like 1: it founds a group."""
    chain = [one("q", str(i), f"<title>x</title>{text('w', 100)} {text(str(i), 1 + 25 * i)}") for i in range(3)]
    near = Model(("body_length_fetched",), Branch("body_length_fetched", 0.2, Leaf(True), Leaf(False)))
    given(shell, chain, near)
    ended = shell("dedupe-results", "results.jsonl", "--model", "model.json")
    assert groups(ended.out) == {"q": [["0", "1"], ["2"]]}


def test_unreadable_results_are_reported_and_others_grouped(shell: Shell) -> None:
    broken = ["", "{", '{"url": "https://a.example/x"}', json.dumps(one("q", "y", "x", rendered=7)), '{"url": "x"}']
    given(shell, [*LINES, *broken, json.dumps(one("q", "z", "x") | {"body": None})])
    ended = shell("dedupe-results", "results.jsonl", "--model", "model.json")
    assert ended.code == 3
    assert len(groups(ended.out)) == 2
    assert "results.jsonl:8: not JSON" in ended.err
    assert "rendered is an integer, and text or an object is required" in ended.err
    assert ended.err.count("results.jsonl:") == 5


def test_limits_are_reported(shell: Shell, monkeypatch) -> None:
    given(shell, LINES)
    monkeypatch.setattr(query_results, "RESULTS_MAX", 3)
    assert (
        "4 results of 'wool'; at most 3 are compared"
        in shell("dedupe-results", "results.jsonl", "--model", "model.json").err
    )
    monkeypatch.setattr(query_results, "LINE_BYTES_MAX", 400)
    ended = shell("dedupe-results", "results.jsonl", "--model", "model.json", "--quiet")
    assert "a line of more than 400 bytes" in ended.err
    (shell.folder / "results.jsonl.gz").write_bytes(b"\x1f\x8b\x08")
    assert "unpack it" in shell("dedupe-results", "results.jsonl.gz", "--model", "model.json").err


def test_a_model_of_sketches_is_refused(shell: Shell) -> None:
    given(shell, LINES, Model(("tape",), Branch("tape", 0.2, Leaf(True), Leaf(False))))
    ended = shell("dedupe-results", "results.jsonl", "--model", "model.json", "--out", "groups.jsonl")
    assert ended.code == 1
    assert "which sketches tell" in ended.err
    assert not list(Path(shell.folder).glob("groups*"))
