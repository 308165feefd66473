"""`neardup signals`: all signals of two files, in a terminal and as JSON, and what a model says of them."""

import json

from neardup.signals.model import Branch, Leaf, Model
from neardup.signals.of_sketches import OF_SKETCHES
from neardup.signals.table import SIGNALS
from tests.streams.shell import Shell, site


def test_every_signal_is_shown(shell: Shell) -> None:
    site(shell.folder / "site")
    ended = shell("signals", "site/a.html", "site/b.html", "--json")
    assert ended.code == 0, ended.err
    output = json.loads(ended.out)
    assert list(output["signals"]) == list(SIGNALS)
    assert list(output["of_sketches"]) == list(OF_SKETCHES)
    assert output["decision"] is None
    assert 0 < output["signals"]["mcd_fetched"] < 0.2
    assert output["signals"]["same_title_fetched"] == 1.0
    assert 0 < output["of_sketches"]["tape"] < 0.1
    text = shell("signals", "site/a.html", "site/c.html")
    assert text.code == 0
    for name in (*SIGNALS, *OF_SKETCHES):
        assert name in text.out


def test_the_queries_words_and_rendered_bodies_count(shell: Shell) -> None:
    filler = "nothing to be seen here " * 100
    for name, word in (("a", "blue"), ("b", "green")):
        (shell.folder / f"{name}.html").write_text(f"<p>{filler} {word} wool {filler}")
        (shell.folder / f"{name}.dom.html").write_text(f"<title>Seen</title>{filler}")
    pair = ("signals", "a.html", "b.html", "--json")
    without = json.loads(shell(*pair).out)["signals"]
    assert without["snippet_mcd_fetched"] == 0.0
    assert json.loads(shell(*pair, "--query", "wool").out)["signals"]["snippet_mcd_fetched"] > 0
    rendered = json.loads(shell(*pair, "--a-rendered", "a.dom.html", "--b-rendered", "b.dom.html").out)["signals"]
    assert (without["mcd_rendered"] > 0, rendered["mcd_rendered"]) == (True, 0.0)
    assert rendered["mcd_fetched"] == without["mcd_fetched"]


def test_a_model_decides_by_its_own_kind_of_signals(shell: Shell) -> None:
    site(shell.folder / "site")
    for signal in ("tape", "mcd_fetched"):
        tree = Branch(signal, 0.25, Leaf(True, 9, 9), Leaf(False, 9, 0))
        (shell.folder / "model.json").write_text(json.dumps(Model((signal,), tree).to_json()))
        for other, duplicate in (("b", True), ("c", False)):
            ended = shell("signals", "site/a.html", f"site/{other}.html", "--model", "model.json", "--json")
            decision = json.loads(ended.out)["decision"]
            assert decision["duplicate"] is duplicate
            assert decision["rule"].startswith(signal)
    assert (
        "different: mcd_fetched > 0.25" in shell("signals", "site/a.html", "site/c.html", "--model", "model.json").out
    )


def test_unreadable_results_are_reported(shell: Shell) -> None:
    site(shell.folder / "site")
    ended = shell("signals", "site/a.html", "none.html")
    assert (ended.code, ended.err) == (2, "neardup: none.html: no such file or folder\n")
    (shell.folder / "model.json").write_text('{"tree": 1}')
    assert "version None" in shell("signals", "site/a.html", "site/b.html", "--model", "model.json").err
    unknown = Model(("luck",), Leaf(True)).to_json()
    (shell.folder / "model.json").write_text(json.dumps(unknown))
    assert "asks for luck" in shell("signals", "site/a.html", "site/b.html", "--model", "model.json").err
