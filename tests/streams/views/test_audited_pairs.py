"""Audited pairs on the pages, and their labelling: access, written labels, and readers of them."""

import re
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import orjson
import pytest

pytest.importorskip("aiohttp", reason="aiohttp is not installed")

from neardup.errors import BadInput
from neardup.evaluation.audits import audit_section, read_audits
from neardup.evaluation.labels import read_labels
from streams.evaluation.label import LabelFile
from streams.views import audited_pairs
from streams.views.audited_pairs import AuditedPairs, audits_of
from streams.views.source import ScanSource
from tests.neardup.report.test_report import HOSTILE
from tests.streams.shell import Shell, words
from tests.streams.views.random_verdicts import Held
from tests.streams.views.test_views_web import TOKEN, Server

BASIC = {"Authorization": "Basic " + b64encode(f"ana:{TOKEN}".encode()).decode()}
BASE = "https://a.example/"


def line(a: str, b: str, sample: str = "rejected", **more: Any) -> bytes:
    numbers = {"b_similarity": 3, "c_similarity": 370, "tape_score": 0.75}
    live = {"rule": "verified", "kind": None, "by": "tape"}
    sides = {"a": {"page_id": 1, "url": a}, "b": {"page_id": 2, "url": b}}
    return orjson.dumps(
        {"version": 1, "audit": "pair", "sample": sample, **sides, "pair": numbers, "live": live} | more
    )


def test_newest_audited_pairs_are_kept_and_foreign_lines_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audited_pairs, "PAIRS_KEPT", 3)
    held = AuditedPairs()
    for text in (b"", b"oops", b'{"version":1,"audit":"counts"}', b"x" * 70_000, line(BASE, BASE + "y" * 3_000)):
        held.take(text)
    assert held.pairs() == []
    for number in range(5):
        held.take(line(f"{BASE}{number}", f"{BASE}{number}/b"))
    held.take(line(f"{BASE}3/b", f"{BASE}3", "accepted"))
    assert [(pair.a, pair.sample) for pair in held.pairs()] == [
        (f"{BASE}2", "rejected"), (f"{BASE}3/b", "accepted"), (f"{BASE}4", "rejected")
    ]  # fmt: skip
    with pytest.raises(BadInput, match="version 9"):
        held.take(line(BASE, f"{BASE}b", version=9))


@pytest.fixture
def evil() -> Iterator[Server]:
    source, held = Held([]), AuditedPairs()
    ruling = {"kind": "near_duplicate", "by": HOSTILE}
    held.take(line(f"{BASE}<script>x</script>", f"{BASE}2", live=ruling, shadow=ruling))
    source.audits = held
    server = Server(source, token=TOKEN)
    yield server
    server.close()


def test_hostile_audit_lines_are_escaped_and_labels_need_a_file(evil: Server) -> None:
    status, headers, page = evil.get("/audits", **BASIC)
    assert status == 200
    assert "<script" not in page
    assert "1</td>" in page
    assert 'href="label/"' not in page
    (item,) = orjson.loads(evil.get("/audits.json?sample=rejected", **BASIC)[2])["items"]
    assert item["shadow"]["by"] == HOSTILE[:100]
    assert evil.get(f"/audits?sample={quote(HOSTILE)}", **BASIC)[0] == 404
    assert orjson.loads(evil.get("/audits.json?sample=accepted", **BASIC)[2])["items"] == []
    for method in ("GET", "POST"):
        status, headers, text = evil.ask(method, "/label/label", "", BASIC)
        assert (status, "--labels" in text) == (403, True)
        assert "default-src 'none'" in headers["Content-Security-Policy"]


class Round:
    """A scan with an audit, its views, and the file of labels."""

    def __init__(self, shell: Shell, folder: Path) -> None:
        (folder / "site").mkdir()
        for number in range(4):
            own = " ".join(f"n{number}x{i}" for i in range(34))
            text = f"<title>Wool {number}</title><script>document.title='hurt'</script><p>{words('a')} {own}"
            (folder / "site" / f"{number}.html").write_text(text)
        strict = ["--shadow", "tape", "--shadow-set", "tape_min=0.999", "--audit-rate", "1", "--audit", "audit.jsonl"]
        assert shell("scan", "site", "--base-url", BASE, *strict).code == 0
        self.audit, self.labels = folder / "audit.jsonl", folder / "labels.jsonl"
        self.source = ScanSource(folder / "neardup-state", audits_of(self.audit))
        self.file = LabelFile(self.labels)
        self.server = Server(self.source, token=TOKEN, labels=self.file)

    def pair(self, labeller: str = "ana") -> str:
        return self.server.get(f"/label/pair?labeller={labeller}", **BASIC)[2]

    def say(self, token: str, judgement: str, place: int = 0, **headers: str) -> tuple[int, str]:
        form = {"token": token, "labeller": "ana", "place": place, "judgement": judgement}
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        status, _, text = self.server.ask("POST", "/label/label", urlencode(form), {**kind, **BASIC, **headers})
        return status, text

    def close(self) -> None:
        self.server.close()
        self.file.close()


