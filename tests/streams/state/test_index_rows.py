"""`neardup explain --rows`: the content of an index, also while its process works."""

import json
from pathlib import Path

import pytest

from neardup.scheme import Scheme
from streams.scan.scan import scan
from streams.state.scan_directory import ScanDirectory
from tests.streams.archives import crawl, write_warc
from tests.streams.shell import Shell


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inspect")
    with ScanDirectory.open(folder / "state", scheme=Scheme(seed=7)) as state:
        scan([write_warc(folder / "a.warc", crawl(40))], state)
    return folder / "state"


@pytest.mark.slow
def test_explain_rows_shows_overview_url_cluster_and_page(shell: Shell, path: Path) -> None:
    result = shell("explain", "--rows", "--state", str(path))
    assert (result.code, "hot keys: " in result.out) == (0, True), result.err
    full = json.loads(shell("explain", "--rows", "--state", str(path), "--json").out)
    assert full["next_offset"] > 0
    cluster = full["largest_clusters"][0]
    shown = json.loads(shell("explain", "--rows", "--state", str(path), "--cluster", str(cluster["cluster"])).out)
    assert len(shown["members"]) + 1 == shown["size"] == cluster["pages"]
    assert (shown["content_of"], shown["canonical"]) == (None, shown["url"])
    member = shown["members"][0]
    held = json.loads(shell("explain", "--rows", "--state", str(path), member["url"]).out)
    assert (held["page_id"], held["cluster"]["id"]) == (member["page_id"], cluster["cluster"])
    sketch = json.loads(shell("explain", "--rows", "--state", str(path), "--page-id", str(member["page_id"])).out)
    assert sketch == held["sketch"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--state", "nowhere"], "nowhere is no state directory"),
        (["http://not.example/"], "the index has no row of this URL"),
        (["--cluster", "999999999"], "there is no cluster"),
        (["--page-id", "999999999"], "the index has no sketch"),
    ],
)
def test_explain_rows_names_absent_rows(shell: Shell, path: Path, options: list[str], words: str) -> None:
    result = shell("explain", "--rows", *(options if "--state" in options else ["--state", str(path), *options]))
    assert (result.code, words in result.err) == (2 if "nowhere" in options else 1, True), result.err


def test_explain_and_report_read_a_directory_in_use(shell: Shell, path: Path) -> None:
    with ScanDirectory.open(path) as state:
        url = next(state.verdicts())["url"]
        for words in (("explain", url), ("explain", "--rows"), ("report", "--out", "report.html")):
            ended = shell(*words, "--state", str(path))
            assert ended.code == 0, (words, ended.err)


def test_explain_without_url_or_rows_is_wrong_usage(shell: Shell, path: Path) -> None:
    assert shell("explain", "--state", str(path)).code == 2
