"""Comparing two files: what every rule says, why, and what differs, for people with and without colour."""

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from neardup.decider import Decider
from neardup.errors import BadInput
from neardup.rules import rules_for
from neardup.scheme import Scheme
from neardup.signals.model import Branch, Leaf, Model
from streams.state.scan_directory import ScanDirectory
from streams.verdicts.compare import SCHEME, Comparison, compare_command
from streams.verdicts.explain import explain_command
from tests.streams.shell import Shell, site

#: What is compared by where nothing else is asked for.
DECIDER = Decider(scheme=SCHEME.digest)
# No word of theirs is the name of a file here: paths that pages say tell them apart.
LINES = [f"The {a} of the {b} keeps {a}{b} in order." for a in ("log", "page", "token") for b in "cdefghijklmn"]


def page(folder: Path, name: str, lines: list[str], title: str = "A manual") -> Path:
    path = folder / name
    path.write_text(f"<title>{title}</title>" + "".join(f"<p>{line}</p>" for line in lines), encoding="utf-8")
    return path


def shown(result: Comparison, *, color: bool = False, width: int = 160) -> str:
    out = io.StringIO()
    Console(file=out, width=width, force_terminal=color, color_system="truecolor" if color else None).print(result)
    return out.getvalue()


def rulings(result: Comparison) -> dict[str, str | None]:
    return {one.rule: one.outcome for one in result.rules}


def test_the_same_words_are_an_exact_duplicate_under_every_rule(tmp_path: Path) -> None:
    a = page(tmp_path, "a.html", LINES)
    b = page(tmp_path, "b.html", [f"<b>{line}</b>" for line in LINES])
    result = compare_command(a, b)
    assert result.same_digest
    assert rulings(result) == dict.fromkeys(rules_for(result.decider), "exact_duplicate")
    assert "Word for word the same" in shown(result)


def test_an_edited_page_shows_each_rules_numbers_and_the_words(tmp_path: Path) -> None:
    edited = [*LINES[:10], "Release 42 says hello.", *LINES[11:]]
    result = compare_command(page(tmp_path, "a.html", LINES), page(tmp_path, "b.html", edited))
    assert not result.same_digest
    assert rulings(result)["verified"] == "near_duplicate"
    text = shown(result)
    for rule in rules_for(result.decider):
        assert rule in text
    assert f"B {result.pair.b_similarity} of 6" in text
    assert f"C {result.pair.c_similarity} of 384" in text
    assert f"tape {result.pair.tape_score:.0%}" in text
    assert "[+Release 42 says hello+]" in text
    assert "[-The log of the m keeps logm in order-]" in text
    assert "\x1b" not in text


def test_the_kind_of_difference_is_reported(tmp_path: Path) -> None:
    pages = [page(tmp_path, f"{i}.html", [*LINES, f"Generated in 0.{i + 1} seconds"]) for i in range(2)]
    result = compare_command(*pages)
    assert result.to_json()["difference"] == {"kind": "execution_time", "kinds": ["execution_time"], "changes": 1}
    assert "The difference looks like an execution time." in shown(result)
    assert compare_command(pages[0], pages[0]).to_json()["difference"] is None


def test_colour_adds_to_the_signs(tmp_path: Path) -> None:
    result = compare_command(page(tmp_path, "a.html", LINES), page(tmp_path, "b.html", [*LINES, "Added words."]))
    text = shown(result, color=True)
    assert "\x1b[32m[+Added words+]" in text


def test_names_that_veto_are_shown(tmp_path: Path) -> None:
    a, b = page(tmp_path, "a.html", LINES, "Sinus of x"), page(tmp_path, "b.html", LINES, "Cosinus of x")
    result = compare_command(a, b)
    assert result.pair.title_veto == 1
    assert rulings(result)["verified"] is None
    text = shown(result)
    assert "no: the titles name different things" in text
    assert "only in the title of A: sinus (1x)" in text
    assert "only in the title of B: cosinus (1x)" in text


