"""Documents with ids of their own, through each command: ids are taken, and shown instead of internal URLs."""

import json
import re
import shutil
from pathlib import Path

import pytest

pytest.importorskip("aiohttp", reason="aiohttp is not installed")

from neardup.evaluation.graphs import b_graph, c_graph
from neardup.evaluation.labelling_page import pair_html, pair_view
from neardup.evaluation.labelling_rounds import Labelling
from neardup.evaluation.sampling import draw
from neardup.urls import url_of_id
from streams.views.source import ScanSource
from tests.neardup.evaluation.crawl import crawl_of
from tests.neardup.evaluation.crawl import page as crawl_page
from tests.neardup.evaluation.crawl import words as text_of
from tests.streams.files.test_input_elsewhere import parquet
from tests.streams.shell import Shell, words
from tests.streams.views.test_views_web import Server

INTERNAL = "id://"
#: A host of such a URL, which is no site.
DIGEST = re.compile(r"(?<![0-9a-f.])[0-9a-f]{16}(?![0-9a-f])")


def hosts_shown(html: str) -> list[str]:
    """Hosts of documents in the text of a page, without links and lines for a file of labels."""
    text = re.sub(r"{&#34;a&#34;: .*}", "", html)
    return DIGEST.findall(re.sub(r"<script.*?</script>|<style.*?</style>|<[^>]*>", " ", text, flags=re.DOTALL))


def document(name: str, text: str) -> str:
    return json.dumps({"id": name, "text": text}) + "\n"


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    shell = Shell(tmp_path, monkeypatch, capsys)
    lines = [document(f"e{number}", words(f"w{number}x")) for number in range(6)]
    lines.append(document("copy of e5", words("w5x")))
    lines.append(document("e5 edited", words("w5x") + " 9:41"))
    (tmp_path / "docs.jsonl").write_text("".join(lines))
    return shell


@pytest.fixture
def scanned(shell: Shell) -> Shell:
    assert shell("scan", "docs.jsonl").code == 0
    return shell


def test_pages_are_explained_and_inspected_by_their_ids(scanned: Shell) -> None:
    for name, kind in (("e5", "UNIQUE"), ("copy of e5", "EXACT DUPLICATE"), ("e5 edited", "NEAR DUPLICATE")):
        code, out, _ = scanned("explain", name)
        assert (code, out.splitlines()[0]) == (0, f"{kind}  {name}")
        assert INTERNAL not in out
    assert "page 5, e5" in out
    code, _, err = scanned("explain", "no such id")
    assert (code, err) == (
        1,
        f"neardup: no verdict about no such id in {scanned.folder}/neardup-state; it names pages as e0\n",
    )
    code, out, _ = scanned("explain", "copy of e5", "--rows")
    assert code == 0
    assert '"standing"' in out


def test_a_report_shows_ids(scanned: Shell) -> None:
    assert scanned("report", "--out", "report.html").code == 0
    text = (scanned.folder / "report.html").read_text()
    assert "copy of e5" in text
    assert INTERNAL not in re.sub(r"{&#34;a&#34;: .*}", "", text)  # lines for a file of labels
    assert hosts_shown(text) == []
    assert "different sites" not in text


@pytest.mark.parametrize("how", ["tlcs", "verified", "tape"])
def test_a_partition_has_ids_beside_urls(shell: Shell, how: str) -> None:
    if how == "tlcs":
        pytest.importorskip("duckdb")
    code, out, _ = shell("partition", "docs.jsonl", "--out", "sets", "--method", how)
    assert code == 0
    assert INTERNAL not in out
    assert INTERNAL not in (shell.folder / "sets" / "report.html").read_text()
    (line,) = (shell.folder / "sets" / "sets.jsonl").read_text().splitlines()
    found = json.loads(line)
    assert {found["representative"]["id"], *(each["id"] for each in found["members"])} == {
        "e5",
        "copy of e5",
        "e5 edited",
    }


def test_labels_and_items_take_ids(shell: Shell) -> None:
    labels = [
        {"version": 1, "a": {"url": "e5"}, "b": {"url": "e5 edited"}, "label": "correct"},
        {"version": 1, "a": {"url": "e1"}, "b": {"url": "e2"}, "label": "incorrect"},
    ]
    (shell.folder / "labels.jsonl").write_text("".join(json.dumps(each) + "\n" for each in labels))
    items = [{"url": f"e{number}", "item": str(number)} for number in range(6)]
    items += [{"url": name, "item": "5"} for name in ("copy of e5", "e5 edited")]
    (shell.folder / "items.jsonl").write_text("".join(json.dumps(each) + "\n" for each in items))
    code, out, err = shell("evaluate", "docs.jsonl", "--labels", "labels.jsonl", "--out", "ev")
    assert code == 0, err
    assert "labelled pairs: 1 correct, 1 incorrect" in out
    code, out, err = shell(
        "evaluate", "docs.jsonl", "--items", "items.jsonl", "--out", "ev2", "--labels-out", "own.jsonl"
    )
    assert code == 0, err
    for folder in ("ev", "ev2"):
        page = (shell.folder / folder / "evaluation.html").read_text()
        assert INTERNAL not in page
        assert hosts_shown(page) == []
        assert "Documents with ids are on no site" in page
        assert "Labelled pairs: different sites" not in page
        files = [path for path in (shell.folder / folder).rglob("*.csv") if DIGEST.search(path.read_text())]
        assert files == []