@pytest.fixture
def round_(shell: Shell, tmp_path: Path) -> Iterator[Round]:
    made = Round(shell, tmp_path)
    yield made
    made.close()


def token_of(page: str) -> str:
    return re.findall(r'name="token" value="([^"]+)"', page)[0]


def test_labels_need_a_token_and_are_counted_by_readers(round_: Round) -> None:
    answer = orjson.loads(round_.server.get("/audits.json", **BASIC)[2])
    drawn = read_audits([round_.audit]).pairs
    assert [(item["a"], item["b"]) for item in answer["items"]] == [(pair.a, pair.b) for pair in reversed(drawn)]
    assert 'href="label/"' in round_.server.get("/audits", **BASIC)[2]
    assert round_.server.get("/label/", **BASIC)[0] == 200
    page = round_.pair()
    assert "script-src 'self'" in round_.server.get("/label/pair?labeller=ana", **BASIC)[1]["Content-Security-Policy"]
    assert drawn[0].a in page
    token, own = token_of(page), round_.server.url.rstrip("/")

    assert round_.say(token, "correct", Authorization="")[0] == 401
    assert round_.say("another", "correct")[0] == 403
    assert round_.say(token, "correct", Origin="https://evil.example")[0] == 403
    assert round_.say(token, "correct", **{"Sec-Fetch-Site": "cross-site"})[0] == 403
    assert round_.say(token, "surely")[0] == 400
    assert round_.server.get("/label/pair?labeller=ana")[0] == 401
    assert round_.server.get("/label/nothing", **BASIC)[0] == 404
    assert round_.labels.read_bytes() == b""

    assert round_.say(token, "correct", Origin=own)[0] == 303
    assert round_.say(token, "incorrect", 1)[0] == 303
    labels = read_labels(round_.labels)
    assert [(label.pair, str(label.label), label.labeller) for label in labels] == [
        (drawn[0].urls, "correct", "ana"), (drawn[1].urls, "incorrect", "ana")
    ]  # fmt: skip
    assert labels[0].sample == f"audit: {drawn[0].sample}"
    answer = orjson.loads(round_.server.get("/audits.json", **BASIC)[2])
    assert (answer["labelled"], answer["items"][-1]["labels"]) == (2, {"ana": "correct"})
    (table,) = [table for table in audit_section(read_audits([round_.audit]), labels).tables if "samples" in table.name]
    assert sum(int(row[2] or 0) + int(row[3] or 0) for row in table.rows) == 2, "as `neardup evaluate --audit` counts"


def test_a_new_round_takes_no_form_of_the_one_before(round_: Round) -> None:
    round_.server.get("/label/", **BASIC)
    token = token_of(round_.pair())
    kept, newest = round_.source.audits.pairs(), AuditedPairs()
    for pair in kept[1:]:
        newest.add(pair)
    round_.source.audits = newest
    assert token_of(round_.pair()) == token, "a labeller is not disturbed"
    round_.server.get("/label/", **BASIC)
    assert round_.say(token, "correct")[0] == 403
    assert round_.say(token_of(round_.pair()), "correct")[0] == 303
    assert [label.pair for label in read_labels(round_.labels)] == [kept[1].urls]


@pytest.mark.whole
def test_a_person_labels_an_audited_pair_with_the_keyboard(round_: Round, browser: Any) -> None:
    page = browser.new_page(http_credentials={"username": "ana", "password": TOKEN})
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.goto(round_.server.url)
    page.get_by_role("link", name="Audits").click()
    page.get_by_role("link", name="Label them").click()
    page.get_by_label("Your name").fill("ana")
    page.keyboard.press("Enter")
    page.locator("#judge[data-ready]").wait_for()
    page.keyboard.press("d")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Pair 2 of").wait_for()
    assert page.title() != "hurt"
    (label,) = read_labels(round_.labels)
    assert (str(label.label), label.labeller) == ("correct", "ana")
    page.goto(round_.server.url + "audits")
    page.get_by_text("duplicates").first.wait_for()
    # The sandbox of the frames speaks up of each script that it stops.
    assert [values for values in complaints if "sandbox" not in values] == []
    page.close()


def test_the_page_of_audits_without_a_topic_explains_audits() -> None:
    server = Server(Held([]))
    try:
        status, _, text = server.get("/audits")
        assert (status, "audit_topic" in text) == (200, True)
    finally:
        server.close()


def test_wrong_usage_is_reported_before_anything_is_begun(shell: Shell) -> None:
    assert "NEARDUP_VIEWS_TOKEN" in shell("views", "--labels", "labels.jsonl").err
    assert not Path("labels.jsonl").exists()
    Path("audit.jsonl").touch()
    assert "--audit-topic" in shell("views", "--audit", "audit.jsonl").err