def test_names_at_the_beginning_that_veto_are_reported(tmp_path: Path) -> None:
    a = page(tmp_path, "a.html", ["alpha alpha alpha", *LINES], "")
    b = page(tmp_path, "b.html", ["omega omega omega", *LINES], "")
    result = compare_command(a, b)
    assert result.pair.head_veto == 1
    assert "in the first 16 words of A, never in the other: alpha (3x)" in shown(result)


def test_urls_decide_about_sites(tmp_path: Path) -> None:
    a, b = page(tmp_path, "a.html", LINES), page(tmp_path, "b.html", LINES[:-3])
    assert compare_command(a, b).pair.same_site
    apart = compare_command(a, b, a_url="https://a.example/", b_url="https://b.example/")
    assert not apart.pair.same_site
    split = {one.rule: one for one in apart.rules}["site-split"]
    assert split.numbers.startswith("C ")
    assert "two (Henzinger's rule: two)" in shown(apart)


def test_file_names_in_the_place_of_urls_are_reported_where_they_decide(tmp_path: Path) -> None:
    old, new = (page(tmp_path, f"{i}.html", LINES, title=f"A manual, release {i}") for i in (1, 2))
    result = compare_command(old, new)
    assert (rulings(result)["verified"], result.if_urls_end_alike) == (None, "near_duplicate")
    assert "For pages whose URLs end alike, verified decides: near duplicate." in shown(result)
    assert result.to_json()["if_urls_end_alike"] == "near_duplicate"
    for end, expected in (("x", "near_duplicate"), ("y", None)):
        result = compare_command(old, new, a_url="https://a.example/1/x", b_url=f"https://a.example/2/{end}")
        assert (rulings(result)["verified"], result.if_urls_end_alike) == (expected, None)
    edited = page(tmp_path, "3.html", [*LINES, "Added words."], title="A manual, release 1")
    assert compare_command(old, edited).if_urls_end_alike is None


def test_thresholds_are_those_of_the_decider(tmp_path: Path) -> None:
    a, b = page(tmp_path, "a.html", LINES), page(tmp_path, "b.html", LINES[:-3])
    strict = Decider(scheme=SCHEME.digest, tape_min=0.999, content_tape_min=0.999, c_min=384)
    result = compare_command(a, b, decider=strict)
    assert rulings(compare_command(a, b))["verified"] == "near_duplicate"
    assert rulings(result)["verified"] is None
    assert {one.rule: one.needed for one in result.rules}["simhash"] == "C 384"


def test_json_holds_everything_and_only_plain_values(tmp_path: Path) -> None:
    a, b = page(tmp_path, "a.html", LINES), page(tmp_path, "b.html", LINES[:-1])
    value = json.loads(json.dumps(compare_command(a, b).to_json()))
    assert [one["rule"] for one in value["rules"]] == list(rules_for(DECIDER))
    assert value["pair"]["tokens_a"] == value["files"][0]["tokens"]
    assert value["differences"]["only_a"] == len(LINES[-1].split())
    assert value["differences"]["only_b"] == 0
    verified = next(one for one in value["rules"] if one["rule"] == "verified")
    assert (verified["rule"], verified["verdict"], verified["by"]) == ("verified", "near_duplicate", "tape")
    assert sum(verified["shared_keys"].values()) > 3


def test_images_that_differ_are_shown(tmp_path: Path) -> None:
    a = page(tmp_path, "a.html", [*LINES, '<img src="one.png">'])
    b = page(tmp_path, "b.html", [*LINES, '<img src="two.png">'])
    result = compare_command(a, b)
    assert not result.same_digest
    assert "[-one-]" in shown(result)


