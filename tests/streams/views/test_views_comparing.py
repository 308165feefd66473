"""Two pages side by side: figures of their sketches, differences of their texts, whatever of both is out of reach."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from streams.views import comparing, templates, url_pages
from streams.views.source import ScanSource
from streams.views.view_rows import apply, url_of
from tests.streams.shell import Shell, site, words
from tests.streams.views.random_verdicts import MemoryRows, random_verdicts

A, B, C = (f"https://a.example/{name}.html" for name in "abc")
STATE = Path("neardup-state")


@pytest.fixture
def scanned(shell: Shell, tmp_path: Path) -> Path:
    site(tmp_path / "site")
    assert shell("scan", "site", "--base-url", "https://a.example/").code == 0
    return tmp_path


def compare(source: ScanSource, a: str, b: str, shown: int = 12) -> dict[str, Any]:
    found = url_pages.compare(source, a, b, source.decider, shown=shown)
    assert not isinstance(found, str), found
    return found


@pytest.mark.slow
def test_comparison_shows_differences_and_each_rule(scanned: Path) -> None:
    source = ScanSource(STATE)
    found = compare(source, A, B)
    assert [found[side]["url"] for side in "ab"] == [A, B]
    assert [found[side]["missing"] for side in "ab"] == [{}, {}]
    values = found["differences"]
    assert (values["only_a"], values["only_b"], values["words"]) == (0, 2, [201, 203])
    assert "".join(s["text"] for s in values["passages"][0]["right"] if s["sign"] == "+") == "9:41"
    rules = {one["rule"]: one for one in found["rules"]}
    assert rules.keys() == {"shingling", "simhash", "combined", "site-split", "simhash64", "tape", "verified"}
    assert rules["verified"]["verdict"] == "near_duplicate"
    # What the sketches say is what was judged.
    verdict = next(iter(source.rows("urls", B)))["verdict"]
    assert found["pair"]["tape_score"] == pytest.approx(verdict["evidence"]["tape_score"], abs=1e-4)
    other = compare(source, A, C)
    assert not any(one["verdict"] for one in other["rules"])
    same = compare(source, A, A)
    assert same["differences"]["equal"]
    assert same["same_digest"]


@pytest.mark.slow
def test_where_a_page_is_gone_the_sketches_still_tell(scanned: Path) -> None:
    before = compare(ScanSource(STATE), A, B)
    (scanned / "site" / "b.html").unlink()
    (scanned / "site" / "a.html").write_text("<p>another page")
    after = compare(ScanSource(STATE), A, B)
    assert after["differences"] is None
    assert "has changed" in after["a"]["missing"]["text"]
    assert "cannot be read any more" in after["b"]["missing"]["text"]
    assert after["pair"] == before["pair"]
    assert after["rules"] == before["rules"]


def test_where_the_log_is_gone_the_texts_still_tell(scanned: Path) -> None:
    source = ScanSource(STATE)
    before = compare(source, A, B)
    shutil.rmtree(STATE / "log")
    after = compare(source, A, B)
    assert after["differences"] == before["differences"]
    assert after["rules"] == []
    assert "sketch" in after["a"]["missing"]


def test_a_page_that_was_taken_down_is_not_read_again(scanned: Path, shell: Shell) -> None:
    assert shell("forget", A, "--state", "neardup-state").code == 0
    source = ScanSource(STATE)
    for a, b in ((A, B), (B, A)):
        found = compare(source, a, b)
        side, other = (found["a"], found["b"]) if a == A else (found["b"], found["a"])
        assert side["missing"] == {"text": "the page was taken down", "sketch": "the page was taken down"}
        assert other["missing"] == {}
        assert found["differences"] is None
        assert found["rules"] == []


@pytest.mark.parametrize("taken_down", [True, False])
def test_a_fetch_that_was_taken_down_is_not_compared(taken_down: bool) -> None:
    """A topic's verdict on a copy names it, also once the URL has another page."""
    held = MemoryRows()
    first = {**random_verdicts(1)[0], "url": A, "verdict": "unique", "page_id": 1 << 12, "n": 0}
    place = {"url": A, "page_id": 1 << 12, "coordinates": {"source": "pages", "partition": 0, "offset": 0}}
    copy = {**first, "url": B, "verdict": "exact_duplicate", "page_id": 2 << 12, "representative": place}
    gone = {**first, "verdict": "gone", "page_id": 3 << 12, "n": 1, "reason": "taken down"}
    for verdict in (first, copy, *([gone] if taken_down else []), {**first, "page_id": 4 << 12}):
        apply(verdict, held)
    a, b = (url_of([held.tables["urls"][url]]) for url in (A, B))
    assert a is not None
    assert b is not None
    compared = (4 if taken_down else 1) << 12
    assert comparing.fetches(a, b)[0]["page_id"] == comparing.fetches(b, a)[1]["page_id"] == compared


