"""The commands of all pages of the documentation run on a small crawl, page by page, but for those that need more."""

import json
import re
import shlex
from itertools import pairwise

import pytest

from tests.streams.archives import Sample, crawl, html, text, write_warc
from tests.streams.shell import Shell, site
from tests.test_documentation import NAMES, ROOT

pytestmark = pytest.mark.whole

pytest.importorskip("duckdb")

#: Pages whose commands build on those of the pages before them. All other pages of the documentation follow.
FIRST = (
    "README.md",
    "streams/scan/scan-a-crawl.md",
    "streams/verdicts/export-and-index.md",
    "streams/verdicts/replay-and-backfill.md",
    "neardup/evaluation/evaluate-and-tune.md",
    "neardup/partition/partition-an-archive.md",
)
ALL = (*FIRST, *(name for name in NAMES if name not in FIRST))
#: Commands that need a broker, a store, a browser, a person, or results of queries; other tests run them.
ELSEWHERE = re.compile(
    r"s3://|topic:|neardup (topics|run|publish|verdicts|backfill|match|cutover|generations?|audit|label|views)\b"
    r"|neardup (sketch|ping|forget|canonical|ask|render|signals|train|dedupe-results|evaluate signals)\b"
    r"|neardup (config )?seed\b|replay --since|--audit|--verdicts -|build/|texts\.parquet|walk-texts"
)


def commands(page: str) -> list[str]:
    """The commands of a page that run here, without comments and without what a pipe does with their output."""
    lines = "\n".join(re.findall(r"(?ms)^```\n(.*?)^```$", (ROOT / page).read_text())).splitlines()
    found = [re.sub(r"\s{2,}#.*| \| .*", "", line) for line in lines if line.startswith("neardup ")]
    return [line for line in found if not ELSEWHERE.search(line)]


@pytest.mark.slow
def test_commands_of_the_pages_run(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEARDUP_SEED", "7")
    samples = crawl(84)
    for release in (2, 8):
        samples += [
            Sample(f"1.3.{release}/doc/page{n}.html", html(f"Part {n}", f"{text(500 + n)} release {release}"))
            for n in range(12)
        ]
    for name, some in (("crawl", samples), ("more", samples[:3])):
        write_warc(shell.folder / f"{name}.warc.gz", some, f"https://{name}.example/")
    site(shell.folder / "site")
    site(shell.folder / "pages")
    assert shell("scan", "crawl.warc.gz").code == 0
    urls = [f"https://crawl.example/{sample.path}" for sample in samples]
    pairs = [
        {"a": {"url": a}, "b": {"url": b}, "label": "correct" if "edit" in b or "copy" in b else "incorrect"}
        for a, b in pairwise(urls)
    ]
    for name in ("labels.jsonl", "set-labels.jsonl"):
        (shell.folder / name).write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    ran = 0
    for page in ALL:
        for command in commands(page):
            ended = shell(*shlex.split(command)[1:])
            assert ended.code == 0, (page, command, ended)
            ran += 1
    assert ran >= 20