def test_a_terminal_gets_no_escape_sequences_from_pages(tmp_path: Path) -> None:
    evil = "\x1b]0;owned\x07 \x1b[2J [bold red]markup[/] \u202eright to left"
    a = page(tmp_path, "a.html", [evil, *LINES], "title \x1b[31m [/bold] \u202e")
    b = page(tmp_path, "b.html", LINES)
    text = shown(compare_command(a, b))
    assert not {"\x1b", "\x07", "\u202e"} & set(text)
    assert "bold red]markup" in text


def test_opaque_files_have_no_words(tmp_path: Path) -> None:
    a, b = tmp_path / "a.pdf", tmp_path / "b.pdf"
    a.write_bytes(b"%PDF-1.4 one" + bytes(100))
    b.write_bytes(b"%PDF-1.4 two" + bytes(100))
    result = compare_command(a, b)
    assert rulings(result) == dict.fromkeys(rules_for(DECIDER), None)
    assert "neither HTML nor text" in shown(result)
    assert json.loads(json.dumps(result.to_json()))["differences"] is None
    assert compare_command(a, a).same_digest


def test_empty_files_are_nobodys_duplicates(tmp_path: Path) -> None:
    a = page(tmp_path, "a.html", [], "")
    assert rulings(compare_command(a, a)) == dict.fromkeys(rules_for(DECIDER), None)


@pytest.mark.parametrize("width", [40, 80, 200])
def test_fits_any_terminal(tmp_path: Path, width: int) -> None:
    a, b = page(tmp_path, "a.html", LINES, "W" * 300), page(tmp_path, "b.html", LINES[4:] * 2)
    assert all(len(line) <= width for line in shown(compare_command(a, b), width=width).splitlines())


def test_files_that_cannot_be_compared(tmp_path: Path) -> None:
    a = page(tmp_path, "a.html", LINES)
    with pytest.raises(BadInput, match="missing"):
        compare_command(a, tmp_path / "missing.html")
    with pytest.raises(BadInput, match="directory"):
        compare_command(tmp_path, a)


ONLINE = {"shingling", "simhash", "combined", "site-split", "simhash64", "verified", "tape"}


def test_compare_shows_all_online_rules_side_by_side(tmp_path: Path) -> None:
    a, b, c = page(tmp_path, "a.html", LINES), page(tmp_path, "b.html", LINES[:-1]), page(tmp_path, "c.html", ["other"])
    model = Model(("tape",), Branch("tape", 0.30005, Leaf(True, 9, 9), Leaf(False, 9, 0)))
    for other, duplicate in ((b, True), (c, False)):
        value = json.loads(json.dumps(compare_command(a, other, model=model).to_json()))
        names = {one["rule"]: one for one in value["rules"]}
        assert set(names) == ONLINE | {"signals"}
        assert (names["signals"]["verdict"] == "near_duplicate") is duplicate
    assert {one.rule for one in compare_command(a, b).rules} == ONLINE


def test_compare_refuses_a_model_that_reads_texts(tmp_path: Path) -> None:
    a = page(tmp_path, "a.html", LINES)
    model = Model(("mcd_fetched",), Branch("mcd_fetched", 0.3, Leaf(True, 9, 9), Leaf(False, 9, 0)))
    with pytest.raises(BadInput, match="mcd_fetched"):
        compare_command(a, a, model=model)


def test_compare_samples_as_a_scan_does(shell: Shell) -> None:
    site(shell.folder / "site")
    assert shell("scan", "site", "--rule", "tape").code == 0
    state = json.loads((shell.folder / "neardup-state" / "scheme.json").read_text())
    result = json.loads(shell("compare", "site/a.html", "site/b.html", "--state", "neardup-state", "--json").out)
    assert result["scheme"] == Scheme(seed=state["seed"]).digest
    with ScanDirectory.open(shell.folder / "neardup-state") as opened:
        assert result["decider"] == opened.decider.digest
        values = explain_command(opened, (shell.folder / "site" / "b.html").as_uri())
    assert values.trace.candidates[0].pair.tape_score == result["pair"]["tape_score"]
    assert shell("compare", "site/a.html", "site/b.html", "--state", "nowhere").code != 0