def test_an_unknown_url_is_reported(scanned: Path) -> None:
    source = ScanSource(STATE)
    assert url_pages.compare(source, A, "https://nowhere.example/", source.decider, shown=1) == (
        "No verdict about https://nowhere.example/"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "pages",  # made in the test: each worker imports this file
    [
        lambda: ("wool " * 2_000_000, "wool " * 1_999_990 + "tin"),
        lambda: ("w" * 10_000_000, "w" * 9_999_999 + "v"),
        lambda: tuple(" ".join(f"w{i * step % 300_000}" for i in range(300_000)) for step in (1, 7)),
    ],
    ids=["one word ten million times", "one long word", "another order"],
)
def test_hostile_pages_end_in_an_answer_of_bounded_size(
    shell: Shell, tmp_path: Path, pages: Callable[[], tuple[str, str]]
) -> None:
    one, other = pages()
    (tmp_path / "site").mkdir()
    for name, body in (("a", one), ("b", other)):
        (tmp_path / "site" / f"{name}.html").write_text(f"<title>Wool</title><p>{body}")
    assert shell("scan", "site", "--base-url", "https://a.example/").code == 0
    found = compare(ScanSource(STATE), A, B, shown=comparing.PASSAGES_MAX)
    assert found["differences"]["cut"]
    assert found["rules"]
    assert len(templates.html("compare", found)) < 2_000_000
    assert len(orjson.dumps(found)) < 2_000_000


@pytest.mark.slow
def test_more_differences_are_shown_when_asked_for(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    text = words("a", 4000).split()
    (tmp_path / "site" / "a.html").write_text(" ".join(text))
    text[::100] = [f"b{i}" for i in range(40)]
    (tmp_path / "site" / "b.html").write_text(" ".join(text))
    assert shell("scan", "site", "--base-url", "https://a.example/").code == 0
    source = ScanSource(STATE)
    few, many = (compare(source, A, B, shown)["differences"] for shown in (3, 100))
    assert (len(few["passages"]), few["more"]) == (3, 37)
    assert (len(many["passages"]), many["more"]) == (40, 0)
    assert "shown=12" in templates.html("compare", compare(source, A, B, 3))


def _verdict(page_id: int, url: str, kind: str, **more: Any) -> dict[str, Any]:
    return {"page_id": page_id, "n": 0, "url": url, "verdict": kind, "coordinates": {"offset": page_id}, **more}


def _row(*verdicts: dict[str, Any]) -> dict[str, Any]:
    judged = [one for one in verdicts if one["verdict"] in ("unique", "near_duplicate")]
    return {"verdict": verdicts[-1], "judged": judged[-1] if judged else None}


def test_a_page_is_compared_as_it_was_when_the_other_was_judged_against_it() -> None:
    first = {"page_id": 1, "url": A, "coordinates": {"offset": 1}}
    duplicate = _row(_verdict(2, B, "near_duplicate", representative=first, log="ab"))
    edited = _row(_verdict(1, A, "unique", log="ab"), _verdict(3, A, "edited", log="ab"))
    one, other = comparing.fetches(edited, duplicate)
    assert (one["page_id"], other["page_id"]) == (1, 2)
    assert one["log"] == "ab"
    unrelated = _row(_verdict(4, C, "unique", log="ab"))
    one, other = comparing.fetches(edited, unrelated)
    assert (one["page_id"], other["page_id"]) == (3, 4)


def test_a_page_that_went_is_compared_as_it_was() -> None:
    gone = _row(_verdict(1, A, "unique"), _verdict(2, A, "gone"))
    assert comparing.fetches(gone, gone)[0]["page_id"] == 1
    rejected = _row(_verdict(1, A, "unique"), _verdict(2, A, "rejected"))
    assert comparing.fetches(rejected, rejected)[0]["page_id"] == 1
    promoted = {**_verdict(9, A, "promoted"), "n": 1, "representative": {"page_id": 4, "url": A, "coordinates": {}}}
    assert comparing.fetches(_row(_verdict(4, A, "near_duplicate"), promoted), gone)[0]["page_id"] == 4


def test_a_page_that_changed_shows_the_changes(shell: Shell) -> None:
    """Fetched three times: edited, then unchanged, then another text."""
    text = words("a")
    for number, body in enumerate((text, f"{text} 9:41", f"{text} 9:41", words("z"))):
        page = {"url": A, "body": f"<title>Wool</title><p>{body}", "fetched_at": 1_700_000_000_000 + number}
        (shell.folder / f"{number}.jsonl").write_bytes(orjson.dumps(page))
        assert shell("scan", f"{number}.jsonl").code == 0
    source = ScanSource(STATE)
    shown = url_pages.url(source, A, source.decider)
    assert shown is not None
    kinds = [(entry["verdict"], entry["changed_from"]) for entry in shown["history"] if not entry["n"]]
    ids = [entry["page_id"] for entry in shown["history"] if not entry["n"]]
    assert kinds == [("unique", ids[1]), ("unchanged", None), ("edited", ids[3]), ("unique", None)]
    assert templates.html("url", shown).count("what changed") == 2
    edited = url_pages.compare(source, A, A, source.decider, shown=12, page_id=ids[2])
    assert not isinstance(edited, str)
    assert [edited[side]["page_id"] for side in "ab"] == [ids[3], ids[2]]
    assert [edited[side]["missing"] for side in "ab"] == [{}, {}]
    assert "".join(s["text"] for s in edited["differences"]["passages"][0]["right"] if s["sign"] == "+") == "9:41"
    assert edited["changed"]
    html = templates.html("compare", edited)
    assert "What changed" in html
    assert f"page_id={ids[2]}" in html
    assert isinstance(url_pages.compare(source, A, A, source.decider, shown=12, page_id=ids[3]), str)
    assert isinstance(url_pages.compare(source, A, A, source.decider, shown=12, page_id=77), str)