def test_the_label_page_shows_ids() -> None:
    text = text_of(1, 300)
    names = {"e5": text, "copy of e5": [*text, "more"]}
    crawl = crawl_of([crawl_page(url_of_id(name), "", each) for name, each in names.items()])
    labelling = Labelling(draw(crawl.corpus, b_graph(crawl.corpus), c_graph(crawl.corpus)), crawl.corpus, [], id)
    page = pair_html(labelling, pair_view(labelling, crawl.texts, 0), "ana", "", "")
    assert "copy of e5" in page
    assert INTERNAL not in page
    assert hosts_shown(page) == []
    assert "On two sites" not in page


def test_views_find_and_show_pages_by_their_ids(scanned: Shell) -> None:
    server = Server(ScanSource(scanned.folder / "neardup-state"))
    paths = (
        "url?url=copy+of+e5",
        "url?url=e5",
        "compare?a=e5+edited&b=e5",
        "search?text=of+e",
        "kind?name=near_duplicate",
        "clusters",
        "cluster?id=5",
        "",
        "sites",
        "kind?name=unique",
    )
    try:
        for path in paths:
            status, _, text = server.get(f"/{path}")
            assert status == 200, path
            assert "e5" in text or path in ("", "sites"), path
            assert f">{INTERNAL}" not in text, path
            assert (hosts_shown(text), "different sites" in text, "Page without a title" in text) == ([], False, False)
        assert server.get("/search?text=copy+of+e5")[0] == 303
    finally:
        server.close()


def test_a_document_is_taken_down_by_its_id(scanned: Shell) -> None:
    code, _, err = scanned("forget", "e5", "--state", "neardup-state")
    assert (code, "--id" in err) == (2, True), err
    code, out, _ = scanned("forget", "--id", "e5", "--state", "neardup-state")
    assert code == 0
    assert out.startswith("pages taken down: 1; other pages promoted: 1")
    assert "e5: taken down" in scanned("explain", "e5").err
    assert scanned("forget", "--id", "e5", "--site", "a.example", "--state", "neardup-state").code == 2


def test_pages_of_a_scan_are_compared_by_their_ids(scanned: Shell) -> None:
    for names, decision in ((("e5", "e5 edited"), "near duplicate"), (("e1", "docs.jsonl#e2"), "no: ")):
        code, out, _ = scanned("compare", *names)
        assert (code, decision in out, INTERNAL in out, names[0] in out) == (0, True, False, True)
        assert hosts_shown(out.split("digest")[0] + out.partition("\nevidence")[2]) == []
    (scanned.folder / "e5").write_text(words("w5x"))
    assert json.loads(scanned("compare", "e5", "e5 edited", "--json").out)["files"][0]["url"].startswith("file:///")
    assert "no verdict about e99" in scanned("compare", "e5", "e99").err
    code, _, err = scanned("compare", "e1", "e2", "--state", str(scanned.folder))
    assert (code, "no state directory" in err) == (2, True)
    shutil.rmtree("neardup-state")
    code, _, err = scanned("compare", "e5", "e2")
    assert (code, "e2: no such file or folder; to name a page of a scan by its URL or id, add --state DIR" in err) == (
        2,
        True,
    )


def test_a_diff_of_one_corpus_in_two_formats_is_empty(scanned: Shell) -> None:
    parquet(scanned.folder / "docs.parquet", [json.loads(line) for line in Path("docs.jsonl").read_text().splitlines()])
    assert scanned("scan", "docs.parquet", "--state", "again").code == 0
    assert "8 pages, 0 changed" in scanned("diff", "neardup-state", "again").err
    lines = Path("docs.jsonl").read_text().splitlines()
    Path("other.jsonl").write_text("".join(f"{line}\n" for line in lines[:-1]) + document("e5 edited", words("other")))
    assert scanned("scan", "other.jsonl", "--state", "other").code == 0
    ended = scanned("diff", "again", "other", "--html", "diff.html")
    assert "8 pages, 1 changed" in ended.err
    page = (scanned.folder / "diff.html").read_text()
    assert hosts_shown(page) == []
    assert "e5 edited" in page
    assert "(no site)" in page
